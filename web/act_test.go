//go:build unix

package web

import (
	"context"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup"
	"decree/history"
	"decree/page"
	"decree/planner"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// withRest gives a server what the command line has for it.
func withRest(o *Options) {
	o.Messages = func(*recorder.Reader, string) ([]view.Waiting, error) { return nil, nil }
	o.Send = func(*recorder.Recorder, string, string, string) (view.Sent, error) { return view.Sent{}, nil }
	o.Retry = func(context.Context, *recorder.Recorder, string) error { return nil }
	o.Backup = func(context.Context) (*backup.Status, error) { return nil, errors.New("no backup is configured") }
}

func (b *bench) text(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, name))
	require.NoError(b, err)
	return string(text)
}

// edited is a record of one that changed files: a restore to the first of two checkpoints.
func (b *bench) edited() (first, second, restore string) {
	b.Helper()
	b.put("a.txt", lines("one", 30))
	b.put("b.txt", "b\n")
	first = b.checkpoint("first")
	b.put("a.txt", strings.NewReplacer("one 2\n", "TWO\n", "one 25\n", "TWENTY\n").Replace(lines("one", 30)))
	b.put("c.txt", "c\n")
	require.NoError(b, os.Remove(filepath.Join(b.root, "b.txt")))
	second = b.checkpoint("second")
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		res, err := rec.Restore(ctx, recorder.RestoreOptions{Ref: first, Yes: true})
		if err == nil {
			restore = res.Record.ID
		}
		return err
	})
	return first, second, restore
}

// lines are n lines that begin with a word.
func lines(word string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(word + " " + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)) + "\n")
	}
	return strings.ReplaceAll(b.String(), " 0", " ")
}

// planOf is the id of the plan on a page.
func (b *bench) planOf(text string) string {
	b.Helper()
	m := regexp.MustCompile(`name="plan" value="([0-9a-f]+)"`).FindStringSubmatch(text)
	require.NotNil(b, m, text)
	return m[1]
}

func TestRestoreByForms(t *testing.T) {
	b := serving(t, withRest).enter()
	first, second, _ := b.edited()
	res, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {second}, "from": {"/"}})
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, res.Request.URL.Path, "/plan/", "it led to a page of its own")
	require.Contains(t, text, "Restoring makes the files what they were")
	require.Contains(t, text, "decree restore")
	require.Equal(t, "b\n", b.text("b.txt"), "nothing is done that was not shown first")
	before := b.records()

	res, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "r-"+second, res.Request.URL.Fragment, "back at the row that it came from")
	require.Contains(t, text, "<strong>Restored</strong>")
	require.Contains(t, text, "verified by hash")
	require.Equal(t, "c\n", b.text("c.txt"))
	require.Equal(t, before+1, b.records())

	// Undo, which is shown first as well.
	require.Contains(t, text, `name="operation" value="undo"`)
	_, text = b.post("/plan", url.Values{"operation": {"undo"}, "from": {"/"}})
	_, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Contains(t, text, "<strong>Undone</strong>")
	require.Equal(t, "b\n", b.text("b.txt"))
	_ = first
}

func TestStalePlans(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, _ := b.edited()
	_, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {second}, "from": {"/"}})
	old := b.planOf(text)
	b.put("a.txt", "edited meanwhile\n")
	before := b.records()
	res, text := b.post("/perform", url.Values{"plan": {old}})
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.Contains(t, text, "no longer what the plan saw")
	require.NotEqual(t, old, b.planOf(text), "it has the new plan")
	require.Equal(t, "edited meanwhile\n", b.text("a.txt"))
	require.Equal(t, before, b.records())
	res, _ = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "c\n", b.text("c.txt"))
	res, _ = b.post("/perform", url.Values{"plan": {"0123456789abcdef"}})
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

