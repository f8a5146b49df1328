package cmd

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// users are real users of the system who call decree; only root may make them.
type users struct {
	t    *testing.T
	base string // everybody may pass it
	bin  string // decree, executable for all
}

const (
	ann = 60001
	bob = 60002
)

func newUsers(t *testing.T) *users {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become other users")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	u := &users{t: t, base: base, bin: filepath.Join(base, "decree")}
	from, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer from.Close()
	to, err := os.OpenFile(u.bin, os.O_WRONLY|os.O_CREATE, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return u
}

// dir makes a directory of the user's.
func (u *users) dir(uid int, mode os.FileMode, path ...string) string {
	u.t.Helper()
	p := filepath.Join(append([]string{u.base}, path...)...)
	require.NoError(u.t, os.MkdirAll(p, 0o755))
	require.NoError(u.t, os.Chmod(p, mode))
	require.NoError(u.t, os.Chown(p, uid, uid))
	return p
}

// command is decree as the user types it in dir; more is added to its environment.
func (u *users) command(uid int, dir string, more []string, args ...string) *exec.Cmd {
	c := exec.Command(u.bin, args...)
	c.Dir = dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + filepath.Join(u.base, "home")}, more...)
	if uid != 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return c
}

// decree runs it and returns its exit status and all that it said.
func (u *users) decree(uid int, dir string, more []string, args ...string) (int, string) {
	u.t.Helper()
	c := u.command(uid, dir, more, args...)
	out, err := c.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		require.NoError(u.t, err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// TestParentThatCannotBeRead: the root lies in a directory that its user can pass and
// not read, as other users' homes often are. What failed is put back; a root that the
// command made anew is found again.
func TestParentThatCannotBeRead(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	u.dir(0, 0o711, "closed")
	root := u.dir(ann, 0o755, "closed", "tree")
	file := filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o644))
	require.NoError(t, os.Chown(file, ann, ann))

	code, out := u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo changed >f; exit 3")
	assert.Equal(t, 3, code, out)
	assert.Contains(t, out, "put back")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "first\n", string(data))

	code, out = u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo second >f")
	assert.Zero(t, code, out)
	code, out = u.decree(ann, root, nil, "status")
	assert.Zero(t, code, out)
	assert.NotContains(t, out, "open record")

	u.dir(ann, 0o311, "closed")
	code, out = u.decree(ann, root, nil, "run", "--", "sh", "-c", `cd /; rm -r "$DECREE_ROOT"; exit 4`)
	assert.Equal(t, 4, code, out)
	assert.True(t, strings.Contains(out, "made again") && strings.Contains(out, "put back"), out)
	data, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "second\n", string(data))
}

// TestQueueBelowAParentThatCannotBeRead: a message's run in such a root is found to have succeeded, so that its
// routine works once, and the message is done.
func TestQueueBelowAParentThatCannotBeRead(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	u.dir(0, 0o711, "closed")
	root := u.dir(ann, 0o755, "closed", "tree")
	worked := filepath.Join(u.dir(ann, 0o755, "count"), "worked")
	u.dir(ann, 0o755, "closed/tree/.decree")
	put := func(dir, name, text string) {
		at := filepath.Join(u.dir(ann, 0o755, "closed/tree/.decree", dir), name)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
		require.NoError(t, os.Chown(at, ann, ann))
		require.NoError(t, os.Chtimes(at, time.Unix(1e9, 0), time.Unix(1e9, 0))) // a new one counts as being written
	}
	put("routines", "develop.sh", "echo did >>made\necho once >>"+worked+"\n")
	put("inbox", "a.md", "Do it.\n")
	read := func(path string) string {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(data)
	}

	code, out := u.decree(ann, root, nil, "process")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "1 message done")
	code, out = u.decree(ann, root, nil, "process")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "nothing is waiting")
	assert.Equal(t, "once\n", read(worked))
	assert.Equal(t, "did\n", read(filepath.Join(root, "made")))
	assert.FileExists(t, filepath.Join(root, ".decree/inbox/done/a.md"))
}

