package worktree

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

// kinds are what can be at one path, alone or with what is below it.
var kinds = map[string]files{
	"absent":       {},
	"file":         {"x": file("old bytes\n")},
	"other file":   {"x": file("new\x00bytes")},
	"empty file":   {"x": file("")},
	"0400":         {"x": moded(0o400, "old bytes\n")},
	"setuid":       {"x": moded(0o4755, "old bytes\n")},
	"link":         {"x": link("somewhere/else")},
	"dangling":     {"x": link("../../..")},
	"dir":          {"x": dir(0o755)},
	"closed dir":   {"x": dir(0o500)},
	"dir and file": {"x": dir(0o700), "x/a": file("in dir")},
	"deep dir":     {"x": dir(0o755), "x/y": dir(0o711), "x/y/z": dir(0o755), "x/y/z/f": moded(0o600, "deep"), "x/y/l": link("z"), "x/b": file("b")},
}

// beside is what a move must not touch.
var beside = files{"w": file("before"), "x.txt": file("after"), "z": dir(0o755), "z/keep": file("kept")}

func TestEveryKindToEveryKind(t *testing.T) {
	for _, from := range slices.Sorted(maps.Keys(kinds)) {
		for _, to := range slices.Sorted(maps.Keys(kinds)) {
			t.Run(from+" to "+to, func(t *testing.T) {
				r := newRig(t, beside.with(kinds[from]))
				times := mtimes(t, r)
				_, err := r.move(steps(kinds[from], kinds[to]))
				require.NoError(t, err)
				require.Equal(t, beside.with(kinds[to]), r.state())
				r.clean()
				for path, was := range times {
					require.Equal(t, was, mtimes(t, r)[path], path)
				}
				for path, n := range kinds[from] {
					if n.kind == "file" && kinds[to][path].data != n.data {
						require.True(t, r.vault.Has(tree.Sum([]byte(n.data))), "%s is not kept", path)
					}
				}
				_, err = r.move(steps(kinds[to], kinds[from]))
				require.NoError(t, err)
				require.Equal(t, beside.with(kinds[from]), r.state())
				r.clean()
			})
		}
	}
}

func mtimes(t *testing.T, r *rig) map[tree.Path]int64 {
	out := map[tree.Path]int64{}
	for path := range beside {
		st, err := os.Lstat(r.path(path))
		require.NoError(t, err)
		out[path] = st.ModTime().UnixNano()
	}
	return out
}

func TestConflictsAreAllNamedAndNothingIsChanged(t *testing.T) {
	was := files{"a": file("1"), "b": file("2"), "c": link("t"), "d": dir(0o755), "e": file("3"), "g": dir(0o755), "g/ignored": file("x")}
	r := newRig(t, was)
	plan := steps(
		files{"a": file("1"), "b": file("x"), "c": file("t"), "d": file("d"), "g": dir(0o755), "missing": file("m"), "e": moded(0o600, "3")},
		files{"a": file("9"), "b": file("9"), "c": file("9"), "d": file("9"), "g": file("9"), "missing": file("9"), "e": file("9"), "n/ew": file("9")})
	_, err := r.move(plan)
	var e *Error
	var c *ConflictError
	require.ErrorAs(t, err, &e)
	require.ErrorAs(t, err, &c)
	assert.Equal(t, "check", e.Phase)
	assert.True(t, e.RolledBack)
	assert.False(t, e.Moved)
	assert.Equal(t, []Conflict{
		{"b", "edited since"}, {"c", "now a symlink"}, {"d", "now a directory"},
		{"e", "mode is 644, not 600"}, {"missing", "missing"},
	}, c.Conflicts)
	assert.Contains(t, err.Error(), "nothing was changed")
	assert.Equal(t, was, r.state())
	r.clean()

	_, err = r.move(steps(files{"g": dir(0o755)}, files{"g": file("9")}))
	require.ErrorContains(t, err, "g: the directory holds other files that must stay (1, such as ignored)")
	_, err = r.move(steps(files{}, files{"n/ew": file("9")}))
	require.ErrorContains(t, err, "n/ew: its directory is missing")
	_, err = r.move(steps(files{}, files{"a/x": file("9")}))
	require.ErrorContains(t, err, "a/x: its directory is missing")
	_, err = r.move(steps(files{}, files{"c/x": file("9")}))
	require.ErrorContains(t, err, "c/x: c is a symbolic link")
	assert.Equal(t, was, r.state())
	r.clean()
}