// Hunks that are marked in the record's own diff are those of the plan, unless the file was edited since.
func TestRevertOfWhatIsMarked(t *testing.T) {
	b := serving(t, withRest).enter()
	_, _, restore := b.edited()
	_, text := b.get(b.base("/r/" + restore))
	require.Contains(t, text, `name="mark"`)
	marked := url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/r/" + restore}, "marked": {"yes"}, "mark": {page.Mark("a.txt", 2), page.Mark("b.txt", 0)}}
	res, text := b.post("/plan", marked)
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	res, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Contains(t, text, "<strong>Reverted</strong>")
	require.Equal(t, strings.Replace(lines("one", 30), "one 25\n", "TWENTY\n", 1), b.text("a.txt"))
	require.NoFileExists(t, filepath.Join(b.root, "b.txt"))
	require.NoFileExists(t, filepath.Join(b.root, "c.txt"))

	res, text = b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "marked": {"yes"}})
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Contains(t, text, "nothing is marked")
}

func TestConflictsOfferAMerge(t *testing.T) {
	for _, of := range []url.Values{
		{"operation": {"revert"}, "ref": {"last"}, "from": {"/"}},
		{"operation": {"undo"}, "from": {"/"}},
		{"operation": {"revert"}, "ref": {"last"}, "from": {"/"}, "marked": {"yes"}, "mark": {page.Mark("a.txt", 1)}},
	} {
		b := serving(t, withRest).enter()
		b.edited()
		b.put("a.txt", strings.Replace(lines("one", 30), "one 12\n", "mine\n", 1))
		res, text := b.post("/plan", of)
		require.Equal(t, http.StatusConflict, res.StatusCode)
		require.Contains(t, text, ">Merge</button>")
		require.NotContains(t, text, "b.txt</code> ", "it is no conflict")
		edits := b.hrefOf(text, "what you edited")
		_, compared := b.get("http://" + b.host + edits)
		require.Regexp(t, `(?s)id="compared".*mine`, compared)
		require.NotRegexp(t, `(?s)id="compared".*TWENTY`, compared)
		_, compared = b.get("http://" + b.host + b.hrefOf(text, "what the record changed"))
		require.Regexp(t, `(?s)id="compared".*TWENTY`, compared)
		require.NotRegexp(t, `(?s)id="compared".*mine`, compared)
		if of.Has("mark") {
			require.NotContains(t, text, "mark again below", "the marks are kept")
			require.NotContains(t, text, "c.txt", "the merge is about no more than was marked")
		}
		res, _ = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Contains(t, b.text("a.txt"), "TWO\n")
		require.Contains(t, b.text("a.txt"), "mine\n")
		require.Equal(t, !of.Has("mark"), strings.Contains(b.text("a.txt"), "TWENTY\n"), "of what was marked alone")
	}
}

// What is marked on the page of a plan is what its button does, shown first. Where the plan holds no longer and the marks
// with it, there is no button for all of it.
func TestTheButtonsOfAPlanAreOfItsMarks(t *testing.T) {
	b := serving(t, withRest).enter()
	_, _, restore := b.edited()
	_, text := b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/"}})
	require.Regexp(t, `<button[^>]* data-key="y" [^>]*>Revert</button>`, text)
	marked := url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/"}, "of": {b.planOf(text)}, "plan": {b.planOf(text)},
		"marked": {"yes"}, "mark": {page.Mark("a.txt", 2)}}
	before := b.records()
	res, text := b.post("/perform", marked)
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Contains(t, text, "only what is marked: a.txt (hunk 2)")
	require.Equal(t, before, b.records(), "it is shown first")

	b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/"}})
	b.checkpoint("meanwhile")
	b.put("d.txt", "d\n")
	b.checkpoint("and again")
	res, text = b.post("/plan", marked)
	require.Equal(t, http.StatusConflict, res.StatusCode, text)
	require.Contains(t, text, "mark again below")
	require.NotContains(t, text, ">Revert</button>")
	require.Regexp(t, `<button[^>]* data-key="y"[^>]*>Only what is marked</button>`, text)
}