// TestSetUserIDOfAnother: a file of another user's that runs with that user's rights, in a directory that both can
// write, does not come back as one that runs with the rights of whoever has it brought back.
func TestSetUserIDOfAnother(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o777, "tree")
	tool := filepath.Join(root, "tool")
	brought := func(want int, args ...string) {
		t.Helper()
		require.NoError(t, os.RemoveAll(tool))
		require.NoError(t, os.WriteFile(tool, []byte("tool\n"), 0o755))
		require.NoError(t, os.Chown(tool, bob, bob))
		require.NoError(t, os.Chmod(tool, 0o755|os.ModeSetuid))
		if args[0] != "run" {
			code, out := u.decree(ann, root, nil, "run", "--label", "gone", "--", "rm", "-f", "tool")
			require.Zero(t, code, out)
		}
		code, out := u.decree(ann, root, nil, args...)
		assert.Equal(t, want, code, out)
		assert.Contains(t, out, "tool: mode is 755 instead of 4755: it cannot be given to its owner 60002:60002")
		st, err := os.Stat(tool)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o755), st.Mode(), args)
		assert.EqualValues(t, ann, st.Sys().(*syscall.Stat_t).Uid)
	}
	brought(3, "run", "--", "sh", "-c", "rm -f tool; exit 3")
	brought(0, "revert", "last")
	brought(0, "restore", "--yes", "gone")
	code, out := u.decree(ann, root, nil, "export", "gone", "--tar", "-")
	require.Zero(t, code, out)
	header, err := tar.NewReader(strings.NewReader(out)).Next()
	require.NoError(t, err)
	assert.Equal(t, []int64{0o4755, bob, bob}, []int64{header.Mode, int64(header.Uid), int64(header.Gid)})
}

// TestStrangerHoldsTheRoot: a user who can do no more than read the root holds its lock,
// under decree's own name, and keeps nobody from working. A decree of root's or of the
// owner's on another store is at work, and counts.
func TestStrangerHoldsTheRoot(t *testing.T) {
	flock, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("no flock")
	}
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	hold := func(uid int) (release func()) {
		c := u.command(uid, root, nil)
		// It is named after the file that it is read from.
		data, err := os.ReadFile(flock)
		require.NoError(t, err)
		dir := u.dir(0, 0o755, "other", strings.Repeat("x", uid%100+1))
		c.Path = filepath.Join(dir, "decree")
		require.NoError(t, os.WriteFile(c.Path, data, 0o755))
		c.Args = []string{"decree", root, "sh", "-c", "echo locked; read line"}
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		_, err = io.ReadFull(out, make([]byte, len("locked")))
		require.NoError(t, err)
		return func() { in.Close(); _ = c.Wait() }
	}

	release := hold(bob)
	for range 2 { // the first record makes the store
		code, out := u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo more >>f")
		assert.Zero(t, code, out)
	}
	release()
	for _, uid := range []int{ann, 0} {
		release := hold(uid)
		code, out := u.decree(ann, root, nil, "checkpoint")
		assert.Equal(t, 4, code, out)
		assert.Contains(t, out, "another decree is at work")
		release()
	}
	code, out := u.decree(ann, root, nil, "checkpoint")
	assert.Zero(t, code, out)
}

// TestFirstRecordUnderSudo does not lock the user out of their own project; in a tree
// that is root's the store is root's, and the user is told so.
func TestFirstRecordUnderSudo(t *testing.T) {
	u := newUsers(t)
	home := u.dir(ann, 0o700, "home")
	roots := "HOME=" + u.dir(0, 0o700, "roothome")
	sudo := []string{roots, "SUDO_UID=60001", "SUDO_HOME=" + home}
	root := u.dir(ann, 0o755, "tree")
	file := filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(file, []byte("one\n"), 0o644))
	require.NoError(t, os.Chown(file, ann, ann))

	code, out := u.decree(0, root, sudo, "run", "--", "sh", "-c", "echo two >f")
	require.Zero(t, code, out)
	assert.Contains(t, out, "store "+home)
	for _, args := range [][]string{{"log"}, {"revert", "last"}, {"verify", "--all"}, {"run", "--", "sh", "-c", "echo three >f"}, {"gc"}} {
		code, out := u.decree(ann, root, nil, args...)
		assert.Zero(t, code, "%v: %s", args, out)
	}
	// Whoever deletes .decree, under sudo or not, the store is found again.
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	code, out = u.decree(0, root, sudo, "revert", "last")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "is used again")
	code, out = u.decree(ann, root, nil, "checkpoint")
	assert.Zero(t, code, out)

	closed := u.dir(0, 0o755, "closed")
	require.NoError(t, os.WriteFile(filepath.Join(closed, "f"), []byte("one\n"), 0o644))
	code, out = u.decree(0, closed, sudo, "checkpoint")
	require.Zero(t, code, out)
	code, out = u.decree(ann, closed, nil, "log")
	assert.Equal(t, 1, code, out)
	assert.Contains(t, out, "this project's store belongs to root, and you may not read it")
	assert.Contains(t, out, "hint: work as that user; or, to do without it, remove "+closed)
	code, out = u.decree(ann, closed, nil, "run", "--", "true")
	assert.Equal(t, 125, code, out)
	assert.Contains(t, out, "belongs to root")
}

