// Package hookfile puts decree's hooks into the files of coding agents, and takes them out
// again. What is to stand in a file says package agent; this one reads, keeps a copy
// and replaces, so that whoever looks finds the old file or the new one. A file that is
// a link, read-only, or not understood is refused and stays as it is.
package hookfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"decree/agent"
	"decree/disk"
	"decree/project"
)

// maxSize bounds a file of settings, in bytes.
const maxSize = 1 << 20

// copySuffix is what the copy of a file is called behind the file's own name. It stays until
// the hooks are removed.
const copySuffix = ".before-decree"

// Change is what happens to one file: nil is no file.
type Change struct {
	Path     string // absolute
	Old, New []byte
	// Copy is where Old is kept; "" where there was none, or none is needed.
	Copy string
}

// Changes says whether anything is other than before.
func (c Change) Changes() bool { return !sameFile(c.Old, c.New) }

// sameFile compares two files, of which nil is none.
func sameFile(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// State is what a file has of decree.
type State struct {
	Path   string
	Hooked agent.Hooked
	// Err says why nothing can be done with the file; nil: it can.
	Err error
	// Text is the file; nil if there is none.
	Text []byte
}

// Look says how far decree's hooks are in a file.
func Look(d disk.Disk, f agent.File) State {
	state := State{Path: fullPath(f), Hooked: agent.NotHooked}
	p, err := open(d, f, false)
	if errors.Is(err, fs.ErrNotExist) {
		return state
	}
	if err != nil {
		state.Err = err
		return state
	}
	defer p.dir.Close()
	if state.Text, _, state.Err = p.read(p.name); state.Err == nil {
		if state.Hooked, err = f.Hooked(state.Text); err != nil {
			state.Err = p.refusal(err.Error())
		}
	}
	return state
}

// Install puts the hooks into f, or only says what would become of it.
func Install(ctx context.Context, d disk.Disk, f agent.File, dryRun bool) (Change, error) {
	return change(ctx, d, f, dryRun, func(_ *place, old []byte) ([]byte, error) { return f.With(old) })
}

// Remove takes them out: byte for byte what was there before, unless somebody else has
// changed the file since.
func Remove(ctx context.Context, d disk.Disk, f agent.File, dryRun bool) (Change, error) {
	return change(ctx, d, f, dryRun, func(p *place, old []byte) ([]byte, error) {
		if old == nil {
			return nil, nil
		}
		before, _, err := p.read(p.name + copySuffix)
		if err != nil {
			before = nil // somebody else's: the entries are taken out one by one
		}
		return f.Without(old, before)
	})
}

// tries is how often a file is read again that somebody else writes meanwhile.
const tries = 5

func change(ctx context.Context, d disk.Disk, f agent.File, dryRun bool, edit func(*place, []byte) ([]byte, error)) (Change, error) {
	for n := 1; ; n++ {
		c, err := changeOnce(ctx, d, f, dryRun, edit)
		if !errors.Is(err, errMeanwhile) || n == tries {
			return c, err
		}
	}
}

// errMeanwhile is the cause of an error about a file that is another than was read.
var errMeanwhile = errors.New("it was changed meanwhile")

func changeOnce(ctx context.Context, d disk.Disk, f agent.File, dryRun bool, edit func(*place, []byte) ([]byte, error)) (c Change, err error) {
	c.Path = fullPath(f)
	p, err := open(d, f, false)
	switch {
	case err == nil:
		c, err = p.plan(f, edit)
		p.dir.Close()
	case errors.Is(err, fs.ErrNotExist):
		c.New, err = edit(nil, nil)
	}
	if err != nil || dryRun || !c.Changes() {
		return c, err
	}
	if p, err = open(d, f, true); err != nil {
		return c, err
	}
	defer p.dir.Close()
	unlock, err := p.lock(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := p.make(f, c); err != nil {
		return c, err
	}
	if c.New == nil {
		removeEmpty(d, f)
	}
	return c, nil
}

// removeEmpty removes the directories that f was alone in, below the agent's own or the tree's root.
func removeEmpty(d disk.Disk, f agent.File) {
	root, err := d.OpenRoot(f.Dir)
	if err != nil {
		return
	}
	defer root.Close()
	dirs := components(path.Dir(f.Path))
	for n := len(dirs) - 1; n >= 0; n-- {
		parent := root
		if n > 0 {
			if parent, err = disk.OpenPath(root, path.Join(dirs[:n]...)); err != nil {
				return
			}
			defer parent.Close()
		}
		if parent.Rmdir(dirs[n]) != nil {
			return
		}
	}
}

// place is the directory of a file, open, and the file's name.
type place struct {
	dir  disk.Dir
	name string
	// path is the file's, for messages.
	path string
}

func fullPath(f agent.File) string { return path.Join(f.Dir, f.Path) }

// open opens the directory of f, and makes it where it is missing and build is set. Links below the agent's
// own directory, or below a tree's root, are not followed.
func open(d disk.Disk, f agent.File, build bool) (*place, error) {
	p := &place{name: path.Base(f.Path), path: fullPath(f)}
	var err error
	if build {
		p.dir, err = d.MkdirAll(f.Dir, 0o755)
	} else {
		p.dir, err = d.OpenRoot(f.Dir)
	}
	if err != nil {
		return nil, project.Unmoved(err)
	}
	if err := cmp.Or(p.inItsHome(d, f.Dir), disk.ForItsOwner(p.dir)); err != nil {
		p.dir.Close()
		return nil, project.Unmoved(err)
	}
	for _, name := range components(path.Dir(f.Path)) {
		below, err := p.dir.OpenDir(name)
		if errors.Is(err, fs.ErrNotExist) && build {
			if err = p.dir.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
				below, err = p.dir.OpenDir(name)
			}
		}
		p.dir.Close()
		if disk.OtherKind(err) {
			return nil, p.refusal("a directory of it is a link, or none")
		}
		if err != nil {
			return nil, project.Unmoved(err)
		}
		p.dir = below
	}
	return p, nil
}

// inItsHome refuses, for root, a directory that is not of the user in whose directory its path begins: by a link there, which
// may be that user's, root would write among the files of somebody else.
func (p *place) inItsHome(d disk.Disk, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	self, err := p.dir.Self()
	if err != nil {
		return err
	}
	at := ""
	for _, name := range components(dir) {
		at += "/" + name
		above, err := d.OpenRoot(at)
		if err != nil {
			return err
		}
		st, err := above.Self()
		above.Close()
		if err != nil {
			return err
		}
		switch st.UID {
		case 0:
		case self.UID:
			return nil
		default:
			return p.refusal(fmt.Sprintf("its directory belongs to another user than %s, and a link there may lead to it; run this as the user whose files they are", at))
		}
	}
	return nil
}

// components are the names of a path; "." has none.
func components(dir string) []string {
	if dir == "." {
		return nil
	}
	return strings.Split(strings.Trim(path.Clean(dir), "/"), "/")
}

func (p *place) refusal(reason string) *project.Error {
	return (&project.Error{Kind: project.Refused, Msg: p.path + ": " + reason}).Unchanged()
}

// plan reads the file and says what is to become of it.
func (p *place) plan(f agent.File, edit func(*place, []byte) ([]byte, error)) (c Change, err error) {
	c.Path = p.path
	old, info, err := p.read(p.name)
	if err != nil {
		return c, err
	}
	c.Old = old
	if c.New, err = edit(p, old); err != nil {
		return c, p.refusal(err.Error()).Hintf("mend or move the file, and say it again")
	}
	if !c.Changes() {
		return c, nil
	}
	if err := p.replaceable(old, info); err != nil {
		return c, err
	}
	if hooked, err := f.Hooked(old); err == nil && hooked == agent.NotHooked && old != nil {
		c.Copy = p.path + copySuffix
	}
	return c, nil
}

// replaceable refuses a file that is not the same any more when another takes its place.
func (p *place) replaceable(old []byte, info disk.Info) error {
	if old == nil {
		return nil
	}
	dir, err := p.dir.Self()
	switch {
	case err != nil:
		return project.Unmoved(err)
	case info.Mode&0o200 == 0:
		return p.refusal("the file is read-only").Hintf("'chmod u+w' allows it")
	case info.UID != dir.UID:
		return p.refusal("the file belongs to another user than its directory").Hintf("'chown' makes it the directory's owner's")
	case info.Nlink > 1:
		return p.refusal("the file has other names too (hard links)").Hintf("replace it by a file of its own to have hooks in it, or put them there yourself")
	}
	return nil
}

// read returns the bytes of a file of the directory, nil if there is none.
func (p *place) read(name string) ([]byte, disk.Info, error) {
	info, err := p.dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, info, nil
	}
	if err != nil {
		return nil, info, project.Unmoved(err)
	}
	switch {
	case info.Kind == disk.Symlink:
		target, _ := p.dir.Readlink(name)
		return nil, info, p.refusal("the file is a link").Hintf("it leads to %s: replace it by a file to have hooks in it, or put them there yourself", target)
	case info.Kind != disk.Regular:
		return nil, info, p.refusal("it is no regular file")
	case info.Size > maxSize:
		return nil, info, p.refusal(fmt.Sprintf("the file has %d bytes, more than settings have", info.Size))
	}
	file, err := p.dir.Open(name)
	if err != nil {
		return nil, info, project.Unmoved(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSize))
	if text == nil {
		text = []byte{}
	}
	return text, info, project.Unmoved(err)
}

