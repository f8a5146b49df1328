//go:build unix

package web

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/recorder"
	"decree/timeline"
)

// TestFoldedRowsAreBounded holds that a page of many sessions shows few turns of each, and of one many.
func TestFoldedRowsAreBounded(t *testing.T) {
	long := timeline.Row{Inner: make([]timeline.Row, 1000)}
	for _, c := range []struct{ folds, plain, most int }{{0, 50, 80}, {1, 49, 80}, {4, 0, 20}, {50, 0, 1}, {500, 0, 1}} {
		rows := make([]timeline.Row, c.plain)
		for range c.folds {
			rows = append(rows, long)
		}
		require.Equal(t, c.most, folded(rows), "%+v", c)
		for _, r := range rows {
			shownRow := rowOf(shown{Data: timelinePage{Folded: folded(rows)}}, r)
			require.LessOrEqual(t, len(shownRow.Row.Inner), c.most)
			require.Equal(t, len(r.Inner), len(shownRow.Row.Inner)+shownRow.More)
		}
	}
}

// TestBinariesAreCompared: a binary has no lines to show, and yet two states of it are not the same.
func TestBinariesAreCompared(t *testing.T) {
	b := serving(t).enter()
	b.put("a.bin", "a\x00b")
	b.checkpoint("first")
	_, text := b.get(b.base("/f/a.bin?a=last&b=now"))
	require.Contains(t, text, "They are the same")
	b.put("a.bin", "a\x00c")
	_, text = b.get(b.base("/f/a.bin?a=last&b=now"))
	require.Contains(t, text, "binary, ")
	require.NotContains(t, text, "They are the same")
}

// TestFilePagesOfWhatIsThere holds that a file's page needs no record of it, and that one that was
// never there has none.
func TestFilePagesOfWhatIsThere(t *testing.T) {
	b := serving(t).enter()
	b.put("a/b.txt", "a\n")
	b.checkpoint("first")
	b.put("a/new.txt", "not yet in a record\n")
	for place, want := range map[string]int{"a/b.txt": 200, "a": 200, "a/new.txt": 200, "a/none.txt": 404, "none/b.txt": 404, "a/b.txt/c": 404} {
		status, text := b.get(b.base("/f/" + place))
		require.Equal(t, want, status, place)
		if want == 200 {
			require.Contains(t, text, fmt.Sprintf("<code>%s</code>", place))
		}
	}
	for _, place := range []string{"/sessions/none", "/race/none"} {
		status, _ := b.get(b.base(place))
		require.Equal(t, 404, status, place)
	}
}

// TestALongHistoryKeepsNobodyWaiting: after some records the head of a page has gone out, and what was not found is said on it.
func TestALongHistoryKeepsNobodyWaiting(t *testing.T) {
	defer func(was int) { patientRecords = was }(patientRecords)
	patientRecords = 3
	b := serving(t).enter()
	b.put("gone.txt", "a\n")
	b.checkpoint("first")
	require.NoError(t, os.Remove(filepath.Join(b.root, "gone.txt")))
	b.checkpoint("second")
	status, _ := b.get(b.base("/f/none.txt"))
	require.Equal(t, 404, status)
	for i := range 3 {
		b.put("a.txt", fmt.Sprint(i))
		b.checkpoint("more")
	}
	status, text := b.get(b.base("/f/none.txt"))
	require.Equal(t, 200, status)
	require.Contains(t, text, "none.txt: no record has changed it, and there is no such file")
	status, text = b.get(b.base("/f/gone.txt"))
	require.Equal(t, 200, status)
	require.Contains(t, text, "deleted")
	require.NotContains(t, text, "no record has changed it")
}

// TestPlansAreRememberedAsTheyAreShown holds that of a plan of many paths, and of what became of it, no more is
// remembered than its page shows.
func TestPlansAreRememberedAsTheyAreShown(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	first := b.checkpoint("first")
	const files = 3 * planPaths
	for i := range files {
		b.put(fmt.Sprintf("f%d.txt", i), "x\n")
	}
	b.checkpoint("second")
	_, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {first}, "from": {"/"}})
	require.Contains(t, text, fmt.Sprintf("<summary>%d files</summary>", files))
	require.Contains(t, text, fmt.Sprintf("and %d more", files-planPaths))
	id := b.planOf(text)
	shown, err := b.server.recall(id)
	require.NoError(t, err)
	require.Len(t, shown.Paths, planPaths)
	require.LessOrEqual(t, cap(shown.Paths), 2*planPaths)

	_, text = b.post("/perform", url.Values{"plan": {id}})
	require.Contains(t, text, fmt.Sprintf("%d files, verified by hash", files))
	again, err := b.server.plans.PerformOnce(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, again.Paths)
	require.Equal(t, files, again.Created+again.Deleted)
	_, text = b.post("/perform", url.Values{"plan": {id}})
	require.Contains(t, text, fmt.Sprintf("%d files, verified by hash", files), "the second click")
}

// TestSessionsWithASlash holds that an id that an agent has made up is one part of an address.
func TestSessionsWithASlash(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	b.checkpoint("first")
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		e := recorder.TurnEvent{Event: agent.Event{Agent: "codex", Session: "a/b", Prompt: "go on"}}
		if _, err := rec.BeginTurn(ctx, e); err != nil {
			return err
		}
		b.put("a.txt", "b\n")
		_, err := rec.EndTurn(ctx, e)
		return err
	})
	_, text := b.get(b.base("/r/last"))
	link := regexp.MustCompile(`href="([^"]*/sessions/[^"]*)"`).FindStringSubmatch(text)
	require.NotNil(t, link, text)
	status, text := b.get("http://" + b.host + html.UnescapeString(link[1]))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "go on")
}