// Where both sides changed the same lines, a revert writes both between markers, of what is marked in the plan alone.
func TestConflictsOfferMarkers(t *testing.T) {
	b := serving(t, withRest).enter()
	_, _, restore := b.edited()
	b.put("a.txt", strings.Replace(lines("one", 30), "one 2\n", "mine\n", 1))
	_, text := b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/"}})
	require.Contains(t, text, "between &lt;&lt;&lt;&lt;&lt;&lt;&lt; and")
	require.Contains(t, text, "decree revert --markers")
	plan := b.planOf(text)
	_, text = b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "of": {plan}, "marked": {"yes"}, "mark": {page.Mark("a.txt", 1)}})
	res, text := b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Regexp(t, `(?s)<<<<<<< now\nmine\n=======\nTWO\n>>>>>>> .*\none 25\n`, b.text("a.txt"))
	require.NoFileExists(t, filepath.Join(b.root, "c.txt"), "it was not marked")
	require.Contains(t, text, "<strong>Conflicts written</strong>", "nothing was reverted")
	require.Contains(t, text, "Both sides are in 1 file,")
}

// What was forgotten is no fault of the server's: a page says it, and that it does not come back.
func TestWhatWasForgotten(t *testing.T) {
	b := serving(t, withRest).enter()
	first, _, restore := b.edited()
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		_, err := rec.Forget(ctx, recorder.ForgetOptions{Paths: []tree.Path{"c.txt"}, Yes: true})
		return err
	})
	res, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {restore}, "from": {"/"}})
	require.Equal(t, http.StatusConflict, res.StatusCode, text)
	require.Contains(t, text, "its content was forgotten; nothing was changed")
	require.Contains(t, text, "it cannot be brought back")
	_, text = b.get(b.base("/r/" + restore))
	require.Contains(t, text, "they are large, or were forgotten")
	require.NotContains(t, text, "in the store")
	_, text = b.get(b.base("/f/c.txt"))
	require.NotContains(t, text, "Where its lines come from", "it has none now")
	require.Contains(t, text, "It is not in the tree now")
	_ = first
}

// Several drafts are given up at once.
func TestDiscardOfSeveralIsOneRequest(t *testing.T) {
	q, err := requestOf(url.Values{"operation": {"discard"}, "also": {"a", "b"}})
	require.NoError(t, err)
	require.Equal(t, planner.Request{Operation: "discard", Refs: []string{"a", "b"}}, q)
	draft := func(name string, state history.DraftState, by ...string) draftCard {
		return draftCard{Name: name, Waits: state == history.DraftWaiting, Record: &history.Record{Draft: &history.Draft{Name: name, State: state, By: by}}}
	}
	none := raceCards{Cards: []draftCard{draft("r.1", history.DraftWaiting), draft("r.2", history.DraftWaiting)}}
	require.Empty(t, none.Others(), "nothing was chosen yet")
	chosen := raceCards{Cards: []draftCard{draft("r.1", history.DraftWaiting), draft("r.2", history.DraftPublished, "x"), draft("r.3", history.DraftDiscarded), draft("r.4", history.DraftWaiting)}}
	require.Equal(t, []string{"r.1", "r.4"}, []string{chosen.Others()[0].Name, chosen.Others()[1].Name})
	require.Len(t, chosen.Others(), 2)
}

// What is edited between a plan and its click, and is in the way then, may be merged, too.
func TestEditedAfterThePlan(t *testing.T) {
	b := serving(t, withRest).enter()
	_, _, restore := b.edited()
	_, text := b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/"}})
	plan := b.planOf(text)
	b.put("a.txt", strings.Replace(lines("one", 30), "one 12\n", "mine\n", 1))
	res, text := b.post("/perform", url.Values{"plan": {plan}})
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.Contains(t, text, ">Merge</button>")

	b.put("b.txt", "made by hand\n") // which nothing can merge
	res, text = b.post("/plan", url.Values{"operation": {"revert"}, "ref": {restore}, "from": {"/r/" + restore}})
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.NotContains(t, text, ">Merge</button>")
	require.Contains(t, text, "nothing was changed")
	require.Contains(t, text, "what you edited")
	require.Contains(t, text, `href="`+b.server.path+"/r/"+restore+`"`)
}

