package patch

import (
	"bufio"
	"context"
	"decree/tree"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onDisk is a content in a file.
type onDisk string

func (p onDisk) Open() (io.ReadCloser, error) { return os.Open(string(p)) }

// sum returns the entry of a file on disk without holding it.
func (p onDisk) entry(t *testing.T) *tree.Entry {
	data, err := os.ReadFile(string(p))
	require.NoError(t, err)
	return &tree.Entry{SHA256: tree.Sum(data), Size: int64(len(data)), Mode: 0o644}
}

// peakEnv tells a process of this test binary to write one diff and do nothing else.
const peakEnv = "DECREE_PATCH_PEAK"

// TestPeakChild is the process that TestPeak measures.
func TestPeakChild(t *testing.T) {
	root := os.Getenv(peakEnv)
	if root == "" {
		t.Skip("only as TestPeak's child")
	}
	var entries [2]tree.Entry
	f, err := os.Open(filepath.Join(root, "facts"))
	require.NoError(t, err)
	for i := range entries {
		var sum string
		_, err := fmt.Fscan(f, &sum, &entries[i].Size)
		require.NoError(t, err)
		require.NoError(t, entries[i].SHA256.UnmarshalText([]byte(sum)))
		entries[i].Mode = 0o644
	}
	out, err := os.Create(filepath.Join(root, "diff"))
	require.NoError(t, err)
	w := NewWriter(out, Limits{})
	c := Change{"f", &entries[0], &entries[1], onDisk(filepath.Join(root, "old")), onDisk(filepath.Join(root, "new")), false}
	require.NoError(t, w.Write(context.Background(), c))
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "status"), status, 0o600))
}

// peak returns the largest memory, in MiB, of a process that writes the diff of two texts.
func peak(t *testing.T, old, new func(w *bufio.Writer)) int64 {
	root := t.TempDir()
	facts := ""
	for name, f := range map[string]func(*bufio.Writer){"old": old, "new": new} {
		out, err := os.Create(filepath.Join(root, name))
		require.NoError(t, err)
		w := bufio.NewWriter(out)
		f(w)
		require.NoError(t, w.Flush())
		require.NoError(t, out.Close())
	}
	for _, name := range []string{"old", "new"} {
		e := onDisk(filepath.Join(root, name)).entry(t)
		facts += fmt.Sprintln(e.SHA256, e.Size)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "facts"), []byte(facts), 0o600))
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run", "^TestPeakChild$")
	cmd.Env = append(os.Environ(), peakEnv+"="+root)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(filepath.Join(root, "diff"))
	require.NoError(t, err)
	// The resources that the system tells of a child count what its parent had, too.
	status, err := os.ReadFile(filepath.Join(root, "status"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	var kib int64
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	t.Logf("peak %d MiB, %.2f s, diff %d bytes", kib>>10, cmd.ProcessState.UserTime().Seconds(), info.Size())
	return kib >> 10
}

// The memory bar: no two texts take more than 300 MB.
func TestPeak(t *testing.T) {
	if !long() {
		t.Skip("long form: DECREE_LONG=1")
	}
	data := func(b []byte) func(*bufio.Writer) { return func(w *bufio.Writer) { w.Write(b) } }
	lines := func(seed uint64, size, most int) func(*bufio.Writer) {
		return func(w *bufio.Writer) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for n := 0; n < size; {
				k, _ := fmt.Fprintln(w, rnd.IntN(most))
				n += k
			}
		}
	}
	for _, tt := range []struct {
		name     string
		old, new func(*bufio.Writer)
	}{
		{"log 50 MB, 1 %", data(logText(50 << 20)), data(changeLines(logText(50<<20), 100))},
		{"log 250 MB, 1 %", data(logText(250 << 20)), data(changeLines(logText(250<<20), 100))},
		{"just held, nothing in common", lines(1, 16<<20, 1e15), lines(2, 16<<20, 1e15)},
		{"just held, short lines", lines(1, 16<<20, 1e4), lines(2, 16<<20, 1e4)},
		{"64 MB, nothing in common", lines(1, 64<<20, 1e15), lines(2, 64<<20, 1e15)},
		{"64 MB, a million words", lines(1, 64<<20, 1e6), lines(2, 64<<20, 1e6)},
		{"64 MB, ten words", lines(1, 64<<20, 10), lines(2, 64<<20, 10)},
		{"250 MB, nothing in common", lines(1, 250<<20, 1e15), lines(2, 250<<20, 1e15)},
		{"250 MB, ten words", lines(1, 250<<20, 10), lines(2, 250<<20, 10)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.LessOrEqual(t, peak(t, tt.old, tt.new), int64(300))
		})
	}
}
