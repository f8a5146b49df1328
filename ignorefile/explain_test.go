package ignorefile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/ignorefile"
)

// tree is the ignore files of a tree: directory ("" the root) to the contents of
// .gitignore and .decreeignore, absent ones empty.
type tree map[string][2]string

// enter returns the rules of dir, as a walker would. Sources are "dir/.gitignore".
func (tr tree) enter(parent *ignorefile.Rules, dir string) (*ignorefile.Rules, error) {
	var files []*ignorefile.File
	for i, name := range []string{".gitignore", ".decreeignore"} {
		if dir != "" {
			name = dir + "/" + name
		}
		f, err := ignorefile.Parse(name, []byte(tr[dir][i]))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return parent.Enter(dir, files...), nil
}

// explain says what the rules say of path as a walker meets it, which does not enter an
// ignored directory: the verdict, and the path that it is about.
func (tr tree) explain(path string, isDir bool) (ignorefile.Verdict, string, error) {
	rules, err := tr.enter(nil, "")
	for i := range len(path) {
		if err != nil || path[i] != '/' {
			continue
		}
		dir := path[:i]
		if v := rules.Match(dir, true); v.Ignored {
			return v, dir, nil
		}
		rules, err = tr.enter(rules, dir)
	}
	return rules.Match(path, isDir), path, err
}

func TestVerdictsOnTheWayDown(t *testing.T) {
	files := tree{
		"":    {"out/\n*.o\n", "!keep.o\n"},
		"out": {"!*\n", ""},
		"a":   {"!b.o\n", ""},
		"a/c": {"/d\n", ""},
	}
	for _, c := range []struct {
		path, prefix string
		source       string
		want         bool
		why          string
	}{
		{"x", "x", "", false, "nothing matches"},
		{"x.o", "x.o", ".gitignore", true, "its own verdict"},
		{"keep.o", "keep.o", ".decreeignore", false, "taken back by the second file"},
		{"a/b.o", "a/b.o", "a/.gitignore", false, "taken back by a deeper file"},
		{"out/a/b", "out", ".gitignore", true, "nothing below an excluded directory comes back"},
		{"keep.o/x", "keep.o/x", "", false, "a directory taken back says nothing of what is in it"},
		{"a/c/d/e", "a/c/d", "a/c/.gitignore", true, "a directory in the middle"},
	} {
		v, prefix, err := files.explain(c.path, false)
		require.NoError(t, err)
		assert.Equal(t, c.want, v.Ignored, "%s: %s", c.path, c.why)
		assert.Equal(t, c.prefix, prefix, "%s: %s", c.path, c.why)
		if c.source == "" {
			assert.Nil(t, v.Rule, "%s: %s", c.path, c.why)
		} else if assert.NotNil(t, v.Rule, "%s: %s", c.path, c.why) {
			assert.Equal(t, c.source, v.Rule.Source(), "%s: %s", c.path, c.why)
		}
	}
}