// A tree that is moved or deleted while it is served is that on all pages, and nothing is made in its place.
func TestTheTreeIsGone(t *testing.T) {
	b := serving(t, withRest).enter()
	first, _, _ := b.edited()
	b.get(b.base("/"))
	away := b.root + "-away"
	for _, gone := range []string{b.root, b.root + "-store"} {
		require.NoError(t, os.Rename(gone, away))
		for _, page := range []string{"/", "/r/" + first, "/f/a.txt", "/drafts", "/race/x", "/sessions/x", "/inbox", "/health"} {
			status, text := b.get(b.base(page))
			require.Equal(t, http.StatusGone, status, page)
			require.Contains(t, text, gone, page)
			require.Contains(t, text, "was moved or deleted while its records were looked at here; nothing was changed", page)
			require.Contains(t, text, "start it again where the tree is now", page)
			require.NotContains(t, text, "doctor", page)
		}
		for _, page := range []string{"records", "records/" + first + "/diff", "tree/a.txt", "drafts", "health"} {
			status, text := b.get(b.base("/api/v1/" + page))
			require.Equal(t, http.StatusGone, status, page)
			require.Contains(t, text, `"message": "`, page)
			require.Contains(t, text, gone, page)
		}
		for page, form := range map[string]url.Values{"/checkpoint": nil, "/plan": {"operation": {"restore"}, "ref": {first}}, "/inbox/send": {"text": {"t"}}} {
			res, _ := b.post(page, form)
			require.Equal(t, http.StatusGone, res.StatusCode, page)
			require.NoDirExists(t, gone)
		}
		require.NoError(t, os.Rename(away, gone))
		status, _ := b.get(b.base("/"))
		require.Equal(t, http.StatusOK, status, "it is put back")
	}
}

// The second of two clicks has the page of the first one's success.
func TestTwoClicks(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, _ := b.edited()
	_, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {second}, "from": {"/"}})
	plan := b.planOf(text)
	before := b.records()
	pages := make(chan string)
	for range 2 {
		go func() {
			_, text := b.post("/perform", url.Values{"plan": {plan}})
			pages <- text
		}()
	}
	for range 2 {
		require.Contains(t, <-pages, "<strong>Restored</strong>")
	}
	require.Equal(t, before+1, b.records())
	_, undo := b.post("/plan", url.Values{"operation": {"undo"}, "from": {"/"}})
	b.post("/perform", url.Values{"plan": {b.planOf(undo)}})
	res, _ := b.post("/perform", url.Values{"plan": {plan}})
	require.Equal(t, http.StatusConflict, res.StatusCode, "what was undone is not said to be done")
}

// hrefOf is the address of the first link that begins with a text.
func (b *bench) hrefOf(text, link string) string {
	b.Helper()
	m := regexp.MustCompile(`<a href="([^"]*)">` + regexp.QuoteMeta(link)).FindStringSubmatch(text)
	require.NotNil(b, m, "no link %s in %s", link, text)
	return html.UnescapeString(m[1])
}

func TestLabels(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	id := b.checkpoint("first")
	_, text := b.post("/r/"+id+"/label", url.Values{"name": {"good"}})
	require.Contains(t, text, `<span class="label">good</span>`)
	require.Less(t, strings.Index(text, "<button>Give"), strings.Index(text, `name="remove"`), "Enter in the field presses the form's first button")
	_, text = b.post("/r/"+id+"/label", url.Values{"remove": {"good"}})
	require.NotContains(t, text, `<span class="label">good</span>`)
	res, _ := b.post("/r/"+id+"/label", url.Values{"name": {"last"}})
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
}