func TestPlansThatNoTreeCanTake(t *testing.T) {
	e := file("x").entry()
	d := dir(0o755).entry()
	for name, c := range map[string]struct {
		steps []Step
		says  string
	}{
		"twice":            {[]Step{{Path: "a", To: e}, {Path: "a", To: e}}, "a: named twice"},
		"below a file":     {[]Step{{Path: "a", To: e}, {Path: "a/b", To: e}}, "a/b: a above it is not a directory"},
		"below what goes":  {[]Step{{Path: "a", From: d}, {Path: "a-b", To: e}, {Path: "a/b", To: e}}, "a/b: a above it is not a directory"},
		"was below a file": {[]Step{{Path: "a", From: e, To: d}, {Path: "a/b", From: e}}, "a/b: a above it is not a directory"},
		"up":               {[]Step{{Path: "../a", To: e}}, `".." in path`},
		"absolute":         {[]Step{{Path: "/a", To: e}}, "absolute"},
		"git":              {[]Step{{Path: "x/.git/config", To: e}}, "path in .git"},
		"decree":           {[]Step{{Path: ".decree", To: e}}, "path in .decree"},
		"may stay":         {[]Step{{Path: "a", From: e, MayStay: true}}, "may stay"},
		"mode":             {[]Step{{Path: "a", To: &tree.Entry{Mode: 0o10644}}}, "mode"},
		"link":             {[]Step{{Path: "a", To: &tree.Entry{Type: tree.Symlink, Target: "x"}}}, "target"},
		"kind":             {[]Step{{Path: "a", To: &tree.Entry{Type: 9}}}, "unknown type"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, files{})
			_, err := r.move(c.steps)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, r.state())
			r.clean()
		})
	}
}

func TestStagedContentMustBeThePromisedOne(t *testing.T) {
	was := files{"a": file("1"), "b": file("2")}
	r := newRig(t, was)
	plan := steps(was, files{"a": file("x"), "b": file("y")})
	plan[1].Content = steps(files{}, files{"b": file("something longer")})[0].Content
	_, err := r.move(plan)
	var m *MismatchError
	require.ErrorAs(t, err, &m)
	require.Equal(t, tree.Path("b"), m.Path)
	require.ErrorContains(t, err, "nothing was changed")
	require.Equal(t, was, r.state())
	r.clean()
}

func TestDirectoriesThatMayStay(t *testing.T) {
	was := files{"d": dir(0o500), "d/e": dir(0o755), "d/e/f": file("made"), "d/g": dir(0o755), "d/e/__pycache__": dir(0o755)}
	r := newRig(t, was)
	plan := steps(files{"d": dir(0o500), "d/e": dir(0o755), "d/e/f": file("made"), "d/g": dir(0o755)}, files{})
	_, err := r.move(plan)
	require.ErrorContains(t, err, "the directory holds other files that must stay (1, such as __pycache__)")
	for i := range plan {
		plan[i].MayStay = plan[i].From.IsDir()
	}
	out, err := r.move(plan)
	require.NoError(t, err)
	require.Equal(t, []tree.Path{"d", "d/e"}, out.Stayed)
	require.Equal(t, files{"d": dir(0o500), "d/e": dir(0o755), "d/e/__pycache__": dir(0o755)}, r.state())
	r.clean()
}

// TestNothingStaysBelowAFile: where a file comes in the place of a directory,
// what lies in the directories below must be known to go, before anything moves.
func TestNothingStaysBelowAFile(t *testing.T) {
	was := files{"p": dir(0o755), "p/q": dir(0o755), "p/q/r": dir(0o755), "p/x": file("x")}
	tree := was.with(files{"p/q/r/ignored": file("kept"), "other": file("o")})
	r := newRig(t, tree)
	plan := steps(was.with(files{"other": file("o")}), files{"p": file("f"), "other": file("n")})
	for i := range plan {
		plan[i].MayStay = plan[i].From.IsDir() && plan[i].To == nil
	}
	_, err := r.move(plan)
	require.EqualError(t, err, "p/q/r: the directory holds other files that must stay (1, such as ignored) (check); nothing was changed")
	require.Equal(t, tree, r.state())
	r.clean()
	require.NoError(t, os.Remove(r.path("p/q/r/ignored")))
	_, err = r.move(plan)
	require.NoError(t, err)
	require.Equal(t, files{"p": file("f"), "other": file("n")}, r.state())
	r.clean()
}

func TestContentComesFromTheStore(t *testing.T) {
	r := newRig(t, files{"a": file("1")})
	_, _, err := r.vault.Put(strings.NewReader("stored"), 6)
	require.NoError(t, err)
	require.NoError(t, r.vault.Flush())
	plan := steps(files{"a": file("1")}, files{"a": file("stored"), "b": file("nowhere")})
	plan[0].Content, plan[1].Content = nil, nil
	_, err = r.move(plan)
	require.ErrorContains(t, err, "missing")
	require.Equal(t, files{"a": file("1")}, r.state())
	_, err = r.move(plan[:1])
	require.NoError(t, err)
	require.Equal(t, files{"a": file("stored")}, r.state())
	r.clean()
}
