package patch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// node is one path of a test tree: its entry, and the bytes of a regular file.
type node struct {
	entry *tree.Entry
	data  string
}

type nodes map[tree.Path]node

func regular(data string, mode uint32) node { return node{file(data, mode), data} }

// changes returns what leads from one tree to another, in the order that a Writer wants.
func changes(old, new nodes) []Change {
	paths := map[tree.Path]bool{}
	for p := range old {
		paths[p] = true
	}
	for p := range new {
		paths[p] = true
	}
	var all []Change
	for p := range paths {
		o, n := old[p], new[p]
		all = append(all, Change{p, o.entry, n.entry, Bytes(o.data), Bytes(n.data), false})
	}
	slices.SortFunc(all, func(a, b Change) int { return a.Path.Compare(b.Path) })
	return all
}

// make writes a tree to disk.
func (tr nodes) make(t testing.TB, root string) {
	t.Helper()
	paths := make([]tree.Path, 0, len(tr))
	for p := range tr {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		n, at := tr[p], filepath.Join(root, string(p))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		switch n.entry.Type {
		case tree.Dir:
			require.NoError(t, os.MkdirAll(at, 0o755))
		case tree.Symlink:
			require.NoError(t, os.Symlink(n.entry.Target, at))
		default:
			require.NoError(t, os.WriteFile(at, []byte(n.data), 0o600))
			require.NoError(t, os.Chmod(at, os.FileMode(n.entry.Mode&0o777)))
		}
	}
}

// list reads a tree from disk: path to "mode content" or "link target". Directories are
// left out, and modes are only told apart by their executable bit: the tools make no more
// of either.
func list(t testing.TB, root string) map[tree.Path]string {
	t.Helper()
	got := map[tree.Path]string{}
	err := filepath.WalkDir(root, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p, _ := filepath.Rel(root, at)
		info, err := d.Info()
		require.NoError(t, err)
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			require.NoError(t, err)
			got[tree.Path(p)] = "link " + target
			return nil
		}
		data, err := os.ReadFile(at)
		got[tree.Path(p)] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, data)
		return err
	})
	require.NoError(t, err)
	return got
}

// want is what list should give.
func (tr nodes) want() map[tree.Path]string {
	m := map[tree.Path]string{}
	for p, n := range tr {
		switch n.entry.Type {
		case tree.Symlink:
			m[p] = "link " + n.entry.Target
		case tree.Regular:
			m[p] = fmt.Sprintf("%v %s", n.entry.Mode&0o100 != 0, n.data)
		}
	}
	return m
}

// tool is one way to apply a diff on disk.
type tool struct {
	name    string
	command []string
	back    []string
	kinds   bool // it can change a path's kind
}

var tools = []tool{
	{"git", []string{"git", "apply", "--whitespace=nowarn"}, []string{"git", "apply", "-R", "--whitespace=nowarn"}, true},
	{"patch", []string{"patch", "-p1", "-s", "-f"}, []string{"patch", "-p1", "-R", "-s", "-f"}, false},
}

func (tl tool) need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(tl.command[0]); err != nil {
		t.Skip(tl.command[0] + " is not installed")
	}
}

// run applies a diff below root and requires that the tool had nothing to say.
func (tl tool) run(t testing.TB, command []string, root string, diff []byte) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CEILING_DIRECTORIES="+filepath.Dir(root), "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Stdin = bytes.NewReader(diff)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(command, " "), out)
	for _, l := range strings.Split(string(out), "\n") {
		// Exact modes are more than git keeps, and it says so.
		if l != "" && !strings.Contains(l, "has type") && !strings.Contains(l, "File mode") {
			t.Errorf("%s: %s", strings.Join(command, " "), l)
		}
	}
}

// checkTools applies the diff of two trees with each tool and takes it back.
func checkTools(t *testing.T, old, new nodes, kinds bool) {
	t.Helper()
	diff := write(t, Limits{}, changes(old, new)...)
	for _, tl := range tools {
		t.Run(tl.name, func(t *testing.T) {
			tl.need(t)
			if kinds && !tl.kinds {
				t.Skip("formats.md: it cannot change a path's kind")
			}
			root := t.TempDir()
			old.make(t, root)
			tl.run(t, tl.command, root, diff)
			require.Equal(t, new.want(), list(t, root))
			tl.run(t, tl.back, root, diff)
			require.Equal(t, old.want(), list(t, root))
		})
	}
}

