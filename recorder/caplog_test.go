package recorder

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestCappedLog: whatever comes in whatever pieces, the file never grows above its
// cap, and holds all of it, or its head, one line and its end.
func TestCappedLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	dir, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	cut := 0
	for n := range 300 {
		var all bytes.Buffer
		for lines := rng.IntN(1500); all.Len() < lines*10; {
			fmt.Fprintf(&all, "line %d %s\n", all.Len(), strings.Repeat("x", rng.IntN(30)))
		}
		name := fmt.Sprint(n)
		f, err := dir.Create(name, 0o600)
		require.NoError(t, err)
		const most = 8 << 10
		l := &cappedLog{f: f, max: most}
		for rest := all.Bytes(); len(rest) > 0; {
			k := min(len(rest), 1+rng.IntN([]int{20, 2000, 30000}[rng.IntN(3)]))
			got, err := l.Write(rest[:k])
			require.NoError(t, err)
			require.Equal(t, k, got)
			rest = rest[k:]
			st, err := f.Stat()
			require.NoError(t, err)
			require.LessOrEqual(t, st.Size, int64(most))
		}
		capped, err := l.finish()
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir.Path(), name))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.LessOrEqual(t, len(got), most)
		require.Equal(t, all.Len() > most, capped)
		if !capped {
			require.Equal(t, all.String(), string(got))
			continue
		}
		cut++
		head, rest, found := strings.Cut(string(got), "\n[decree: ")
		require.True(t, found)
		note, end, _ := strings.Cut(rest, "]\n")
		require.Len(t, head, most/2)
		require.True(t, strings.HasPrefix(all.String(), head))
		require.True(t, strings.HasSuffix(all.String(), end), "the end, in order")
		require.True(t, strings.HasPrefix(end, "line "), "from the beginning of a line")
		require.Greater(t, len(end), most/2-600)
		require.Equal(t, fmt.Sprintf("of %d bytes of output %d are left out here; log.max in .decree/config.yml", all.Len(), all.Len()-len(head)-len(end)), note)
	}
	require.Greater(t, cut, 50)
}

// TestCappedLogOfADeath: what finish did not put in order says where it turns.
func TestCappedLogOfADeath(t *testing.T) {
	dir, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	f, err := dir.Create("log", 0o600)
	require.NoError(t, err)
	defer f.Close()
	l := &cappedLog{f: f, max: 4 << 10}
	for n := range 1000 {
		_, err := fmt.Fprintf(l, "line %d\n", n)
		require.NoError(t, err)
	}
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 4<<10))
	require.NoError(t, err)
	require.Contains(t, string(got), "line 999\n"+seam)
}
