//go:build unix

package capture

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
)

func frozen(r *Result) func(*Request) {
	return func(q *Request) { q.Frozen = append([]RuleFile{}, r.Rules...) }
}

func rulePaths(r *Result) (all []string) {
	for _, f := range r.Rules {
		all = append(all, f.Path)
	}
	return all
}

func TestIgnoreRules(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write(".gitignore", "*.o\n/out/\n!keep.o\n")
		s.write(".decreeignore", "!wanted.o\nsecret\n")
		for _, name := range []string{"a.o", "keep.o", "wanted.o", "secret", "src/x.o", "src/secret", "out/a", "src/out/a", "src/b"} {
			s.write(name, "1")
		}
		s.write("src/.gitignore", "!x.o\nb\n")
		s.write("out/.gitignore", "!*")
		s.write(".venv/.gitignore", "*\n")
		s.write(".venv/lib", "1")
		want := []string{".decreeignore", ".gitignore", "keep.o", "src/.gitignore", "src/out/a", "src/x.o", "wanted.o", ".venv", "src", "src/out"}
		for range 3 {
			r := s.capture()
			require.Equal(t, want, paths(t, r))
			require.Equal(t, []string{".decreeignore", ".gitignore", ".venv/.gitignore", "src/.gitignore"}, rulePaths(r),
				"one in an ignored directory is not read, one that ignores itself is")
			for _, f := range r.Rules {
				data, err := s.store.get(f.SHA256)
				require.NoError(t, err)
				onDisk, err := os.ReadFile(s.path(f.Path))
				require.NoError(t, err)
				require.Equal(t, onDisk, data)
			}
			require.NoError(t, r.Commit())
		}
		s.write("b.o", "1")
		require.Empty(t, s.changes(s.capture()))
	})
}

// TestRulesChange: paths that join or leave by rules alone are told apart.
func TestRulesChange(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for _, name := range []string{"a.o", "b", "d/x", "d/y", "e/z"} {
			s.write(name, "1")
		}
		s.write(".gitignore", "/e\n*.o\n")
		require.NoError(t, s.capture().Commit())
		s.write(".gitignore", "/d\n/b\n")
		require.NoError(t, os.Remove(s.path("d/y")))
		s.write("new", "1")
		r := s.capture()
		require.Equal(t, []string{"M .gitignore", "A a.o", "D b", "D d", "D d/x", "D d/y", "A e", "A e/z", "A new"}, s.changed(r))
		require.Equal(t, []tree.Path{"a.o", "b", "d", "d/x", "d/y", "e", "e/z"}, r.RuleOnly)
	})
}

func TestFrozenRules(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for _, name := range []string{"a", "d/x", "d/y", "d/e/z", ".cache/c"} {
			s.write(name, "1")
		}
		s.write(".gitignore", "*.o\n")
		s.write(".cache/.gitignore", "*\n")
		before := s.capture()
		require.NoError(t, before.Commit())

		r := s.capture(frozen(before))
		require.Empty(t, s.changes(r))
		require.Zero(t, r.Hidden)
		require.Equal(t, before.Rules, r.Rules)

		s.write(".gitignore", "a\n")
		s.write("d/.decreeignore", "e\nx\n")
		s.write("new.o", "1")
		require.NoError(t, os.Remove(s.path(".cache/.gitignore")))
		r = s.capture(frozen(before))
		require.Equal(t, []string{"M .gitignore", "A d/.decreeignore"}, s.changed(r),
			"neither hidden by new rules, nor shown by their lack")
		require.Equal(t, 3, r.Hidden)
		require.Equal(t, before.Rules, r.Rules)
		require.NoError(t, r.Commit())

		r = s.capture()
		require.Equal(t, []string{"A .cache/c", "D a", "D d/e", "D d/e/z", "D d/x", "A new.o"}, s.changed(r))
		require.Equal(t, []tree.Path{".cache/c", "a", "d/e", "d/e/z", "d/x", "new.o"}, r.RuleOnly)

		r = s.capture(func(q *Request) { q.Frozen = []RuleFile{} })
		require.Contains(t, s.changed(r), "A new.o", "no frozen file is no rule")
	})
}

