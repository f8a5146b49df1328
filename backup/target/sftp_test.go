package target_test

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
)

// sshHost is a server of ssh that targets are opened on.
type sshHost struct{ targettest.SSHHost }

// sshd starts OpenSSH's server.
func sshd(t *testing.T) *sshHost {
	t.Helper()
	target.Impatient()
	return &sshHost{*targettest.SSHD(t)}
}

// library starts the library's own server. breaks says of each connection after how many bytes that it
// has sent it is cut; 0: never.
func library(t *testing.T, breaks func() int64) *sshHost {
	t.Helper()
	return libraryBehind(t, breaks, func(line io.ReadWriteCloser) io.ReadWriteCloser { return line })
}

// libraryBehind has the server speak by what behind makes of its line.
func libraryBehind(t *testing.T, breaks func() int64, behind func(io.ReadWriteCloser) io.ReadWriteCloser) *sshHost {
	t.Helper()
	target.Impatient()
	h := &sshHost{targettest.SSHHost{Home: t.TempDir()}}
	var mine ssh.Signer
	h.Private, mine = targettest.NewKey(t)
	_, h.HostKey = targettest.NewKey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	h.Addr = l.Addr().String()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(mine.PublicKey().Marshal()) {
			return nil, fmt.Errorf("not this one")
		}
		return nil, nil
	}}
	config.AddHostKey(h.HostKey)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n := breaks(); n > 0 {
				c = &breaking{Conn: c, left: n}
			}
			go serve(c, config, behind)
		}
	}()
	targettest.WriteKey(t, filepath.Join(h.Home, ".ssh", "id_ed25519"), h.Private, "")
	h.Know(t)
	return h
}

func never() int64 { return 0 }

type breaking struct {
	net.Conn
	left int64
}

func (b *breaking) Write(p []byte) (int, error) {
	if atomic.AddInt64(&b.left, -int64(len(p))) < 0 {
		b.Close()
		return 0, net.ErrClosed
	}
	return b.Conn.Write(p)
}

func serve(c net.Conn, config *ssh.ServerConfig, behind func(io.ReadWriteCloser) io.ReadWriteCloser) {
	defer c.Close()
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "subsystem", nil)
			}
		}()
		go func() {
			s, err := sftp.NewServer(behind(channel))
			if err == nil {
				_ = s.Serve()
			}
			channel.Close()
		}()
	}
}

func (h *sshHost) options(t *testing.T, at string) target.Options {
	t.Helper()
	return target.Options{To: "sftp://" + targettest.User() + "@" + h.Addr + at, Create: true, Home: h.Home}
}

func (h *sshHost) open(t *testing.T, at string) target.Target {
	t.Helper()
	tg, err := target.Open(t.Context(), disk.OS, h.options(t, at))
	require.NoError(t, err)
	require.Equal(t, h.options(t, at).To, tg.String(), "by this the store remembers it")
	t.Cleanup(func() { tg.Close() })
	return tg
}

func TestADirectoryByTheLibrarysServerIsATarget(t *testing.T) {
	h := library(t, never)
	targettest.Run(t, func(t *testing.T) target.Target { return h.open(t, filepath.Join(t.TempDir(), "to")) })
}

func TestADirectoryBySSHDIsATarget(t *testing.T) {
	h := sshd(t)
	targettest.Run(t, func(t *testing.T) target.Target { return h.open(t, filepath.Join(t.TempDir(), "to")) })
	at := filepath.Join(t.TempDir(), "private")
	tg := h.open(t, at)
	write(t, tg, "p/packs/a", "x")
	for name, mode := range map[string]os.FileMode{"": 0o700, "p": 0o700, "p/packs": 0o700, "p/packs/a": 0o600} {
		st, err := os.Stat(filepath.Join(at, name))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode().Perm(), name)
	}
	backupAndReadBack(t, h.open(t, filepath.Join(t.TempDir(), "to")))
}

func TestAnEncryptedDirectoryByTheLibrarysServerIsATarget(t *testing.T) {
	h := library(t, never)
	identity, recipient := pair(t)
	targettest.Run(t, func(t *testing.T) target.Target {
		e, err := target.Encrypted(h.open(t, filepath.Join(t.TempDir(), "to")), target.Keys{Recipients: recipient, Identity: identity})
		require.NoError(t, err)
		return e
	})
}

