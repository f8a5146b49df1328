package layer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"decree/disk"
	"decree/tree"
)

// GiveBackDecree has the layer show again what its command has deleted of the root's .decree, for another attempt in it: the message that is
// its task, the routine, the configuration. What the command has written there stays, and so does what it has done in the inbox: a message that it
// has deleted there may be one that it has renamed. An overlay forgets the deletions; a clone gets the files again, of other runs nothing, and nothing
// of the directories called as skipped, which decree makes itself. No process may work in the layer.
func (l *Layer) GiveBackDecree(run string, skipped []string) error {
	top, err := l.Top()
	if err != nil {
		return err
	}
	defer top.Close()
	if l.facts.Mechanism == Overlay {
		return undelete(top, ".decree")
	}
	c := &cloning{CloneOptions: CloneOptions{Context: context.Background(), Copy: true}, names: bufio.NewWriter(io.Discard)}
	runs := tree.Path(".decree/runs")
	return c.missing(l.place.Root, top, ".decree", func(path tree.Path) bool {
		switch path.Parent() {
		case ".decree":
			return path == runs || !slices.Contains(skipped, path.Name())
		case runs:
			return path.Name() == run
		}
		return !path.Parent().Parent().Below(runs)
	})
}

// undelete removes from dir, of an overlay's upper side, the marks that name, or something in it, was deleted.
func undelete(dir disk.Dir, name string) error {
	in, err := look(dir, name)
	if in == nil || err != nil {
		return err
	}
	if marks, err := isWhiteout(dir, name, in); err != nil {
		return err
	} else if marks {
		return disk.UnlessMissing(dir.Remove(name))
	}
	if in.Kind != disk.Directory {
		return nil
	}
	hides, err := opaque(dir, name)
	if err == nil && hides {
		err = dir.SetXattr(name, *in, disk.Xattr{Name: opaqueName, Value: []byte("n")})
	}
	if err != nil {
		return err
	}
	sub, err := disk.OpenWritable(dir, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // nobody can see what is in it
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	list, err := sub.List()
	for _, e := range list {
		if err == nil && (name != ".decree" || e.Name != "inbox") {
			err = undelete(sub, e.Name)
		}
	}
	return err
}

// missing clones what to lacks of from's file or directory at path, and of what is below it, if wanted is true of it.
func (c *cloning) missing(from, to disk.Dir, path tree.Path, wanted func(tree.Path) bool) error {
	name := path.Name()
	has, err := look(to, name)
	had, herr := look(from, name)
	if had == nil || had.Kind == disk.Special || err != nil || herr != nil {
		return errors.Join(err, herr)
	}
	if had.Kind != disk.Directory {
		if has == nil {
			_, err = c.file(from, to, name, path, had)
		}
		return err
	}
	if has != nil && has.Kind != disk.Directory {
		return nil
	}
	if has == nil {
		if err := to.Mkdir(name, had.Mode|0o700); err != nil {
			return err
		}
	}
	source, err := from.OpenDir(name)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := disk.OpenWritable(to, name)
	if err != nil {
		return err
	}
	defer target.Close()
	list, err := source.List()
	for _, e := range list {
		if at := path.Join(e.Name); err == nil && wanted(at) {
			err = c.missing(source, target, at, wanted)
		}
	}
	return err
}
