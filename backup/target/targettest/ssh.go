package targettest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHHost is a server of ssh, and a home whose user may log in there.
type SSHHost struct {
	Addr    string
	Home    string
	Private ed25519.PrivateKey // the user's
	HostKey ssh.Signer
}

// User is the login name, or the numeric id where the system knows none.
func User() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// NewKey is a new pair of keys.
func NewKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return private, signer
}

// WriteKey writes a private key as ssh has it in files.
func WriteKey(t *testing.T, file string, key ed25519.PrivateKey, passphrase string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
}

// Know has the home's user know the server.
func (h *SSHHost) Know(t *testing.T) {
	t.Helper()
	file := filepath.Join(h.Home, ".ssh", "known_hosts")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(knownhosts.Line([]string{h.Addr}, h.HostKey.PublicKey())+"\n"), 0o600))
}

// SSHD starts OpenSSH's server. sftp are options of its sftp server, such as "-R" to have it write nothing.
func SSHD(t *testing.T, sftp ...string) *SSHHost {
	t.Helper()
	bin, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("sshd is not here")
	}
	if _, err := user.LookupId(strconv.Itoa(os.Getuid())); err != nil {
		t.Skip("sshd lets nobody in whom the system does not know")
	}
	h := &SSHHost{Home: t.TempDir()}
	var mine ssh.Signer
	h.Private, mine = NewKey(t)
	hostKey, signer := NewKey(t)
	h.HostKey = signer
	WriteKey(t, filepath.Join(h.Home, ".ssh", "id_ed25519"), h.Private, "")
	dir := t.TempDir()
	WriteKey(t, filepath.Join(dir, "host"), hostKey, "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authorized"), ssh.MarshalAuthorizedKey(mine.PublicKey()), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.Addr = l.Addr().String()
	require.NoError(t, l.Close())
	host, port, err := net.SplitHostPort(h.Addr)
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755)
	}
	config := fmt.Sprintf("ListenAddress %s\nPort %s\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nSubsystem sftp internal-sftp %s\n",
		host, port, filepath.Join(dir, "host"), filepath.Join(dir, "authorized"), strings.Join(sftp, " "))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	var out strings.Builder
	cmd := exec.Command(bin, "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.Stderr = &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), <-ended })
	h.Know(t)
	for {
		c, err := net.Dial("tcp", h.Addr)
		if err == nil {
			_ = c.Close()
			return h
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("sshd does not run here: %v\n%s", err, out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
