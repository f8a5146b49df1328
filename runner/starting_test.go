//go:build linux || darwin

package runner

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeathBeforeTheCommand: who dies when the group is known and not yet noted has
// started nothing.
func TestDeathBeforeTheCommand(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := exec.Command(os.Args[0], "sh", "-c", "echo it ran >&0")
	c.Env, c.Stdin = append(os.Environ(), helperEnv+"="+dying), w
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r) // until all that could write have ended
	require.NoError(t, err)
	assert.Empty(t, string(out))
	assert.ErrorContains(t, c.Wait(), "killed")
}

func TestStartingRefuses(t *testing.T) {
	file := output(t)
	var l Leader
	c := shell("echo it ran")
	c.Stdout = file
	c.Starting = func(got Leader) error { l = got; return errors.New("not now") }
	res, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "not now")
	assert.Equal(t, Result{}, res)
	assert.Empty(t, content(t, file))
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
}

// TestCommandSeesNothingOfTheStart: its words, environment and handles are those
// that were given, whatever the program that waited makes of them.
func TestCommandSeesNothingOfTheStart(t *testing.T) {
	c := shell(`env; echo "$0 $*"; (: <&3) 2>/dev/null || echo no handle 3`, "a b", "", "-c")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "GODEBUG=inittrace=1", "GOTRACEBACK=crash", "E=", ".dot=1", "x=new\nline"}
	c.Stdout, c.Stderr = output(t), output(t)
	assert.Zero(t, run(t, c).ExitCode)
	out := content(t, c.Stdout)
	for _, e := range c.Env[1:] {
		if !strings.HasPrefix(e, ".") { // which some shells do not pass on
			assert.Contains(t, "\n"+out, "\n"+e+"\n")
		}
	}
	assert.Contains(t, out, "\nsh a b  -c\n")
	assert.Contains(t, out, "\nno handle 3\n")
	assert.Empty(t, content(t, c.Stderr))
}

// TestInheritedHandles reach the command under their numbers: make's job server
// speaks through two of them.
func TestInheritedHandles(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := exec.Command(os.Args[0], "sh", "-c", "echo three >&3; echo four >&4")
	c.Env, c.ExtraFiles = append(os.Environ(), helperEnv+"="+keeping), []*os.File{w, w}
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, c.Wait())
	assert.True(t, strings.HasPrefix(string(out), "three\nfour\n{"), "%s", out)
}
