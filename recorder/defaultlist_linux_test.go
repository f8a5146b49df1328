package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
)

// Lists in the kernel's form that give user 1234 all rights: the second for files.
const (
	listOfDir = "\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x07\x00\xd2\x04\x00\x00" +
		"\x04\x00\x05\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff"
	defaultList = "system.posix_acl_default"
)

// noList says that what is at path has the mode and no access control list.
func noList(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, mode.String(), st.Mode().Perm().String(), path)
	_, err = unix.Getxattr(path, disk.ACL, nil)
	require.ErrorIs(t, err, unix.ENODATA, path)
}

// TestPutBackBelowADefaultList: what came into the tree before the root got a default list has
// none, and gets none from where decree makes it again.
func TestPutBackBelowADefaultList(t *testing.T) {
	b := newBench(t)
	paths := map[string]os.FileMode{"d": 0o770, "d/changed": 0o660, "d/gone": 0o640, "d/sub": 0o750, "d/sub/f": 0o640}
	for _, f := range []string{"d/changed", "d/gone", "d/sub/f"} {
		b.write(f, "secret")
	}
	for p, mode := range paths {
		require.NoError(t, os.Chmod(filepath.Join(b.root, p), mode))
	}
	if err := unix.Setxattr(b.root, defaultList, []byte(listOfDir), 0); err != nil {
		t.Skip("no access control lists: ", err)
	}
	for _, command := range []string{"echo x >>d/changed; rm -r d/gone d/sub; exit 1", "rm -r d; exit 1"} {
		b.fails(command)
		for p, mode := range paths {
			noList(t, filepath.Join(b.root, p), mode)
		}
	}
}

// TestListsBehindAMode: a run gives lists, and then modes with which the group has no more rights
// than others.
func TestListsBehindAMode(t *testing.T) {
	b := newBench(t)
	paths := map[string]os.FileMode{"d": 0o750, "f": 0o640, "g": 0o640}
	b.write("f", "secret")
	b.write("g", "secret")
	require.NoError(t, os.Mkdir(filepath.Join(b.root, "d"), 0o750))
	for p, mode := range paths {
		require.NoError(t, os.Chmod(filepath.Join(b.root, p), mode))
	}
	b.write("list", listOfDir)
	const set = `python3 -c 'import os; [os.setxattr(p, "system.posix_acl_access", open("list","rb").read()) for p in "dfg"]'`
	res := b.fails(set + "; chmod 755 d; chmod 644 f g; echo more >>g; exit 1")
	for p, mode := range paths {
		noList(t, filepath.Join(b.root, p), mode)
	}
	require.Len(t, res.Notes, 3)
}

// fails runs a command that is put back, succeeds one that is not.
func (b *bench) fails(command string) *RunResult {
	b.t.Helper()
	return b.ends("reverted", command)
}

func (b *bench) succeeds(command string) *RunResult {
	b.t.Helper()
	return b.ends("succeeded", command)
}

// ends runs a command whose record has a status then.
func (b *bench) ends(status, command string) *RunResult {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(b.t, err)
	defer null.Close()
	res := with(b, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", command}, Dir: b.root, Stdin: null, Env: os.Environ()})
	})
	require.Equal(b.t, status, string(res.Record.Status))
	return res
}
