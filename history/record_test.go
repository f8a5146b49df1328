package history

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

func fullRecord() *Record {
	at := time.Date(2026, 11, 21, 7, 1, 59, 123456789, time.UTC)
	return &Record{
		ID: "2026112107015900-0", Chain: "2026112107015900", Reason: Run, Status: StatusUndone, Description: "a <b> & \u2028 \"c\"\n",
		Command: []string{"make", "generate", "caf\xe9"}, Cwd: "sub/d\xffr", Attempts: 2, ExitCode: new(3),
		Started: at, Ended: at.Add(1234 * time.Millisecond), Recovered: &at, Duration: 1234 * time.Millisecond,
		DiffSHA256: tree.Sum([]byte("diff")), Unrecorded: []tree.Path{"a\nb", "\xe9"}, Files: 5120, Bytes: 48213377,
		Changes: Changes{2, 9, 1, 120, 33}, Before: tree.Sum([]byte("b")), After: tree.Sum([]byte("a")),
		Actor: Actor{"u", "h", "coder", "s1", 7, "m-1"}, Parent: "2026112107015800-0", UndoneBy: "2026112107020000-0", Origin: "0123456789abcdef0123456789abcdef",
		Extra: []Field{{"later", json.RawMessage(`{"x":[1,2.5e3,null,true,"\u00e9"]}`)}},
	}
}

func TestRecordLayout(t *testing.T) {
	want := `{
  "version": 1,
  "id": "2026112107015900-0",
  "chain": "2026112107015900",
  "seq": 0,
  "reason": "run",
  "status": "undone",
  "description": "a <b> & ` + "\u2028" + ` \"c\"\n",
  "command": ["make","generate","\"caf\\351\""],
  "cwd": "\"sub/d\\377r\"",
  "attempts": 2,
  "exit_code": 3,
  "started": "2026-11-21T07:01:59.123456789Z",
  "ended": "2026-11-21T07:02:00.357456789Z",
  "recovered": "2026-11-21T07:01:59.123456789Z",
  "duration_ms": 1234,
  "diff_sha256": "` + tree.Sum([]byte("diff")).String() + `",
  "unrecorded": ["\"a\\nb\"","\"\\351\""],
  "files": 5120,
  "bytes": 48213377,
  "changes": {"created": 2, "modified": 9, "deleted": 1, "added_lines": 120, "removed_lines": 33},
  "before": "` + tree.Sum([]byte("b")).String() + `",
  "after": "` + tree.Sum([]byte("a")).String() + `",
  "actor": {"user": "u", "host": "h", "agent": "coder", "session": "s1", "turn": 7, "model": "m-1"},
  "parent": "2026112107015800-0",
  "undone_by": "2026112107020000-0",
  "origin": "0123456789abcdef0123456789abcdef",
  "later": {"x":[1,2.5e3,null,true,"\u00e9"]},
  "labels": ["one","two"]
}
`
	assert.Equal(t, want, string(fullRecord().JSON([]string{"one", "two"})))
	r := fullRecord()
	r.Reason, r.Parent, r.UndoneBy, r.Origin, r.Recovered, r.Extra = Manual, "", "", "", nil, nil
	r.DiffSHA256, r.After, r.Ended = tree.Hash{}, tree.Hash{}, time.Time{}
	text := string(r.JSON(nil))
	for _, absent := range []string{"command", "cwd", "attempts", "exit_code", "parent", "undone_by", "origin", "labels"} {
		assert.NotContains(t, text, `"`+absent+`"`)
	}
	for _, present := range []string{`"recovered": null`, `"ended": null`, `"diff_sha256": ""`, `"after": ""`} {
		assert.Contains(t, text, present)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, rng.IntN(12))
		for i := range b {
			b[i] = byte(1 + rng.IntN(255))
		}
		return string(b)
	}
	valid := func() string { return strings.ToValidUTF8(text(), "\ufffd") }
	for range 2000 {
		r := fullRecord()
		r.Description, r.Actor.Session, r.Cwd = valid(), valid(), text()
		r.Command = []string{valid(), valid()}
		r.Unrecorded = []tree.Path{tree.Path(text()), tree.Path(text())}
		r.Started = time.Unix(rng.Int64N(1<<32), rng.Int64N(1e9)).UTC()
		r.Seq = rng.IntN(1000)
		r.ID = FormatID(r.Chain, r.Seq)
		if rng.IntN(2) == 0 {
			r.ExitCode, r.Recovered, r.Extra, r.Ended = nil, nil, nil, time.Time{}
		}
		for _, form := range [][]byte{r.JSON(nil), r.JSON([]string{"l"}), r.appendCompact(nil)} {
			require.True(t, json.Valid(form), "%s", form)
			got, err := ParseRecord(form)
			require.NoError(t, err, "%s", form)
			require.Equal(t, r, got)
		}
	}
}

