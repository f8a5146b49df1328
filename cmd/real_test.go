//go:build real

package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realTree is a copy of the Go sources with the built binary beside it.
type realTree struct {
	t        *testing.T
	bin, dir string
	pristine string // a second copy, for the tools to apply the diff to
	home     string
	files    int
	first    map[string]string
	env      []string
	elapsed  time.Duration
}

func newRealTree(t *testing.T) *realTree {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	bin, err := filepath.Abs("../bin/decree")
	require.NoError(t, err)
	require.FileExists(t, bin, "make build comes first")
	base := t.TempDir()
	r := &realTree{t: t, bin: bin, dir: filepath.Join(base, "src"), pristine: filepath.Join(base, "second"), home: filepath.Join(base, "home")}
	require.NoError(t, os.Mkdir(r.home, 0o700))
	for _, dst := range []string{r.dir, r.pristine} {
		r.sh(base, "cp -R '"+strings.TrimSpace(string(goroot))+"/src' '"+dst+"' && chmod -R u+w '"+dst+"'")
	}
	r.env = append(os.Environ(), "HOME="+r.home, "XDG_DATA_HOME="+r.home+"/data", "NO_COLOR=1", "DECREE_STORE=", "GOFLAGS=-buildvcs=false", "GOCACHE="+r.home+"/cache")
	r.first = treeOf(t, r.dir)
	r.files = len(r.first)
	return r
}

func (r *realTree) sh(dir, script string) string {
	r.t.Helper()
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(r.t, err, "%s\n%s", script, tail(out))
	return string(out)
}

func tail(b []byte) []byte { return b[max(0, len(b)-3000):] }

// decree runs the binary in the tree and returns its exit code and output.
func (r *realTree) decree(args ...string) (int, string) {
	r.t.Helper()
	c := exec.Command(r.bin, args...)
	c.Dir, c.Env = r.dir, r.env
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	start := time.Now()
	err := c.Run()
	r.elapsed = time.Since(start)
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		require.NoError(r.t, err)
	}
	return c.ProcessState.ExitCode(), out.String()
}

// treeOf maps every path but .decree to its mode, type and content's hash.
func treeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
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
		what := fmt.Sprint(info.Mode())
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
		rel, _ := filepath.Rel(root, path)
		out[rel] = what
		return nil
	})
	require.NoError(t, err)
	return out
}

// sameTree compares and names the first paths that differ.
func sameTree(t *testing.T, want, got map[string]string) {
	t.Helper()
	var differ []string
	for p, w := range want {
		if got[p] != w {
			differ = append(differ, fmt.Sprintf("%s: %q, want %q", p, got[p], w))
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			differ = append(differ, p+": too much")
		}
	}
	sort.Strings(differ)
	require.Empty(t, differ[:min(len(differ), 20)], "%d paths differ", len(differ))
}

// recorded is what the figures need of run.json.
type recorded struct {
	ID      string
	Status  string
	Files   int
	Bytes   int64
	Changes struct {
		Created, Modified, Deleted int
		Added                      int `json:"added_lines"`
		Removed                    int `json:"removed_lines"`
	}
}

func (r *realTree) last() recorded {
	r.t.Helper()
	code, out := r.decree("show", "last", "--json")
	require.Equal(r.t, 0, code, out)
	var rec recorded
	require.NoError(r.t, json.Unmarshal([]byte(out), &rec), out)
	return rec
}

func (r *realTree) figure(name string, rec recorded, run, back time.Duration) {
	info, err := os.Stat(filepath.Join(r.dir, ".decree/runs", rec.ID, "changes.diff"))
	require.NoError(r.t, err)
	r.t.Logf("| %s | %d | %d/%d/%d | +%d -%d | %.1f MB | %.2f s | %.2f s |", name, rec.Files,
		rec.Changes.Created, rec.Changes.Modified, rec.Changes.Deleted, rec.Changes.Added, rec.Changes.Removed,
		float64(info.Size())/1e6, run.Seconds(), back.Seconds())
}

// revert takes the last run back and compares the whole tree with the first one.
func (r *realTree) revert(name string, run time.Duration) {
	r.t.Helper()
	rec := r.last()
	code, out := r.decree("revert", "--yes", "last")
	require.Equal(r.t, 0, code, out)
	back := r.elapsed
	sameTree(r.t, r.first, treeOf(r.t, r.dir))
	r.figure(name, rec, run, back)
}

// oracle applies the run's diff to the second copy with a tool, compares with
// the tree as the run left it, and takes it back with the same tool.
func (r *realTree) oracle(want map[string]string, diff, apply, reverse string) {
	r.t.Helper()
	if _, err := exec.LookPath(strings.Fields(apply)[0]); err != nil {
		r.t.Logf("%s is not installed", apply)
		return
	}
	r.sh(r.pristine, apply+" < '"+diff+"'")
	sameTree(r.t, want, treeOf(r.t, r.pristine))
	r.sh(r.pristine, reverse+" < '"+diff+"'")
	sameTree(r.t, r.first, treeOf(r.t, r.pristine))
}

