package layer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/layer"
	"decree/runner"
)

// BenchmarkLife is a run in a layer over a copy of the Go sources: until the command's first
// instruction, the whole of a run that does nothing, and what its 25 changes cost.
func BenchmarkLife(b *testing.B) {
	s := newSite(b)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(b, err)
	require.NoError(b, os.CopyFS(s.root, os.DirFS(filepath.Join(strings.TrimSpace(string(goroot)), "src"))))
	s.make("try", layer.Overlay)
	require.NoError(b, s.place.Remove("try"))
	var ready, changes time.Duration
	life := func(script string) int {
		out, err := os.Create(filepath.Join(s.base, "out"))
		require.NoError(b, err)
		defer out.Close()
		began := time.Now()
		l, err := s.place.Make("one", layer.Overlay, layer.CloneOptions{})
		require.NoError(b, err)
		m, err := l.Mount()
		require.NoError(b, err)
		_, err = runner.Run(b.Context(), runner.Command{Args: []string{"date", "+%s%N"}, Env: os.Environ(), Overlay: m, Dir: s.root, Stdout: out})
		require.NoError(b, err)
		text, err := os.ReadFile(out.Name())
		require.NoError(b, err)
		at, err := strconv.ParseInt(string(text[:len(text)-1]), 10, 64)
		require.NoError(b, err)
		ready += time.Unix(0, at).Sub(began)
		if script != "" {
			s.run(l, script)
		}
		n := 0
		began = time.Now()
		_, err = l.Changes(b.Context(), layer.ChangeOptions{}, func(*layer.Change) error { n++; return nil })
		require.NoError(b, err)
		changes += time.Since(began)
		l.Close()
		require.NoError(b, s.place.Remove("one"))
		return n
	}
	for name, script := range map[string]string{"nothing": "", "changes=25": `ls -d fmt/*.go os/*.go | head -20 | while read f; do echo x >>$f; done; ls -d net/*.go | head -5 | xargs rm`} {
		b.Run(name, func(b *testing.B) {
			ready, changes = 0, 0
			for b.Loop() {
				n := life(script)
				require.Equal(b, map[bool]int{true: 0, false: 25}[script == ""], n)
			}
			b.ReportMetric(float64(ready.Microseconds())/float64(b.N), "ready-us/op")
			b.ReportMetric(float64(changes.Microseconds())/float64(b.N), "changes-us/op")
		})
	}
}