// TestOthersFilesInDecree: a container's root left its own in .decree. A record's
// directory costs that record's files there, no move and no later command; what stands
// in the way of every command is named with the way out of it.
func TestOthersFilesInDecree(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	file := filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o644))
	require.NoError(t, os.Chown(file, ann, ann))
	code, out := u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo second >f")
	require.Zero(t, code, out)
	list, err := os.ReadDir(filepath.Join(root, ".decree/runs"))
	require.NoError(t, err)
	require.Len(t, list, 1)

	for _, barred := range []string{".decree/runs/" + list[0].Name(), ".decree/runs"} {
		u.dir(0, 0o755, "tree", barred)
		diff := filepath.Join(root, ".decree/runs", list[0].Name(), "changes.diff")
		require.NoError(t, os.Chown(diff, 0, 0))
		require.NoError(t, os.Chmod(diff, 0o600))
		code, out = u.decree(ann, root, nil, "revert", list[0].Name())
		assert.Zero(t, code, out)
		assert.Contains(t, out, "could not be written to .decree/runs", barred)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "first\n", string(data))
		code, out = u.decree(ann, root, nil, "revert", "last")
		assert.Zero(t, code, out)
		code, out = u.decree(ann, root, nil, "status")
		assert.Zero(t, code, out)
		assert.NotContains(t, out, "open record")
	}

	code, out = u.decree(ann, root, nil, "run", "--", "true")
	assert.Equal(t, 125, code, out)
	assert.Contains(t, out, "sudo chown -R")
	require.NoError(t, exec.Command("chown", "-R", "60001:60001", filepath.Join(root, ".decree")).Run())
	code, out = u.decree(ann, root, nil, "doctor", "--repair")
	assert.Zero(t, code, out)
	code, out = u.decree(ann, root, nil, "verify", "--all")
	assert.Zero(t, code, out)
}

// TestOthersFilesInTmp: what another user left in .decree/tmp stays there and stops no
// command, and an empty .decree/tmp of another user's is exchanged for a new one.
func TestOthersFilesInTmp(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	code, out := u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo first >f")
	require.Zero(t, code, out)
	tmp := filepath.Join(root, ".decree/tmp")
	const stage = "txn-2026010100000000-0" // of no journal
	u.dir(0, 0o755, "tree/.decree/tmp/q/w/x")
	u.dir(0, 0o755, "tree/.decree/tmp/q/w")
	u.dir(0, 0o755, "tree/.decree/tmp/q")
	u.dir(0, 0o755, "tree/.decree/tmp", stage)
	require.NoError(t, os.WriteFile(filepath.Join(tmp, stage, "s0"), nil, 0o600))
	for _, args := range [][]string{{"run", "--", "sh", "-c", "echo second >f"}, {"revert", "last"}, {"checkpoint"}, {"doctor", "--repair"}} {
		code, out := u.decree(ann, root, nil, args...)
		assert.Zero(t, code, "%v: %s", args, out)
		assert.Equal(t, 1, strings.Count(out, "q could not be removed from .decree/tmp"), "%v: %s", args, out)
		assert.Equal(t, 1, strings.Count(out, stage+" could not be removed from .decree/tmp"), "%v: %s", args, out)
	}
	assert.DirExists(t, filepath.Join(tmp, "q/w/x"))

	for _, mode := range []os.FileMode{0o700, 0o755} {
		require.NoError(t, os.RemoveAll(tmp))
		u.dir(0, mode, "tree/.decree/tmp")
		code, out := u.decree(ann, root, nil, "checkpoint")
		assert.Zero(t, code, out)
		u.dir(0, mode, "tree/.decree/tmp")
		u.dir(0, 0o755, "tree/.decree/tmp/full")
		code, out = u.decree(ann, root, nil, "checkpoint")
		assert.Equal(t, 1, code, out)
		assert.Contains(t, out, "sudo chown -R")
	}
}

// TestRootThatCannotBeSearched: after 'chmod 644 .' the mode is named as the cause.
func TestRootThatCannotBeSearched(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	code, out := u.decree(ann, root, nil, "checkpoint")
	require.Zero(t, code, out)
	c := u.command(ann, root, nil)
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "chmod 644 .; " + u.bin + " checkpoint"}
	text, err := c.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "you may not search "+root)
	assert.Contains(t, string(text), "chmod u+x "+root)
}

