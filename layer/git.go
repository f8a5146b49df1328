package layer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"

	"decree/disk"
)

// GitChanges calls visit, as Changes does, for what the layer has otherwise than the root in
// the root's own .git. No ignore rules apply there, and what cannot be read of it is an error: a
// repository that lacks a part is none.
func (l *Layer) GitChanges(ctx context.Context, visit func(*Change) error) error {
	tally, err := l.Changes(ctx, ChangeOptions{git: true}, visit)
	if err == nil && len(tally.Unread) > 0 {
		err = &fs.PathError{Op: "open", Path: string(tally.Unread[0]), Err: fs.ErrPermission}
	}
	return err
}

// flushGit makes durable what the layer has of its own in the root's .git, and that it is a layer: nothing else has the commits
// of its run.
func (l *Layer) flushGit(ctx context.Context) error {
	above := map[string]bool{".": true} // the directories of what is flushed
	err := l.GitChanges(ctx, func(c *Change) error {
		for dir := path.Dir(string(c.Path)); !above[dir]; dir = path.Dir(dir) {
			above[dir] = true
		}
		switch {
		case c.After == nil || c.After.Kind == disk.Symlink:
			return nil
		case c.After.Kind == disk.Directory:
			above[string(c.Path)] = true
			return nil
		}
		return flushFile(c.To(), c.Name())
	})
	if err != nil {
		return err
	}
	for dir := range above {
		if err := disk.InDir(l.dir, path.Join(l.top(), dir), disk.Dir.Sync); err != nil && !notThere(err) { // else deleted with what was in it
			return err
		}
	}
	return cmp.Or(flushFile(l.dir, factsName), l.dir.Sync(), l.place.Dir.Sync())
}

func flushFile(dir disk.Dir, name string) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// OpenGit opens the file at path below the .git that the layer has of its own.
func (l *Layer) OpenGit(name string) (disk.File, error) {
	dir, err := disk.OpenPath(l.dir, path.Join(l.top(), ".git", path.Dir(name)))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Open(path.Base(name))
}

// Old says whether what the root has, which was looked at now, was last changed before the
// layer was made.
func (l *Layer) Old(in disk.Info) (bool, error) {
	root, err := l.place.Root.Self()
	b := base{moment: l.facts.moment, dev: root.Dev}
	return err == nil && b.Settled != 0 && b.old(nil, "", &in), err
}

// gitName is the file of a publish that brings what is in .git too.
const gitName = "git"

// MarkGit notes, durably, what of the layer's .git is being published; after a death it has to be
// finished by that note.
func (l *Layer) MarkGit(note []byte) error {
	return writeFile(l.dir, gitName, note, true)
}

// GitMark is the note if MarkGit was called, and UnmarkGit not since.
func (l *Layer) GitMark() (note []byte, marked bool, err error) {
	note, err = readFile(l.dir, gitName, 64<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return note, err == nil, err
}

// UnmarkGit takes the mark away.
func (l *Layer) UnmarkGit() error { return l.unmark(gitName) }

// unmark removes a file of the layer's own directory, if it is there.
func (l *Layer) unmark(name string) error {
	err := l.dir.Remove(name)
	return disk.UnlessMissing(err)
}
