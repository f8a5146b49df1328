//go:build linux || darwin

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/layer/overlay"
)

// helperEnv makes the test binary run its arguments through Run on its own
// streams, as decree does, and write a report to handle 3.
const helperEnv = "RUNNER_TEST_HELPER"

// dying as helperEnv's value makes it end itself when the command is about to start.
const dying = "dies"

// keeping makes it leave handle 3 to the command.
const keeping = "keeps"

// overlayEnv makes it run its arguments in an overlay: the words of a mount, a line each.
const overlayEnv = "RUNNER_TEST_OVERLAY"

// helpers are what the test binary does when helperEnv names it, with its arguments.
var helpers = map[string]func(args []string){}

// A report is a Result as the helper process hands it over.
type report struct {
	ExitCode    int
	Signal      string
	Interrupted string
	PTY         bool
	NoPTY       string
	Stragglers  []Process
	Log         string
	Err         string
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	if do := helpers[os.Getenv(helperEnv)]; do != nil {
		do(os.Args[1:])
		os.Exit(0)
	}
	var starting func(Leader) error
	if os.Getenv(helperEnv) == dying {
		starting = func(Leader) error { return unix.Kill(os.Getpid(), unix.SIGKILL) }
	}
	if os.Getenv(helperEnv) != keeping {
		unix.CloseOnExec(3)
	}
	var over *overlay.Mount
	if w := strings.Split(os.Getenv(overlayEnv), "\n"); len(w) == 3 {
		over = &overlay.Mount{Root: w[0], Layer: w[1], Name: w[2]}
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	var log bytes.Buffer
	res, err := Run(context.Background(), Command{
		Args: os.Args[1:], Env: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Log: &log, Signals: signals, Grace: time.Second, Starting: starting, Overlay: over,
	})
	out := report{ExitCode: res.ExitCode, Signal: res.Signal, PTY: res.PTY, Stragglers: res.Stragglers, Log: log.String()}
	if res.Interrupted != nil {
		out.Interrupted = res.Interrupted.String()
	}
	if res.NoPTY != nil {
		out.NoPTY = res.NoPTY.Error()
	}
	if err != nil {
		out.Err = err.Error()
	}
	_ = json.NewEncoder(os.NewFile(3, "report")).Encode(out)
}

// output is a file that stands for one of decree's streams.
func output(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	return string(b)
}

// shell is a Command that runs script in sh.
func shell(script string, args ...string) Command {
	return Command{
		Args:  append([]string{"sh", "-c", script, "sh"}, args...),
		Env:   append(os.Environ(), "DECREE_RUN_ID=test-"+time.Now().Format(time.RFC3339Nano)),
		Grace: 10 * time.Second,
	}
}

// run runs c and requires that decree had no trouble of its own.
func run(t *testing.T, c Command) Result {
	t.Helper()
	res, err := Run(t.Context(), c)
	require.NoError(t, err)
	return res
}

// A notifier is a log that tells when a text has come.
type notifier struct {
	want  string
	seen  bytes.Buffer
	there chan struct{}
	told  bool
}

func notify(want string) *notifier { return &notifier{want: want, there: make(chan struct{})} }

func (n *notifier) Write(b []byte) (int, error) {
	n.seen.Write(b)
	if !n.told && bytes.Contains(n.seen.Bytes(), []byte(n.want)) {
		n.told = true
		close(n.there)
	}
	return len(b), nil
}
