package recorder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
)

// tamperings are shell commands that put unexpected things into .decree. $one is the
// directory of an earlier record, $DECREE_RUN_DIR that of the run, where there is one.
var tamperings = map[string]string{
	"a link for a record":         `rm -rf $one; ln -s /etc $one`,
	"a file for a record":         `rm -rf $one; echo mine >$one`,
	"a directory for run.json":    `rm $one/run.json; mkdir $one/run.json; echo mine >$one/run.json/mine`,
	"a directory for a diff":      `rm $one/changes.diff; mkdir -p $one/changes.diff/d`,
	"a file for tmp":              `rm -rf .decree/tmp; echo mine >.decree/tmp`,
	"a link for tmp":              `rm -rf .decree/tmp; ln -s /tmp .decree/tmp`,
	"things in tmp":               `mkdir -p .decree/tmp/manifest.json/d .decree/tmp/run-x; ln -s /etc .decree/tmp/txn-x; chmod 0 .decree/tmp/run-x`,
	"a directory for a note":      `mkdir -p .decree/tmp/txn-x/beside; echo mine >.decree/tmp/txn-x/beside/mine`,
	"it, where something moved":   `mkdir -p .decree/tmp/txn-x/beside; echo mine >.decree/tmp/txn-x/s0; touch .decree/tmp/txn-x/moves`,
	"a directory for a slot":      `mkdir -p .decree/tmp/txn-x/s0; echo mine >.decree/tmp/txn-x/s0/mine`,
	"nobody may look into it":     `mkdir .decree/tmp/txn-x; echo mine >.decree/tmp/txn-x/mine; chmod 0 .decree/tmp/txn-x`,
	"a file for runs":             `rm -rf .decree/runs; echo mine >.decree/runs`,
	"a file for aside":            `echo mine >.decree/aside; rm -rf .decree/tmp; echo mine >.decree/tmp`,
	"a directory for .gitignore":  `rm .decree/.gitignore; mkdir .decree/.gitignore`,
	"files for inbox, routines":   `rm -rf .decree/inbox .decree/routines; echo mine >.decree/inbox; echo mine >.decree/routines`,
	"links for inbox, routines":   `rm -rf .decree/inbox .decree/routines; ln -s /etc .decree/inbox; ln -s nowhere .decree/routines`,
	"nothing may be written":      `chmod -R a-w .decree`,
	"neither written nor entered": `chmod -R a-wx .decree || true`,
}

// tamperingsOfRuns are only met where a run's command did them: between commands
// they are refused, or there is nothing that they could be done to.
var tamperingsOfRuns = map[string]string{
	"a link for runs":                  `rm -rf .decree/runs; ln -s /etc .decree/runs`,
	"a link for .decree":               `rm -rf .decree; ln -s /etc .decree`,
	"a file for .decree":               `rm -rf .decree; echo mine >.decree`,
	"a directory for project.json":     `rm .decree/project.json; mkdir .decree/project.json`,
	"a link for the run":               `rm -rf $DECREE_RUN_DIR; ln -s /etc $DECREE_RUN_DIR`,
	"a file for the run":               `rm -rf $DECREE_RUN_DIR; echo mine >$DECREE_RUN_DIR`,
	"directories for all of its files": `rm -r $DECREE_RUN_DIR/*; cd $DECREE_RUN_DIR; mkdir run.json routine.log changes.diff manifest.json; echo mine >run.json/mine`,
	"a file for attempts":              `echo mine >$DECREE_RUN_DIR/attempts`,
	"a run that cannot be read":        `chmod -R 0 $DECREE_RUN_DIR`,
}

// tampered is a project with two records and own files in .decree.
func tampered(t *testing.T) (s *sweep, one string) {
	s = &sweep{bench: newBench(t), t: t}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", s.root).Run() })
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "a"), []byte("a\n"), 0o644))
	one = s.run(0, 0, shell("echo one >one; mkdir .decree/inbox .decree/routines; echo r >.decree/routines/r.sh")).Record.ID
	s.run(0, 0, shell("echo two >two"))
	return s, one
}

