package history

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListNamesWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	var r []*Record
	for range 9 {
		r = append(r, w.checkpoint())
	}
	run := func(i int) string { return w.path("runs", r[i].ID, "run.json") }
	good := w.read(run(0))
	w.put(run(1), w.read(run(1))[:50])                                                                              // cut
	w.put(run(2), good)                                                                                             // another record's
	w.put(run(3), strings.Replace(w.read(run(3)), `"version": 1`, `"version": 7`, 1))                               // newer
	w.put(run(4), strings.Replace(w.read(run(4)), `"files": 0`, `"files": 12`, 1))                                  // edited
	require.NoError(t, os.RemoveAll(w.path("runs", r[5].ID)))                                                       // deleted
	require.NoError(t, os.Remove(run(6)))                                                                           // run.json alone deleted
	require.NoError(t, os.Chtimes(run(7), time.Unix(1, 0), time.Unix(1, 0)))                                        // copied back from somewhere
	require.NoError(t, os.Rename(w.path("runs", r[8].ID), w.path("elsewhere")))                                     //
	require.NoError(t, os.Symlink("../elsewhere", w.path("runs", r[8].ID)))                                         // a link
	require.NoError(t, os.MkdirAll(w.path("runs", "not-an-id"), 0o700))                                             // none of ours
	require.NoError(t, os.MkdirAll(w.path("runs", "2026112107015998-0"), 0o700))                                    // an empty directory
	stray := *r[0]                                                                                                  //
	stray.ID, stray.Chain, stray.Started = "2026112107015997-0", "2026112107015997", r[0].Started.Add(-time.Second) //
	require.NoError(t, os.MkdirAll(w.path("runs", stray.ID), 0o700))                                                //
	w.put(w.path("runs", stray.ID, "run.json"), string(stray.JSON(nil)))                                            // no line in the store
	w.reopen()

	l := w.list()
	assert.Equal(t, []string{r[7].ID, r[6].ID, r[5].ID, r[4].ID, r[0].ID}, ids(l.Records))
	assert.Equal(t, []string{stray.ID, "2026112107015998-0"}, l.Foreign)
	assert.Zero(t, l.Records[3].Files, "the store's copy counts")
	assert.Equal(t, []string{r[1].ID, r[2].ID}, damagedIDs(l.Damaged[:2]))
	assert.Equal(t, r[8].ID, l.Damaged[2].ID)
	assert.Equal(t, []string{r[3].ID}, damagedIDs(l.Newer))
	assert.Equal(t, []string{r[5].ID, r[6].ID}, l.Missing)
	assert.Equal(t, []string{r[4].ID}, l.Edited)
	assert.Len(t, l.Warnings(), 4, "one line each kind")
	assert.Contains(t, l.Warnings()[0], r[1].ID)
	assert.Contains(t, l.Warnings()[1], "version 7")
	assert.Contains(t, l.Warnings()[2], "2 records are missing from .decree/runs")

	last, err := w.Resolve("last", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, r[7].ID, last.ID, "damaged ones are passed over")

	rep, err := w.Repair()
	require.NoError(t, err)
	assert.Equal(t, []string{r[1].ID, r[2].ID, r[4].ID, r[8].ID}, rep.Rewritten)
	assert.Equal(t, []string{r[5].ID, r[6].ID}, rep.Restored)
	assert.Equal(t, []string{r[3].ID}, damagedIDs(rep.Left))
	st, err := os.Lstat(w.path("aside", "runs-"+r[8].ID))
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, st.Mode().Type(), "what stood in the record's place")
	l = w.list()
	assert.Equal(t, []string{r[8].ID, r[7].ID, r[6].ID, r[5].ID, r[4].ID, r[2].ID, r[1].ID, r[0].ID}, ids(l.Records))
	assert.Empty(t, l.Missing)
	assert.Empty(t, l.Edited)
	assert.Equal(t, string(r[1].JSON(nil)), w.read(run(1)))
	rep, err = w.Repair()
	require.NoError(t, err)
	assert.Empty(t, append(rep.Rewritten, rep.Restored...))
}

func damagedIDs(lists ...[]Damage) []string {
	var out []string
	for _, d := range slices.Concat(lists...) {
		out = append(out, d.ID)
	}
	return out
}

// A record whose line was written, and whose files another process is about to put in place, is not missing.
func TestListBesideAnEnd(t *testing.T) {
	w := newWorld(t)
	r := w.checkpoint()
	run, built := w.path("runs", r.ID), w.path("tmp", "0123456789abcdef-run-"+r.ID)
	require.NoError(t, os.Rename(run, built))
	assert.Empty(t, w.list().Warnings())
	require.NoError(t, os.RemoveAll(built))
	assert.Equal(t, []string{r.ID}, w.list().Missing)
}

func TestListWithoutRunsDirectory(t *testing.T) {
	w := newWorld(t)
	a, b := w.checkpoint(), w.checkpoint()
	require.NoError(t, os.RemoveAll(w.path()))
	l := w.list()
	assert.Equal(t, []string{b.ID, a.ID}, ids(l.Records))
	assert.Equal(t, []string{a.ID, b.ID}, l.Missing)
	_, err := w.Repair()
	require.NoError(t, err)
	assert.Empty(t, w.list().Warnings())
	assert.FileExists(t, w.path("project.json"))
}

func TestListLimitAndKeep(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i := range 300 {
		r := w.draft()
		r.Files = i
		require.NoError(t, w.write(&line{key: recordKey(r), record: r}))
		all = append(all, r.ID)
	}
	slices.Reverse(all)
	for _, limit := range []int{1, 63, 64, 65, 299, 300, 301} {
		l, err := w.List(ListOptions{Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, all[:min(limit, 300)], ids(l.Records))
	}
	l, err := w.List(ListOptions{Limit: 3, Keep: func(r *Record) bool { return r.Files%100 == 7 }})
	require.NoError(t, err)
	assert.Equal(t, []string{all[92], all[192], all[292]}, ids(l.Records))
}

func TestDamagedLogLine(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.checkpoint(), w.checkpoint(), w.checkpoint()
	text := w.read(w.stored(logFile))
	// A line whose head is whole and whose record is not.
	text = strings.Replace(text, fmt.Sprintf(`"version":1,"id":"%s"`, b.ID), fmt.Sprintf(`"version":1,"id";"%s"`, b.ID), 1)
	w.put(w.stored(logFile), text)
	w.reopen()
	l := w.list()
	assert.Equal(t, []string{c.ID, a.ID}, ids(l.Records), "nothing else fails")
	assert.Equal(t, []string{b.ID}, damagedIDs(l.Damaged))
}

// What lies behind the last record that is wanted is not looked at; what is wrong
// with those before it is said.
func TestShortListLooksNoFurther(t *testing.T) {
	w := newWorld(t)
	all := w.fill(300)
	for _, i := range []int{10, 298} {
		w.put(w.path("runs", all[i], "run.json"), "{")
	}
	l, err := w.List(ListOptions{Limit: 5})
	require.NoError(t, err)
	assert.Equal(t, []string{all[299], all[297], all[296], all[295], all[294]}, ids(l.Records))
	assert.Equal(t, []string{all[298]}, damagedIDs(l.Damaged))
	assert.Equal(t, []string{all[10], all[298]}, damagedIDs(w.list().Damaged))
}
