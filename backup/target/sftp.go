package target

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"decree/disk"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// remoteDirectory is a directory of a server that speaks sftp, as OpenSSH's does: its hard links give a content
// a name that must be new, its renames replace at once, and what it has written it flushes, if it can. It
// cannot flush a directory's names. Links below the directory are not followed.
type remoteDirectory struct {
	login  *login
	name   string // the URL, as it was given: there is nothing secret in it
	root   string
	create bool

	mu     sync.Mutex
	conn   *ssh.Client
	client *sftp.Client    // nil: to be connected
	known  map[string]bool // directories below root that are none of somebody's links
}

// openSFTP reads sftp://USER@HOST:PORT/PATH. /~/PATH is below the user's home there.
func openSFTP(u *url.URL, o Options) (*remoteDirectory, error) {
	l, err := newLogin(u, o)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, fmt.Errorf("%s: nothing may follow the path", o.name(u))
	}
	root := path.Clean(u.Path)
	if below, ok := strings.CutPrefix(u.Path, "/~"); ok {
		root = path.Join(".", below)
	}
	if u.Path == "" || u.Path == "/" {
		return nil, fmt.Errorf("%s: there is no path in it; it must be like sftp://user@host/path", o.name(u))
	}
	return &remoteDirectory{login: l, name: o.To, root: root, create: o.Create}, nil
}

func (t *remoteDirectory) String() string { return t.name }

// Close ends the connection.
func (t *remoteDirectory) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client == nil {
		return nil
	}
	err := t.client.Close()
	_ = t.conn.Close() // nothing is left on it
	t.client = nil
	return err
}

// connected is the present connection, or a new one.
func (t *remoteDirectory) connected(ctx context.Context) (*sftp.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client, nil
	}
	conn, err := t.login.dial(ctx)
	if err != nil {
		return nil, err
	}
	client, err := sftp.NewClient(conn, sftp.UseConcurrentWrites(true))
	if err == nil {
		err = t.noSpace(client, t.ready(client))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	t.conn, t.client, t.known = conn, client, map[string]bool{}
	return client, nil
}

// drop gives up a connection that was lost.
func (t *remoteDirectory) drop(c *sftp.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c != nil && t.client == c {
		_ = t.conn.Close()
		t.client = nil
	}
}

// writes sees to it that the server can do what writing needs.
func writes(c *sftp.Client) error {
	for _, needed := range []string{"posix-rename@openssh.com", "hardlink@openssh.com"} {
		if _, ok := c.HasExtension(needed); !ok {
			return fmt.Errorf("%w: the server only lets read, or lacks %s, without which no backup can be written there safely", errors.ErrUnsupported, needed)
		}
	}
	return nil
}

// ready sees to it that the server has the directory.
func (t *remoteDirectory) ready(c *sftp.Client) error {
	st, err := c.Stat(t.root)
	if isMissing(err) && t.create {
		if err = c.MkdirAll(t.root); err == nil {
			return c.Chmod(t.root, privateDir)
		}
	}
	switch {
	case isMissing(err):
		return fmt.Errorf("%w: there is no such directory on the server", ErrGone)
	case err == nil && !st.IsDir():
		return fmt.Errorf("%w: it is not a directory", ErrGone)
	}
	return err
}

func lost(err error) bool {
	return err != nil && !errors.Is(err, errHostKey) && (errors.Is(err, sftp.ErrSSHFxConnectionLost) || cut(err))
}

// with does something that may be done twice, with another connection where one is lost.
func (t *remoteDirectory) with(ctx context.Context, do func(*sftp.Client) error) error {
	err := retry(ctx, lost, func() error {
		c, err := t.connected(ctx)
		if err == nil {
			err = do(c)
		}
		if lost(err) {
			t.drop(c)
		}
		return err
	})
	return t.say(err)
}

