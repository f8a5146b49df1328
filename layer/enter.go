package layer

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"decree/disk"
	"decree/tree"
)

// When its run has ended, another command can work in a layer. A path that the run has not
// touched this command sees as the root has it by then, and not as it was when the run began:
// the path has a base if it has not changed in the root since the layer was entered. A path that
// the run has touched, or hidden, the command sees as the run left it, and its base is the run's.

// enteredName is a file that marks a layer in which such a command works. A recovery that finds
// it, and nobody who works in the layer, has to read the layer anew.
const enteredName = "entered"

// again is what is known of a layer as it was entered.
type again struct {
	moment
	touched map[tree.Path]bool // the paths that the layer had; true: nothing below is the root's
	barred  map[tree.Path]bool // the directories among them that could not be read
}

// Enter marks the layer, which the caller has locked, and notes which paths it has already, by
// which Changes later chooses the moment that a base must be older than. It is called before the
// command is executed.
func (l *Layer) Enter() error {
	if err := l.mark(); err != nil {
		return err
	}
	if l.facts.Mechanism == Clone {
		return nil // the root is not seen through it
	}
	m, err := l.settled()
	if err != nil {
		return err
	}
	a := &again{moment: m}
	if err := a.lookInto(l); err != nil {
		return err
	}
	l.again = a
	return nil
}

// Has is what the layer has at the paths that it has of its own, or hides, but for those that leaves is true of. Nil stands for nothing. What cannot
// be read is left out, and what the run may have been free to ignore, as the rules are others since, but for what was published. The contents
// are stored.
func (l *Layer) Has(ctx context.Context, o CollectOptions, leaves, published func(path tree.Path) bool) (map[tree.Path]*tree.Entry, error) {
	has := map[tree.Path]*tree.Entry{}
	o.all = true
	_, err := l.Changes(ctx, o.ChangeOptions, func(c *Change) error {
		if leaves(c.Path) {
			return nil
		}
		if same, err := c.sameRules(); err != nil || !same && !published(c.Path) && !(isDir(c.Before) && isDir(c.After)) {
			return err
		}
		e, err := read(o.Writer, c.To(), c.Name(), c.After)
		if err == nil {
			has[c.Path] = e
		} else if unreadable(err) {
			err = nil
		}
		return err
	})
	return has, err
}

// Decides returns what says of a path whether the layer alone decides what is seen there: it has the path,
// as a file, a directory or what stands for a deletion, or hides what the root has.
func (l *Layer) Decides() (func(path tree.Path) bool, error) {
	if l.facts.Mechanism == Clone {
		return func(tree.Path) bool { return true }, nil
	}
	a := &again{}
	return a.had, a.lookInto(l)
}

// lookInto notes what the layer has.
func (a *again) lookInto(l *Layer) error {
	a.touched, a.barred = map[tree.Path]bool{}, map[tree.Path]bool{}
	upper, err := l.dir.OpenDir(upperName)
	if err != nil {
		return err
	}
	defer upper.Close()
	return a.look(upper, "", false)
}

// look notes what dir, which is at path, has. hides: it, or a directory above it, hides what the root has there.
func (a *again) look(dir disk.Dir, path tree.Path, hides bool) error {
	list, err := dir.List()
	for _, e := range list {
		if err != nil {
			return err
		}
		if e.Name == ".git" || e.Name == ".decree" {
			continue // nothing in them is a change
		}
		at := path.Join(e.Name)
		if a.touched[at] = true; e.Kind == disk.Directory {
			err = a.lookBelow(dir, e.Name, at, hides)
		}
	}
	return err
}

// lookBelow notes what is in a directory.
func (a *again) lookBelow(dir disk.Dir, name string, at tree.Path, hides bool) error {
	own, err := opaque(dir, name)
	if err != nil {
		return err
	}
	hides = hides || own
	sub, err := dir.OpenDir(name)
	if err == nil {
		defer sub.Close()
		a.touched[at] = hides
		err = a.look(sub, at, hides)
	}
	if errors.Is(err, fs.ErrPermission) { // it may be opened, and not looked into
		a.touched[at], err = true, nil
		if !hides {
			a.barred[at] = true // it is not known what is in it
		}
	}
	return err
}