// TestCutConnections cuts every connection after some bytes; what is acknowledged stands, and what may be
// asked again is.
func TestCutConnections(t *testing.T) {
	var n atomic.Int64
	n.Store(4_000)
	h := library(t, func() int64 { return n.Add(700) })
	at := filepath.Join(t.TempDir(), "to")
	tg := h.open(t, at)
	var version target.Version
	for i := range 40 {
		data := fmt.Sprintf("generation %d", i)
		v, err := tg.Swap(t.Context(), "p/manifest.json", []byte(data), version)
		require.NoError(t, err)
		version = v
		there, err := os.ReadFile(filepath.Join(at, "p/manifest.json"))
		require.NoError(t, err)
		require.Equal(t, data, string(there))
		got, _, err := tg.Read(t.Context(), "p/manifest.json", 100)
		require.NoError(t, err)
		require.Equal(t, data, string(got))
	}
	require.Greater(t, n.Load(), int64(4_000+3*700), "it was connected again and again")
}

// TestASuccessorOfADeadWriter has the next one who reads finish what a writer that died had begun, so that nobody is
// refused because of it.
func TestASuccessorOfADeadWriter(t *testing.T) {
	for name, age := range map[string]time.Duration{"just now": 0, "long ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := library(t, never)
			at := filepath.Join(t.TempDir(), "to")
			tg := h.open(t, at)
			first, err := tg.Swap(t.Context(), "p/manifest.json", []byte("one"), "")
			require.NoError(t, err)
			next := filepath.Join(at, "p", target.Unfinished+"manifest.json-after-"+string(first))
			require.NoError(t, os.WriteFile(next, []byte("two"), 0o600))
			then := time.Now().Add(-age)
			require.NoError(t, os.Chtimes(next, then, then))
			data, second, err := tg.Read(t.Context(), "p/manifest.json", 100)
			require.NoError(t, err)
			require.Equal(t, "two", string(data))
			require.NoFileExists(t, next)
			_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("three"), second)
			require.NoError(t, err)
			_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("four"), second)
			require.ErrorIs(t, err, target.ErrConflict)
			data, _, err = tg.Read(t.Context(), "p/manifest.json", 100)
			require.NoError(t, err)
			require.Equal(t, "three", string(data))
		})
	}
}

// TestASuccessorThatCameWhileOneWrites has a writer, which has read before, find the successor of one that died.
func TestASuccessorThatCameWhileOneWrites(t *testing.T) {
	h := library(t, never)
	at := filepath.Join(t.TempDir(), "to")
	tg := h.open(t, at)
	first, err := tg.Swap(t.Context(), "p/manifest.json", []byte("one"), "")
	require.NoError(t, err)
	next := filepath.Join(at, "p", target.Unfinished+"manifest.json-after-"+string(first))
	require.NoError(t, os.WriteFile(next, []byte("two"), 0o600))
	_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("three"), first)
	require.ErrorIs(t, err, target.ErrConflict, "the dead one was faster")
	require.NoFileExists(t, next)
	data, _, err := tg.Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
}

// TestADeathAnywhereInASwap has a writer die after any part of the server's answers. The next one reads what was
// there or what was to come, and is not refused.
func TestADeathAnywhereInASwap(t *testing.T) {
	var left atomic.Int64 // bytes that the server may still send; below zero: no limit
	left.Store(-1)
	h := library(t, func() int64 {
		if n := left.Load(); n >= 0 {
			left.Store(1) // a dead writer does not come back
			return max(n, 1)
		}
		return 0
	})
	stride := int64(32)
	if testing.Short() {
		stride = 160
	}
	between := 0
	for n := int64(1000); ; n += stride {
		at := filepath.Join(t.TempDir(), "to")
		first, err := h.open(t, at).Swap(t.Context(), "p/manifest.json", []byte("one"), "")
		require.NoError(t, err)
		left.Store(n)
		dying, err := target.Open(t.Context(), disk.OS, h.options(t, at))
		if err == nil {
			_, err = dying.Swap(t.Context(), "p/manifest.json", []byte("two"), first)
			dying.Close()
		}
		left.Store(-1)
		if _, serr := os.Stat(filepath.Join(at, "p", target.Unfinished+"manifest.json-after-"+string(first))); serr == nil {
			between++
		}
		next := h.open(t, at)
		data, now, rerr := next.Read(t.Context(), "p/manifest.json", 100)
		require.NoError(t, rerr, "after %d bytes", n)
		require.Contains(t, []string{"one", "two"}, string(data), "after %d bytes", n)
		if err == nil {
			require.Equal(t, "two", string(data), "after %d bytes: it was acknowledged", n)
		}
		_, rerr = next.Swap(t.Context(), "p/manifest.json", []byte("three"), now)
		require.NoError(t, rerr, "after %d bytes: the next one is refused", n)
		require.NoError(t, next.Close())
		if err == nil {
			break
		}
	}
	if !testing.Short() {
		require.NotZero(t, between, "no death came between the link and the rename")
	}
}