// say gives an error its category.
func (t *remoteDirectory) say(err error) error {
	if err != nil && !errors.Is(err, ErrGone) && (lost(err) || strings.HasPrefix(err.Error(), "dial tcp")) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// noSpace says so where the server has no space left, for which sftp has no word.
func (t *remoteDirectory) noSpace(c *sftp.Client, err error) error {
	if _, ok := errors.AsType[*sftp.StatusError](err); !ok {
		return err
	}
	at := t.root
	vfs, verr := c.StatVFS(at)
	for ; isMissing(verr) && at != path.Dir(at); vfs, verr = c.StatVFS(at) { // it could not be made
		at = path.Dir(at)
	}
	if verr == nil && (vfs.Bavail*vfs.Frsize < burst || vfs.Files > 0 && vfs.Favail == 0) { // some count no files
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return err
}

// at is the path of a name, whose directory is one: no link, and with create made where it is missing.
func (t *remoteDirectory) at(c *sftp.Client, name string, create bool) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	dir := ""
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "." {
			break
		}
		dir = path.Join(dir, part)
		if err := t.directory(c, dir, create); err != nil {
			return "", err
		}
	}
	return path.Join(t.root, name), nil
}

func (t *remoteDirectory) directory(c *sftp.Client, dir string, create bool) error {
	t.mu.Lock()
	known := t.known[dir]
	t.mu.Unlock()
	if known {
		return nil
	}
	full := path.Join(t.root, dir)
	st, err := c.Lstat(full)
	if isMissing(err) && create {
		if err = c.Mkdir(full); err == nil {
			err = c.Chmod(full, privateDir)
		}
		var serr error
		if st, serr = c.Lstat(full); serr == nil {
			err = nil // or another one has made it
		}
	}
	if err == nil && (st == nil || !st.IsDir()) {
		err = &nameError{dir, "not a directory on the server"}
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[dir] = true
	return nil
}

// forgetDirectories forgets which directories are known, after some have been moved.
func (t *remoteDirectory) forgetDirectories() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.known)
}