// opaque says whether a directory of the layer hides what the root has at its path.
func opaque(dir disk.Dir, name string) (bool, error) {
	xattrs, err := dir.Xattrs(name)
	if slices.ContainsFunc(xattrs, isOpaque) {
		return true, err
	}
	return false, err
}

// opaqueName is the attribute by which a directory of the layer hides what the root has there.
const opaqueName = "user.overlay.opaque"

func isOpaque(x disk.Xattr) bool { return x.Name == opaqueName && string(x.Value) == "y" }

// isWhiteout says whether a file of the layer marks a deletion.
func isWhiteout(dir disk.Dir, name string, in *disk.Info) (bool, error) {
	if in.Kind != disk.Regular || in.Size > 0 {
		return in.Whiteout, nil
	}
	xattrs, err := dir.Xattrs(name)
	return slices.ContainsFunc(xattrs, marksDeletion), err
}

func marksDeletion(x disk.Xattr) bool { return x.Name == "user.overlay.whiteout" }

// had says whether the layer had the path, or hid what the root has there.
func (a *again) had(path tree.Path) bool {
	if _, is := a.touched[path]; is {
		return true
	}
	for i, c := range path {
		if c == '/' && a.touched[path[:i]] {
			return true
		}
	}
	return false
}

// Hid says whether it is known that the layer, as it was entered, hid what the root has at a path below one that the
// layer had. Who worked in it then has not seen that, and has not deleted it.
func (l *Layer) Hid(path tree.Path) bool {
	if l.again == nil {
		return false
	}
	if _, is := l.again.touched[path]; is {
		return false
	}
	for up := path.Parent(); up != ""; up = up.Parent() {
		if hides, is := l.again.touched[up]; is {
			return hides && !l.again.barred[up]
		}
	}
	return false
}

// Own is what the layer itself has at a path, with its content stored; nil for nothing, for what marks a deletion, and for what is not
// recorded.
func (l *Layer) Own(w Writer, at tree.Path) (e *tree.Entry, err error) {
	err = disk.InDir(l.dir, path.Join(l.top(), path.Dir(string(at))), func(dir disk.Dir) error {
		in, err := dir.Stat(at.Name())
		if err == nil && in.Kind != disk.Special {
			e, err = read(w, dir, at.Name(), &in)
		}
		return err
	})
	return e, disk.UnlessMissingOrOther(err)
}

// Had says whether an overlay, as it was entered, had something of its own at path, or hid what the root has there. Where it neither did nor does,
// who worked in it has seen what the root has, and left it.
func (l *Layer) Had(path tree.Path) bool { return l.again == nil || l.again.had(path) }

// since is known, which says what the root had when the layer was entered, for the paths that the
// command saw so.
func (a *again) since(known func(tree.Path) (*tree.Entry, bool)) func(tree.Path) (*tree.Entry, bool) {
	return func(path tree.Path) (*tree.Entry, bool) {
		if a.had(path) {
			return nil, false
		}
		return known(path)
	}
}

// baseOf is what tells of a path whether the root still has what it was to the command.
func (w *walk) baseOf(path tree.Path) base {
	b := w.base
	if w.again != nil && !w.again.had(path) {
		b.moment = w.again.moment
	}
	return b
}

// NoteEntered puts into the mark what a recovery has to know of the command that works.
func (l *Layer) NoteEntered(note []byte) error {
	return writeFile(l.dir, enteredName, note, false)
}

// EnteredBy is what NoteEntered has noted; empty where the command was not started.
func (l *Layer) EnteredBy() ([]byte, error) {
	return readFile(l.dir, enteredName, 1<<12)
}

// mark makes the file, empty, where it is not there yet.
func (l *Layer) mark() error {
	f, err := disk.CreateFile(l.dir, enteredName, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Entered says whether the layer was entered, and not left since.
func (l *Layer) Entered() (bool, error) {
	in, err := look(l.dir, enteredName)
	return in != nil, err
}

// Leave takes the mark away, when what the command did is recorded.
func (l *Layer) Leave() error {
	l.again = nil
	return l.unmark(enteredName)
}