func TestWhatIsUnfinishedForADayIsTidiedAway(t *testing.T) {
	h := library(t, never)
	at := filepath.Join(t.TempDir(), "to")
	tg := h.open(t, at)
	write(t, tg, "p/packs/a", "x")
	old, young := filepath.Join(at, "p/packs", target.Unfinished+"old"), filepath.Join(at, "p/packs", target.Unfinished+"young")
	for _, name := range []string{old, young, filepath.Join(at, "p", "notes.zip")} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	long := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(old, long, long))
	require.NoError(t, os.Chtimes(filepath.Join(at, "p", "notes.zip"), long, long))
	require.NoError(t, tg.Tidy(t.Context(), "p"))
	require.NoFileExists(t, old)
	require.FileExists(t, young)
	require.FileExists(t, filepath.Join(at, "p", "notes.zip"))
}

func TestLinksOnAServerAreNotFollowed(t *testing.T) {
	h := library(t, never)
	at, outside := filepath.Join(t.TempDir(), "to"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(at, "q"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(at, "p")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(at, "q", "x")))
	tg := h.open(t, at)
	require.Empty(t, names(t, tg, ""))
	for _, name := range []string{"p/secret", "q/x"} {
		_, _, err := tg.Open(t.Context(), name, 0, -1)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
	_, err := tg.Create(t.Context(), "p/new")
	require.Error(t, err)
	require.Error(t, tg.Delete(t.Context(), "p/secret"))
	require.FileExists(t, filepath.Join(outside, "secret"))
}

func TestWhatIsWrongWithAServerIsSaid(t *testing.T) {
	h := library(t, never)
	at := filepath.Join(t.TempDir(), "to")
	attempt := func(o target.Options) error {
		tg, err := target.Open(t.Context(), disk.OS, o)
		if err != nil {
			return err
		}
		defer tg.Close()
		_, _, err = tg.Read(t.Context(), "p/manifest.json", 100)
		return err
	}
	home := func(t *testing.T, ssh ...string) string {
		dir := t.TempDir()
		for _, name := range ssh {
			data, err := os.ReadFile(filepath.Join(h.Home, ".ssh", name))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, ".ssh"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".ssh", name), data, 0o600))
		}
		return dir
	}
	stranger, _ := targettest.NewKey(t)
	_, otherHost := targettest.NewKey(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, o *target.Options)
		want   string
	}{
		"nothing":         {func(*testing.T, *target.Options) {}, ""},
		"no such host":    {func(_ *testing.T, o *target.Options) { o.To = "sftp://me@nowhere.invalid/x" }, "cannot be reached"},
		"nobody listens":  {func(_ *testing.T, o *target.Options) { o.To = "sftp://me@127.0.0.1:1/x" }, "cannot be reached"},
		"no path":         {func(_ *testing.T, o *target.Options) { o.To = "sftp://me@host" }, "there is no path in it"},
		"no user":         {func(_ *testing.T, o *target.Options) { o.To = "sftp://host/x" }, "as whom?"},
		"a password":      {func(_ *testing.T, o *target.Options) { o.To = "sftp://me:hunter2@host/x" }, "a password does not belong into the URL"},
		"a broken one":    {func(_ *testing.T, o *target.Options) { o.To = "sftp://me:hunter2@ho st/x" }, "not a URL of a target"},
		"missing":         {func(_ *testing.T, o *target.Options) { o.Create = false; o.To += "/missing" }, "there is no such directory on the server"},
		"no keys":         {func(t *testing.T, o *target.Options) { o.Home = home(t, "known_hosts") }, "there is no ssh key"},
		"an unknown host": {func(t *testing.T, o *target.Options) { o.Home = home(t, "id_ed25519") }, "is not in ~/.ssh/known_hosts"},
		"another key": {func(t *testing.T, o *target.Options) {
			o.Home = home(t, "known_hosts")
			targettest.WriteKey(t, filepath.Join(o.Home, ".ssh", "id_ed25519"), stranger, "")
		}, "it does not take the keys that there are: ~/.ssh/id_ed25519"},
		"a locked key": {func(t *testing.T, o *target.Options) {
			o.Home = home(t, "known_hosts")
			targettest.WriteKey(t, filepath.Join(o.Home, ".ssh", "id_ed25519"), h.Private, "locked")
		}, "~/.ssh/id_ed25519 has a passphrase"},
		"another host": {func(t *testing.T, o *target.Options) {
			o.Home = home(t, "id_ed25519")
			line := knownhosts.Line([]string{h.Addr}, otherHost.PublicKey())
			require.NoError(t, os.WriteFile(filepath.Join(o.Home, ".ssh", "known_hosts"), []byte(line+"\n"), 0o600))
		}, "somebody is between"},
		"the agent": {func(t *testing.T, o *target.Options) {
			o.Home = home(t, "known_hosts")
			o.Getenv = environment("SSH_AUTH_SOCK", startAgent(t, h.Private))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := h.options(t, at)
			c.change(t, &o)
			err := attempt(o)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func startAgent(t *testing.T, key ed25519.PrivateKey) string {
	t.Helper()
	keys := agent.NewKeyring()
	require.NoError(t, keys.Add(agent.AddedKey{PrivateKey: key}))
	dir, err := os.MkdirTemp("", "agent") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, c) }()
		}
	}()
	return l.Addr().String()
}

