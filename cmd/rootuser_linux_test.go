package cmd

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storeOf is the one store below a base.
func storeOf(t *testing.T, base string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(base, "????????????????????????????????"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// TestRootEndsOnlyTheOwners: the notes of whose processes a dead run has left can be written
// by the store's owner, so root ends none but this user's for them.
func TestRootEndsOnlyTheOwners(t *testing.T) {
	u := newUsers(t)
	home := u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	asRoot := []string{"HOME=" + u.dir(0, 0o700, "roothome")}
	// Somebody else's process, in a group and session of its own.
	victim := exec.Command("sh", "-c", "echo ready; exec sleep 1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: bob, Gid: bob}}
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	ended := make(chan error, 1)
	defer func() { _ = victim.Process.Kill(); <-ended }()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	go func() { ended <- victim.Wait() }()

	// A run of ann's dies, and its command lives on.
	died := func() string {
		t.Helper()
		u.decree(ann, root, nil, "run", "--", "sh", "-c", `echo more >>f; kill -KILL $PPID; exec sleep 1000 >/dev/null 2>&1 </dev/null`)
		list, err := filepath.Glob(filepath.Join(storeOf(t, filepath.Join(home, ".local/share/decree")), "open", "*.leader*"))
		require.NoError(t, err)
		require.Len(t, list, 1, "the note of the command that was started")
		return list[0]
	}
	died()
	code, said := u.decree(0, root, asRoot, "recover", "--kill")
	require.Zero(t, code, said)
	assert.Contains(t, said, "ended what run", "the owner's process is ended")

	note := died()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(victim.Process.Pid) + "/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(stat)[strings.LastIndex(string(stat), ")")+1:])
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	own, err := os.ReadFile(note)
	require.NoError(t, err)
	pid := strconv.Itoa(victim.Process.Pid)
	require.NoError(t, os.WriteFile(note, []byte(`{"pid":`+pid+`,"pgid":`+pid+`,"boot_id":"`+strings.TrimSpace(string(boot))+`","start_time":`+fields[19]+`}`), 0o600))
	code, said = u.decree(0, root, asRoot, "recover", "--kill")
	assert.Equal(t, 4, code, said)
	assert.Contains(t, said, "belong to another user than the store")
	assert.Contains(t, said, pid+" (")
	select {
	case err := <-ended:
		ended <- err
		t.Fatalf("root ended another user's process: %s", said)
	default:
	}

	require.NoError(t, os.WriteFile(note, own, 0o600))
	code, said = u.decree(0, root, asRoot, "recover", "--kill")
	assert.Zero(t, code, said)
}

// TestRootWritesOnlyTheOwners: root appends to nothing that the owner of a store has put in the place
// of what decree keeps there: root's own file, a hard link, a link, a pipe.
func TestRootWritesOnlyTheOwners(t *testing.T) {
	u := newUsers(t)
	home := u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	asRoot := []string{"HOME=" + u.dir(0, 0o700, "roothome")}
	code, said := u.decree(ann, root, nil, "run", "--", "sh", "-c", "echo one >f")
	require.Zero(t, code, said)
	store := storeOf(t, filepath.Join(home, ".local/share/decree"))
	const secret = "root's own\n"
	plants := map[string]func(at string) error{
		"file of root's": func(at string) error { return os.WriteFile(at, []byte(secret), 0o600) },
		"hard link": func(at string) error {
			if err := os.WriteFile(at+".root", []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Link(at+".root", at)
		},
		"link": func(at string) error {
			if err := os.WriteFile(at+".root", []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Symlink(at+".root", at)
		},
		"pipe": func(at string) error { return syscall.Mkfifo(at, 0o600) },
	}
	packs, err := filepath.Glob(filepath.Join(store, "packs/*.pack"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	for _, name := range []string{"audit.jsonl", "records.jsonl", "cache", "index.log", "reserve", "own/acts.jsonl", "packs/" + filepath.Base(packs[0])} {
		for what, plant := range plants {
			at := filepath.Join(store, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
			_ = os.Rename(at, at+".away")
			require.NoError(t, plant(at))
			for _, args := range [][]string{{"run", "--", "sh", "-c", "echo more >>f"}, {"checkpoint"}, {"prune", "--yes"}, {"hook", "claude"}} {
				c := u.command(0, root, asRoot, args...)
				c.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","cwd":"` + root + `"}`)
				done := make(chan []byte, 1)
				go func() { out, _ := c.CombinedOutput(); done <- out }()
				out := string(<-done)
				assert.NotContains(t, out, "panic", "%s, %s: %s", name, what, out)
			}
			for _, kept := range []string{at, at + ".root", filepath.Join(store, "aside", strings.ReplaceAll(name, "/", "-"))} {
				st, err := os.Lstat(kept)
				if err != nil || !st.Mode().IsRegular() {
					continue
				}
				data, err := os.ReadFile(kept)
				require.NoError(t, err)
				if strings.HasPrefix(string(data), secret[:4]) {
					assert.Equal(t, secret, string(data), "%s, %s, %s: was written to", name, what, kept)
					assert.Zero(t, st.Sys().(*syscall.Stat_t).Uid, "%s, %s, %s: was given away", name, what, kept)
				}
			}
			require.NoError(t, os.RemoveAll(at+".root"))
			require.NoError(t, os.RemoveAll(filepath.Join(store, "aside")))
			require.NoError(t, os.RemoveAll(at))
			_ = os.Rename(at+".away", at)
		}
	}
	code, said = u.decree(ann, root, nil, "verify", "--all")
	assert.Zero(t, code, said)
}

// TestRootsBackupIsTheOwners: the first backup in a user's tree may be one under sudo, as from root's
// cron: the user reads it, and makes the next one.
func TestRootsBackupIsTheOwners(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	asRoot := []string{"HOME=" + u.dir(0, 0o700, "roothome")}
	code, said := u.decree(ann, root, nil, "checkpoint")
	require.Zero(t, code, said)
	code, said = u.decree(0, root, asRoot, "backup")
	require.Zero(t, code, said)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, ".decree/backup"), func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		st, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, uint32(ann), st.Sys().(*syscall.Stat_t).Uid, path)
		return nil
	}))
	for _, words := range [][]string{{"backup", "list"}, {"backup"}, {"backup", "drill", "--whole"}} {
		code, said = u.decree(ann, root, nil, words...)
		assert.Zero(t, code, "%v: %s", words, said)
	}
}
