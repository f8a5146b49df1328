//go:build unix

package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bench is a tree whose history tests write.
type bench struct {
	testing.TB
	root  string
	store string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{TB: t, root: filepath.Join(t.TempDir(), "tree")}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	rec, err := recorder.Open(context.Background(), recorder.Options{ReaderOptions: b.options(), Create: true})
	require.NoError(t, err)
	b.store = rec.Project().StorePath
	require.NoError(t, rec.Close())
	return b
}

func (b *bench) options() recorder.ReaderOptions {
	clock := noon
	return recorder.ReaderOptions{
		Disk: disk.OS, Location: time.UTC, Clock: func() time.Time { clock = clock.Add(time.Second); return clock },
		Where: project.Where{RootFlag: b.root, Cwd: b.root, Home: b.root + "-home", StoreEnv: b.root + "-store"},
	}
}

func (b *bench) reader() *recorder.Reader {
	b.Helper()
	rec, err := recorder.OpenReader(b.options())
	require.NoError(b, err)
	b.Cleanup(func() { rec.Close() })
	return rec
}

// write makes records, oldest first, as the log of the store has them.
func (b *bench) write(records ...*history.Record) {
	b.Helper()
	var log bytes.Buffer
	for _, r := range records {
		data := r.JSON(nil)
		dir := filepath.Join(b.root, ".decree", "runs", r.ID)
		require.NoError(b, os.MkdirAll(dir, 0o755))
		require.NoError(b, os.WriteFile(filepath.Join(dir, "run.json"), data, 0o644))
		st, err := os.Stat(filepath.Join(dir, "run.json"))
		require.NoError(b, err)
		var flat bytes.Buffer
		require.NoError(b, json.Compact(&flat, data))
		fmt.Fprintf(&log, "{\"id\":%q,\"at\":%d,\"file\":[%d,%d],\"trees\":[null,null],\"files\":{},\"record\":%s}\n", r.ID, r.Started.UnixNano(), len(data), st.ModTime().UnixNano(), flat.Bytes())
	}
	require.NoError(b, os.WriteFile(filepath.Join(b.store, "records.jsonl"), log.Bytes(), 0o600))
}

func (b *bench) list(filter, cursor string, limit int) *Page {
	b.Helper()
	f, err := ParseFilter(filter, time.UTC, noon.Add(11*time.Hour))
	require.NoError(b, err)
	page, err := List(b.Context(), b.reader(), f, cursor, limit)
	require.NoError(b, err)
	return page
}

// record is the n-th one, a minute after the one before it.
func record(n int, reason history.Reason, change func(*history.Record)) *history.Record {
	at := noon.Add(time.Duration(n) * time.Minute)
	chain := at.Format("20060102150405") + "00"
	r := &history.Record{
		ID: chain + "-0", Chain: chain, Reason: reason, Status: history.StatusSucceeded, Cwd: ".", Attempts: 1,
		Started: at, Ended: at.Add(time.Second), Duration: time.Second, Changes: history.Changes{Created: 1, Modified: 2, AddedLines: 10, RemovedLines: 3}, DiffSHA256: tree.Sum([]byte("diff")),
		Actor: history.Actor{User: "u", Host: "h"},
	}
	if reason == history.Run {
		r.Command = []string{"make", "generate"}
	}
	if change != nil {
		change(r)
	}
	return r
}

func turn(n int, session, prompt string) *history.Record {
	return record(n, history.Turn, func(r *history.Record) {
		r.Actor.Agent, r.Actor.Session, r.Actor.Turn = "claude", session, n
		r.Turn = &history.TurnFacts{Prompt: prompt, EndedBy: history.EndedByEvent}
	})
}

func candidate(n int, name string, state history.DraftState) *history.Record {
	return record(n, history.Run, func(r *history.Record) {
		r.Isolated = "overlay"
		if name != "" {
			r.Draft = &history.Draft{Name: name, State: state}
		}
	})
}

// found adds an outside change to a record.
func found(r *history.Record) *history.Record {
	if err := r.SetOutside(history.Outside{SHA256: tree.Sum([]byte("o")), Changes: history.Changes{Modified: 4}}); err != nil {
		panic(err)
	}
	return r
}

