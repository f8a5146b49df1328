package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/require"
)

func actsOf(t *testing.T, p *Project, from int64) (out []string) {
	t.Helper()
	require.NoError(t, p.EachAct(from, func(at int64, a Act) {
		again, err := p.ActAt(at)
		require.NoError(t, err)
		require.Equal(t, a, again)
		out = append(out, string(a.Path)+"="+string(a.Data))
	}))
	return out
}

// TestActs: an act is noted from the beginning of a run until its end, also where a death
// has torn the line before; one that fails is not.
func TestActs(t *testing.T) {
	root := t.TempDir()
	p, err := Open(disk.OS, Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.EnsureDecree())
	require.NoError(t, p.Drop("a.md", []byte("one")))
	require.Empty(t, actsOf(t, p, 0), "no run has begun")
	from, err := p.BeginActs(false)
	require.NoError(t, err)
	require.NoError(t, p.Drop("b\xff.md", []byte("two\xff")))
	require.ErrorIs(t, p.Drop("a.md", []byte("three")), fs.ErrExist)
	log, err := os.OpenFile(filepath.Join(p.StorePath, OwnLogs, ActsLog), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = log.WriteString(`{"path":"aW5`)
	require.NoError(t, errors.Join(err, log.Close()))
	next, err := p.BeginActs(false)
	require.NoError(t, err)
	require.NoError(t, p.Drop("d.md", []byte("five")))
	require.Equal(t, []string{"inbox/b\xff.md=two\xff", "inbox/d.md=five"}, actsOf(t, p, from))
	require.Equal(t, []string{"inbox/d.md=five"}, actsOf(t, p, next))
	require.NoError(t, p.EndActs())
	require.Empty(t, actsOf(t, p, 0))
	require.NoError(t, p.Drop("e.md", []byte("six")))
	require.Empty(t, actsOf(t, p, 0))
}

// TestStoppedInAnAct: a command that is stopped in the midst of an act holds up no run, and
// another act does not begin beside it, so that the lines of one are never among another's.
func TestStoppedInAnAct(t *testing.T) {
	root := t.TempDir()
	p, err := Open(disk.OS, Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.EnsureDecree())
	from, err := p.BeginActs(false)
	require.NoError(t, err)
	require.ErrorIs(t, p.Act(func(note func(...Act) error) error {
		require.NoError(t, note(Act{Path: []byte("inbox/a.md")}))
		held := false
		require.NoError(t, p.HoldActs(func() error { held = true; return nil }))
		require.True(t, held)
		later, err := p.BeginActs(false)
		require.NoError(t, err)
		require.Greater(t, later, from)
		err = p.Drop("b.md", []byte("two"))
		require.Equal(t, Refused, KindOf(err), "%v", err)
		require.ErrorContains(t, err, Unchanged)
		require.Contains(t, HintOf(err), "kill -CONT")
		_, err = os.Stat(filepath.Join(root, ".decree/inbox/b.md"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		return fs.ErrExist
	}), fs.ErrExist)
	require.Empty(t, actsOf(t, p, from), "what failed has taken its line back")
	require.NoError(t, p.Drop("b.md", []byte("two")), "the lock is free again")
	require.Equal(t, []string{"inbox/b.md=two"}, actsOf(t, p, from))
}

// TestDroppedByARunsEnd: a message whose inbox a run's command has deleted, and that the run's end has written again from its note, is there once.
func TestDroppedByARunsEnd(t *testing.T) {
	root := t.TempDir()
	p, err := Open(disk.OS, Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.EnsureDecree())
	inbox := filepath.Join(root, ".decree", InboxDir)
	for text, want := range map[string]error{"one": nil, "another's": fs.ErrExist} {
		require.NoError(t, os.RemoveAll(inbox))
		var noted []Act
		err = p.DropNoting(func(acts ...Act) error {
			noted = append(noted, acts...)
			switch {
			case len(noted) == 1:
				return os.RemoveAll(inbox)
			case noted[len(noted)-1].Gone:
				return errors.Join(os.MkdirAll(inbox, 0o755), os.WriteFile(filepath.Join(inbox, "a.md"), []byte(text), 0o644))
			}
			return nil
		}, InboxDir, "a.md", []byte("one"))
		require.ErrorIs(t, err, want, text)
		require.Equal(t, want != nil, noted[len(noted)-1].New)
	}
}
