package targettest

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The credentials of the server that Gateway starts.
const (
	AccessKey = "tester"
	SecretKey = "not-much-of-a-secret"
)

// gateway is the path of versitygw: of bin/, as 'make bin/versitygw' builds it, or else built now,
// which takes minutes once.
var gateway = sync.OnceValues(func() (string, error) {
	at, err := filepath.Abs(filepath.Join(top(), "bin/versitygw"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if testing.Short() {
		return "", fmt.Errorf("there is no bin/versitygw: 'make bin/versitygw' builds it")
	}
	cmd := exec.Command("go", "build", "-o", at, "github.com/versity/versitygw/cmd/versitygw")
	cmd.Dir = filepath.Join(top(), "tools/s3")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("versitygw cannot be built: %w\n%s", err, out)
	}
	return at, nil
})

// Gateway starts versitygw over a directory that has a bucket called "bucket", and returns its address.
func Gateway(t *testing.T) (at, dir string) {
	t.Helper()
	bin, err := gateway()
	if err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bucket"), 0o700))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at = l.Addr().String()
	require.NoError(t, l.Close())
	var out bytes.Buffer
	cmd := exec.Command(bin, "--access", AccessKey, "--secret", SecretKey, "--port", at, "--quiet", "posix", "--sidecar", t.TempDir(), dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), <-ended })
	for {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			return at, dir
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("versitygw does not run here: %v\n%s", err, out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// top is the repository's directory.
func top() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../..")
}

// Faulty stands before a server. Next is asked for each request.
type Faulty struct {
	Next func(r *http.Request) Fault
	Hits atomic.Int64
}

// Fault is what becomes of a request.
type Fault int

const (
	None Fault = iota
	CutBefore
	CutAfter // the request is done, its answer is lost
	CutInside
	Conflict
	Unavailable
	SlowDown
	Slow   // the request is done after a moment
	Denied // and what follows are no passing faults: they are in no list
	Full
)

// Start returns the address that stands for the one of the server.
func (f *Faulty) Start(t *testing.T, at string) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := f.Next(r)
		if what != None {
			f.Hits.Add(1)
		}
		switch what {
		case CutBefore:
			hijack(w)
		case CutAfter:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			hijack(w)
		case CutInside:
			rec := httptest.NewRecorder()
			proxy.ServeHTTP(rec, r)
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			hijack(w)
		case Conflict:
			Answer(w, http.StatusConflict, "ConditionalRequestConflict")
		case Unavailable:
			w.WriteHeader(http.StatusServiceUnavailable)
		case SlowDown:
			Answer(w, http.StatusServiceUnavailable, "SlowDown")
		case Slow:
			time.Sleep(300 * time.Millisecond)
			proxy.ServeHTTP(w, r)
		case Denied:
			Answer(w, http.StatusForbidden, "AccessDenied")
		case Full:
			Answer(w, http.StatusInsufficientStorage, "XMinioStorageFull")
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func Answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>try again</Message></Error>", code)
}

func hijack(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// Faults are those that pass.
var Faults = []Fault{CutBefore, CutAfter, CutInside, Conflict, Unavailable, SlowDown, Slow}
