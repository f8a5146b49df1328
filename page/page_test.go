package page_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/page"
	"decree/patch"
	"decree/tree"
)

var demo = flag.String("demo", "", "write the page of TestDemo to this `FILE`")

// change is a file with an old and a new text; "" is none.
func change(name, old, new string) patch.Change {
	c := patch.Change{Path: tree.Path(name)}
	if old != "" {
		c.Old, c.OldContent = &tree.Entry{Mode: 0o644, Size: int64(len(old)), SHA256: tree.Sum([]byte(old))}, patch.Bytes(old)
	}
	if new != "" {
		c.New, c.NewContent = &tree.Entry{Mode: 0o644, Size: int64(len(new)), SHA256: tree.Sum([]byte(new))}, patch.Bytes(new)
	}
	return c
}

func diffOf(t testing.TB, changes ...patch.Change) []byte {
	t.Helper()
	var b bytes.Buffer
	w := patch.NewWriter(&b, patch.Limits{})
	for _, c := range changes {
		require.NoError(t, w.Write(context.Background(), c))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func drawn(t *testing.T, diff []byte, o page.DiffOptions) string {
	t.Helper()
	var b strings.Builder
	_, _, err := page.Diff(&b, bytes.NewReader(diff), o)
	require.NoError(t, err)
	return b.String()
}

var clock = page.Clock{Now: time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC), Location: time.UTC}

// TestDemo draws one of everything on a page that can be opened: go test ./page -run Demo -demo FILE.
func TestDemo(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'><title>demo</title><style>%s</style><header class=top><a class=brand href=#>decree</a><nav aria-label=Pages><ul><li><a href=# aria-current=page>Timeline</a><li><a href=#>Drafts</a><li><a href=#>Inbox</a><li><a href=#>Health</a></ul></nav><p class=root>/home/ann/work/words</p></header><main><h1>make generate</h1>", page.Style)
	code := 0
	rec := &history.Record{ID: "2026112214020000-0", Reason: history.Run, Status: history.StatusSucceeded, Command: []string{"make", "generate"}, Cwd: ".",
		Started: clock.Now.Add(-6 * time.Hour), Duration: 4300 * time.Millisecond, ExitCode: &code, Files: 212, Bytes: 1 << 20,
		Changes: history.Changes{Created: 1, Modified: 2, Deleted: 1, AddedLines: 12, RemovedLines: 9}, Actor: history.Actor{User: "ann", Host: "desk"}}
	b.WriteString(string(page.Badge("Run")) + " <span class='status good'>succeeded</span> <span class=label>good</span>")
	b.WriteString(string(page.FactList(page.Facts(rec, page.FactOptions{Clock: clock, Labels: []string{"good"}}))))
	b.WriteString(`<p class="proof">212 files, verified by hash ` + string(clock.Time(clock.Now)) + "</p>")
	b.WriteString("<form class=actions><button class=main>Restore</button><button>Revert</button><button>Apply</button><button disabled>Publish</button></form><p class='banner good'>Restored. <a href=#>Undo</a></p><p class=failure>2 files differ from what it left.</p>")
	diff := demoDiff(t)
	files, _, err := page.Files(bytes.NewReader(diff), 0, 0)
	require.NoError(t, err)
	b.WriteString("<h2>Files</h2>" + string(page.FileList(files, nil)))
	for _, split := range []bool{false, true} {
		b.WriteString("<h2>Changes</h2>")
		_, n, err := page.Diff(&b, bytes.NewReader(diff), page.DiffOptions{Split: split, Marks: !split})
		require.NoError(t, err)
		require.NotZero(t, n)
	}
	b.WriteString("<h2>Log</h2><pre class=log tabindex=0>")
	_, err = page.Log(&b, strings.NewReader(demoLog), page.LogOptions{})
	require.NoError(t, err)
	b.WriteString("</pre><h2>Health</h2><div class=plots>")
	for _, p := range demoPlots() {
		b.WriteString(string(p.Draw(time.UTC)))
	}
	b.WriteString("</div><h2>Badges</h2><p>")
	for _, w := range strings.Fields("Auto Manual Run Turn Publish Restore Revert Apply Session Race Outside Damaged") {
		b.WriteString(string(page.Badge(w)) + " ")
	}
	b.WriteString("</main>")
	require.NotContains(t, b.String(), "style=", "a policy without inline styles would refuse it")
	if *demo != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(*demo), 0o755))
		require.NoError(t, os.WriteFile(*demo, b.Bytes(), 0o644))
	}
}

