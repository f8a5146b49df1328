package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"decree/backup"
	"decree/project"
	"decree/queue"
	"decree/recorder"
	"decree/view"
	"decree/web"
)

// serveOptions are serve's flags.
type serveOptions struct {
	addr, cert, key string
	open, readOnly  bool
	demo            bool
}

func (s *session) serveVerb() verb {
	o := serveOptions{addr: "127.0.0.1:0"}
	return verb{
		name: "serve", category: lookCategory,
		usage: "show the records on a web page, and choose there what is restored",
		about: `Serves pages for a browser, until Ctrl-C: the timeline, each record with its files, diff and log, the past of a file, drafts, races, the sessions of coding agents, the inbox, and how the store is. From them records are restored, reverted and applied, drafts are published and discarded, and checkpoints are made; what would happen is shown first, in words and as the command that does the same. Programs get the same as JSON at /api/v1/: see docs/api.md.

The address is printed on stdout. It has a random token, without which nothing is served: who has it can do what the pages can, so give it to nobody. With --open the browser gets it by a private file, and not as an argument, which other users of the machine could read.

It listens on this machine alone, at a free port. Another --addr that others can reach needs --tls-cert and --tls-key. With --read-only there is nothing that changes anything. --demo shows all of it on a small project with a history, which is made for that in a temporary directory.`,
		examples: []example{
			{"decree serve --open", "look at the timeline in the browser"},
			{"decree serve --demo --open", "look at an example, and try everything"},
			{"decree serve --addr 127.0.0.1:8080", "at a certain port, for 'ssh -L 8080:127.0.0.1:8080'"},
			{"decree serve --read-only", "for looking alone"},
		},
		exits: []exit{{"0", "ended by a signal"}, {"1", "the address cannot be listened on"}},
		flags: []cli.Flag{
			stringFlag(&o.addr, "listen on `HOST:PORT`; port 0 is a free one", "addr"),
			boolFlag(&o.open, "open it in the browser", "open"),
			boolFlag(&o.demo, "serve a small project with a history, in a temporary directory that goes with the server", "demo"),
			boolFlag(&o.readOnly, "serve nothing that changes anything", "read-only"),
			stringFlag(&o.cert, "the certificate in `FILE`, in PEM", "tls-cert"),
			stringFlag(&o.key, "the certificate's key in `FILE`, in PEM", "tls-key"),
			s.rootFlag(), s.quietFlag(),
		},
		interruptible: true,
		action:        func(ctx context.Context) error { return s.serve(ctx, o) },
	}
}

func (s *session) serve(ctx context.Context, o serveOptions) (err error) {
	certificate, err := o.certificate()
	if err != nil {
		return err
	}
	if o.demo {
		done, err := s.demo()
		if err != nil {
			return err
		}
		defer done()
	}
	s.stay()
	limitServedHeap()
	l, err := web.Listen(o.addr, certificate != nil)
	if err != nil {
		return err
	}
	server := web.New(web.Options{
		Read: s.readForServer, Change: s.changeTelling, Resolve: s.pointForServer,
		Messages: s.messages, Send: s.sendForServer, Retry: s.retryForServer, Backup: s.backupForServer, Now: s.env.Now, Location: s.env.Location,
		TLS: certificate, ReadOnly: o.readOnly, Version: Version(),
	})
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := server.Ready(); err != nil {
		return errors.Join(err, l.Close())
	}
	address := server.Address(l)
	if _, err := fmt.Fprintln(s.env.Stdout, address); err != nil {
		return errors.Join(err, l.Close())
	}
	s.say("decree: serving until Ctrl-C; the address is for you alone")
	if o.open {
		done, err := s.openInBrowser(address)
		if err != nil {
			s.note(err.Error())
		}
		defer done()
	}
	return server.Serve(ctx, l)
}

// sendForServer writes a message as 'decree send' does.
func (s *session) sendForServer(rec *recorder.Recorder, name, routine, text string) (view.Sent, error) {
	o := sendOptions{name: name, routine: routine}
	fields, err := o.fields()
	if err != nil {
		return view.Sent{}, err
	}
	sent, err := s.drop(rec, o.name, []byte(strings.TrimSuffix(text, "\n")+"\n"), fields)
	return sent.Sent, err
}

// retryForServer has a dead message wait again as 'decree inbox retry' does.
func (s *session) retryForServer(ctx context.Context, rec *recorder.Recorder, name string) error {
	quiet := queue.Options{Tell: func(queue.Event) {}}
	return s.waitAgain(ctx, rec, quiet, rec.Wait(), []string{name}, func(string) {})
}

// backupForServer says how the backups are. It opens the project by a session of its own: it is called
// beside other requests.
func (s *session) backupForServer(ctx context.Context) (*backup.Status, error) {
	own := &session{env: s.env, global: globals{quiet: true, root: s.global.root}}
	status, _, err := own.statusOfBackups(ctx, backupOptions{})
	if own.rec != nil {
		err = errors.Join(err, own.rec.Close())
	}
	return status, err
}

// certificate is what --tls-cert and --tls-key name; nil for none.
func (o serveOptions) certificate() (*tls.Config, error) {
	switch {
	case o.cert == "" && o.key == "":
		return nil, nil
	case o.cert == "" || o.key == "":
		return nil, usagef("--tls-cert and --tls-key are needed together")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, &project.Error{Kind: project.Failed, Msg: fmt.Sprintf("the certificate cannot be read: %v", err), Advice: "nothing was served"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// openFor is how long the file of --open lies there: a browser that is not there yet has to start.
const openFor = time.Minute

// openInBrowser opens an address without its being an argument of any process, where all users of
// the machine could read it: a file that only this user can read leads there. done removes it.
func (s *session) openInBrowser(address string) (done func(), err error) {
	dir, err := os.MkdirTemp("", "decree-open-")
	if err != nil {
		return func() {}, fmt.Errorf("the browser was not opened: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	gone := time.AfterFunc(openFor, remove)
	done = func() {
		gone.Stop()
		remove()
	}
	file := filepath.Join(dir, "decree.html")
	// The address is ours: letters, digits and punctuation that HTML leaves alone.
	page := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` + address + `"><title>decree</title>`
	if err = os.WriteFile(file, []byte(page), 0o600); err != nil {
		return done, fmt.Errorf("the browser was not opened: %w", err)
	}
	opener := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if opener == "" {
		opener = "xdg-open"
	}
	c := exec.Command(opener, file)
	c.Dir, c.Env = s.env.Cwd, s.env.Environ
	if err = c.Start(); err != nil {
		return done, fmt.Errorf("the browser was not opened: %w; open the address above yourself", err)
	}
	go func() { _ = c.Wait() }()
	return done, nil
}
