//go:build unix

package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/planner"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// TestCommandOfAPlan: the command line that a plan shows does what performing the plan does, typed in a shell.
func TestCommandOfAPlan(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "decree")))
	root := filepath.Join(dir, "tree")
	require.NoError(t, os.Mkdir(root, 0o755))
	sh := func(script string) error {
		c := exec.Command("bash", "-ec", script)
		c.Dir, c.Env = root, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		t.Logf("%s\n%s", script, out)
		return err
	}
	p := planner.New(planner.Options{Change: func(ctx context.Context, create bool) (*recorder.Recorder, error) {
		return recorder.Open(ctx, recorder.Options{ReaderOptions: recorder.ReaderOptions{
			Disk: disk.OS, Where: project.Where{RootFlag: root, Cwd: root, Home: dir, DataHome: filepath.Join(dir, "data")}, Clock: time.Now, Location: time.UTC,
		}, Create: true, Existing: !create, Actor: history.Actor{User: "u", Host: "h"}})
	}})
	require.NoError(t, sh(`seq 40 >'a b'; seq 40 >-x; echo 3 >3; echo >$'\033'; decree checkpoint`))
	work := filepath.Join(dir, "work")
	require.NoError(t, os.WriteFile(work, []byte(`sed -i 's/^\(3\|20\|40\)$/new/' 'a b' ./-x 3
rm $'\033'; mkdir -m 700 made; echo >made/in; echo >made/out
`), 0o644))
	if err := sh("decree run --isolated --name try -- bash -e " + work); err != nil {
		t.Skip("nothing can be isolated here")
	}
	state := func() string {
		text, err := describeTree(root, false)
		require.NoError(t, err)
		return text
	}
	start := state()
	for _, q := range []planner.Request{
		{Operation: "publish", Ref: "try", Marks: []planner.Mark{{Path: "a b", Hunks: []int{2}}, {Path: "made/in"}, {Path: "\033"}}},
		{Operation: "publish", Ref: "try", Marks: []planner.Mark{{Path: "made"}}},
		{Operation: "publish", Ref: "try"},
		{Operation: "revert", Marks: []planner.Mark{{Path: "-x", Hunks: []int{1, 3}}, {Path: "3"}}},
		{Operation: "revert", Paths: []tree.Path{"-x", "\033", "a b"}},
		{Operation: "undo", Paths: []tree.Path{"3"}},
		{Operation: "restore", Paths: []tree.Path{"-x"}},
	} {
		if q.Operation != "publish" {
			require.NoError(t, sh("decree publish try; decree label here last"))
		}
		if q.Operation == "revert" || q.Operation == "restore" {
			q.Ref = "here"
		}
		plan, err := p.Plan(t.Context(), q)
		require.NoError(t, err)
		before := state()
		_, err = p.Perform(t.Context(), plan.ID)
		require.NoError(t, err)
		performed := state()
		require.NotEqual(t, before, performed)
		require.NoError(t, sh("decree revert last"))
		require.Equal(t, before, state())
		line := plan.Command
		if q.Operation == "restore" {
			line += " --yes" // nobody can be asked here
		}
		require.NoError(t, sh(line))
		assert.Equal(t, performed, state(), line)
		for p := range 9 {
			if p == 8 || sh("decree undo") != nil || state() == start {
				break
			}
		}
		require.Equal(t, start, state())
	}
}
