package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/worktree"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		verb string
		err  error
		want int
	}{
		{"log", nil, 0},
		{"log", errors.New("odd"), 1},
		{"log", usagef("no"), 2},
		{"show", notFoundf("no"), 3},
		{"revert", &recorder.ConflictError{}, 4},
		{"revert", fmt.Errorf("wrapped: %w", refusedf("no")), 4},
		{"verify", errFound{project.Integrity}, 5},
		{"run", usagef("no"), 125},
		{"run", &recorder.ConflictError{}, 125},
		{"run", &project.Error{Kind: project.Failed, Err: &recorder.Interrupted{Signal: syscall.SIGTERM}}, 143},
	}
	for _, tt := range tests {
		s := &session{line: line{verb: tt.verb}}
		assert.Equal(t, tt.want, s.exitCode(tt.err), "%s: %v", tt.verb, tt.err)
	}
	s := &session{code: 7}
	assert.Equal(t, 7, s.exitCode(nil), "a recorded command's own status")
}

// reported is what report prints for err.
func reported(t *testing.T, verb string, err error) string {
	f, ferr := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, ferr)
	defer f.Close()
	s := &session{env: Env{Stderr: f}, line: line{verb: verb}}
	s.report(err)
	data, ferr := os.ReadFile(f.Name())
	require.NoError(t, ferr)
	return string(data)
}

func TestReport(t *testing.T) {
	conflict := &recorder.ConflictError{Verb: "revert", Subject: "run X left", Advice: "do this", Items: []plan.Item{
		{Path: "cmd/main.go", Reason: "edited since", Later: []string{"Y", "Z"}},
		{Path: "new\nline", Reason: "missing"},
	}}
	assert.Equal(t, `decree revert: 2 paths differ from what run X left; nothing was changed
  cmd/main.go  edited since (changed by Y and Z)
  "new\nline"  missing
hint: do this
`, reported(t, "revert", conflict))

	assert.Equal(t, "decree revert: interrupted; nothing was changed\n", reported(t, "revert", &worktree.Error{Phase: "stage", Err: context.Canceled}))
	assert.Equal(t, "decree revert: interrupted; everything was taken back (move)\n", reported(t, "revert", &worktree.Error{Phase: "move", Moved: true, RolledBack: true, Err: context.Canceled}))

	// A name cannot fake a line of decree's.
	hostile := fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: "/t/a\nhint: rm -rf /\x1b[2J", Err: fs.ErrPermission})
	assert.Equal(t, `decree log: reading: open "/t/a\nhint: rm -rf /\033[2J": permission denied`+"\n", reported(t, "log", hostile))
	assert.Equal(t, "decree log: one\n  hint: two\n", reported(t, "log", errors.New("one\nhint: two")))

	assert.Equal(t, "decree revert: interrupted; nothing was changed\n", reported(t, "revert", context.Canceled))
	half := &worktree.Error{Phase: "move", Err: context.Canceled, Moved: true}
	assert.NotContains(t, reported(t, "revert", half), "nothing was changed")

	held := &project.HeldError{}
	assert.Contains(t, reported(t, "revert", held), "; nothing was changed\nhint: wait for it")
	assert.Contains(t, reported(t, "run", held), "; the command was not started\n")
	assert.Empty(t, reported(t, "verify", errFound{project.Integrity}), "it was said already")
}

// An error's state is said once, whoever says it, and is a field for programs.
func TestStateOfErrors(t *testing.T) {
	begin := &recorder.BeginError{Err: errors.New("no room")}
	for _, c := range []struct {
		verb           string
		err            error
		message, state string
	}{
		{"revert", begin, "no room; nothing was changed", project.Unchanged},
		{"run", begin, "no room; the command was not started", project.NotStarted},
		{"run", &recorder.BeginError{Err: project.Unmoved(errors.New("no room"))}, "no room; nothing was changed", project.Unchanged},
		{"inbox", refusedf("it is done").Unchanged(), "it is done; nothing was changed", project.Unchanged},
		{"revert", &worktree.Error{Phase: "move", Err: errors.New("no room"), Moved: true, RolledBack: true},
			"no room; everything was taken back (move)", "everything was taken back"},
		{"revert", &recorder.ConflictError{Subject: "run X left"}, "0 paths differ from what run X left; nothing was changed", project.Unchanged},
		{"revert", context.Canceled, "interrupted; nothing was changed", project.Unchanged},
		{"log", errors.New("it says that nothing was changed"), "it says that nothing was changed", ""},
	} {
		s := &session{line: line{verb: c.verb}}
		got := s.failed(c.err, 1)
		assert.Equal(t, c.message, got.Message)
		assert.Equal(t, c.state, got.State, c.message)
	}
}