// shown is a page as text: a line a row, what is inside indented.
func shown(rows []Row, indent string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s%s | %s | %s | %s\n", indent, r.Badge, r.What, r.Status, r.Changed)
		b.WriteString(shown(r.Inner, indent+"  "))
	}
	return b.String()
}

func TestRowsSayWhatRecordsAre(t *testing.T) {
	b := newBench(t)
	b.write(
		record(1, history.Auto, nil),
		record(2, history.Manual, func(r *history.Record) { r.Description = "before\nthe merge" }),
		found(record(3, history.Run, nil)),
		record(4, history.Run, func(r *history.Record) { r.Status = history.StatusReverted }),
		record(5, history.Restore, func(r *history.Record) { r.Parent = "2026112112020000-0" }),
		record(6, history.Run, func(r *history.Record) { r.Command = []string{"printf", "\x1b]52;c;x\a\u202e"} }),
	)
	page := b.list("", "", 50)
	require.Equal(t, `Run | printf $'\033]52;c;x\007\342\200\256' | succeeded | 3 files
Restore | of before | succeeded | 3 files
Run | make generate | failed, put back | 3 files
Run | make generate | succeeded | 3 files
Outside | changed outside of any record |  | 4 files
Manual | before |  | 
Auto |  |  | 
`, shown(page.Rows, ""))
	require.Empty(t, page.Next)
	require.Equal(t, "Run, make generate, today 12:03, 3 files", page.Rows[3].Label)
	require.Equal(t, "Run, make generate, today 12:04, 3 files, failed, put back", page.Rows[2].Label)
	require.Equal(t, 10, page.Rows[3].Added)
}

func TestTurnsAreInsideTheirSession(t *testing.T) {
	b := newBench(t)
	session := func(r *history.Record) { r.Actor.Agent, r.Actor.Session = "claude", "a" }
	b.write(
		found(record(1, history.Auto, session)),
		turn(2, "a", "mend the\nlogin"),
		found(turn(3, "a", "now the tests")),
		record(4, history.Run, nil),
		turn(5, "a", "and the docs"),
		turn(6, "b", "another"),
		turn(7, "c", "and"), turn(8, "c", "a third"),
	)
	require.Equal(t, `Session | claude, 2 turns: and |  | 6 files
  Turn | a third | succeeded | 3 files
  Turn | and | succeeded | 3 files
Turn | another | succeeded | 3 files
Turn | and the docs | succeeded | 3 files
Run | make generate | succeeded | 3 files
Session | claude, 2 turns: mend the login |  | 6 files
  Turn | now the tests | succeeded | 3 files
  Outside | changed outside of any record |  | 4 files
  Turn | mend the login | succeeded | 3 files
  Auto |  |  | 
Outside | changed outside of any record |  | 4 files
`, shown(b.list("", "", 0).Rows, ""))
}

func TestCandidatesAreInsideTheirRace(t *testing.T) {
	b := newBench(t)
	b.write(
		candidate(1, "race.1", history.DraftDiscarded), candidate(2, "race.2", history.DraftPublished),
		record(2, history.Run, func(r *history.Record) {
			r.Isolated, r.Started, r.Chain, r.ID = "overlay", r.Started.Add(time.Second), "2026112112020100", "2026112112020100-0"
		}),
		candidate(4, "race2.1", history.DraftWaiting), candidate(5, "race2.2", history.DraftWaiting),
		candidate(6, "try", history.DraftWaiting),
	)
	rows := b.list("", "", 0).Rows
	require.Equal(t, `Run | make generate | succeeded, a draft | 3 files
Race | race2: 2 candidates of make generate | waits for a choice | 
  Run | make generate | succeeded, a draft | 3 files
  Run | make generate | succeeded, a draft | 3 files
Race | race: 3 candidates of make generate | race.2 published | 
  Run | make generate | succeeded, discarded | 3 files
  Run | make generate | succeeded, published | 3 files
  Run | make generate | succeeded | 3 files
`, shown(rows, ""))
	require.Equal(t, "race2.1", rows[1].Inner[0].Name)
	first := b.list("", "", 2)
	require.Equal(t, shown(rows[2:], ""), shown(b.list("", first.Next, 5).Rows, ""))
	require.Equal(t, Waiting, rows[1].Tone)
}