// lock keeps other decrees from the directory, and waits for one that is at it.
func (p *place) lock(ctx context.Context) (func() error, error) {
	unlock, err := disk.LockWithin(ctx, p.dir, 10*time.Millisecond, 10*time.Second)
	if errors.Is(err, disk.ErrLocked) {
		return nil, p.refusal("another process has its directory locked")
	}
	return unlock, project.Unmoved(err)
}

// make changes the file as planned, if it is still what was read.
func (p *place) make(f agent.File, c Change) error {
	perm := f.Perm
	if c.Old != nil {
		info, err := p.dir.Stat(p.name)
		if err != nil {
			return project.Unmoved(err)
		}
		perm = info.Mode
	}
	if c.Copy != "" {
		if err := p.keepFormerCopy(c.Old); err != nil {
			return project.Unmoved(err)
		}
		how := disk.Replacement{Perm: perm, Flush: true, Place: p.dir.RenameNew}
		if err := disk.Replace(p.dir, p.name+copySuffix, how, disk.Content(c.Old)); err != nil {
			return project.Unmoved(err)
		}
	}
	if c.New == nil {
		return p.drop(c)
	}
	how := disk.Replacement{Perm: perm, Flush: true, Place: func(temp string, to disk.Dir, name string) error {
		if err := p.same(c.Old); err != nil {
			return err
		}
		if c.Old == nil {
			return p.dir.RenameNew(temp, to, name)
		}
		return p.dir.Rename(temp, to, name)
	}}
	if err := disk.Replace(p.dir, p.name, how, disk.Content(c.New)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = errMeanwhile
		}
		return p.failed(err)
	}
	return p.forgetCopy(f, c)
}

