//go:build unix

package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/recorder"
)

// TestAPI calls each route that docs/api.md describes: it has all of them, and what each example
// shows is in the answer.
func TestAPI(t *testing.T) {
	b := serving(t, withRest).enter()
	b.edited()
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		_, err := rec.Run(ctx, recorder.RunOptions{Args: []string{"sh", "-c", "echo hello; echo changed >>a.txt"}, Dir: b.root, Stdin: os.Stdin, Stdout: devNull(t), Stderr: devNull(t), Env: os.Environ()})
		return err
	})
	doc, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	described := map[string]string{}
	for _, part := range strings.Split(string(doc), "\n## ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		described[head] = rest
	}
	routes := map[string]bool{}
	for _, p := range b.server.looks {
		routes["GET "+strings.TrimSuffix(p, "{$}")] = strings.HasPrefix(p, "/api/")
	}
	for _, p := range b.server.changes {
		routes["POST "+p] = strings.HasPrefix(p, "/api/")
	}
	for route, api := range routes {
		require.Equal(t, api, described[route] != "", route)
	}
	require.Contains(t, described, "POST /api/v1/perform")
	plan := ""
	for _, head := range []string{ // perform comes after plan
		"GET /api/v1/", "GET /api/v1/records", "GET /api/v1/records/{id}", "GET /api/v1/records/{id}/diff", "GET /api/v1/records/{id}/log", "GET /api/v1/records/{id}/files",
		"GET /api/v1/tree/{path...}", "GET /api/v1/drafts", "GET /api/v1/sessions", "GET /api/v1/inbox", "GET /api/v1/health", "GET /api/v1/events", "POST /api/v1/plan", "POST /api/v1/perform",
	} {
		rest, ok := described[head]
		require.True(t, ok, head)
		delete(described, head)
		method, place, _ := strings.Cut(head, " ")
		if strings.HasSuffix(place, "/events") {
			continue // TestEvents
		}
		place = strings.NewReplacer("{id}", "last", "{path...}", "a.txt").Replace(place)
		body := ""
		switch place {
		case "/api/v1/plan":
			body = `{"operation":"revert","ref":"last","paths":["a.txt"]}`
		case "/api/v1/perform":
			body = `{"plan":"` + plan + `"}`
		}
		res, text := b.do(method, b.base(place), strings.NewReader(body), header(formHeader, b.server.form))
		require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", head, text)
		example := regexp.MustCompile(`(?m)^    (\{.*\})$`).FindStringSubmatch(rest)
		if example == nil {
			require.NotEmpty(t, text, head)
			continue
		}
		var want, got map[string]any
		require.NoError(t, json.Unmarshal([]byte(example[1]), &want), head)
		require.NoError(t, json.Unmarshal([]byte(text), &got), head)
		for key := range want {
			require.Contains(t, got, key, head)
		}
		if id, ok := got["plan"].(string); ok {
			plan = id
		}
	}
	require.Empty(t, described, "each is called here")
	require.NotContains(t, b.text("a.txt"), "changed")
}

func TestAPIPages(t *testing.T) {
	b := serving(t, withRest).enter()
	b.edited()
	var ids []string
	for cursor, n := "", 0; n == 0 || cursor != ""; n++ {
		_, text := b.get(b.base("/api/v1/records?limit=1&cursor=" + cursor))
		var out struct {
			Items []struct{ ID string }
			Next  string
		}
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		require.Len(t, out.Items, 1)
		ids = append(ids, out.Items[0].ID)
		cursor = out.Next
	}
	require.Len(t, ids, 3)
	_, text := b.get(b.base("/api/v1/tree/?limit=1"))
	require.Contains(t, text, `"next": "1"`)
	_, text = b.get(b.base("/api/v1/tree/b.txt?content"))
	require.NotEmpty(t, text)
	for _, place := range []string{"/records?limit=0", "/records?limit=x", "/tree/?cursor=x", "/inbox?where=../dead"} {
		status, text := b.get(b.base("/api/v1" + place))
		require.Equal(t, http.StatusBadRequest, status, place)
		require.Contains(t, text, `"error"`, place)
	}
	for _, place := range []string{"/records/none", "/records/none/diff", "/tree/none", "/tree/..%2fb", "/none"} {
		status, _ := b.get(b.base("/api/v1" + place))
		require.Equal(t, http.StatusNotFound, status, place)
	}
	res, text := b.do(http.MethodPost, b.base("/api/v1/plan"), strings.NewReader(`{"operation":"undo"}`))
	require.Equal(t, http.StatusForbidden, res.StatusCode, "without the form's token: %s", text)
	res, _ = b.do(http.MethodPost, b.base("/api/v1/plan"), strings.NewReader(`{"operation":"undo","odd":1}`), header(formHeader, b.server.form))
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	large := strings.NewReader(`{"operation":"` + strings.Repeat("x", maxBody) + `"}`)
	res, _ = b.do(http.MethodPost, b.base("/api/v1/plan"), large, header(formHeader, b.server.form))
	require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
}