// TestRunBesideAMount: a mount within .decree keeps a run from starting, and the hint
// says what to do.
func TestRunBesideAMount(t *testing.T) {
	u := newUsers(t)
	u.dir(0, 0o700, "home")
	root := u.dir(0, 0o755, "tree")
	code, out := u.decree(0, root, nil, "checkpoint")
	require.Zero(t, code, out)
	for _, name := range []string{"tmp", "runs"} {
		at := filepath.Join(root, ".decree", name)
		if err := syscall.Mount("none", at, "tmpfs", 0, ""); err != nil {
			t.Skip(err)
		}
		code, out = u.decree(0, root, nil, "run", "--", "true")
		require.NoError(t, syscall.Unmount(at, 0))
		assert.Equal(t, 125, code, out)
		assert.Contains(t, out, "unmount it, and run this again")
	}
	code, out = u.decree(0, root, nil, "run", "--", "true")
	assert.Zero(t, code, out)
}

// TestEnterAsAPlainUser: a draft is made, worked on and published without any privilege, by the
// user namespaces that the system gives to everybody.
func TestEnterAsAPlainUser(t *testing.T) {
	if !canOverlay() {
		t.Skip("overlays cannot be mounted here")
	}
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	said := func(want int, words string, args ...string) {
		t.Helper()
		code, out := u.decree(ann, root, nil, args...)
		assert.Equal(t, want, code, out)
		assert.Contains(t, out, words)
	}
	said(0, "", "checkpoint")
	said(0, "1 created", "run", "--isolated", "--name", "try", "--", "sh", "-c", "echo one >one; test $(id -u) = 60001")
	said(7, "one", "enter", "try", "--", "sh", "-c", "cat one; echo two >two; test -w . && ! mount -t tmpfs none . 2>/dev/null && exit 7")
	assert.NoFileExists(t, filepath.Join(root, "one"))
	said(0, "two", "diff", "try", "--name-only")
	u.decree(ann, root, nil, "enter", "try", "--", "sh", "-c", "echo three >three; kill -KILL $PPID; sleep 1000")
	said(0, "ended what worked in draft try when its decree died", "recover")
	said(0, "3 created", "publish", "--force", "--yes", "try")
	assert.FileExists(t, filepath.Join(root, "three"))
}

