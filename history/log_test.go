package history

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"decree/tree"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLineRoundTrip(t *testing.T) {
	r := fullRecord()
	r.Command = []string{"make"}
	l := &line{key: recordKey(r), file: fileStat{7, -5}, trees: [2]tree.Hash{r.Before, r.After},
		effects: []*effect{{id: "2026112107015800-0", status: StatusUndone, undoneBy: r.ID, file: fileStat{1, 2}}, {id: "2026112107015800-1", files: map[string]tree.Hash{"a": tree.Sum(nil)}}}, files: map[string]tree.Hash{"changes.diff": tree.Sum([]byte("6")), "attempts/1/routine.log": tree.Sum(nil)}, record: r}
	text := strings.TrimSuffix(string(l.append(nil)), "\n")
	assert.NotContains(t, text, "\n")
	got, err := parseLine([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, l, got)
	v, ok := lineFile([]byte(text))
	assert.Equal(t, []any{fileStat{7, -5}, true}, []any{v, ok})
	assert.True(t, changesOthers([]byte(text)))
	head, err := parseHead([]byte(text))
	require.NoError(t, err)
	assert.Nil(t, head.record)
	assert.Equal(t, l.files, head.files)

	gone := &line{key: l.key, gone: true, left: true}
	got, err = parseLine([]byte(strings.TrimSuffix(string(gone.append(nil)), "\n")))
	require.NoError(t, err)
	assert.Equal(t, gone, got)
	for _, bad := range []string{text[:len(text)-1], text + "!", strings.Replace(text, `"at":1`, `"at":0`, 1), strings.Replace(text, "attempts/1/", "../../", 1), "{}", "", strings.Repeat("x", 300)} {
		_, err := parseLine([]byte(bad))
		assert.Error(t, err, bad)
	}
}

// A log that is cut at any byte has the whole lines before the cut, and takes more.
func TestLogCutAnywhere(t *testing.T) {
	w := newWorld(t)
	first, second := w.checkpoint(), w.checkpoint()
	data := w.read(w.stored(logFile))
	lineEnd := strings.IndexByte(data, '\n') + 1
	require.NoError(t, os.RemoveAll(w.path("runs")))
	for cut := 0; cut <= len(data); cut += 13 {
		w.put(w.stored(logFile), data[:cut])
		w.reopen()
		want := []string{}
		if cut == len(data) {
			want = append(want, second.ID)
		}
		if cut >= lineEnd {
			want = append(want, first.ID)
		}
		require.Equal(t, want, ids(w.list().Records), "cut at %d", cut)
		third := w.checkpoint()
		require.Equal(t, append([]string{third.ID}, want...), ids(w.list().Records), "cut at %d", cut)
		require.True(t, strings.HasPrefix(w.read(w.stored(logFile)), data[:cut]), "earlier bytes stay")
		w.reopen()
		require.Equal(t, append([]string{third.ID}, want...), ids(w.list().Records), "cut at %d", cut)
		require.NoError(t, os.RemoveAll(w.path("runs")))
	}
}

func TestLogIsCompacted(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.checkpoint(), w.checkpoint(), w.checkpoint()
	a.Description = strings.Repeat("x", 100_000)
	for i := range 30 {
		a.Files = i
		require.NoError(t, w.write(&line{key: recordKey(a), record: a})) // as earlier versions did
	}
	require.NoError(t, w.Remove([]string{b.ID}))
	st, err := os.Stat(w.stored(logFile))
	require.NoError(t, err)
	assert.Less(t, st.Size(), int64(2<<20))
	w.reopen()
	assert.Equal(t, []string{c.ID, a.ID}, ids(w.list().Records))
	got, err := w.Get(a.ID)
	require.NoError(t, err)
	assert.Equal(t, 29, got.Files)
	assert.NoFileExists(t, w.stored(logFile+".new"))
}

func TestAnotherWritersLinesAreSeen(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	mine := w.History
	w.list()
	w.reopen()
	w.checkpoint()
	w.History = mine
	w.checkpoint() // appends behind what it did not know
	assert.Len(t, w.list().Records, 3)
	w.reopen()
	assert.Len(t, w.list().Records, 3)
}

func TestNewIDs(t *testing.T) {
	w := newWorld(t)
	seen := map[string]bool{}
	var last time.Time
	for i := range 205 {
		id, started, err := w.NewID()
		require.NoError(t, err)
		assert.False(t, seen[id])
		seen[id] = true
		assert.True(t, started.After(last), "%d", i)
		assert.Equal(t, w.clock.Add(time.Duration(i)), started)
		last = started
		want := fmt.Sprintf("2026112107015%d%02d-0", 9, i)
		if i >= 100 {
			want = fmt.Sprintf("202611210702%02d%02d-0", i/100-1, i%100)
		}
		assert.Equal(t, want, id, "a full second takes the next one's")
		r := &Record{ID: id, Reason: Auto, Status: StatusSucceeded, Started: started}
		r.Chain, r.Seq, _ = ParseID(id)
		// Without the run directory: it is the log that counts.
		l := &line{key: recordKey(r), record: r}
		require.NoError(t, w.write(l))
	}
	w.clock = w.clock.Add(-30 * time.Second) // the clock goes back a little
	id, started, err := w.NewID()
	require.NoError(t, err)
	assert.Equal(t, last.Add(1), started)
	assert.Equal(t, "2026112107020105-0", id)
}

// TestClockAheadOnce: records that were made while the clock was a year ahead keep
// their place in the order, and hold neither the times nor the ids of later ones.
func TestClockAheadOnce(t *testing.T) {
	w := newWorld(t)
	var notes []string
	note := func(text string) { notes = append(notes, text) }
	first := w.checkpoint()
	w.clock = w.clock.AddDate(1, 0, 0)
	ahead := w.checkpoint()
	w.clock = w.clock.AddDate(-1, 0, 0)
	w.note = note
	back := w.checkpoint()
	assert.Equal(t, w.clock.Add(-time.Second), back.Started, "the time is what the clock said")
	assert.Equal(t, "20261121070201", back.ID[:14])
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "the clock is 365 days behind the start of the newest record")
	open := w.begin()
	last := w.checkpoint()
	require.NoError(t, w.Abandon(open.Record.ID))
	require.Len(t, notes, 1, "once a process, and only where it was set back")
	w.reopen()
	again := w.checkpoint()

	want := []string{again.ID, last.ID, back.ID, ahead.ID, first.ID}
	for range 2 {
		assert.Equal(t, want, ids(w.list().Records))
		for n, id := range want {
			ref, err := w.Resolve(fmt.Sprintf("last~%d", n), time.UTC)
			require.NoError(t, err)
			assert.Equal(t, id, ref.ID)
		}
		assert.Equal(t, 1, Compare(w.list().Records[0], w.list().Records[3]))
		// A status that is set anew, and a log that is compacted, change no places.
		w.setStatus(ahead.ID, StatusUndone, last.ID)
		w.setStatus(first.ID, StatusUndone, last.ID)
		l, err := w.readOn()
		require.NoError(t, err)
		require.NoError(t, l.compact(w.p.Store))
		w.reopen()
	}
	between, err := w.Range(ahead.ID, back.ID)
	require.NoError(t, err)
	assert.Equal(t, []string{ahead.ID, back.ID}, between)
	ref, err := w.Resolve("@2026-11-21T07:02:01.5Z", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, back.ID, ref.ID, "the newest state that was observed by then")
}