// TestAServerThatGoesAwayInTheMiddle ends an upload in ErrGone and leaves no name.
func TestAServerThatGoesAwayInTheMiddle(t *testing.T) {
	h := library(t, never)
	at := filepath.Join(t.TempDir(), "to")
	var left atomic.Pointer[net.TCPConn]
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { front.Close() })
	behind := h.Addr
	go func() {
		c, err := front.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", behind)
		if err != nil {
			return
		}
		left.Store(c.(*net.TCPConn))
		go func() { _, _ = io.Copy(back, c); back.Close() }()
		_, _ = io.Copy(c, back)
	}()
	h.Addr = front.Addr().String()
	h.Know(t)
	tg := h.open(t, at)
	u, err := tg.Create(t.Context(), "p/packs/a")
	require.NoError(t, err)
	_, err = io.WriteString(u, strings.Repeat("x", 3<<20))
	require.NoError(t, err)
	require.NoError(t, front.Close())
	require.NoError(t, left.Load().Close())
	require.ErrorIs(t, u.Commit(t.Context(), "p/packs/a"), target.ErrGone)
	require.NoFileExists(t, filepath.Join(at, "p/packs/a"))
	_, _, err = tg.Read(t.Context(), "p/m", 10)
	require.ErrorIs(t, err, target.ErrGone)
}

// TestAServerWithoutSpaceOrRights writes to a full file system and to a directory that is somebody else's.
func TestAServerWithoutSpaceOrRights(t *testing.T) {
	h := library(t, never)
	if os.Geteuid() == 0 {
		full := t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", full).CombinedOutput(); err != nil {
			t.Skipf("nothing can be mounted here: %s", out)
		}
		t.Cleanup(func() { _ = exec.Command("umount", "-l", full).Run() })
		u, err := h.open(t, full).Create(t.Context(), "p/packs/a")
		require.NoError(t, err)
		_, err = io.WriteString(u, strings.Repeat("x", 2<<20))
		if err == nil {
			err = u.Commit(t.Context(), "p/packs/a")
		}
		require.True(t, disk.Full(err), err)
		require.NoError(t, u.Abort())
		list, err := os.ReadDir(filepath.Join(full, "p/packs"))
		require.NoError(t, err)
		require.Empty(t, list, "nothing is left of it")
		readOnly := t.TempDir()
		require.NoError(t, exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", readOnly).Run())
		t.Cleanup(func() { _ = exec.Command("umount", "-l", readOnly).Run() })
		_, err = h.open(t, readOnly).Create(t.Context(), "p/packs/a")
		require.Error(t, err)
		return
	}
	at := t.TempDir()
	require.NoError(t, os.Chmod(at, 0o500))
	_, err := h.open(t, at).Create(t.Context(), "p/packs/a")
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestABandwidthBySSHIsKeptAndChangesNothing(t *testing.T) {
	h := library(t, never)
	o := h.options(t, filepath.Join(t.TempDir(), "to"))
	o.Bandwidth = 16 << 20
	tg, err := target.Open(t.Context(), disk.OS, o)
	require.NoError(t, err)
	defer tg.Close()
	backupAndReadBack(t, tg)
}