// TestRootEditsNoMessageOfAnother: in the user's own store that user could put a link in the place of the draft that
// root's editor opens.
func TestRootEditsNoMessageOfAnother(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	secret := filepath.Join(u.base, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("root's\n"), 0o600))
	code, out := u.decree(ann, root, nil, "send", "a task")
	require.Zero(t, code, out)
	list, err := filepath.Glob(filepath.Join(root, ".decree", "inbox", "*.md"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	message, name := list[0], filepath.Base(list[0])
	was, err := os.ReadFile(message)
	require.NoError(t, err)
	code, out = u.decree(ann, root, []string{"EDITOR=printf '%s\n'"}, "inbox", "edit", name)
	require.Zero(t, code, out)
	draft, _, _ := strings.Cut(out, "\n")
	require.NoError(t, os.Symlink(secret, draft))

	code, out = u.decree(0, root, []string{"EDITOR=echo mine >>"}, "inbox", "edit", name)
	assert.Equal(t, 4, code, out)
	assert.Contains(t, out, "belongs to another user")
	code, out = u.decree(ann, root, []string{"EDITOR=true"}, "inbox", "edit", name)
	assert.NotZero(t, code, out)
	now, err := os.ReadFile(message)
	require.NoError(t, err)
	assert.Equal(t, string(was), string(now))
	now, err = os.ReadFile(secret)
	require.NoError(t, err)
	assert.Equal(t, "root's\n", string(now))
}

// TestStrangersDecree: in a directory that all can write somebody makes .decree, with a routine that others would execute. Work
// below it is no part of that project, and the directory itself is none of theirs.
func TestStrangersDecree(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	shared := u.dir(0, os.ModeSticky|0o777, "shared")
	theirs := u.dir(bob, 0o777, "shared", ".decree")
	for _, dir := range []string{"inbox", "inbox/done", "inbox/dead", "routines"} {
		u.dir(bob, 0o777, "shared", ".decree", dir)
	}
	require.NoError(t, os.WriteFile(filepath.Join(theirs, "routines", "develop.sh"), []byte("#!/bin/sh\nid -u >"+shared+"/ran\n"), 0o755))
	message := filepath.Join(theirs, "inbox", "a.md")
	require.NoError(t, os.WriteFile(message, []byte("a task\n"), 0o644))
	require.NoError(t, os.Chtimes(message, time.Unix(1e9, 0), time.Unix(1e9, 0))) // a new one counts as being written
	work := u.dir(ann, 0o755, "shared", "work")

	code, out := u.decree(ann, work, nil, "process")
	assert.Zero(t, code, out)
	code, out = u.decree(ann, work, nil, "checkpoint")
	assert.Zero(t, code, out)
	assert.DirExists(t, filepath.Join(work, ".decree"))
	for _, args := range [][]string{{"process"}, {"checkpoint"}, {"status"}} {
		code, out = u.decree(ann, shared, nil, args...)
		assert.Equal(t, 4, code, out)
		assert.Contains(t, out, filepath.Join(shared, ".decree")+" belongs to user 60002, and neither to you nor to the owner of "+shared)
		assert.Contains(t, out, "hint: if you trust that user, say '--root "+shared+"'")
	}
	assert.NoFileExists(t, filepath.Join(shared, "ran"))
	code, out = u.decree(ann, work, nil, "--root", shared, "process")
	assert.Zero(t, code, out)
	assert.FileExists(t, filepath.Join(shared, "ran"), out)
}

// TestStrangersGit: a .git that somebody makes in a directory that all can write makes nobody's work below it his repository's,
// whose exclude file would leave that out: what a failing run has changed is put back.
func TestStrangersGit(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	shared := u.dir(0, os.ModeSticky|0o777, "shared")
	u.dir(bob, 0o755, "shared", ".git")
	info := u.dir(bob, 0o755, "shared", ".git", "info")
	require.NoError(t, os.WriteFile(filepath.Join(info, "exclude"), []byte("*\n"), 0o644))
	for _, uid := range []int{ann, 0} {
		work := u.dir(uid, 0o700, "shared", "work"+strconv.Itoa(uid))
		file := filepath.Join(work, "f")
		require.NoError(t, os.WriteFile(file, []byte("precious\n"), 0o644))
		require.NoError(t, os.Chown(file, uid, uid))
		var env []string
		if uid == 0 {
			env = []string{"HOME=" + u.dir(0, 0o700, "roothome")}
		}
		code, out := u.decree(uid, work, env, "run", "--", "sh", "-c", "echo changed >f; exit 3")
		assert.Equal(t, 3, code, out)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "precious\n", string(data), out)
	}
	assert.NoDirExists(t, filepath.Join(shared, ".decree"))

	// The owner of the directory, or of the work, may have one there.
	for _, uid := range []int{0, ann} {
		at := u.dir(uid, 0o755, "owned")
		u.dir(uid, 0o755, "owned", ".git")
		sub := u.dir(ann, 0o755, "owned", "sub")
		code, out := u.decree(ann, sub, nil, "status")
		assert.Equal(t, 3, code, out)
		assert.Contains(t, out, at+": no decree project")
	}
}

// TestRootKeepsNoExcludesForAnother: the user's git config leads root's decree to a file that only root may read; it is not
// kept in that user's store. What the user may read is.
func TestRootKeepsNoExcludesForAnother(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	u.dir(0, 0o700, "closed")
	for i, name := range []string{"secret", "closed/rules", "rules"} {
		require.NoError(t, os.WriteFile(filepath.Join(u.base, name), []byte("*.out\n"), []os.FileMode{0o600, 0o644, 0o644}[i]))
	}
	u.dir(ann, 0o755, "tree", ".git")
	u.dir(ann, 0o755, "tree", ".git", "info")
	for name, kept := range map[string]bool{"secret": false, "closed/rules": false, "rules": true} {
		file := filepath.Join(u.base, filepath.FromSlash(name))
		exclude := filepath.Join(root, ".git/info/exclude")
		_ = os.Remove(exclude)
		require.NoError(t, os.Symlink(file, exclude))
		out := filepath.Join(root, "a.out")
		require.NoError(t, os.WriteFile(out, []byte(name), 0o644))
		code, said := u.decree(0, root, []string{"SUDO_UID=60001", "SUDO_HOME=" + filepath.Join(u.base, "home")}, "checkpoint")
		require.Zero(t, code, said)
		assert.Equal(t, !kept, strings.Contains(said, "git's excludes in "+file+" are left out: user 60001 may not read that file"), said)
	}
}
