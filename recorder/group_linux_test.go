package recorder

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/tree"
)

// oneMoreUser is the access control list of a file that its owner and user 1234 may read and write.
const oneMoreUser = "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\xd2\x04\x00\x00" +
	"\x04\x00\x00\x00\xff\xff\xff\xff" + "\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

// TestFailedRunOfListed: a file that one more user may read, deleted by a run that is put
// back, does not come back for its whole group.
func TestFailedRunOfListed(t *testing.T) {
	b := newBench(t)
	b.write("s", "secret")
	path := filepath.Join(b.root, "s")
	require.NoError(t, os.Chmod(path, 0o600))
	if err := unix.Setxattr(path, disk.ACL, []byte(oneMoreUser), 0); err != nil {
		t.Skip("no access control lists: ", err)
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, c := range []struct {
		command, mode string
		notes         []string
	}{
		{"echo more >>s; exit 1", "-rw-rw----", nil}, // the list is that of the file that is there
		{"rm s; exit 1", "-rw-------", []string{"s: mode is 600 instead of 660: its access control list is lost"}},
	} {
		res := with(b, func(r *Recorder) (*RunResult, error) {
			return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", c.command}, Dir: b.root, Stdin: null, Env: os.Environ()})
		})
		require.Equal(t, c.notes, res.Notes)
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, c.mode, st.Mode().String(), c.command)
		require.Equal(t, "secret", b.read("s"))
	}
}

// TestExportOfListed: in an archive, which has no list, the group does not get what the mask shows.
func TestExportOfListed(t *testing.T) {
	b := newBench(t)
	b.write("s", "secret")
	b.write("shared", "for the group")
	require.NoError(t, os.Chmod(filepath.Join(b.root, "s"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "shared"), 0o660))
	if err := unix.Setxattr(filepath.Join(b.root, "s"), disk.ACL, []byte(oneMoreUser), 0); err != nil {
		t.Skip("no access control lists: ", err)
	}
	id := b.checkpoint(CheckpointOptions{}).ID
	var buf bytes.Buffer
	done := with(b, func(r *Recorder) (*Exported, error) {
		return r.ExportTar(context.Background(), &buf, Point{Record: record(t, r, id)})
	})
	require.Equal(t, []tree.Path{"s"}, done.Closed)
	modes := map[string]int64{}
	for r := tar.NewReader(&buf); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		modes[h.Name] = h.Mode
	}
	require.Equal(t, map[string]int64{"s": 0o600, "shared": 0o660}, modes)
}

// TestRunThatSetsAList: what a list allows that a run has set goes with the run, whether it changed
// the content too or not, and stays where the run stays.
func TestRunThatSetsAList(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const list = "02000000" + "01000600ffffffff" + "02000600d2040000" + "04000000ffffffff" + "10000600ffffffff" + "20000000ffffffff"
	const setList = `python3 -c 'import os; os.setxattr("s", "system.posix_acl_access", bytes.fromhex("` + list + `"))'`
	b := newBench(t)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644} {
		for _, change := range []string{"", "echo more >>s; "} {
			b.write("s", "secret")
			path := filepath.Join(b.root, "s")
			require.NoError(t, os.Chmod(path, mode))
			run := func(end string) *RunResult {
				return with(b, func(r *Recorder) (*RunResult, error) {
					return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", change + setList + "; exit " + end}, Dir: b.root, Stdin: null, Env: os.Environ()})
				})
			}
			check := func() {
				t.Helper()
				st, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, mode, st.Mode())
				_, err = unix.Getxattr(path, disk.ACL, nil)
				require.ErrorIs(t, err, unix.ENODATA, "%s%o", change, mode)
				require.Equal(t, "secret", b.read("s"))
			}
			res := run("0")
			if _, err := unix.Getxattr(path, disk.ACL, nil); err != nil {
				t.Skip("no access control lists: ", err)
			}
			with(b, func(r *Recorder) (*MoveResult, error) {
				return r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}})
			})
			check()
			res = run("1")
			require.Equal(t, []string{"s: its access control list, which came later, is gone"}, res.Notes)
			check()
		}
	}
}

// TestFailedRunOfGroupsDirectory: a directory whose group gives rights, or is given on, comes back with
// that group, and what lies in it too; where the group cannot be given, without these bits.
func TestFailedRunOfGroupsDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	b := newBench(t)
	b.write("shared/sub/f", "text")
	b.write("team/f", "text")
	at := func(p string) string { return filepath.Join(b.root, p) }
	for _, p := range []string{"shared", "shared/sub", "shared/sub/f", "team", "team/f"} {
		require.NoError(t, os.Chown(at(p), 0, 4321))
	}
	require.NoError(t, os.Chmod(at("shared"), 0o2775|os.ModeSetgid))
	require.NoError(t, os.Chmod(at("shared/sub"), 0o770|os.ModeSetgid))
	require.NoError(t, os.Chmod(at("shared/sub/f"), 0o660))
	require.NoError(t, os.Chmod(at("team"), 0o770))
	see := func() (out []string) {
		for _, p := range []string{"shared", "shared/sub", "shared/sub/f", "team", "team/f"} {
			st, err := os.Stat(at(p))
			require.NoError(t, err)
			out = append(out, fmt.Sprint(p, " ", st.Mode(), " ", st.Sys().(*syscall.Stat_t).Gid))
		}
		return out
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	was := see()
	for _, command := range []string{"rm -r shared team; exit 1", "rm -r shared; echo x >shared; exit 1", "chmod 700 shared team; exit 1"} {
		res := with(b, func(r *Recorder) (*RunResult, error) {
			return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", command}, Dir: b.root, Stdin: null, Env: os.Environ()})
		})
		require.Empty(t, res.Notes)
		require.Equal(t, was, see(), command)
	}
	res := with(b, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", "chgrp 0 shared team; chmod 755 shared team; exit 1"}, Dir: b.root, Stdin: null, Env: os.Environ()})
	})
	require.Equal(t, []string{
		"shared: mode is 755 instead of 2775: it cannot be given to its group 4321",
		"team: mode is 700 instead of 770: it cannot be given to its group 4321",
	}, res.Notes)
}