func TestParseRecordRefuses(t *testing.T) {
	good := string(fullRecord().JSON(nil))
	swap := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for name, text := range map[string]string{
		"empty": "", "null": "null", "array": "[]", "no version": swap(`"version": 1,`, ""), "version 0": swap(`"version": 1`, `"version": 0`),
		"cut": good[:len(good)/2], "cut at the end": strings.TrimSuffix(good, "}\n"), "tail": good + "x", "two": good + good,
		"id": swap(`"id": "2026112107015900-0"`, `"id": "2026112107015900-00"`), "id is a path": swap(`"id": "2026112107015900-0"`, `"id": "../../etc/passwd-0"`),
		"seq": swap(`"seq": 0`, `"seq": 1`), "seq is text": swap(`"seq": 0`, `"seq": "0"`), "chain": swap(`"chain": "2026112107015900"`, `"chain": "2026112107015901"`),
		"status": swap(`"status": "undone"`, `"status": 1`), "no status": swap(`"status": "undone",`, ""),
		"time": swap(`"2026-11-21T07:01:59.123456789Z"`, `"yesterday"`), "far time": swap(`"2026-11-21T07:01:59.123456789Z"`, `"9999-11-21T07:01:59Z"`),
		"hash": swap(tree.Sum([]byte("b")).String(), "B0"), "negative": swap(`"files": 5120`, `"files": -1`), "float": swap(`"files": 5120`, `"files": 5.5`),
		"huge": swap(`"files": 5120`, `"files": 99999999999999999999`), "command": swap(`["make"`, `[["make"]`), "quoting": swap(`"\"\\351\""`, `"\"\\35\""`),
		"parent": swap(`"parent": "2026112107015800-0"`, `"parent": "x"`), "bad word": swap(`"files": 5120`, `"files": nul`), "leading zero": swap(`"files": 5120`, `"files": 05`),
		"not UTF-8": swap("make", "\xff"), "control character": swap("make", "\x01"), "bad escape": swap("make", `\x`), "changes": swap(`{"created": 2,`, `[{"created": 2,`),
		"deep": swap(`{"x":[1`, strings.Repeat(`{"x":`, 100)+`[1`),
	} {
		_, err := ParseRecord([]byte(text))
		assert.Error(t, err, name)
	}
	_, err := ParseRecord([]byte(swap(`"version": 1`, `"version": 2`)))
	var newer *NewerError
	require.True(t, errors.As(err, &newer))
	assert.Contains(t, err.Error(), "version 2")
	_, err = ParseRecord([]byte(`{"version":2,"id":["of another shape"]}`))
	require.True(t, errors.As(err, &newer), "whatever a newer version looks like: %v", err)
}

func TestIDs(t *testing.T) {
	for id, want := range map[string]int{"2026112107015900-0": 0, "2026112107015999-10": 10, "2026112107015900-999999999": 999999999} {
		chain, seq, ok := ParseID(id)
		require.True(t, ok, id)
		assert.Equal(t, want, seq)
		assert.Equal(t, id, FormatID(chain, seq))
	}
	for _, id := range []string{"", "2026112107015900", "2026112107015900-", "2026112107015900-00", "2026112107015900-01", "2026112107015900--1", "2026112107015900-+1",
		"202611210701590-0", "20261121070159000-0", "2026112107015900-1000000000", "2026112107015900-0/", "2026112107015900-0\n", "x026112107015900-0", "../../../../../../-0"} {
		_, _, ok := ParseID(id)
		assert.False(t, ok, id)
	}
	a, b := fullRecord(), fullRecord()
	a.Seq, b.Seq = 2, 10
	assert.Negative(t, Compare(a, b), "seq is a number")
	a.Started = a.Started.Add(1)
	assert.Positive(t, Compare(a, b), "a nanosecond comes first")
}

func FuzzParseRecord(f *testing.F) {
	f.Add(fullRecord().JSON(nil))
	f.Add(fullRecord().appendCompact(nil))
	for _, s := range []string{"", "{}", `{"version":1}`, `{"version":1,"id":"2026112107015900-0","a":{"b":[1,{}]}}`, "{\"a\":\"\\u12", "{\"\x00\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("took what is not JSON: %q", data)
		}
		for _, form := range [][]byte{r.JSON(nil), r.appendCompact(nil)} {
			again, err := ParseRecord(form)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, data, form)
			}
			if string(again.JSON(nil)) != string(r.JSON(nil)) {
				t.Fatalf("%s\n%s", r.JSON(nil), again.JSON(nil))
			}
		}
	})
}
