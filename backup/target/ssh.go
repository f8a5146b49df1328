package target

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// login is how a server is reached by ssh: as whom, and what shows that it is the one.
type login struct {
	o          Options
	user, addr string
}

func newLogin(u *url.URL, o Options) (*login, error) {
	if _, has := u.User.Password(); has {
		return nil, fmt.Errorf("%s: a password does not belong into the URL; ssh keys are what opens it", o.name(u))
	}
	user := cmp.Or(u.User.Username(), o.Getenv("USER"), o.Getenv("LOGNAME"))
	if user == "" {
		return nil, fmt.Errorf("%s: as whom? Say it as in sftp://USER@%s", o.name(u), u.Host)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%s: there is no host in it; it must be like sftp://user@host/path", o.name(u))
	}
	return &login{o, user, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "22"))}, nil
}

// dial connects once.
func (l *login) dial(ctx context.Context) (*ssh.Client, error) {
	check, algorithms, err := l.hostKeys()
	if err != nil {
		return nil, err
	}
	keys := l.keys()
	defer keys.close()
	if len(keys.signers) == 0 {
		return nil, fmt.Errorf("%w: %s", fs.ErrPermission, keys)
	}
	var refused error // what is wrong with the host's key, in our words
	config := &ssh.ClientConfig{User: l.user, HostKeyAlgorithms: algorithms,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(keys.signers...)},
		HostKeyCallback: func(host string, at net.Addr, key ssh.PublicKey) error {
			refused = check(host, at, key)
			return refused
		}}
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(dialTime)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c, channels, requests, err := ssh.NewClientConn(&slowConn{conn, newLine(l.o.Bandwidth)}, l.addr, config)
	if err != nil {
		_ = conn.Close()
		switch {
		case refused != nil:
			return nil, refused
		case strings.Contains(err.Error(), "unable to authenticate"):
			return nil, fmt.Errorf("%w: the server does not let %s in: %s", fs.ErrPermission, l.user, keys)
		}
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	client := ssh.NewClient(c, channels, requests)
	go keepAlive(client)
	return client, nil
}

const dialTime = 30 * time.Second

// keepAlive ends a connection that answers nothing any more.
func keepAlive(c *ssh.Client) {
	for {
		time.Sleep(patience / 4)
		late := time.AfterFunc(patience, func() { _ = c.Close() })
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			return
		}
	}
}

// slowConn keeps a connection to a bandwidth.
type slowConn struct {
	net.Conn
	line line
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if serr := slow(context.Background(), c.line.down, n); err == nil {
		err = serr
	}
	return n, err
}

func (c *slowConn) Write(b []byte) (int, error) {
	if err := slow(context.Background(), c.line.up, len(b)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// hostKeys is what checks the host's key against known_hosts, and for which kinds of keys the host is
// to be asked: those that are known of it.
func (l *login) hostKeys() (ssh.HostKeyCallback, []string, error) {
	var files []string
	for _, file := range []string{filepath.Join(l.o.Home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"} {
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, fmt.Errorf("known_hosts: %w", err)
	}
	var algorithms []string
	var wanted *knownhosts.KeyError
	if nobody, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize))); err == nil && errors.As(known(l.addr, &net.TCPAddr{IP: net.IPv4zero}, nobody), &wanted) {
		for _, w := range wanted.Want {
			if t := w.Key.Type(); t == ssh.KeyAlgoRSA {
				algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			} else {
				algorithms = append(algorithms, t)
			}
		}
	}
	return func(host string, at net.Addr, key ssh.PublicKey) error {
		err := known(host, at, key)
		var e *knownhosts.KeyError
		if !errors.As(err, &e) {
			return err
		}
		name, print := knownhosts.Normalize(host), key.Type()+" "+ssh.FingerprintSHA256(key)
		if len(e.Want) == 0 {
			return fmt.Errorf("%w: the key of %s (%s) is not in ~/.ssh/known_hosts: connect once by 'ssh', which shows and adds it", errHostKey, name, print)
		}
		return fmt.Errorf("%w: %s has another key (%s) than %s:%d says: it is another machine, or somebody is between", errHostKey, name, print, e.Want[0].Filename, e.Want[0].Line)
	}, algorithms, nil
}

var errHostKey = errors.New("the host is not known to be the right one")

// keyring are the user's keys: of the agent, then of the usual files.
type keyring struct {
	signers []ssh.Signer
	agent   net.Conn
	tried   []string // where keys came from
	locked  []string // files that need a passphrase
}

func (l *login) keys() *keyring {
	k := &keyring{}
	if socket := l.o.Getenv("SSH_AUTH_SOCK"); socket != "" {
		if conn, err := net.Dial("unix", socket); err == nil {
			k.agent = conn
			if signers, err := agent.NewClient(conn).Signers(); err == nil && len(signers) > 0 {
				k.signers = append(k.signers, signers...)
				k.tried = append(k.tried, fmt.Sprintf("%d of the ssh agent", len(signers)))
			}
		}
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		data, err := os.ReadFile(filepath.Join(l.o.Home, ".ssh", name))
		if err != nil {
			continue
		}
		signer, err := ssh.ParsePrivateKey(data)
		var locked *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &locked):
			k.locked = append(k.locked, path.Join("~/.ssh", name))
		case err == nil:
			k.signers = append(k.signers, signer)
			k.tried = append(k.tried, path.Join("~/.ssh", name))
		}
	}
	return k
}

// String says which keys there were, for who was not let in.
func (k *keyring) String() string {
	said := "there is no ssh key: SSH_AUTH_SOCK names no agent that has one, and ~/.ssh has no id_ed25519, id_ecdsa or id_rsa; start an agent and run ssh-add, or make a key with ssh-keygen"
	if len(k.tried) > 0 {
		said = "it does not take the keys that there are: " + strings.Join(k.tried, ", ")
	}
	if len(k.locked) > 0 {
		said += "; " + strings.Join(k.locked, ", ") + " has a passphrase: ssh-add gives it to the agent"
	}
	return said
}

func (k *keyring) close() {
	if k.agent != nil {
		_ = k.agent.Close()
	}
}