// TestARaceSaysWhatBecameOfIt: what waits beside a published candidate is told, and a part is no whole.
func TestARaceSaysWhatBecameOfIt(t *testing.T) {
	const waits, partly, published, discarded = history.DraftWaiting, history.DraftPartly, history.DraftPublished, history.DraftDiscarded
	for want, states := range map[string][]history.DraftState{
		"waits for a choice":                       {waits, discarded},
		"race.1 published":                         {published, discarded},
		"race.1 published in part":                 {partly, discarded},
		"race.1 published, race.2 waits":           {published, waits},
		"race.1 published in part, 3 wait":         {partly, waits, waits, waits},
		"race.1 published, race.2 and race.3 wait": {published, waits, waits},
		"discarded":                                {discarded, discarded},
	} {
		b := newBench(t)
		var records []*history.Record
		for i, state := range states {
			records = append(records, candidate(i+1, fmt.Sprint("race.", i+1), state))
		}
		b.write(append(records, record(20, history.Publish, func(r *history.Record) { r.Parent = records[0].ID }))...)
		rows := b.list("", "", 0).Rows
		require.Equal(t, want, rows[1].Status)
		require.Equal(t, "of race.1", rows[0].What)
	}
}

// TestVerdictsAreHeard: what the judge said of a candidate is in its label, and in none of the race.
func TestVerdictsAreHeard(t *testing.T) {
	b := newBench(t)
	judged := func(n, code int) *history.Record {
		r := candidate(n, fmt.Sprint("race.", n), history.DraftWaiting)
		r.Judge = &history.Judgement{Command: "go test", ExitCode: code}
		return r
	}
	b.write(judged(1, 0), judged(2, 1))
	race := b.list("", "", 0).Rows[0]
	require.Equal(t, "Race, race: 2 candidates of make generate, today 12:02, waits for a choice", race.Label)
	require.Equal(t, "Run, race.1: make generate, today 12:01, 3 files, succeeded, a draft, judged good", race.Inner[0].Label)
	require.Equal(t, "Run, race.2: make generate, today 12:02, 3 files, succeeded, a draft, judged bad", race.Inner[1].Label)
}

// TestPagesPartNothing: whatever the size of the pages, they are the whole list, and what
// belongs together is on one of them.
func TestPagesPartNothing(t *testing.T) {
	b := newBench(t)
	var records []*history.Record
	for n := range 60 {
		switch {
		case n%7 < 3:
			records = append(records, turn(n, fmt.Sprint("s", n/14), "x"))
		case n%7 == 3:
			records = append(records, found(record(n, history.Run, nil)))
		default:
			records = append(records, record(n, history.Manual, nil))
		}
	}
	b.write(records...)
	whole := shown(b.list("", "", 0).Rows, "")
	for limit := 1; limit < 12; limit++ {
		var rows []Row
		cursor := ""
		for {
			page := b.list("", cursor, limit)
			rows = append(rows, page.Rows...)
			if cursor = page.Next; cursor == "" {
				break
			}
			require.GreaterOrEqual(t, len(page.Rows), limit)
		}
		require.Equal(t, whole, shown(rows, ""), "limit %d", limit)
	}
}

