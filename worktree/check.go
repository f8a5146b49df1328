package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/tree"
)

// check refuses unless every path is in its From state and every change can be
// expected to succeed. It decides where slots lie, and adds the directories
// whose mode has to be loosened meanwhile. It is the phase that lists all
// conflicts, so errors that a path answers for are conflicts too.
func (x *txn) check(ctx context.Context) error {
	conflicts := make([]string, x.steps.n)
	looked := x.h.onlyLook()
	err := x.each(ctx, all, func(s *step) (err error) {
		conflicts[s.n], err = x.checkFrom(s)
		return err
	})
	looked()
	if err != nil {
		return err
	}
	if err := x.conflicts(conflicts); err != nil {
		return err
	}
	err = x.downward(ctx, (*facts).ofDir, func(s *step) (err error) {
		conflicts[s.n], err = x.checkEmptied(s)
		return err
	})
	if err != nil {
		return err
	}
	if err := x.conflicts(conflicts); err != nil {
		return err
	}
	if err := x.openStage(true); err != nil {
		return err
	}
	return x.checkParents(ctx)
}

func (x *txn) conflicts(reasons []string) error {
	var list []Conflict
	for i, reason := range reasons {
		if reason != "" {
			list = append(list, Conflict{x.steps.at(i).Path, reason})
		}
	}
	if list == nil {
		return nil
	}
	return &ConflictError{list}
}

// checkFrom says how the path differs from the step's From, "" if it does not.
func (x *txn) checkFrom(s *step) (string, error) {
	have, err := x.look(x.h, s, false)
	if err != nil {
		return refusal(err)
	}
	if !have.absent() {
		info := have.info
		s.was = &info
	}
	switch {
	case have.is(s.From):
		return "", nil
	case have.special:
		return "neither file, directory nor symbolic link", nil
	case have.entry == nil:
		return "missing", nil
	case s.From == nil:
		return "a " + have.entry.Type.String() + " is there", nil
	case have.entry.Type != s.From.Type:
		return "now a " + have.entry.Type.String(), nil
	case have.entry.SHA256 == s.From.SHA256 && have.entry.Size == s.From.Size && have.entry.Mode == s.From.Mode:
		return fmt.Sprintf("its owner is %s, not %s", have.entry.Owner, s.From.Owner), nil
	case have.entry.SHA256 == s.From.SHA256 && have.entry.Size == s.From.Size:
		return fmt.Sprintf("mode is %o, not %o", have.entry.Mode, s.From.Mode), nil
	}
	return "edited since", nil
}

// refusal turns an error that the path itself is the reason of into a conflict.
func refusal(err error) (string, error) {
	if err == nil {
		return "", nil
	}
	var link *LinkError
	var forbidden *ForbiddenError
	switch {
	case errors.As(err, &link):
		return tree.Quote(link.At) + " is a symbolic link", nil
	case errors.As(err, &forbidden):
		return forbidden.reason(), nil
	case errors.Is(err, errBusy):
		return errBusy.Error(), nil
	case errors.Is(err, disk.ErrReplaced):
		return disk.ErrReplaced.Error(), nil
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case errors.Is(err, fs.ErrPermission):
		return "permission denied", nil
	}
	return "", err
}