func text(n int, change ...int) string {
	var b strings.Builder
	for i := range n {
		if slices.Contains(change, i) {
			fmt.Fprintf(&b, "changed %d\n", i)
			continue
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// Every kind of section that the tools can do, all in one diff.
func TestToolsEveryKind(t *testing.T) {
	old, new := nodes{}, nodes{}
	both := func(p tree.Path, o, n node) { old[p], new[p] = o, n }
	both("a-text.txt", regular(text(30), 0o644), regular(text(30, 3, 20), 0o644))
	both("b-mode.sh", regular("x\n", 0o644), regular("x\n", 0o755))
	both("c-both.sh", regular(text(9), 0o755), regular(text(9, 4), 0o644))
	both("d-exact", regular("x\ny\n", 0o600), regular("x\nz\n", 0o700))
	both("e-setuid", regular("x\n", 0o4755), regular("x\n", 0o644))
	both("f-emptied", regular(text(3), 0o644), regular("", 0o644))
	both("g-filled", regular("", 0o644), regular(text(3), 0o644))
	both("h-newline-gone", regular("a\nb\n", 0o644), regular("a\nb", 0o644))
	both("i-newline-came", regular("a\nb", 0o644), regular("a\nb\n", 0o644))
	both("j-no-newline", regular("a\nb", 0o644), regular("a\nc", 0o644))
	both("k-link", node{link("one"), ""}, node{link("two"), ""})
	both("l-link-lines", node{link("one\ntwo"), ""}, node{link("one\nthree\n"), ""})
	both("m-crlf", regular("a\r\nb\r\n", 0o644), regular("a\r\nc\r\n", 0o644))
	both("n-signs", regular("-- a\n++ b\n@@ -1 +1 @@\n--- c\n+++ d\n# decree: {}\n", 0o644), regular("-- b\n++ c\n@@ -2 +1 @@\n--- e\n+++ f\n# decree changes 2\n", 0o644))
	new["o-new"] = regular(text(4), 0o644)
	new["o-new-empty"] = regular("", 0o644)
	new["o-new-exec"] = regular("#!/bin/sh", 0o755)
	new["o-new-empty-exec"] = regular("", 0o755)
	new["o-new-private"] = regular("x\n", 0o600)
	new["o-new-link"] = node{link("a-text.txt"), ""}
	new["p-dir/sub/new"] = regular("x\n", 0o644)
	old["q-gone"] = regular(text(4), 0o644)
	old["q-gone-empty"] = regular("", 0o644)
	old["q-gone-cut"] = regular("a\nb", 0o755)
	old["q-gone-link"] = node{link("nowhere/at all"), ""}
	old["r-dir/sub/gone"] = regular("x\n", 0o644)
	for i, p := range fileNames {
		both("s/"+p, regular(fmt.Sprint("old ", i, "\n"), 0o644), regular(fmt.Sprint("new ", i, "\n"), 0o644))
		new["t/"+p] = regular("t\n", 0o644)
		old["u/"+p] = regular("u\n", 0o644)
		new["v/"+p] = regular("", 0o644)
		old["w/"+p] = regular("", 0o644)
		both("x/"+p, regular("x\n", 0o644), regular("x\n", 0o755))
	}
	// Skipped by the tools, and in nobody's way.
	both("y-bin-skipped", regular("z\n", 0o644), regular("zz\n", 0o644))
	checkTools(t, old, new, false)
}

// fileNames is a name of every kind that a path can have.
var fileNames = []tree.Path{
	"plain", "with space", " lead", "trail ", "tab\there", "new\nline", "cr\rx", `quo"te`, `"begin`, `back\slash`,
	"caf\u00e9", "caf\xe9", "\u65e5\u672c", "\u2028sep", "esc\x1b[1m", "del\x7f", "a -> b", "a\tb c", "=", "@@", "--- a", "+x", "-x", "#hash",
	"{brace}", "'single'", "$dollar", "*", "?", "[x]", "~", "&amp;", "<html>", "dev null", "b", "a", "\a\b\v\f", "\x01", tree.Path(strings.Repeat("n", 200)),
}

func TestToolsKindChanges(t *testing.T) {
	checkTools(t, nodes{
		"a-file-link":  regular("x\ny\n", 0o644),
		"b-link-file":  {link("t"), ""},
		"c-file-dir":   regular("x\n", 0o644),
		"d-dir-file":   {dir(0o755), ""},
		"d-dir-file/x": regular("x\n", 0o644),
		"e-empty-link": regular("", 0o644),
	}, nodes{
		"a-file-link":  {link("t"), ""},
		"b-link-file":  regular("x\ny\n", 0o644),
		"c-file-dir":   {dir(0o755), ""},
		"c-file-dir/x": regular("x\n", 0o644),
		"d-dir-file":   regular("x\n", 0o644),
		"e-empty-link": {link("t"), ""},
	}, true)
}

// Binary and directory sections stand between others without disturbing the tools.
func TestToolsSkipBinaries(t *testing.T) {
	old, new := nodes{}, nodes{}
	for i := range 5 {
		p := tree.Path(fmt.Sprint("f", i))
		old[p+"-text"] = regular(text(9), 0o644)
		new[p+"-text"] = regular(text(9, i), 0o644)
		new[p+"a-new-text"] = regular("x\n", 0o644)
	}
	diff := write(t, Limits{}, changes(
		with(old, nodes{"f0-bin": regular("\x00old", 0o644), "f1z": {dir(0o700), ""}, "f3": {dir(0o755), ""}, "f4-bin": regular("\x00", 0o644)}),
		with(new, nodes{"f0-bin": regular("\x00new", 0o644), "f1z": {dir(0o755), ""}, "f2": {dir(0o755), ""}, "f3-bin": regular("\x00", 0o644)}),
	)...)
	for _, tl := range tools {
		t.Run(tl.name, func(t *testing.T) {
			tl.need(t)
			root := t.TempDir()
			old.make(t, root)
			tl.run(t, tl.command, root, diff)
			require.Equal(t, new.want(), list(t, root))
			tl.run(t, tl.back, root, diff)
			require.Equal(t, old.want(), list(t, root))
		})
	}
}

func with(a, b nodes) nodes {
	all := nodes{}
	for _, tr := range []nodes{a, b} {
		for p, n := range tr {
			all[p] = n
		}
	}
	return all
}