func TestDamagedRecordsAreRows(t *testing.T) {
	b := newBench(t)
	b.write(record(1, history.Manual, nil), record(2, history.Run, nil), record(3, history.Manual, nil))
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/runs/2026112112020000-0/run.json"), []byte(`{"id": "20261121`), 0o644))
	page := b.list("", "", 50)
	require.Len(t, page.Rows, 3)
	require.Equal(t, Damaged, page.Rows[1].Kind)
	require.Equal(t, "today 12:02", page.Rows[1].When)
	require.Contains(t, page.Rows[1].Label, "Damaged, ")
	require.Empty(t, page.Notes, "what is a row is no note")
	first := b.list("", "", 1)
	require.Equal(t, Damaged, b.list("", first.Next, 1).Rows[0].Kind)
}

func TestFilter(t *testing.T) {
	b := newBench(t)
	b.write(
		record(1, history.Manual, func(r *history.Record) { r.Description = "Before the merge" }),
		found(record(2, history.Run, nil)),
		turn(3, "a", "mend the login test"),
	)
	for filter, want := range map[string]string{
		"":                       "Turn Run Outside Manual",
		"merge":                  "Manual",
		"MERGE before":           "Manual",
		"'before the'":           "Manual",
		"merge login":            "",
		"reason:run":             "Run",
		"reason:run reason:turn": "Turn Run",
		"reason:outside":         "Outside",
		"outside":                "Outside",
		"since:12:03":            "Turn",
		"until:12:01":            "Manual",
		"since:12:02 reason:run": "Run",
		"http://x":               "",
		"claude":                 "Turn",
	} {
		var got []string
		for _, r := range b.list(filter, "", 50).Rows {
			got = append(got, r.Badge)
		}
		require.Equal(t, want, strings.Join(got, " "), filter)
	}
	for _, bad := range []string{"reason:none", "since:whenever"} {
		_, err := ParseFilter(bad, time.UTC, noon)
		require.Equal(t, project.Usage, project.KindOf(err), bad)
	}
}

// TestFilterByPath has real diffs, which a path is looked for in.
func TestFilterByPath(t *testing.T) {
	b := newBench(t)
	for i, name := range []string{"a.txt", "src/b.txt", "src/c.txt"} {
		file := filepath.Join(b.root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(name), 0o644))
		rec, err := recorder.Open(t.Context(), recorder.Options{ReaderOptions: b.options(), Create: true})
		require.NoError(t, err)
		_, err = rec.Checkpoint(t.Context(), recorder.CheckpointOptions{Description: fmt.Sprint(i)})
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	page := b.list("path:src/", "", 50)
	require.Len(t, page.Rows, 2)
	require.Equal(t, Outside, page.Rows[0].Kind)
	first := b.list("path:src", "", 1)
	require.Len(t, b.list("path:src", first.Next, 1).Rows, 1)
	require.Empty(t, b.list("path:none", "", 50).Rows)
}

func TestBarred(t *testing.T) {
	b := newBench(t)
	b.write(candidate(1, "try", history.DraftWaiting))
	barred, err := Barred(b.reader())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"restore": "Discard or publish your draft to restore: try waits", "checkpoint": "Discard or publish your draft to create a checkpoint: try waits"}, barred)
	var more []*history.Record
	for n := range 4 {
		more = append(more, candidate(n+2, fmt.Sprint("race.", n+1), history.DraftWaiting))
	}
	b.write(more...)
	barred, err = Barred(b.reader())
	require.NoError(t, err)
	require.Equal(t, "Discard or publish your draft to restore: race.4, race.3, race.2 and 1 more wait", barred["restore"])
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/config.yml"), []byte("drafts.block: false\n"), 0o644))
	barred, err = Barred(b.reader())
	require.NoError(t, err)
	require.Empty(t, barred)
}

func TestWhen(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for want, at := range map[string]time.Time{
		"today 00:30":       time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC),
		"yesterday 23:59":   time.Date(2026, 11, 20, 22, 59, 0, 0, time.UTC),
		"1 Nov 01:00":       time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		"31 Dec 2025 13:00": time.Date(2025, 12, 31, 12, 0, 0, 0, time.UTC),
		"":                  {},
	} {
		require.Equal(t, want, When(at, noon, berlin))
	}
}

func BenchmarkFirstPage(b *testing.B) {
	w := newBench(b)
	var records []*history.Record
	for n := range 10_000 {
		records = append(records, turn(n, fmt.Sprint("s", n/20), "mend the login"))
	}
	w.write(records...)
	for b.Loop() {
		rec := w.reader()
		_, err := List(b.Context(), rec, Filter{Now: noon}, "", 50)
		require.NoError(b, err)
	}
}