func TestAPIStale(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, _ := b.edited()
	post := func(place, body string) (int, map[string]any) {
		res, text := b.do(http.MethodPost, b.base("/api/v1/"+place), strings.NewReader(body), header(formHeader, b.server.form))
		var out map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &out), text)
		return res.StatusCode, out
	}
	_, planned := post("plan", `{"operation":"restore","ref":"`+second+`"}`)
	b.put("a.txt", "edited\n")
	status, out := post("perform", `{"plan":"`+planned["plan"].(string)+`"}`)
	require.Equal(t, http.StatusConflict, status)
	require.NotEqual(t, planned["plan"], out["new"].(map[string]any)["plan"])
	require.Equal(t, "edited\n", b.text("a.txt"))
}

// Records come to who listens, whoever made them; so does how far an operation is.
func TestEvents(t *testing.T) {
	b := serving(t, withRest).enter()
	_, second, _ := b.edited()
	r, err := http.NewRequest(http.MethodGet, b.base("/api/v1/events"), nil)
	require.NoError(t, err)
	res, err := (&http.Client{Jar: b.client.Jar}).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	next := func(event string) map[string]any {
		for lines.Scan() {
			if lines.Text() == "event: "+event && lines.Scan() {
				var out map[string]any
				require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &out))
				return out
			}
		}
		require.NoError(t, lines.Err())
		t.Fatal("the stream has ended")
		return nil
	}
	require.True(t, lines.Scan(), "it has begun")
	b.put("z.txt", "z\n")
	id := b.checkpoint("by another process")
	require.Equal(t, id, next("record")["id"])
	_, text := b.do(http.MethodPost, b.base("/api/v1/plan"), strings.NewReader(`{"operation":"restore","ref":"`+second+`"}`), header(formHeader, b.server.form))
	var planned map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &planned))
	b.do(http.MethodPost, b.base("/api/v1/perform"), strings.NewReader(`{"plan":"`+planned["plan"].(string)+`"}`), header(formHeader, b.server.form))
	require.Contains(t, next("progress"), "percent")
	require.NotEmpty(t, next("restored")["to"])
}

// A page is told of what came after it was made, also before it listened, and of nothing that it has: whoever listened before.
func TestEventsAfterAPage(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "a\n")
	first := b.checkpoint("first")
	events := func(query string) (next func() string, stop func()) {
		r, err := http.NewRequest(http.MethodGet, b.base("/api/v1/events"+query), nil)
		require.NoError(t, err)
		res, err := (&http.Client{Jar: b.client.Jar}).Do(r)
		require.NoError(t, err)
		lines := bufio.NewScanner(res.Body)
		require.True(t, lines.Scan(), "it has begun")
		return func() string {
			for lines.Scan() {
				if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
					var out struct{ ID string }
					require.NoError(t, json.Unmarshal([]byte(data), &out))
					return out.ID
				}
			}
			require.NoError(t, lines.Err())
			t.Fatal("the stream has ended")
			return ""
		}, func() { require.NoError(t, res.Body.Close()) }
	}
	_, stop := events("")
	stop()
	second := b.checkpoint("second")
	hasIt, stop := events("?after=" + second)
	defer stop()
	third := b.checkpoint("third")
	require.Equal(t, third, hasIt(), "the page has the second")
	hasNot, stopToo := events("?after=" + first)
	defer stopToo()
	require.Equal(t, []string{second, third}, []string{hasNot(), hasNot()})
}
