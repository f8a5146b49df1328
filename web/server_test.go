//go:build unix

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// bench is a tree, a server of its records, and a person's browser, as far as a server sees of it.
type bench struct {
	*testing.T
	root    string
	clock   time.Time
	server  *Server
	host    string // what is listened on
	address string // with the token
	client  *http.Client
}

func (b *bench) options() recorder.ReaderOptions {
	return recorder.ReaderOptions{
		Disk:  disk.OS,
		Where: project.Where{RootFlag: b.root, Cwd: b.root, Home: b.root + "-home", StoreEnv: b.root + "-store"},
		Clock: func() time.Time { b.clock = b.clock.Add(time.Second); return b.clock }, Location: time.UTC,
	}
}

func (b *bench) open(ctx context.Context, create bool, happens func(recorder.Event)) (*recorder.Recorder, error) {
	o := b.options()
	o.Events = happens
	return recorder.Open(ctx, recorder.Options{ReaderOptions: o, Create: true, Existing: !create, Actor: history.Actor{User: "u", Host: "h"}})
}

// serving is a bench whose server listens, with what change makes of its options.
func serving(t *testing.T, change ...func(*Options)) *bench {
	b := &bench{T: t, root: filepath.Join(t.TempDir(), "tree"), clock: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	o := Options{
		Read: func() (*recorder.Reader, error) { return recorder.OpenReader(b.options()) }, Change: b.open, Version: "test",
		Now: func() time.Time { return b.clock }, Location: time.UTC,
		Resolve: func(rec *recorder.Reader, ref string) (recorder.Point, error) {
			found, err := rec.History().Resolve(ref, time.UTC)
			if err != nil {
				return recorder.Point{}, err
			}
			r, err := rec.History().Get(found.ID)
			return recorder.Point{Record: r, After: found.Side == history.After || r != nil && r.Isolated != ""}, err
		},
	}
	for _, c := range change {
		c(&o)
	}
	b.server = New(o)
	b.listen("127.0.0.1:0")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b.client = &http.Client{Jar: jar, Timeout: time.Minute}
	return b
}

// listen serves until the test's end, which is a graceful one.
func (b *bench) listen(address string) {
	l, err := Listen(address, b.server.TLS != nil)
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(ctx, l) }()
	b.host, b.address = l.Addr().String(), b.server.Address(l)
	b.Cleanup(func() {
		if b.client != nil {
			b.client.CloseIdleConnections()
		}
		stop()
		assert.NoError(b, <-ended)
		assert.NoError(b, b.server.Close())
	})
}

// base is the address of a page.
func (b *bench) base(page string) string { return "http://" + b.host + b.server.path + page }

// enter opens the address that the server prints.
func (b *bench) enter() *bench {
	b.Helper()
	status, _ := b.get(b.address)
	require.Equal(b, http.StatusOK, status)
	return b
}

// do sends a request, with what change makes of it, and returns the answer and its body.
func (b *bench) do(method, address string, body io.Reader, change ...func(*http.Request)) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequest(method, address, body)
	require.NoError(b, err)
	for _, c := range change {
		c(r)
	}
	res, err := b.client.Do(r)
	require.NoError(b, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b, err)
	return res, string(text)
}

func (b *bench) get(address string, change ...func(*http.Request)) (int, string) {
	b.Helper()
	res, text := b.do(http.MethodGet, address, nil, change...)
	return res.StatusCode, text
}

// post sends a form as a browser does, with the token of the forms.
func (b *bench) post(page string, values url.Values, change ...func(*http.Request)) (*http.Response, string) {
	b.Helper()
	if values == nil {
		values = url.Values{}
	}
	if !values.Has(formField) {
		values.Set(formField, b.server.form)
	}
	change = append([]func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}, change...)
	return b.do(http.MethodPost, b.base(page), strings.NewReader(values.Encode()), change...)
}