// What cannot be done now says why, on the page and where it is asked for all the same.
func TestWhatCannotBeDoneNow(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, _ := b.edited()
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		_, err := rec.RunIsolated(ctx, recorder.RunOptions{Args: []string{"sh", "-c", "echo d >d.txt"}, Dir: b.root,
			Stdin: os.Stdin, Stdout: os.Stderr, Stderr: os.Stderr, Env: os.Environ()}, recorder.IsolatedOptions{Name: "try", Clone: true, Copy: true})
		return err
	})
	const why = "Discard or publish your draft to restore"
	for _, place := range []string{"/", "/r/" + second} {
		_, text := b.get(b.base(place))
		require.Contains(t, text, why, place)
		require.Contains(t, text, "disabled", place)
	}
	res, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {second}})
	require.Equal(t, http.StatusOK, res.StatusCode, "it can be looked at")
	require.Contains(t, text, why)
	res, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.Contains(t, text, why)
	res, _ = b.post("/checkpoint", nil)
	require.Equal(t, http.StatusConflict, res.StatusCode)

	_, text = b.get(b.base("/drafts"))
	require.Contains(t, text, "d.txt")
	_, text = b.post("/plan", url.Values{"operation": {"discard"}, "ref": {"try"}, "from": {"/drafts"}})
	_, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Contains(t, text, "<strong>Discarded</strong>")
	_, text = b.get(b.base("/"))
	require.NotContains(t, text, why)
}

// From a form one comes back to a page of this server, and to no other.
func TestBackIsHere(t *testing.T) {
	b := serving(t, withRest).enter()
	b.edited()
	for _, from := range []string{"", "https://evil.example/", "//evil.example/", "javascript:alert(1)", `\\evil.example`, "/\nX: y"} {
		_, text := b.post("/plan", url.Values{"operation": {"undo"}, "from": {from}})
		require.NotContains(t, text, "evil.example")
		res, _ := b.post("/perform", url.Values{"plan": {b.planOf(text)}})
		require.Equal(t, b.host, res.Request.URL.Host, from)
		require.True(t, strings.HasPrefix(res.Request.URL.Path, b.server.path+"/"), from)
		_, text = b.post("/plan", url.Values{"operation": {"redo"}})
		b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	}
}

// Whatever names, contents, descriptions, prompts and labels hold, it is text on the pages.
func TestHostileTexts(t *testing.T) {
	b := serving(t, withRest).enter()
	const evil = `<script>alert(1)</script><img src=x onerror=alert(1)>"'><svg/onload=alert(1)>{{.}}`
	name := strings.ReplaceAll(evil, "/", "∕")
	b.put("a.txt", "a\n")
	b.checkpoint(evil)
	b.put(name, evil+"\n\x1b]0;x\x07 ‮ \u0085\n")
	b.put("dir\x1b[31m\n/"+`"q" 'r'`, "x\n")
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		_, err := rec.Run(ctx, recorder.RunOptions{Args: []string{"sh", "-c", `printf '%s\n' "$1"; printf '\033[31m%s\033[0m\033]8;;javascript:alert(1)\007x\n' "$1"; printf '%s' "$1" >"$2"`, "sh", evil, "written " + name},
			Dir: b.root, Stdin: os.Stdin, Stdout: devNull(t), Stderr: devNull(t), Env: os.Environ(), Description: evil})
		return err
	})
	b.put(name, "changed "+evil+"\n")
	b.checkpoint("last")
	pages := []string{"/", "/?q=" + url.QueryEscape(evil), "/r/last", "/r/last~1", "/r/last~2", "/r/last~1?view=split", "/f/" + urlPath(name), "/f/" + urlPath(name) + "?blame=yes",
		"/f/" + urlPath("written "+name) + "?a=before:last~1&b=now", "/f/" + urlPath("dir\x1b[31m\n/"+`"q" 'r'`), "/drafts", "/inbox", "/health", "/r/" + urlPath(name), "/race/" + urlPath(name), "/sessions/" + urlPath(name), "/plan/" + urlPath(name)}
	for _, place := range pages {
		status, text := b.get(b.base(place))
		require.Less(t, status, 500, place)
		for _, bad := range []string{"<script>", "<img", "<svg/", "onerror=alert(1)>\"", "\x1b", "\u202e", "\u0085", "javascript:alert(1)\""} {
			require.NotContains(t, text, bad, place)
		}
	}
	_, text := b.post("/plan", url.Values{"operation": {"restore"}, "ref": {"last~2"}})
	require.NotContains(t, text, "<img")
	require.NotContains(t, text, "\x1b")
}