// TestFrozenReadsNone: after a run, an ignore file that cannot be used is no error.
func TestFrozenReadsNone(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("a", "1")
		before := s.capture()
		require.NoError(t, before.Commit())
		s.write(".gitignore", strings.Repeat("x", ignorefile.MaxLine+1))
		r := s.capture(frozen(before), func(q *Request) { q.AfterRun = true })
		require.Equal(t, []string{"A .gitignore"}, s.changed(r))
	})
}

func TestUnusableRules(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("d/.gitignore", "x\n"+strings.Repeat("x", ignorefile.MaxLine+1))
		_, err := s.try(func(q *Request) { q.SkipUnreadable = true })
		var rule *RuleError
		require.ErrorAs(t, err, &rule)
		require.EqualError(t, err, "d/.gitignore: this ignore file cannot be used: line 2 is longer than 1048576 bytes")

		require.NoError(t, os.Truncate(s.path("d/.gitignore"), ignorefile.MaxFile+1))
		_, err = s.try()
		require.EqualError(t, err, "d/.gitignore: this ignore file cannot be used: longer than 67108864 bytes")
	})
	s := newSite(t)
	s.write("d/.gitignore", "x")
	fake := &fakeDisk{refuse: map[string]error{"d/.gitignore": eacces}}
	_, err := s.try(func(q *Request) { q.Root = fake.wrap(s.req.Root); q.AfterRun = true })
	require.EqualError(t, err, "d/.gitignore: this ignore file cannot be used: permission denied")

	for _, f := range []RuleFile{{"x/.gitignore", Hash{1}}, {"x/rules", Hash{}}} {
		_, err = s.try(func(q *Request) { q.Frozen = []RuleFile{f} })
		require.ErrorAs(t, err, new(*RuleError))
	}
}

// TestNotRuleFiles: git does not follow a link called .gitignore, nor do we.
func TestNotRuleFiles(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("rules", "a\n")
		s.write("a", "1")
		s.write("d/a", "1")
		require.NoError(t, os.Symlink("rules", s.path(".gitignore")))
		require.NoError(t, os.Mkdir(s.path("d/.gitignore"), 0o755))
		require.NoError(t, syscall.Mkfifo(s.path(".decreeignore"), 0o644))
		for range 2 {
			r := s.capture()
			require.Equal(t, []string{".gitignore", "a", "d/a", "rules", "d", "d/.gitignore"}, paths(t, r))
			require.Empty(t, r.Rules)
			require.NoError(t, r.Commit())
		}
	})
}

func lines(t *testing.T, s *site, o ListOptions) (all []string) {
	require.NoError(t, List(context.Background(), s.req, o, func(path tree.Path, k disk.Kind) error {
		if k == disk.Directory {
			path += "/"
		}
		all = append(all, string(path))
		return nil
	}))
	return all
}

func TestList(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for _, name := range []string{"a", "d/x", "d/e/y", "d-", "out/z", "d/out/z", ".git/HEAD", "d/.decree"} {
			s.write(name, "1")
		}
		s.write("d/.gitignore", "out\n*.o\n")
		s.write("d/b.o", "1")
		require.NoError(t, syscall.Mkfifo(s.path("d/pipe"), 0o644))
		assert.Equal(t, []string{"a", "d-", "d/", "d/.gitignore", "d/e/", "d/e/y", "d/x", "out/", "out/z"}, lines(t, s, ListOptions{}))
		assert.Equal(t, []string{"d/", "d/.gitignore", "d/e/", "d/e/y", "d/x"}, lines(t, s, ListOptions{Prefix: "d"}))
		assert.Equal(t, []string{"d/e/y"}, lines(t, s, ListOptions{Prefix: "d/e/y"}))
		assert.Equal(t, []string{".git/", "d/.decree", "d/b.o", "d/out/", "d/pipe"}, lines(t, s, ListOptions{Ignored: true}))
		assert.Equal(t, []string{"d/.decree", "d/b.o", "d/out/", "d/pipe"}, lines(t, s, ListOptions{Prefix: "d", Ignored: true}))
		stop := syscall.EPIPE
		err := List(context.Background(), s.req, ListOptions{}, func(tree.Path, disk.Kind) error { return stop })
		assert.ErrorIs(t, err, stop)
		assert.Zero(t, s.store.puts)
	})
}