// mine counts the files that a tampering left with somebody's bytes: they must
// not be lost.
func (s *sweep) mine() (n int) {
	require.NoError(s.t, filepath.WalkDir(filepath.Join(s.root, ".decree"), func(path string, e os.DirEntry, err error) error {
		if e.IsDir() && errors.Is(err, fs.ErrPermission) { // told after it could not be listed
			require.NoError(s.t, os.Chmod(path, 0o700))
			defer func() { require.NoError(s.t, os.Chmod(path, 0)) }()
			inside, err := filepath.Glob(filepath.Join(path, "*"))
			n += len(inside)
			return err
		}
		if err == nil && e.Type().IsRegular() {
			if data, err := os.ReadFile(path); err == nil && string(data) == "mine\n" {
				n++
			}
		}
		return err
	}))
	return n
}

// TestARunThatTampersEndsAsAnyOther: whatever its command made of .decree, a run
// that failed is put back and one that succeeded is recorded.
func TestARunThatTampersEndsAsAnyOther(t *testing.T) {
	try := func(name, script string) {
		t.Run(name, func(t *testing.T) {
			for _, attempts := range []int{1, 3} {
				if testing.Short() && attempts > 1 {
					continue
				}
				s, one := tampered(t)
				before := s.tree()
				script := "one=.decree/runs/" + one + "; (" + script + "); echo more >>a; exit "
				run := func(exit string) *RunResult {
					null, err := os.Open(os.DevNull)
					require.NoError(t, err)
					defer null.Close()
					return with(s.bench, func(r *Recorder) (*RunResult, error) {
						return r.Run(context.Background(), RunOptions{
							Args: []string{"/bin/sh", "-c", script + exit}, Dir: s.root, Env: os.Environ(), Stdin: null, Attempts: attempts,
						})
					})
				}
				res := run("3")
				require.Equal(t, 3, res.ExitCode, res.Notes)
				require.Equal(t, history.StatusReverted, res.Record.Status)
				require.Equal(t, before, s.tree())
				res = run("0")
				require.Equal(t, history.StatusSucceeded, res.Record.Status, res.Notes)
				if strings.Contains(script, "mine") {
					require.NotZero(t, s.mine(), "what was in the way is gone")
				}
				with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
				s.sound()
				s.revert(res.Record.ID)
				require.Equal(t, before, s.tree())
				s.sound()
			}
		})
	}
	for name, script := range tamperings {
		try(name, script)
	}
	for name, script := range tamperingsOfRuns {
		try(name, script)
	}
}

// TestTamperedProjectGoesOn: what somebody put into .decree costs at most the
// record that it stands in the place of, and each writing command goes on.
func TestTamperedProjectGoesOn(t *testing.T) {
	ctx := context.Background()
	doing := map[string]func(s *sweep) any{
		"recover": func(s *sweep) any {
			return with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
		},
		"repair": func(s *sweep) any {
			return with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(ctx) })
		},
		"checkpoint": func(s *sweep) any { return s.checkpoint(CheckpointOptions{}) },
		"revert":     func(s *sweep) any { return s.revert("last") },
		"prune": func(s *sweep) any {
			return with(s.bench, func(r *Recorder) (*Pruned, error) { return r.Prune(ctx, PruneOptions{Last: map[string]int{"run": 1}}) })
		},
	}
	for name, script := range tamperings {
		t.Run(name, func(t *testing.T) {
			for what, do := range doing {
				if testing.Short() && what != "recover" && what != "prune" {
					continue
				}
				s, one := tampered(t)
				tamper := exec.Command("/bin/sh", "-c", script)
				tamper.Dir, tamper.Env = s.root, append(os.Environ(), "one=.decree/runs/"+one)
				require.NoError(t, tamper.Run())
				with(s.bench, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
				do(s)
				if strings.Contains(script, "mine") && what != "prune" {
					require.NotZero(t, s.mine(), "what was in the way is gone")
				}
				with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(ctx) })
				s.sound()
				s.goOn()
			}
		})
	}
}