func devNull(t *testing.T) *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// No address leads out of the tree, nor to what decree and git keep there.
func TestTraversal(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	b.put(".git/config", "secret of git\n")
	b.checkpoint("first")
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "..", "outside.txt"), []byte("outside\n"), 0o600))
	require.NoError(t, os.Symlink("../outside.txt", filepath.Join(b.root, "link")))
	for _, place := range []string{"/f/../outside.txt", "/f/%2e%2e/outside.txt", "/f/..%2foutside.txt", "/f/..%2f..%2f..%2fetc%2fpasswd", "/f//etc/passwd", "/f/%2fetc%2fpasswd", "/f/a.txt%00",
		"/f/.decree/project.json", "/f/.git/config", "/f/.GIT/config", "/f/link/../../outside.txt", "/f/./a.txt", "/static/..%2f..%2fserver.go", "/r/..%2f..%2fetc%2fpasswd", "/f/", "/f/link"} {
		for _, more := range []string{"", "?blame=yes", "?a=before:last&b=now"} {
			res, text := b.do(http.MethodGet, b.base(place)+more, nil)
			require.NotContains(t, text, "root:", place)
			require.NotContains(t, text, "outside\n", place)
			require.NotContains(t, text, "secret of git", place)
			require.Less(t, res.StatusCode, 500, place)
		}
	}
}

// A record that cannot be read, and files of records that are gone, are said on the pages, which stay.
func TestDamage(t *testing.T) {
	b := serving(t, withRest)
	first, second, restore := b.edited()
	log, err := filepath.Glob(b.root + "-store/*/records.jsonl")
	require.NoError(t, err)
	require.Len(t, log, 1)
	data, err := os.ReadFile(log[0])
	require.NoError(t, err)
	parts := strings.SplitAfter(string(data), "\n")
	for i, line := range parts {
		if strings.HasPrefix(line, `{"id":"`+second+`"`) {
			parts[i] = strings.Replace(line, `"seq":0`, `"seq":"x"`, 1)
			require.NotEqual(t, line, parts[i])
		}
	}
	require.NoError(t, os.WriteFile(log[0], []byte(strings.Join(parts, "")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/runs", restore, "changes.diff"), []byte("# decree changes 1\nnonsense\n"), 0o600))
	b.enter()
	_, text := b.get(b.base("/"))
	require.Contains(t, text, ">Damaged</span>")
	for _, place := range []string{"/r/" + first, "/r/" + second, "/r/" + restore, "/f/a.txt", "/f/a.txt?blame=yes", "/drafts", "/health", "/?q=path:a.txt"} {
		status, text := b.get(b.base(place))
		require.Less(t, status, 500, "%s: %s", place, text)
		require.Contains(t, text, "</html>", place)
	}
	_, text = b.get(b.base("/r/" + restore))
	require.Contains(t, text, "damaged")
}

// What is not here any more is said to be pruned, perhaps, and where to look.
func TestARecordThatIsGone(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	b.checkpoint("first")
	status, text := b.get(b.base("/r/2020010100000000-0"))
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "Old records are pruned after each new one")
	status, text = b.get(b.base("/r/nothing"))
	require.Equal(t, http.StatusNotFound, status)
	require.NotContains(t, text, "pruned")
}

// The files of a record's two diffs are told apart by the links to them.
func TestSectionsOfTwoDiffs(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	first := b.checkpoint("first")
	b.put("b.txt", "b\n")
	var restore string
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		res, err := rec.Restore(ctx, recorder.RestoreOptions{Ref: first, Yes: true})
		if err == nil {
			restore = res.Record.ID
		}
		return err
	})
	_, text := b.get(b.base("/r/" + restore))
	require.Contains(t, text, "lead back to the state before it")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		require.False(t, seen[m[1]], "%s is there twice", m[1])
		seen[m[1]] = true
	}
	require.True(t, seen["outside-file-0"] && seen["changes-file-0"], "%v", seen)
	for _, id := range []string{"outside-file-0", "changes-file-0"} {
		require.Contains(t, text, `href="#`+id+`"`)
	}
}

