package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"decree/project"
	"decree/tree"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// add puts a record straight into the log.
func (w *world) add(id string, at time.Time, change func(*Record)) *Record {
	w.t.Helper()
	r := &Record{ID: id, Reason: Manual, Status: StatusSucceeded, Started: at, Ended: at}
	var ok bool
	r.Chain, r.Seq, ok = ParseID(id)
	require.True(w.t, ok)
	if change != nil {
		change(r)
	}
	require.NoError(w.t, w.write(&line{key: recordKey(r), record: r}))
	return r
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	at := w.clock
	ids := []string{"2026112107015900-0", "2026112107015900-1", "2026112107015900-10", "2026112107015900-2", "2026112107015901-0", "2026112108000000-0"}
	for i, id := range ids {
		w.add(id, at.Add(time.Duration(i)), nil)
	}
	require.NoError(t, w.SetLabel("release", ids[1]))
	for ref, want := range map[string]string{
		ids[1]: ids[1], "2026112107015900-10": ids[2], "2026112108": ids[5], "2026112107015901": ids[4], "202611210801": "", "2026112107015901-": ids[4],
		"last": ids[5], "latest": ids[5], "last~0": ids[5], "last~2": ids[3], "last~5": ids[0], "last~6": "", "release": ids[1], "relase": "", "nothing": "", "": "",
		"2026112107015900": "", "2": "", "last~x": "", "last~": "", "last~-1": "", "last~99999999999999999999": "", "9": "", "../x": "", "@": "", "@2h": "",
		"@2026-11-21T07:01:59.000000005Z": ids[0], "@1h ago": "",
	} {
		got, err := w.Resolve(ref, time.UTC)
		if want == "" {
			assert.Error(t, err, ref)
			continue
		}
		if assert.NoError(t, err, ref) {
			assert.Equal(t, want, got.ID, ref)
		}
	}
	_, err := w.Resolve("2026112107015900-1x", time.UTC)
	require.ErrorIs(t, err, ErrNoRecord)

	_, err = w.Resolve("202611210701590", time.UTC)
	var many *AmbiguousError
	require.True(t, errors.As(err, &many))
	assert.Equal(t, ids[:5], many.Candidates)
	for end, want := range map[string]string{"5901": ids[4], "1-0": ids[4], "01-0": ids[4], "0-10": ids[2], "10": ids[2], "8000000-0": ids[5], "5900-2": ids[3]} {
		got, err := w.Resolve(end, time.UTC)
		if assert.NoError(t, err, end) {
			assert.Equal(t, Ref{ID: want, Part: true}, got, end)
		}
	}
	for _, end := range []string{"0-0", "5900", "0", "00"} {
		_, err := w.Resolve(end, time.UTC)
		require.True(t, errors.As(err, &many), end)
	}
	short, err := w.Ends()
	require.NoError(t, err)
	var ends []string
	for _, id := range ids {
		ends = append(ends, short(id))
		got, err := w.Resolve(short(id), time.UTC)
		require.NoError(t, err)
		assert.Equal(t, id, got.ID)
	}
	assert.Equal(t, []string{"900-0", "00-1", "0-10", "00-2", "5901", "0000"}, ends)
	assert.Equal(t, "2026112107015977-0", short("2026112107015977-0"), "no record's")
	_, err = w.Resolve("202611210701590", time.UTC)
	assert.Equal(t, project.NotFound, project.KindOf(err))
	require.ErrorIs(t, err, ErrNoRecord)
	for _, ref := range []string{"nothing", "9", "last~6", "@2020-01-01"} {
		_, err := w.Resolve(ref, time.UTC)
		require.ErrorIs(t, err, ErrNoRecord, ref)
		assert.Equal(t, project.NotFound, project.KindOf(err), ref)
		assert.NotEmpty(t, project.HintOf(err), ref)
	}
	_, err = w.Resolve("relase", time.UTC)
	assert.Contains(t, project.HintOf(err), "release")
	_, err = w.Resolve("@noon", time.UTC)
	assert.Equal(t, project.Usage, project.KindOf(err))

	refs, err := w.ResolveAll("2026112107015900", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, []Ref{{ID: ids[0]}, {ID: ids[1]}, {ID: ids[2]}, {ID: ids[3]}}, refs)
	_, err = w.ResolveAll("2026112107015999", time.UTC)
	require.ErrorIs(t, err, ErrNoRecord)
	refs, err = w.ResolveAll("last~1", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, []Ref{{ID: ids[4]}}, refs)

	list, err := w.Range(ids[1], ids[4])
	require.NoError(t, err)
	assert.Equal(t, ids[1:5], list)
	_, err = w.Range(ids[4], ids[1])
	assert.Equal(t, project.Usage, project.KindOf(err))
}

func TestSplitRange(t *testing.T) {
	for s, want := range map[string][2]string{"a..b": {"a", "b"}, "last~3..last": {"last~3", "last"}, "@2h ago..last": {"@2h ago", "last"}} {
		a, b, ok, err := SplitRange(s)
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, want, [2]string{a, b})
	}
	a, _, ok, err := SplitRange("last")
	assert.Equal(t, []any{"last", false, nil}, []any{a, ok, err})
	for _, s := range []string{"..", "a..", "..b", "a..b..c", "a...."} {
		_, _, _, err := SplitRange(s)
		assert.Error(t, err, s)
	}
}