const demoLog = "\x1b[1mgo build ./...\x1b[0m\r\n\x1b[32mok\x1b[0m   words   0.4 s\r\n\x1b[31;1mFAIL\x1b[0m words/tally \x1b[2m(cached)\x1b[0m\r\n\x1b[38;5;208mwarning:\x1b[0m <b>not bold</b> \x1b]0;title\x07\x1b[2J \u202ereversed\n\x1b[7m swapped \x1b[0m \x1b[44;97m blue \x1b[0m\n"

func demoDiff(t testing.TB) []byte {
	old := "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\n// main counts the words of its arguments.\nfunc main() {\n\ttotal := 0\n\tfor _, name := range os.Args[1:] {\n\t\tn, err := words.Tally(name)\n\t\tif err != nil {\n\t\t\tfmt.Fprintln(os.Stderr, err)\n\t\t\tos.Exit(1)\n\t\t}\n\t\ttotal += n\n\t}\n\tfmt.Println(total)\n}\n"
	new := strings.NewReplacer("words.Tally(name)", "words.Count(name, limit)", "total := 0", "total, limit := 0, 1<<20", "counts the words", "counts the different words").Replace(old)
	return diffOf(t,
		change("docs/long.md", "", "# Title\n\n"+strings.Repeat("A long line of prose that has to be wrapped where the page is narrow. ", 6)+"\n"),
		change("internal/old.py", "def old(a):\n    return \"gone\"  # nobody calls it\n", ""),
		change("main.go", old, new),
		change("naïve <script>alert(1)</script>.txt", "a\x1b[31m\x00"[:5]+"\n", "b\u202e <img src=x onerror=alert(1)>"),
		change("picture.png", "\x89PNG\x00old", "\x89PNG\x00newer"),
	)
}

func demoPlots() []*page.Plot {
	var space, runs []page.Point
	day := clock.Now.AddDate(0, 0, -40)
	for i := range 40 {
		at := day.AddDate(0, 0, i)
		space = append(space, page.Point{At: at, Value: float64(i*i) * 1.1e6})
		runs = append(runs, page.Point{At: at, Value: float64((i * 7) % 23)})
	}
	return []*page.Plot{
		{Title: "Space", Words: "What the records take, and what is to be expected.", Unit: page.Bytes, Line: true, Points: space, Limit: 2 << 30,
			Ahead: []page.Point{{At: clock.Now.AddDate(0, 0, 12), Value: 2 << 30}}},
		{Title: "Runs", Words: "How many there were each day.", Unit: page.Things, Noun: "run", Points: runs},
		{Title: "Nothing", Words: "Where there is nothing.", Unit: page.Seconds},
	}
}

func TestChanges(t *testing.T) {
	for want, c := range map[string]history.Changes{
		"no file changed":                {},
		"1 created; +2 lines":            {Created: 1, AddedLines: 2},
		"1 deleted; −10 lines":           {Deleted: 1, RemovedLines: 10},
		"1 modified; +10 −1 lines":       {Modified: 1, AddedLines: 10, RemovedLines: 1},
		"1 created, 2 deleted; −3 lines": {Created: 1, Deleted: 2, RemovedLines: 3},
	} {
		require.Equal(t, want, page.Changes(c))
	}
}

// The files of a record's tree are those that it began with; a checkpoint is a tree.
func TestTreeIsWhatARecordBeganWith(t *testing.T) {
	names := func(reason history.Reason) (out []string) {
		for _, f := range page.Facts(&history.Record{ID: "2026112107015900-0", Reason: reason, Files: 10}, page.FactOptions{}) {
			out = append(out, f.Name)
		}
		return out
	}
	require.Contains(t, names(history.Run), "Tree before")
	require.Contains(t, names(history.Manual), "Tree")
}