// formOf are the fields of the form with a button.
func (b *bench) formOf(text, button string) url.Values {
	b.Helper()
	out := url.Values{}
	for _, form := range regexp.MustCompile(`(?s)<form.*?</form>`).FindAllString(text, -1) {
		if strings.Contains(form, ">"+button+"</button>") {
			for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(form, -1) {
				if m[1] != "form" {
					out.Add(m[1], html.UnescapeString(m[2]))
				}
			}
			return out
		}
	}
	require.Fail(b, "no form has the button "+button, text)
	return nil
}

// Beside a merge a conflict can be left out, with all else done, or be overwritten, as in the terminal: of all, of what is
// marked, and where nothing can be merged.
func TestConflictsOfferTheOtherWays(t *testing.T) {
	for name, of := range map[string]url.Values{
		"all":    {},
		"marked": {"marked": {"yes"}, "mark": {page.Mark("a.txt", 1), page.Mark("b.txt", 0)}},
	} {
		for _, edit := range []string{"mine\n", ""} { // of a file that is gone nothing can be merged
			b := serving(t, withRest).enter()
			_, _, restore := b.edited()
			of := maps.Clone(of)
			of.Set("operation", "revert")
			of.Set("ref", restore)
			of.Set("from", "/")
			if edit == "" {
				require.NoError(t, os.Remove(filepath.Join(b.root, "a.txt")))
			} else {
				b.put("a.txt", strings.Replace(lines("one", 30), "one 2\n", edit, 1))
			}
			res, text := b.post("/plan", of)
			require.Equal(t, http.StatusConflict, res.StatusCode, name)
			require.Contains(t, text, "Leaves what is in the way as it is, and goes on with the others.")
			require.Contains(t, text, "Overwrites what was edited since")
			before := b.records()

			res, others := b.post("/plan", b.formOf(text, "The others alone"))
			require.Equal(t, http.StatusOK, res.StatusCode, others)
			require.NotContains(t, others, "a.txt</code></li>")
			require.Equal(t, before, b.records(), "it is shown first")
			if edit != "" || name == "all" {
				_, forced := b.post("/plan", b.formOf(text, "Overwrite the edits"))
				require.Contains(t, forced, "--force")
				require.Contains(t, forced, "overwritten")
			}
			res, _ = b.post("/perform", url.Values{"plan": {b.planOf(others)}})
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.NoFileExists(t, filepath.Join(b.root, "b.txt"))
			if edit != "" {
				require.Contains(t, b.text("a.txt"), "mine\n", "it was left as it is")
			}
		}
	}
}

// What is the newest change is undone from its own page, too, and what was undone is brought again from that of the undo.
func TestTheNewestChangeIsUndoneFromItsPage(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, restore := b.edited()
	_, text := b.get(b.base("/r/" + second))
	require.NotContains(t, text, `value="undo"`, "there are newer ones")
	_, text = b.get(b.base("/r/" + restore))
	was := b.text("a.txt")
	_, text = b.post("/plan", b.formOf(text, "Undo"))
	_, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Contains(t, text, "<strong>Undone</strong>")
	require.NotEqual(t, was, b.text("a.txt"))
	require.Contains(t, text, ">Undo another</button>")
	undo := regexp.MustCompile(`/r/([0-9-]+)">See the record`).FindStringSubmatch(text)[1]
	_, text = b.get(b.base("/r/" + restore))
	require.NotContains(t, text, `value="undo"`)
	_, text = b.get(b.base("/r/" + undo))
	_, text = b.post("/plan", b.formOf(text, "Redo"))
	_, text = b.post("/perform", url.Values{"plan": {b.planOf(text)}})
	require.Equal(t, was, b.text("a.txt"))
	require.Contains(t, text, ">Undo</button>")
}