func TestLabels(t *testing.T) {
	w := newWorld(t)
	a, b := w.checkpoint(), w.checkpoint()
	for _, name := range []string{"a", "session", "turn-7", "Before_upgrade.2", "v1", "2nd", "deadbeef"} {
		require.NoError(t, w.SetLabel(name, a.ID), name)
	}
	for _, name := range []string{"", ".", "..", "a..b", "-a", ".a", "@a", "a/b", "../a", "a b", "a:b", "a~1", "last", "latest", "yesterday", "2026", "2026-11-20", a.ID, a.Chain, "0", "1-2",
		"caf\u00e9", "a\n", string(make([]byte, 65))} {
		err := w.SetLabel(name, a.ID)
		require.Error(t, err, "%q", name)
		assert.Equal(t, project.Usage, project.KindOf(err), "%q", name)
	}
	require.NoError(t, w.SetLabel("v1", b.ID))
	of, err := w.LabelsOf()
	require.NoError(t, err)
	assert.Equal(t, []string{"v1"}, of[b.ID])
	assert.Len(t, of[a.ID], 6)
	require.ErrorContains(t, w.SetLabel("x", "2026112107015900-5"), "no record")
	require.NoError(t, w.DeleteLabel("v1"))
	require.ErrorContains(t, w.DeleteLabel("v1"), "no label v1")
	require.NoError(t, w.Remove([]string{a.ID}))
	all, err := w.Labels()
	require.NoError(t, err)
	assert.Empty(t, all)
	w.put(w.stored(LabelsFile), `{"version":2,"labels":[]}`)
	_, err = w.Labels()
	require.Error(t, err)
}

func TestObserved(t *testing.T) {
	w := newWorld(t)
	begin := w.clock
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	_, err := w.Observed(at(0))
	require.ErrorIs(t, err, ErrNoRecord)
	tree := tree.Sum([]byte("after"))
	ran := func(end int, s Status) func(*Record) {
		return func(r *Record) { r.Reason, r.Status, r.Ended, r.After = Run, s, at(end), tree }
	}
	check := w.add("2026112107010000-0", at(0), nil)
	run := w.add("2026112107010100-0", at(10), ran(20, StatusSucceeded))
	back := w.add("2026112107010200-0", at(30), ran(40, StatusReverted))
	w.add("2026112107010300-0", at(50), func(r *Record) { r.Reason, r.After = Revert, tree })
	same1 := w.add("2026112107010400-0", at(60), nil)
	same2 := w.add("2026112107010401-0", at(60).Add(1), nil)
	inner := w.add("2026112107010600-0", at(110), func(r *Record) { r.Ended = at(111) })
	outer := w.add("2026112107010500-0", at(100), ran(120, StatusSucceeded)) // ended after what was made inside it
	for _, c := range []struct {
		at   time.Time
		want *Record
		side Side
	}{
		{at(105), outer, Before}, {at(110), inner, Before}, {at(119), inner, Before}, {at(120), outer, After},
		{at(0), check, Before}, {at(9), check, Before}, {at(10), run, Before}, {at(19), run, Before}, {at(20), run, After}, {at(29), run, After},
		{at(30), back, Before}, {at(45), back, Before}, {at(55), back, Before}, {at(60), same1, Before}, {at(61), same2, Before}, {at(99), same2, Before}, {at(1e6), outer, After},
	} {
		st, err := w.Observed(c.at)
		require.NoError(t, err)
		assert.Equal(t, c.want.ID, st.Record.ID, c.at)
		assert.Equal(t, c.side, st.Side, c.at)
	}
	_, err = w.Observed(at(-1))
	require.ErrorIs(t, err, ErrNoRecord)
	assert.Contains(t, project.HintOf(err), check.ID)
	w.clock = at(25)
	ref, err := w.Resolve("@2s ago", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, Ref{ID: run.ID, Side: After, Time: at(23)}, ref)
}

// TestEndsNameOneRecord: whatever the ids, an end that is shown is understood, and
// showing all of a long history takes no time that grows with its square.
func TestEndsNameOneRecord(t *testing.T) {
	w := newWorld(t)
	var lines []*line
	for i := range 3000 {
		at := w.clock.Add(time.Duration(i*i%977) * time.Minute)
		r := &Record{Chain: fmt.Sprintf("%s%02d", at.Format(chainForm), i%100), Seq: i % 3 * (i % 7), Reason: Auto, Status: StatusSucceeded, Started: w.clock.Add(time.Duration(i))}
		r.ID = FormatID(r.Chain, r.Seq)
		lines = append(lines, &line{key: recordKey(r), record: r})
	}
	require.NoError(t, w.write(lines...))
	short, err := w.Ends()
	require.NoError(t, err)
	shorter := 0
	for i, l := range lines {
		end := short(l.id())
		if len(end) < len(l.id()) {
			shorter++
		}
		if i%29 > 0 {
			continue
		}
		got, err := w.Resolve(end, time.UTC)
		require.NoError(t, err, end)
		require.Equal(t, l.id(), got.ID, end)
	}
	require.Greater(t, shorter, 2500)
}
