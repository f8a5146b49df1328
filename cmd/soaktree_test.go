//go:build unix

package cmd

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lookAt describes every path below root but .decree.
func lookAt(t *testing.T, root string) state {
	t.Helper()
	out := state{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.Name() == ".decree" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = "link " + target
		}
		rel, err := filepath.Rel(root, path)
		out[rel] = what
		return err
	})
	require.NoError(t, err)
	return out
}

// grow makes a tree of n files, links among them, in directories of 50.
func (p *proving) grow(n int) {
	for i := range n {
		dir := filepath.Join(p.root, fmt.Sprintf("d%02d", i/50), []string{"", "sub", "sub/deep"}[i%3])
		require.NoError(p.t, os.MkdirAll(dir, 0o755))
		path := filepath.Join(dir, fmt.Sprintf("f%d", i))
		if i%97 == 0 {
			require.NoError(p.t, os.Symlink("elsewhere", path))
			continue
		}
		require.NoError(p.t, os.WriteFile(path, p.content(), []fs.FileMode{0o644, 0o644, 0o755, 0o600}[p.rng.IntN(4)]))
	}
}

// content is text, now and then binary or large.
func (p *proving) content() []byte {
	var b []byte
	lines := 5 + p.rng.IntN(60)
	if p.rng.IntN(200) == 0 {
		lines = 20000
	}
	for i := range lines {
		b = fmt.Appendf(b, "line %d: %x\n", i, p.rng.Uint64())
	}
	if p.rng.IntN(20) == 0 {
		b = append(b, 0)
	}
	return b
}

// some are n paths of files in the tree, in order.
func (p *proving) some(n int) []string {
	var all []string
	_ = filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".decree" {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(p.root, path)
			all = append(all, rel)
		}
		return nil
	})
	p.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(n, len(all))]
	slices.Sort(all)
	return all
}

// script writes a command that changes some hundred paths in every way: the first
// line of a file, all of it, its mode, its kind; deletions and new directories.
// Twice in a row it does not fail. It leaves the id of its group in pid.
func (p *proving) script(exit int) string {
	p.made++
	var b strings.Builder
	fmt.Fprintf(&b, "echo $$ >%s\n", p.pid())
	all := p.some(1 << 30)
	for i, f := range p.some(len(all)/10 + p.rng.IntN(1+len(all)/6)) {
		switch p.rng.IntN(10) {
		case 0:
			fmt.Fprintf(&b, "rm -f %s\n", f)
		case 1:
			fmt.Fprintf(&b, "chmod %o %s 2>/dev/null\n", []int{0o600, 0o755, 0o640}[p.rng.IntN(3)], f)
		case 2:
			fmt.Fprintf(&b, "rm -f %s; mkdir -p %s; echo %d >%s/inside\n", f, f, i, f)
		case 3:
			fmt.Fprintf(&b, "rm -f %s; ln -sfn to/%d %s\n", f, i, f)
		case 4:
			fmt.Fprintf(&b, "mkdir -p new%d/%d; echo %d >new%d/%d/f\n", p.made, i%7, i, p.made, i%7)
		case 5, 6:
			fmt.Fprintf(&b, "echo run %d rewrote this >%s\n", p.made, f)
		default:
			fmt.Fprintf(&b, "echo run %d appended this >>%s\n", p.made, f)
		}
	}
	fmt.Fprintf(&b, "exit %d\n", exit)
	path := filepath.Join(p.base, fmt.Sprintf("work%d.sh", p.made))
	require.NoError(p.t, os.WriteFile(path, []byte(b.String()), 0o644))
	return path
}

// edit changes some files by hand.
func (s *soak) edit() {
	for _, f := range s.some(20) {
		s.append(f, "edited by hand\n", false)
	}
	s.cur = s.look()
}

// editRun puts a line at the head of files that the last run changed.
func (s *soak) editRun() {
	out := s.must("diff", "--name-only")
	for i, f := range strings.Split(strings.TrimSpace(out), "\n") {
		if info, err := os.Lstat(filepath.Join(s.root, f)); err == nil && info.Mode().IsRegular() && info.Size() > 500 && i%3 == 0 {
			s.append(f, "edited by hand\n", true)
		}
	}
}

func (s *soak) append(file, text string, head bool) {
	path := filepath.Join(s.root, file)
	data, err := os.ReadFile(path)
	require.NoError(s.t, err)
	if head {
		data = append([]byte(text), data...)
	} else {
		data = append(data, text...)
	}
	require.NoError(s.t, os.WriteFile(path, data, 0o644))
}
