package worktree

import (
	"errors"
	"io/fs"

	"decree/disk"
	"decree/tree"
)

// errTaken is of the path that Rename was to give.
var errTaken = errors.New("something else has taken its name")

// Rename gives the entry name of source, a directory anywhere in the root, the path to, in one step. Nothing is
// overwritten. It is for what is not part of the tree, .git among it, which a command has moved away from there,
// perhaps into .decree. An error does not name
// to, which the caller does; with moved it is of the flush.
func (t *Tree) Rename(source disk.Dir, name string, to tree.Path) (moved bool, err error) {
	h := newHandles(t.root)
	defer h.close()
	target, err := h.dir(to.Parent())
	if err != nil {
		return false, err
	}
	defer target.release()
	err = source.RenameNew(name, target.Dir, to.Name())
	if errors.Is(err, fs.ErrExist) {
		return false, errTaken
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(target.Sync(), source.Sync())
}