// TestForeignRecords: what lies in .decree/runs and was never in the store's log is
// no part of the history, whatever it says of itself.
func TestForeignRecords(t *testing.T) {
	w := newWorld(t)
	first, second := w.checkpoint(), w.checkpoint()
	foreign := *second
	foreign.ID, foreign.Chain, foreign.Started = "2262041123471600-0", "2262041123471600", w.clock.AddDate(100, 0, 0)
	require.NoError(t, os.MkdirAll(w.path("runs", foreign.ID), 0o700))
	w.put(w.path("runs", foreign.ID, "run.json"), string(foreign.JSON(nil)))
	require.NoError(t, os.MkdirAll(w.path("runs", "9999123123595999-999999999"), 0o700))
	third := w.checkpoint()
	assert.Equal(t, w.clock.Add(-time.Second), third.Started)

	l := w.list()
	assert.Equal(t, []string{third.ID, second.ID, first.ID}, ids(l.Records))
	assert.Empty(t, l.Warnings())
	assert.Equal(t, []string{foreign.ID, "9999123123595999-999999999"}, l.Foreign)
	for _, ref := range []string{"2262", foreign.Chain} {
		_, err := w.Resolve(ref, time.UTC)
		require.ErrorIs(t, err, ErrNoRecord, ref)
	}
	_, err := w.ResolveAll(foreign.Chain, time.UTC)
	require.ErrorIs(t, err, ErrNoRecord)
	_, err = w.Range(first.ID, foreign.ID)
	require.ErrorIs(t, err, ErrNoRecord)
	ref, err := w.Resolve(foreign.ID, time.UTC)
	require.NoError(t, err)
	got, err := w.Get(ref.ID)
	require.NoError(t, err)
	assert.Equal(t, foreign.Started, got.Started, "by its whole id it can be looked at")
	is, err := w.Foreign(foreign.ID)
	require.NoError(t, err)
	assert.True(t, is)
	is, err = w.Foreign(second.ID)
	require.NoError(t, err)
	assert.False(t, is)
	_, err = w.needed(nil)
	require.NoError(t, err, "and it stops no collection")
	require.ErrorContains(t, w.SetLabel("mine", foreign.ID), "foreign")
}