func TestExplain(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write(".gitignore", "# objects\n*.o\nout/\n")
		s.write("d/.gitignore", "!keep.o\n")
		s.write("d/.decreeignore", "/x y\n")
		s.write("d/keep.o", "1")
		s.write("d/x y", "1")
		s.write("d/out/deep/f", "1")
		s.write("store/f", "1")
		require.NoError(t, os.Symlink("d", s.path("link")))
		store, err := s.req.Root.Stat("store")
		require.NoError(t, err)
		s.req.Exclude = []disk.Info{store}
		got, err := Explain(context.Background(), s.req, []tree.Path{
			"d", "d/keep.o", "d/a.o", "d/x y", "d/out/deep/f", "d/.git/x", "store/f", "no/such.o", "d/out", "out/", "link/a", ".",
		})
		require.NoError(t, err)
		assert.Equal(t, []Answer{
			{Path: "d", Reason: Recorded, Decided: "d"},
			{Path: "d/keep.o", Reason: Recorded, Decided: "d/keep.o", Source: "d/.gitignore", Line: 1, Rule: "!keep.o"},
			{Path: "d/a.o", Ignored: true, Reason: ByRule, Decided: "d/a.o", Missing: true, Source: ".gitignore", Line: 2, Rule: "*.o"},
			{Path: "d/x y", Ignored: true, Reason: ByRule, Decided: "d/x y", Source: "d/.decreeignore", Line: 1, Rule: "/x y"},
			{Path: "d/out/deep/f", Ignored: true, Reason: ByRule, Decided: "d/out", Source: ".gitignore", Line: 3, Rule: "out/"},
			{Path: "d/.git/x", Ignored: true, Reason: Always, Decided: "d/.git", Missing: true},
			{Path: "store/f", Ignored: true, Reason: Excluded, Decided: "store"},
			{Path: "no/such.o", Ignored: true, Reason: ByRule, Decided: "no/such.o", Missing: true, Source: ".gitignore", Line: 2, Rule: "*.o"},
			{Path: "d/out", Ignored: true, Reason: ByRule, Decided: "d/out", Source: ".gitignore", Line: 3, Rule: "out/"},
			{Path: "out", Ignored: true, Reason: ByRule, Decided: "out", Missing: true, Source: ".gitignore", Line: 3, Rule: "out/"},
			{Path: "link/a", Reason: Recorded, Decided: "link/a", Missing: true},
			{Path: ".", Reason: Recorded},
		}, got)
	})
}

// TestLostBelow: after a run what was left out and is not there any more is named by its top, a repository
// inside first, and what is very much of it is counted.
func TestLostBelow(t *testing.T) {
	s := newSite(t)
	s.write(".gitignore", "out\n*.o\n")
	s.write("out/deep/file", "1")
	s.write("a/out/deep/file", "1")
	s.write("a/b/out", "1")
	s.write("a/b/z/.git/HEAD", "1")
	s.write("a/stays/out/file", "1")
	s.write("a/kept", "1")
	for i := range maxLost + 3 {
		s.write(fmt.Sprintf("c/%d.o", i), "1")
	}
	before := s.capture()
	require.NoError(t, before.Commit())
	for _, gone := range []string{"out", "a/out", "a/b"} {
		require.NoError(t, os.RemoveAll(s.path(gone)))
	}
	after := func(q *Request) { q.AfterRun = true }
	r := s.capture(frozen(before), after)
	require.Equal(t, []tree.Path{"a/b/z/.git", "a/b/out", "a/out"}, r.Lost, "the root's own entries are not meant")
	require.Zero(t, r.MoreLost)
	require.Empty(t, s.capture(frozen(before)).Lost, "no run has ended")
	require.NoError(t, r.Close())

	require.NoError(t, os.RemoveAll(s.path("c")))
	r = s.capture(frozen(before), after)
	require.Len(t, r.Lost, 1+maxLost)
	require.Equal(t, 2+3, r.MoreLost)
	require.Equal(t, tree.Path("a/b/z/.git"), r.Lost[0])
}