// header sets one of a request.
func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func (b *bench) put(name, text string) {
	b.Helper()
	require.NoError(b, os.MkdirAll(filepath.Dir(filepath.Join(b.root, name)), 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644))
}

// record does something to the tree by a recorder of its own, as another command would.
func (b *bench) record(do func(ctx context.Context, rec *recorder.Recorder) error) {
	b.Helper()
	rec, err := b.open(context.Background(), true, nil)
	require.NoError(b, err)
	require.NoError(b, do(context.Background(), rec))
	require.NoError(b, rec.Close())
}

// checkpoint records the tree, and returns the record's id.
func (b *bench) checkpoint(description string) (id string) {
	b.Helper()
	b.record(func(ctx context.Context, rec *recorder.Recorder) error {
		r, err := rec.Checkpoint(ctx, recorder.CheckpointOptions{Description: description})
		if err == nil {
			id = r.ID
		}
		return err
	})
	return id
}

// records is how many there are.
func (b *bench) records() int {
	b.Helper()
	rec, err := recorder.OpenReader(b.options())
	require.NoError(b, err)
	defer rec.Close()
	list, err := rec.History().List(history.ListOptions{})
	require.NoError(b, err)
	return len(list.Records)
}

func TestTheTokenBecomesACookie(t *testing.T) {
	b := serving(t, withRest)
	b.put("a.txt", "one\n")
	b.checkpoint("first")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/\?token=[A-Z2-7]{52}$`, b.address)

	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, _ := b.do(http.MethodGet, b.address, nil)
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, b.server.path+"/", res.Header.Get("Location"), "the token is gone from the address")
	require.Regexp(t, `^decree=[A-Z2-7]{52}; Path=`+regexp.QuoteMeta(b.server.path)+`/; HttpOnly; SameSite=Strict$`, res.Header.Get("Set-Cookie"))
	require.NotContains(t, res.Header.Get("Set-Cookie"), b.server.token)

	status, page := b.get(b.base("/"))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "first")

	// From the file of --open the browser comes as from another site, and would not send the cookie on a redirect.
	b.client.Jar, _ = cookiejar.New(nil)
	status, page = b.get(b.address, header("Sec-Fetch-Site", "cross-site"))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, `http-equiv="refresh" content="0;url=`+b.server.path+`/"`)
	status, _ = b.get(b.base("/"))
	require.Equal(t, http.StatusOK, status)
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	b := serving(t, withRest)
	b.put("a.txt", "one\n")
	b.checkpoint("")
	all := func(res *http.Response, _ string) {
		t.Helper()
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
			res.Header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", res.Header.Get("Referrer-Policy"))
		require.NotEmpty(t, res.Header.Get("Cache-Control"))
		require.Empty(t, res.Header.Values("Access-Control-Allow-Origin"))
	}
	all(b.do(http.MethodGet, b.base("/"), nil)) // 403
	b.enter()
	for _, page := range []string{"/", "/none", "/static/style.css", "/static/script.js", "/../../etc/passwd"} {
		all(b.do(http.MethodGet, b.base(page), nil))
	}
	all(b.do(http.MethodGet, "http://"+b.host+"/", nil))
	all(b.do(http.MethodDelete, b.base("/"), nil))
	all(b.post("/checkpoint", nil, header("Origin", "http://evil.example")))
	res, _ := b.do(http.MethodGet, b.base("/"), nil)
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))

	// Static files alone may be kept, and are asked about.
	res, _ = b.do(http.MethodGet, b.base("/static/style.css"), nil)
	tag := res.Header.Get("ETag")
	require.NotEmpty(t, tag)
	res, body := b.do(http.MethodGet, b.base("/static/style.css"), nil, header("If-None-Match", tag))
	require.Equal(t, http.StatusNotModified, res.StatusCode)
	require.Empty(t, body)
	res, _ = b.do(http.MethodGet, b.base("/"), nil)
	require.Empty(t, res.Header.Get("ETag"))
}

// A name that leads here from elsewhere, whose page would then be of the same origin.
func TestRebinding(t *testing.T) {
	b := serving(t, withRest).enter()
	_, port, _ := net.SplitHostPort(b.host)
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port, "localhost:" + port, "127.0.0.1", "127.0.0.1:1", "[::1]:" + port, "0.0.0.0:" + port} {
		res, text := b.do(http.MethodGet, b.base("/"), nil, func(r *http.Request) { r.Host = host })
		require.Equal(t, http.StatusMisdirectedRequest, res.StatusCode, host)
		require.NotContains(t, text, b.server.path, host)
		res, _ = b.do(http.MethodGet, b.address, nil, func(r *http.Request) { r.Host = host })
		require.Equal(t, http.StatusMisdirectedRequest, res.StatusCode, host)
		require.Empty(t, res.Header.Get("Set-Cookie"), host)
	}
	// The same in the first line of the request, where it counts before Host.
	c, err := net.Dial("tcp", b.host)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET http://evil.example"+b.server.path+"/ HTTP/1.1\r\nHost: "+b.host+"\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(answer), "421")
}

func TestPostsOfOtherSites(t *testing.T) {
	b := serving(t, withRest).enter()
	b.put("a.txt", "one\n")
	b.checkpoint("first")
	refused := func(values url.Values, headers ...func(*http.Request)) {
		t.Helper()
		res, _ := b.post("/checkpoint", values, headers...)
		require.Equal(t, http.StatusForbidden, res.StatusCode)
	}
	refused(nil, header("Origin", "http://evil.example"))
	refused(nil, header("Origin", "https://"+b.host))
	refused(nil, header("Origin", "http://127.0.0.1:1"))
	refused(nil, header("Origin", "null"))
	refused(nil, header("Origin", "null"), header("Sec-Fetch-Site", "cross-site"))
	refused(nil, header("Sec-Fetch-Site", "cross-site"))
	refused(nil, header("Sec-Fetch-Site", "same-site")) // another port of this machine
	refused(nil, header("Sec-Fetch-Site", "none"))
	refused(url.Values{formField: {""}})
	refused(url.Values{formField: {"guessed"}})
	refused(url.Values{formField: {b.server.token}})
	b.client.Jar, _ = cookiejar.New(nil)
	refused(nil) // no cookie
	require.Equal(t, 1, b.records())

	b.enter()
	status, _ := b.get(b.base("/"), header("Sec-Fetch-Site", "same-site"))
	require.Equal(t, http.StatusForbidden, status, "nor does another port get a page")
	for _, sent := range [][]func(*http.Request){
		{header("Origin", "http://"+b.host), header("Sec-Fetch-Site", "same-origin")},
		{header("Origin", "null"), header("Sec-Fetch-Site", "same-origin")}, // a form of a page without a referrer
		{},
	} {
		res, _ := b.post("/checkpoint", nil, sent...)
		require.Equal(t, http.StatusOK, res.StatusCode, "after a redirect")
	}
	require.Equal(t, 4, b.records())
}

// Cookies know no ports: what another server on this machine gets of the browser's, and what it can set.
func TestOtherPortsGetNoCookie(t *testing.T) {
	b := serving(t, withRest).enter()
	at := func(address string) []*http.Cookie {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return b.client.Jar.Cookies(u)
	}
	require.Len(t, at(b.base("/")), 1)
	for _, page := range []string{"/", "/index.html", b.server.path[:10] + "/", b.server.path + "x/"} {
		require.Empty(t, at("http://127.0.0.1:1"+page), page)
	}
	// The other one sets a cookie of this name for all paths; ours comes beside it.
	u, err := url.Parse("http://127.0.0.1:1/")
	require.NoError(t, err)
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: cookieName, Value: "tossed", Path: "/"}})
	status, _ := b.get(b.base("/"))
	require.Equal(t, http.StatusOK, status)
}

func TestMissingAndOldTokens(t *testing.T) {
	old := serving(t)
	b := serving(t, withRest)
	refused := func(address string, headers ...func(*http.Request)) {
		t.Helper()
		res, text := b.do(http.MethodGet, address, nil, headers...)
		require.Equal(t, http.StatusForbidden, res.StatusCode)
		require.Empty(t, res.Header.Get("Set-Cookie"))
		require.NotContains(t, text, b.root)
		require.NotContains(t, text, b.server.form)
	}
	refused(b.base("/"))
	refused(b.base("/static/script.js"))
	refused(b.base("/?token="))
	refused(b.base("/?token=" + b.server.cookie))
	refused(b.base("/?token=" + old.server.token))
	refused(b.base("/?token=" + b.server.token + "x"))
	refused(b.base("/"), header("Cookie", cookieName+"="+old.server.cookie))
	refused(b.base("/"), header("Cookie", cookieName+"="+b.server.token))
	refused(b.base("/"), header("Cookie", cookieName+"="))
	for _, page := range []string{"/", "/r/last", old.server.path + "/", b.server.path, b.server.path + "x/"} {
		status, _ := b.get("http://" + b.host + page)
		require.Equal(t, http.StatusNotFound, status, page)
	}
	res, _ := b.do(http.MethodPost, b.address, nil)
	require.Equal(t, http.StatusForbidden, res.StatusCode, "a token enters by GET alone")
}

func TestMethods(t *testing.T) {
	b := serving(t, withRest).enter()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace} {
		res, _ := b.do(method, b.base("/"), nil)
		require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode, method)
		require.NotEmpty(t, res.Header.Get("Allow"), method)
	}
	res, _ := b.do(http.MethodGet, b.base("/checkpoint"), nil)
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
}

func TestReadOnlyHasNoRouteThatWrites(t *testing.T) {
	b := serving(t, func(o *Options) {
		o.ReadOnly = true
		o.Change = func(context.Context, bool, func(recorder.Event)) (*recorder.Recorder, error) {
			panic("it opened the project to change it")
		}
	}).enter()
	rw := serving(t)
	for _, pattern := range rw.server.changes {
		res, _ := b.post(strings.NewReplacer("{name}", "x", "{path...}", "x", "{id}", "x").Replace(pattern), nil)
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, res.StatusCode, pattern)
	}
	require.NotEmpty(t, rw.server.changes)
	require.Empty(t, b.server.changes)
	_, page := b.get(b.base("/"))
	require.NotContains(t, page, "<form method=\"post\"")
	require.Contains(t, page, "read-only")
}

func TestLargeBodies(t *testing.T) {
	b := serving(t, withRest).enter()
	small := io.MultiReader(strings.NewReader(formField+"="+b.server.form+"&description="), &endless{left: maxBody - 1000})
	res, _ := b.do(http.MethodPost, b.base("/checkpoint"), small, header("Content-Type", "application/x-www-form-urlencoded"))
	require.Equal(t, http.StatusOK, res.StatusCode)
	// Nobody says how large it is: it is given up at 1 MiB.
	read := &endless{left: 1 << 30}
	r, err := http.NewRequest(http.MethodPost, b.base("/checkpoint"), read)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if res, err := b.client.Do(r); err == nil { // or the connection broke while it was sent
		require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
		res.Body.Close()
	}
	require.Greater(t, read.left, int64(1<<29))
	// It is said: nothing of it is read.
	said := map[string]net.Conn{}
	for _, page := range []string{"/checkpoint", "/", "/none"} {
		c, err := net.Dial("tcp", b.host)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "POST "+b.server.path+page+" HTTP/1.1\r\nHost: "+b.host+"\r\nContent-Length: 1073741824\r\n\r\n")
		require.NoError(t, err)
		said[page] = c
	}
	for page, c := range said { // the server waits for the rest of them at once
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(answer), "HTTP/1.1 413 ", page)
		require.Contains(t, string(answer), "Connection: close", page)
	}
}

// endless is a body of letters.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	for i := range n {
		p[i] = 'a'
	}
	e.left -= int64(n)
	return n, nil
}

func TestLongHeaders(t *testing.T) {
	b := serving(t, withRest).enter()
	res, _ := b.do(http.MethodGet, b.base("/"), nil, header("X-Long", strings.Repeat("a", 64<<10)))
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, res.StatusCode)
}

// A thousand connections that ask nothing, or never end what they ask, shut nobody out.
func TestManyAndSlowConnections(t *testing.T) {
	b := serving(t, withRest).enter()
	b.client.CloseIdleConnections()
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for i := range 1000 {
		c, err := net.Dial("tcp", b.host)
		require.NoError(t, err)
		held = append(held, c)
		if i%2 == 1 {
			_, _ = io.WriteString(c, "GET /") // the server may have closed it
		}
	}
	status, _ := b.get(b.base("/"))
	require.Equal(t, http.StatusOK, status)
	for _, path := range []string{"/", b.server.path + "/checkpoint", "/?token=none"} {
		for _, size := range []int{100_000, 4 << 20} { // a head alone, by one who has no cookie
			for range maxConnections {
				c, err := net.Dial("tcp", b.host)
				require.NoError(t, err)
				held = append(held, c)
				_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", path, b.host, size)
			}
			status, _ := b.get(b.base("/"))
			require.Equal(t, http.StatusOK, status, path)
		}
	}
	b.server.held.mu.Lock()
	require.LessOrEqual(t, len(b.server.held.waiting)+len(b.server.held.working), maxConnections)
	b.server.held.mu.Unlock()

	// The times after which they are given up. That the standard library keeps them is its own to test.
	srv := b.server.standard()
	require.Equal(t, []time.Duration{headerTime, bodyTime, idleTime}, []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.IdleTimeout})
}

func TestAddressesThatOthersReach(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "8.8.8.8:80"} {
		_, err := Listen(address, false)
		require.ErrorContains(t, err, "TLS", address)
		require.Equal(t, project.Usage, project.KindOf(err), address)
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:http-ish", "127.0.0.1:99999"} {
		_, err := Listen(address, false)
		require.Error(t, err, address)
	}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0", "localhost:0"} {
		l, err := Listen(address, false)
		require.NoError(t, err, address)
		l.Close()
	}
	l, err := Listen("0.0.0.0:0", true)
	require.NoError(t, err)
	l.Close()
}

// TestAReaderThatStops holds that an answer ends whose reader takes no more of it: what makes it is let go.
func TestAReaderThatStops(t *testing.T) {
	gone := make(chan error, 1)
	b := serving(t, func(o *Options) { o.Patience = 50 * time.Millisecond }).enter()
	b.server.mux.HandleFunc("GET "+b.server.path+"/endless", func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 1<<20)
		for {
			if _, err := w.Write(part); err != nil {
				gone <- err
				return
			}
		}
	})
	res, err := b.client.Get(b.base("/endless"))
	require.NoError(t, err)
	defer res.Body.Close()
	require.ErrorIs(t, <-gone, os.ErrDeadlineExceeded)
	status, _ := b.get(b.base("/"))
	require.Equal(t, http.StatusOK, status, "others are served as before")
}

// TestPatience holds what it is where nobody says another.
func TestPatience(t *testing.T) { require.Equal(t, writeTime, New(Options{}).Patience) }

// TestPiped holds that what fails while it is written, also by a panic, is an error for who reads it.
func TestPiped(t *testing.T) {
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { _, _ = io.WriteString(w, "one"); return errors.New("damaged") },
		func(w io.Writer) error { _, _ = io.WriteString(w, "one"); panic("damaged") },
	} {
		text, err := io.ReadAll(piped(write))
		require.Equal(t, "one", string(text))
		require.ErrorContains(t, err, "damaged")
	}
}