// keepFormerCopy gives whatever has the name of the copy another one, with a number behind it:
// it may be somebody's own. One with these bytes may be written anew.
func (p *place) keepFormerCopy(text []byte) error {
	name := p.name + copySuffix
	if former, _, err := p.read(name); err == nil && bytes.Equal(former, text) {
		return p.removeCopy()
	}
	for n := 1; ; n++ {
		err := p.dir.RenameNew(name, p.dir, fmt.Sprintf("%s-%d", name, n))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func (p *place) failed(err error) error {
	if errors.Is(err, errMeanwhile) {
		return (&project.Error{Kind: project.Refused, Msg: p.path, Err: errMeanwhile}).Unchanged()
	}
	return project.Unmoved(err)
}

// same says whether the file still has the bytes that were read.
func (p *place) same(old []byte) error {
	now, _, err := p.read(p.name)
	if err == nil && !sameFile(now, old) {
		err = errMeanwhile
	}
	return err
}

// drop removes a file that is nothing but decree's. There was none before, so that whatever
// has the name of a copy is somebody else's.
func (p *place) drop(c Change) error {
	if err := p.same(c.Old); err != nil {
		return p.failed(err)
	}
	if err := p.dir.Remove(p.name); err != nil {
		return project.Unmoved(err)
	}
	return project.Unmoved(p.dir.Sync())
}

// forgetCopy removes the copy when the file has no hooks any more.
func (p *place) forgetCopy(f agent.File, c Change) error {
	if hooked, err := f.Hooked(c.New); err != nil || hooked != agent.NotHooked {
		return nil //nolint:nilerr // what is not understood keeps its copy
	}
	return p.removeCopy()
}

func (p *place) removeCopy() error {
	if err := p.dir.Remove(p.name + copySuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