// checkEmptied refuses the removal of a directory that holds something which
// does not go too.
func (x *txn) checkEmptied(s *step) (string, error) {
	if s.kind != dirToFile && (s.kind != rmdir || s.mayStay()) {
		return "", nil
	}
	d, err := x.h.dir(s.Path)
	if err != nil {
		return refusal(err)
	}
	defer d.release()
	list, err := d.List()
	if err != nil {
		return refusal(err)
	}
	var kept []string
	for _, e := range list {
		if c := x.steps.find(s.Path.Join(e.Name)); c == nil || c.To != nil {
			kept = append(kept, e.Name)
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the directory holds other files that must stay (%d, such as %s)", len(kept), tree.Quote(slices.Min(kept))), nil
}

// parent is what the check learns of a directory whose entries will change.
type parent struct {
	path   tree.Path
	info   disk.Info // of the directory, or of the nearest above it that is there
	at     tree.Path // where that is
	reason string    // why nothing in it can be changed
	sticky bool      // only a file's owner may take it out
	loosen bool      // its mode has to be loosened first
}

// checkParents looks at each directory whose entries will change, once: that it
// will be there, that it can be written, on which device it is.
func (x *txn) checkParents(ctx context.Context) error {
	parents := map[tree.Path]*parent{}
	var list []*parent
	for s := range x.steps.all() {
		if dir := s.Path.Parent(); !s.modeOnly() && parents[dir] == nil {
			p := &parent{path: dir}
			parents[dir], list = p, append(list, p)
		}
	}
	err := each(ctx, x.t.workers(), len(list), func(i int) error { return x.checkParent(list[i]) })
	if err != nil {
		return err
	}
	conflicts := make([]string, x.steps.n)
	err = x.each(ctx, all, func(s *step) (err error) {
		conflicts[s.n], err = x.checkTarget(s, parents[s.Path.Parent()])
		return err
	})
	if err == nil {
		err = x.conflicts(conflicts)
	}
	if err != nil {
		return err
	}
	return x.addLoosened(list)
}

func (x *txn) checkParent(p *parent) error {
	d, at, err := x.nearestDir(p.path)
	if err != nil {
		return err
	}
	p.at = at
	p.info, err = d.Self()
	d.release()
	if err != nil || at != p.path {
		return err // a missing one is made by a step: checkTarget sees to that
	}
	owner := x.uid == 0 || x.uid == p.info.UID
	switch {
	case !owner && p.info.Mode&0o022 == 0:
		p.reason = shutDir
	case owner:
		err := x.probeDir(p)
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) {
			p.reason = "its directory cannot be changed: " + rootCause(err)
		} else if p.reason, err = refusal(err); err != nil {
			return err
		}
	}
	p.sticky = !owner && p.info.Mode&0o1000 != 0
	p.loosen = owner && x.lacksRights(p.info.Mode)
	if p.loosen && p.path == "" {
		p.reason = "the root directory cannot be written"
	}
	return nil
}

// probeDir is probe for a directory. The root's own entry lies in a directory outside
// the tree, so for the root it tries to remove .decree instead. That never succeeds,
// since our staging directory is in it, but the system checks the permission first.
func (x *txn) probeDir(p *parent) error {
	if p.path != "" {
		return x.probe(p.path, p.info)
	}
	err := x.t.root.Rmdir(".decree")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil
}

// probe finds what is immutable, or on a file system that is read-only: giving
// an entry the mode that it has fails there. It is left out where the system
// could take a bit away from a mode that is only given again.
func (x *txn) probe(path tree.Path, info disk.Info) error {
	if info.Kind == disk.Symlink || info.Mode&0o6000 != 0 {
		return nil
	}
	d, err := x.h.dir(path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	return d.Chmod(path.Name(), info, info.Mode)
}

func rootCause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// checkTarget says why the step cannot be made, "" if nothing speaks against it.
func (x *txn) checkTarget(s *step, p *parent) (string, error) {
	if s.was != nil && s.was.Dev != x.dev || p != nil && p.info.Dev != x.dev {
		x.elsewhere.Store(true)
	}
	if p != nil {
		if s.To != nil && p.at != p.path {
			if above := x.steps.find(p.path); above == nil || !above.To.IsDir() {
				return "its directory is missing", nil
			}
		}
		if p.reason != "" {
			return p.reason, nil
		}
		if p.sticky && s.From != nil && s.was.UID != x.uid {
			return sticky, nil
		}
		x.placeSlots(s, p)
	}
	if s.From == nil {
		return "", nil
	}
	if x.uid != 0 && x.uid != s.was.UID {
		if s.modeOnly() {
			return othersOn, nil
		}
		return "", nil
	}
	err := x.probe(s.Path, *s.was)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) {
		return "cannot be changed: " + rootCause(err), nil
	}
	return refusal(err)
}

// placeSlots decides where the step's slots lie: in the staging directory if a
// rename reaches the target from there, else in the nearest directory above the
// target that is there and stays.
func (x *txn) placeSlots(s *step, p *parent) {
	if !s.hasNew() && !s.hasOld() || !x.beside && p.info.Dev == x.dev {
		return
	}
	at := p.at
	for at != "" {
		if above := x.steps.find(at); above == nil || above.To.IsDir() {
			break
		}
		at = at.Parent()
	}
	s.beside = x.dirOfSlots(at)
}

// dirOfSlots is the one that all steps with their slots in dir have.
func (x *txn) dirOfSlots(dir tree.Path) *tree.Path {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.slotDirs == nil {
		x.slotDirs = map[tree.Path]*tree.Path{}
	}
	if x.slotDirs[dir] == nil {
		x.slotDirs[dir] = &dir
	}
	return x.slotDirs[dir]
}

// addLoosened adds a step for each directory that must be made writable and has
// no step of its own, so that the journal knows its mode.
func (x *txn) addLoosened(parents []*parent) error {
	var more []Step
	for _, p := range parents {
		if !p.loosen || x.steps.find(p.path) != nil || p.path == "" {
			continue
		}
		e := &tree.Entry{Type: tree.Dir, Mode: p.info.Mode}
		more = append(more, Step{Path: p.path, From: e, To: e})
	}
	if len(more) == 0 {
		return nil
	}
	slices.SortFunc(more, func(a, b Step) int { return a.Path.Compare(b.Path) })
	x.steps = x.steps.with(more)
	for _, p := range parents {
		if s := x.steps.find(p.path); s != nil && s.was == nil && s.opened() {
			s.was = &p.info
		}
	}
	return checkTree(x.steps)
}

// keepOld sees to it that what will be displaced is stored whole, and stores it where
// it is not, to be flushed.
func (x *txn) keepOld(ctx context.Context) error {
	if err := x.each(ctx, (*facts).hasOld, x.keepOne); err != nil {
		return err
	}
	if len(x.steps.picked((*facts).hasOld)) > 0 {
		x.unflushed = append(x.unflushed, func(on bool) error { return when(on, x.keep.Flush) })
	}
	return nil
}

func (x *txn) keepOne(s *step) error {
	sum, err := x.keep.Keep(s.From.SHA256, s.From.Size, func() (io.ReadCloser, error) { return x.displaced(s) })
	if err != nil {
		return err
	}
	if sum != s.From.SHA256 {
		return &ConflictError{[]Conflict{{s.Path, "edited since"}}}
	}
	return nil
}

// displaced opens what the step takes out of the tree.
func (x *txn) displaced(s *step) (io.ReadCloser, error) {
	if s.From.Type != tree.Regular {
		return io.NopCloser(strings.NewReader(s.From.Target)), nil
	}
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return nil, err
	}
	defer d.release()
	return d.Open(s.Path.Name())
}