func TestIDsOfDamagedAndOpenRecordsAreNotGivenAgain(t *testing.T) {
	w := newWorld(t)
	for _, prepare := range []func(id string){
		func(id string) { require.NoError(t, os.MkdirAll(w.path("runs", id), 0o700)) },
		func(id string) {
			require.NoError(t, os.MkdirAll(w.stored(openDir), 0o700))
			w.put(w.stored(openDir+"/"+id+".json"), "{")
		},
	} {
		id, _, err := w.NewID()
		require.NoError(t, err)
		prepare(id)
		next, _, err := w.NewID()
		require.NoError(t, err)
		assert.NotEqual(t, id, next)
	}
}

// TestIDsOfRemovedRecordsAreNotGivenAgain: what stays and names a removed record (a publish its
// draft, an undo what it took back) would be taken for one about the next of that id.
func TestIDsOfRemovedRecordsAreNotGivenAgain(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	var removed []string
	for i, forget := range []func(l *log){
		func(*log) {},
		func(*log) { require.NoError(t, w.Settle()) },
		func(l *log) { require.NoError(t, l.compact(w.p.Store)) },
		func(l *log) { require.NoError(t, l.compact(w.p.Store)) }, // what was said before stays
	} {
		r := w.checkpoint()
		for _, id := range removed {
			require.NotEqual(t, id, r.ID, "step %d", i)
		}
		require.NoError(t, w.Remove([]string{r.ID}))
		removed = append(removed, r.ID)
		l, err := w.readOn()
		require.NoError(t, err)
		forget(l)
		w.reopen()
		for _, id := range removed {
			given, err := w.Given(id)
			require.NoError(t, err)
			assert.True(t, given, "step %d: %s", i, id)
		}
	}
	id, _, err := w.NewID()
	require.NoError(t, err)
	assert.NotContains(t, removed, id)
}

// TestCompactBoundsGivenIDs: a log does not grow for ever by the ids of what was removed.
func TestCompactBoundsGivenIDs(t *testing.T) {
	w := newWorld(t)
	text := []byte{}
	for i := range givenKept + 3 {
		gone := &line{key: key{at: 1, chain: fmt.Sprintf("%016d", i)}, gone: true}
		text = gone.append(text)
	}
	w.put(w.stored(logFile), string(text))
	for range 2 {
		l, err := w.readOn()
		require.NoError(t, err)
		require.NoError(t, l.compact(w.p.Store))
		w.reopen()
		for i, want := range map[int]bool{2: false, 3: true, givenKept + 2: true} {
			given, err := w.Given(fmt.Sprintf("%016d-0", i))
			require.NoError(t, err)
			assert.Equal(t, want, given, "%d", i)
		}
	}
}

func FuzzReadLog(f *testing.F) {
	r := fullRecord()
	l := &line{key: recordKey(r), record: r, files: map[string]tree.Hash{"a": {}}}
	good := l.append(nil)
	gone := (&line{key: l.key, gone: true}).append(nil)
	l.effects = []*effect{{id: r.ID, status: StatusFailed, files: map[string]tree.Hash{"a": tree.Sum(nil)}, file: fileStat{1, 2}}}
	f.Add((&line{op: opRewrite, effects: l.effects}).append(slices.Clip(good)))
	f.Add(l.append(slices.Clip(good)))
	for _, s := range [][]byte{nil, good, append(good[:len(good):len(good)], gone...), good[:100], append(good[:100:100], "!\n"...), []byte("\n\n{}\n"), []byte(`{"id":"`)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, halves := &log{byID: map[string]int{}}, &log{byID: map[string]int{}}
		whole, parts := lineScan{log: l}, lineScan{log: halves}
		whole.feed(data)
		whole.finish()
		parts.feed(slices.Clone(data[:len(data)/2]))
		parts.feed(slices.Clone(data[len(data)/2:]))
		parts.finish()
		require.Equal(t, told(l), told(halves))
		for i, r := range l.rows {
			if at, ok := l.where(r.id()); !ok || at != i || i > 0 && l.rows[i-1].key.compare(r.key) >= 0 {
				t.Fatal("index")
			}
			if e, err := r.parse(); err == nil && e.record.ID != r.id() {
				t.Fatal("another record's line")
			}
			_, _ = r.head()
			lineFile(r.line)
		}
	})
}

