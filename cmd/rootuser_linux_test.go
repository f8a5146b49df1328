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