// TestReal runs real commands over a copy of the Go sources and takes each back.
func TestReal(t *testing.T) {
	r := newRealTree(t)
	t.Logf("%s/%s, %d paths", runtime.GOOS, runtime.GOARCH, r.files)
	t.Logf("| command | files | created/modified/deleted | lines | changes.diff | run | back |")
	t.Run("a rewrite of every file", func(t *testing.T) { r.t = t; r.rewrite() })
	t.Run("a script that touches, deletes, links", func(t *testing.T) { r.t = t; r.mutate() })
	t.Run("a build that fails", func(t *testing.T) { r.t = t; r.failingBuild() })
	t.Run("redo", func(t *testing.T) { r.t = t; r.redo() })
}

const rewriteScript = `find . -name .decree -prune -o -name '*.go' -not -path '*/testdata/*' -print0 | xargs -0 -P 2 -n 200 gofmt -w -r 'err != nil -> nil != err'`

func (r *realTree) rewrite() {
	code, out := r.decree("run", "--yes", "--", "sh", "-c", rewriteScript)
	require.Equal(r.t, 0, code, out)
	run := r.elapsed
	after := treeOf(r.t, r.dir)
	rec := r.last()
	require.Greater(r.t, rec.Changes.Modified, 1000)
	diff := filepath.Join(r.dir, ".decree/runs", rec.ID, "changes.diff")
	r.oracle(after, diff, "git apply -p1 --whitespace=nowarn", "git apply -R -p1 --whitespace=nowarn")
	r.oracle(after, diff, "patch -s -p1", "patch -s -R -p1")
	r.revert("gofmt -r over all", run)
}

// mutateScript touches 3,000 files, deletes 500, changes modes and links, makes
// directories, empty and not, a name with a newline, and binary contents.
const mutateScript = `set -e
find . -name .decree -prune -o -type f -print | LC_ALL=C sort > "$LIST"
sed -n '1~3p' "$LIST" | head -3000 | while IFS= read -r f; do printf 'touched\n' >> "$f"; done
sed -n '2~7p' "$LIST" | head -500 | tr '\n' '\0' | xargs -0 rm -f
sed -n '3~40p' "$LIST" | head -100 | while IFS= read -r f; do [ ! -e "$f" ] || chmod 755 "$f"; done
mkdir -p new/empty new/deep/er && chmod 700 new/empty
ln -s ../fmt/print.go new/link; ln -s nowhere new/dangling
head -c 100000 /dev/zero > new/zeros.bin
printf 'odd\n' > "new/a
name"
printf 'caf\351\n' > "$(printf 'new/caf\351')"
rm -rf unicode && printf 'a file now\n' > unicode
rm errors/errors.go && mkdir errors/errors.go && printf 'x\n' > errors/errors.go/inner
`

func (r *realTree) mutate() {
	list := filepath.Join(r.home, "list")
	script := filepath.Join(r.home, "mutate.sh")
	require.NoError(r.t, os.WriteFile(script, []byte("LIST='"+list+"'\n"+mutateScript), 0o600))
	code, out := r.decree("run", "--yes", "--", "sh", script)
	require.Equal(r.t, 0, code, out)
	run := r.elapsed
	require.Greater(r.t, r.last().Changes.Modified, 2000)
	r.revert("touch 3,000, delete 500, modes, links", run)
}

func (r *realTree) failingBuild() {
	code, out := r.decree("run", "--yes", "--", "sh", "-c", "echo 'package fmt; func broken(' >> fmt/print.go; rm strings/builder.go; touch new.o; cd fmt && go vet .")
	run := r.elapsed
	require.NotEqual(r.t, 0, code)
	require.NotEqual(r.t, 125, code, out)
	sameTree(r.t, r.first, treeOf(r.t, r.dir))
	rec := r.last()
	require.Equal(r.t, "reverted", rec.Status)
	r.figure("a failing build, put back by itself", rec, run, 0)
}

// redo brings the rewrite back by apply and takes it away again.
func (r *realTree) redo() {
	code, out := r.decree("log", "--json", "--limit", "0")
	require.Equal(r.t, 0, code, out)
	var all []recorded
	require.NoError(r.t, json.Unmarshal([]byte(out), &all), out)
	oldest := all[len(all)-1]
	code, out = r.decree("apply", "--yes", oldest.ID)
	require.Equal(r.t, 0, code, out)
	applied := r.elapsed
	require.NotEqual(r.t, r.first, treeOf(r.t, r.dir))
	r.revert("apply the rewrite again, revert that", applied)
}