// Top lists the directory itself.
func (t *remoteDirectory) Top(ctx context.Context) (names []string, err error) {
	var entries []os.FileInfo
	err = t.with(ctx, func(c *sftp.Client) (err error) {
		entries, err = c.ReadDirContext(ctx, t.root)
		return err
	})
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// List walks what lies below the last directory that prefix names whole.
func (t *remoteDirectory) List(ctx context.Context, prefix string, each func(Object) error) error {
	dir := strings.TrimSuffix(prefix[:strings.LastIndexByte(prefix, '/')+1], "/")
	if dir != "" {
		err := t.with(ctx, func(c *sftp.Client) error {
			_, err := t.at(c, dir+"/x", false)
			return err
		})
		if isMissing(err) || errors.As(err, new(*nameError)) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return t.list(ctx, dir, prefix, each)
}

func (t *remoteDirectory) list(ctx context.Context, dir, prefix string, each func(Object) error) error {
	var entries []os.FileInfo
	err := t.with(ctx, func(c *sftp.Client) (err error) {
		entries, err = c.ReadDirContext(ctx, path.Join(t.root, dir))
		return err
	})
	if err != nil {
		return err
	}
	key := func(e os.FileInfo) string { // a directory's with the '/' that its names go on with
		if e.IsDir() {
			return path.Join(dir, e.Name()) + "/"
		}
		return path.Join(dir, e.Name())
	}
	slices.SortFunc(entries, func(a, b os.FileInfo) int { return strings.Compare(key(a), key(b)) })
	for _, e := range entries {
		name := key(e)
		switch {
		case CheckName(strings.TrimSuffix(name, "/")) != nil: // unfinished, or nothing of ours
		case e.IsDir() && (strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name)):
			err = t.list(ctx, strings.TrimSuffix(name, "/"), prefix, each)
		case e.Mode().IsRegular() && strings.HasPrefix(name, prefix):
			err = each(Object{name, e.Size()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAhead is how much is asked for at once.
const readAhead = 1 << 20

// Open opens a file.
func (t *remoteDirectory) Open(ctx context.Context, name string, offset, length int64) (r io.ReadCloser, size int64, err error) {
	err = t.with(ctx, func(c *sftp.Client) (err error) {
		r, size, err = t.open(c, name, offset, length)
		return err
	})
	return r, size, err
}

func (t *remoteDirectory) open(c *sftp.Client, name string, offset, length int64) (io.ReadCloser, int64, error) {
	full, err := t.at(c, name, false)
	if err != nil {
		return nil, 0, err
	}
	st, err := c.Lstat(full)
	if err == nil && !st.Mode().IsRegular() {
		err = &nameError{name, "not a regular file on the server"}
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := c.Open(full)
	if err != nil {
		return nil, 0, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	left := max(0, st.Size()-offset)
	if length < 0 || length > left {
		length = left
	}
	in := bufio.NewReaderSize(io.LimitReader(f, length), int(min(readAhead, max(length, 1))))
	return &limited{&gone{in, t}, f}, st.Size(), nil
}

// gone is a reader whose connection may be lost.
type gone struct {
	r io.Reader
	t *remoteDirectory
}

func (g *gone) Read(b []byte) (int, error) {
	n, err := g.r.Read(b)
	if err != nil && err != io.EOF {
		err = g.t.say(err)
	}
	return n, err
}

// Create begins a file.
func (t *remoteDirectory) Create(ctx context.Context, near string) (Upload, error) {
	u := &remoteUpload{t: t, dir: path.Dir(near)}
	err := t.with(ctx, func(c *sftp.Client) (err error) {
		u.c = c
		u.temp, u.f, err = t.begin(c, near)
		return t.noSpace(c, err)
	})
	if err != nil {
		return nil, err
	}
	u.w = bufio.NewWriterSize(u.f, readAhead)
	return u, nil
}

// begin makes a file that has no name of its own yet.
func (t *remoteDirectory) begin(c *sftp.Client, near string) (string, *sftp.File, error) {
	if err := writes(c); err != nil {
		return "", nil, err
	}
	full, err := t.at(c, near, true)
	if err != nil {
		return "", nil, err
	}
	temp := path.Join(path.Dir(full), Unfinished+rand.Text())
	f, err := c.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return "", nil, err
	}
	if err := f.Chmod(privateFile); err != nil {
		return "", nil, errors.Join(err, f.Close(), c.Remove(temp))
	}
	return temp, f, nil
}

type remoteUpload struct {
	t    *remoteDirectory
	c    *sftp.Client
	dir  string // below the root
	temp string // the file's path
	f    *sftp.File
	w    *bufio.Writer
}

func (u *remoteUpload) Write(b []byte) (int, error) {
	n, err := u.w.Write(b)
	return n, u.t.say(u.t.noSpace(u.c, err))
}

func (u *remoteUpload) Commit(_ context.Context, name string) error {
	err := CheckName(name)
	if err == nil && path.Dir(name) != u.dir {
		err = &nameError{name, "not beside the name that it was begun for"}
	}
	if err == nil {
		err = u.w.Flush()
	}
	if err == nil {
		err = u.t.finish(u.c, u.f)
		if err == nil {
			err = u.t.link(u.c, u.temp, path.Join(u.t.root, name))
		}
	}
	err = u.t.say(u.t.noSpace(u.c, err))
	return errors.Join(err, u.Abort())
}

// finish flushes a file, where the server can, and closes it.
func (t *remoteDirectory) finish(c *sftp.Client, f *sftp.File) error {
	var err error
	if _, ok := c.HasExtension("fsync@openssh.com"); ok {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close())
}

// link gives a file another name, which must be new. The server does not say why it refuses, so that is looked at; and
// who had the name may just have given it up.
func (t *remoteDirectory) link(c *sftp.Client, from, to string) error {
	for again := true; ; again = false {
		err := c.Link(from, to)
		if err == nil || lost(err) {
			return err
		}
		_, serr := c.Lstat(to)
		switch {
		case serr == nil:
			return fmt.Errorf("%s: %w", to, fs.ErrExist)
		case lost(serr):
			return serr
		case !again:
			return err
		}
	}
}

func (u *remoteUpload) Abort() error {
	if u.f == nil {
		return nil
	}
	_ = u.f.Close() // it may be closed
	u.f = nil
	if err := u.c.Remove(u.temp); err != nil && !isMissing(err) && !lost(err) { // Tidy removes it later
		return err
	}
	return nil
}

// Read reads a small file. A successor whose writer has died is put in its place first.
func (t *remoteDirectory) Read(ctx context.Context, name string, limit int64) (data []byte, version Version, err error) {
	err = t.with(ctx, func(c *sftp.Client) (err error) {
		if data, version, err = t.read(c, name, limit); err != nil {
			return err
		}
		settled, err := t.settle(ctx, c, name, version)
		if err == nil && settled {
			data, version, err = t.read(c, name, limit)
		}
		if err != nil && !lost(err) && ctx.Err() == nil { // who may only read gets what was acknowledged
			return nil
		}
		return err
	})
	return data, version, err
}

func (t *remoteDirectory) read(c *sftp.Client, name string, limit int64) ([]byte, Version, error) {
	r, size, err := t.open(c, name, 0, -1)
	if err != nil {
		return nil, "", disk.UnlessMissing(err)
	}
	defer r.Close()
	data, err := readSmall(r, size, name, limit)
	if err == nil && int64(len(data)) != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, "", err
	}
	return data, versionOf(data), nil
}

// Swap replaces a file by a successor: a hard link whose name says which version it follows, so that of two
// writers one gets it. Then it is moved to its place. Where a writer dies between the two, the next one who reads
// the file moves it, after it has waited for it.
func (t *remoteDirectory) Swap(ctx context.Context, name string, data []byte, was Version) (Version, error) {
	want := versionOf(data)
	err := t.with(ctx, func(c *sftp.Client) error { return t.noSpace(c, t.swap(ctx, c, name, data, was)) })
	if err != nil {
		return "", err
	}
	return want, nil
}

func (t *remoteDirectory) swap(ctx context.Context, c *sftp.Client, name string, data []byte, was Version) error {
	want := versionOf(data)
	full, err := t.at(c, name, true)
	if err != nil {
		return err
	}
	if done, err := t.follows(c, name, was, want); done || err != nil {
		return err
	}
	temp, f, err := t.begin(c, name)
	if err != nil {
		return err
	}
	defer c.Remove(temp) //nolint:errcheck // Tidy does it later
	_, err = io.Copy(f, bytes.NewReader(data))
	if err = cmp.Or(err, t.finish(c, f)); err != nil {
		return err
	}
	return t.succeed(ctx, c, name, full, temp, was, want)
}

// follows says whether the content is already the wanted one. It is an error if it is neither that nor the one of
// before.
func (t *remoteDirectory) follows(c *sftp.Client, name string, was, want Version) (done bool, err error) {
	_, now, err := t.read(c, name, 1<<40)
	if err == nil && now != was && now != want {
		err = fmt.Errorf("%s: %w", name, ErrConflict)
	}
	return now == want, err
}

// For how long a successor may wait for its writer.
var (
	lookAgain = 50 * time.Millisecond
	helpAfter = 20 * time.Second
)

// successor is the path of what is to follow a version of the file at full.
func successor(full string, was Version) string {
	return path.Join(path.Dir(full), Unfinished+path.Base(full)+"-after-"+string(was))
}

// settle sees to it that what is to follow a version of a content, if there is such a thing, is moved to its place: by its
// writer, or else, when that has had time enough, by us. It returns whether there was one. The content must have been of
// that version just now: else what is moved is what came too late.
func (t *remoteDirectory) settle(ctx context.Context, c *sftp.Client, name string, now Version) (bool, error) {
	full := path.Join(t.root, name)
	next := successor(full, now)
	for waited := time.Duration(0); ; waited += lookAgain {
		st, err := c.Lstat(next)
		if isMissing(err) {
			return waited > 0, nil
		}
		if err != nil {
			return false, err
		}
		if waited >= helpAfter || time.Since(st.ModTime()) >= helpAfter {
			_, there, err := t.read(c, name, 1<<40)
			if err == nil && there == now { // else what is there comes from a writer that came too late
				err = c.PosixRename(next, full)
			}
			return err == nil, disk.UnlessMissing(err)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

func (t *remoteDirectory) succeed(ctx context.Context, c *sftp.Client, name, full, temp string, was, want Version) error {
	next := successor(full, was)
	for {
		err := t.link(c, temp, next)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		ours, err := holds(c, next, want)
		if err != nil {
			return err
		}
		if ours {
			break // from an earlier try, whose connection was lost
		}
		if done, err := t.follows(c, name, was, want); done || err != nil {
			return err
		}
		if _, err := t.settle(ctx, c, name, was); err != nil {
			return err
		}
	}
	if done, err := t.follows(c, name, was, want); done || err != nil { // another one has moved ours, or it came too late
		if rerr := c.Remove(next); !isMissing(rerr) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	err := c.PosixRename(next, full)
	if err != nil && !lost(err) && !isMissing(err) { // what was refused must not come later
		if rerr := c.Remove(next); isMissing(rerr) {
			err = rerr
		}
	}
	if isMissing(err) { // another one has moved it
		_, err = t.follows(c, name, was, want)
	}
	return err
}

// holds says whether a file has a content.
func holds(c *sftp.Client, full string, want Version) (bool, error) {
	f, err := c.Open(full)
	if err != nil {
		return false, disk.UnlessMissing(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(f)
	return err == nil && versionOf(data) == want, err
}

// Delete removes a file.
func (t *remoteDirectory) Delete(ctx context.Context, name string) error {
	return t.with(ctx, func(c *sftp.Client) error {
		full, err := t.at(c, name, false)
		if err == nil {
			err = c.Remove(full)
		}
		return disk.UnlessMissing(err)
	})
}

// Tidy removes unfinished files that are a day old by the server's clock: nobody can tell whether a younger one
// is still being written, by another machine.
func (t *remoteDirectory) Tidy(ctx context.Context, prefix string) error {
	return t.with(ctx, func(c *sftp.Client) error {
		dir := strings.TrimSuffix(prefix, "/")
		temp, f, err := t.begin(c, path.Join(dir, "x"))
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err = errors.Join(err, f.Close(), c.Remove(temp)); err != nil {
			return err
		}
		return t.tidy(ctx, c, path.Join(t.root, dir), st.ModTime().Add(-abandoned))
	})
}

func (t *remoteDirectory) tidy(ctx context.Context, c *sftp.Client, dir string, before time.Time) error {
	entries, err := c.ReadDirContext(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), Unfinished) && e.ModTime().Before(before):
			err = removeAll(c, full)
		case e.IsDir() && !strings.HasPrefix(e.Name(), Unfinished):
			err = t.tidy(ctx, c, full, before)
		}
		if err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// removeAll removes something with all below it. A missing one is no error.
func removeAll(c *sftp.Client, full string) error {
	if err := c.RemoveAll(full); err != nil && !isMissing(err) {
		return err
	}
	return nil
}

// Clear removes a directory.
func (t *remoteDirectory) Clear(ctx context.Context, name string) error {
	defer t.forgetDirectories()
	return t.with(ctx, func(c *sftp.Client) error {
		full, err := t.at(c, name, false)
		if err != nil {
			return disk.UnlessMissing(err)
		}
		return removeAll(c, full)
	})
}

// Write writes a file without flushing it.
func (t *remoteDirectory) Write(ctx context.Context, name string, r io.Reader) error {
	c, err := t.connected(ctx)
	if err != nil {
		return t.say(err)
	}
	full, err := t.at(c, name, true)
	if err != nil {
		return t.say(err)
	}
	f, err := c.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return t.say(t.noSpace(c, err))
	}
	if err = f.Chmod(privateFile); err == nil {
		_, err = io.Copy(f, r)
	}
	return t.say(t.noSpace(c, cmp.Or(err, f.Close())))
}

// Link makes a hard link.
func (t *remoteDirectory) Link(ctx context.Context, old, name string) error {
	return t.with(ctx, func(c *sftp.Client) error {
		from, err := t.at(c, old, false)
		if err != nil {
			return err
		}
		to, err := t.at(c, name, true)
		if err == nil {
			err = t.link(c, from, to)
		}
		return t.noSpace(c, err)
	})
}

// Exchange exchanges two directories by three renames. A death between them leaves one of them under a
// name of unfinished uploads.
func (t *remoteDirectory) Exchange(ctx context.Context, name, with string) error {
	defer t.forgetDirectories()
	c, err := t.connected(ctx)
	if err != nil {
		return t.say(err)
	}
	a, err := t.at(c, name, false)
	if err != nil {
		return t.say(err)
	}
	b, err := t.at(c, with, true)
	if err != nil {
		return t.say(err)
	}
	away := path.Join(path.Dir(b), Unfinished+path.Base(b))
	if err := removeAll(c, away); err != nil {
		return t.say(err)
	}
	err = c.Rename(b, away)
	had := err == nil
	if isMissing(err) {
		err = nil
	}
	if err == nil {
		err = c.Rename(a, b)
	}
	switch {
	case had && err == nil:
		err = c.Rename(away, a)
	case had && !lost(err):
		err = errors.Join(err, c.Rename(away, b))
	}
	return t.say(t.noSpace(c, err))
}