// TestCompactKeepsUnknownLines: what a newer decree may have written into the log, and what nobody has written
// so, is no past that can go.
func TestCompactKeepsUnknownLines(t *testing.T) {
	w := newWorld(t)
	r := w.checkpoint()
	const unknown = `{"v":2,"op":"record"}`
	w.put(w.stored(logFile), w.read(w.stored(logFile))+unknown+"\nnothing at all\n")
	w.reopen()
	_, err := w.needed(nil)
	require.ErrorContains(t, err, "cannot read")
	l, err := w.readOn()
	require.NoError(t, err)
	require.NoError(t, l.compact(w.p.Store))
	text := w.read(w.stored(logFile))
	assert.Contains(t, text, "\n"+unknown+"\n")
	assert.Contains(t, text, "\nnothing at all\n")
	w.reopen()
	assert.Equal(t, []string{r.ID}, ids(w.list().Records))
	assert.Equal(t, 1, w.list().Unknown)
}

// TestCompactThatFails: a record whose line is durable is written, whatever becomes of
// the log's compaction.
func TestCompactThatFails(t *testing.T) {
	w := newWorld(t)
	var notes []string
	w.note = func(text string) { notes = append(notes, text) }
	r := w.draft()
	r.Description = strings.Repeat("long ", compactMin/10)
	require.NoError(t, w.End(Closing{Record: r}))
	require.NoError(t, os.Mkdir(w.stored(logFile+".new"), 0o700)) // in the way of the new log
	for i := range 4 {
		r.Status = []Status{StatusFailed, StatusSucceeded}[i%2]
		require.NoError(t, w.write(&line{key: recordKey(r), record: r})) // as earlier versions did
	}
	require.NotEmpty(t, notes)
	assert.Contains(t, notes[0], "records.jsonl could not be rewritten without its old lines")
	require.NoError(t, w.End(w.end(w.begin())))
	w.reopen()
	require.Len(t, w.list().Records, 2)
	require.NoError(t, os.Remove(w.stored(logFile+".new")))
	w.setStatus(r.ID, StatusFailed, "")
	assert.Less(t, len(w.read(w.stored(logFile))), compactMin, "the next one does it")
}

// TestReadOn: what is read on from the end of what was read before is what a whole reading
// gives, whatever became of the file in between.
func TestReadOn(t *testing.T) {
	w := newWorld(t)
	reader := Open(w.p, Options{Objects: w.shelf})
	var all []string
	for i := range 60 {
		switch r := w.checkpoint(); {
		case i%7 == 3:
			w.setStatus(all[i/2], StatusUndone, r.ID)
		case i%11 == 5:
			require.NoError(t, w.Remove([]string{r.ID, all[i/3]}))
		case i%13 == 6:
			l, err := w.readOn()
			require.NoError(t, err)
			require.NoError(t, l.compact(w.p.Store))
			w.reopen()
		case i%17 == 8: // a line that was read before it was durable, and taken away
			text := w.read(w.stored(logFile))
			other := *r
			other.Description = "another one"
			reader.Refresh()
			_, err := reader.readOn()
			require.NoError(t, err)
			at := strings.LastIndex(text[:len(text)-1], "\n") + 1
			w.put(w.stored(logFile), text[:at]+string((&line{key: recordKey(&other), record: &other}).append(nil)))
			w.reopen()
		case i%19 == 9:
			require.NoError(t, w.Settle())
			w.put(w.stored(logFile), w.read(w.stored(logFile))+`{"id":"20261121`)
			w.reopen()
		default:
			all = append(all, r.ID)
		}
		for len(all) < i+1 {
			all = append(all, all[0])
		}
		reader.Refresh()
		got, err := reader.readOn()
		require.NoError(t, err)
		want, err := readLog(w.p.Store, nil)
		require.NoError(t, err)
		require.Equal(t, told(want), told(got), "step %d", i)
	}
}

// told is what a log says, as text.
func told(l *log) string {
	var b strings.Builder
	fmt.Fprintln(&b, l.size, l.dead, l.broken, len(l.unknown), l.torn, l.ino, len(l.byID), l.given)
	for i, r := range slices.Concat(l.rows, l.gone) {
		fmt.Fprintln(&b, i, l.byID[r.id()], r.key, r.gone, r.later, string(r.line))
	}
	return b.String()
}
