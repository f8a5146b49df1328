package worktree

import (
	"errors"
	"io/fs"
)

// Rename gives what is at from the name to, in one step. Nothing is overwritten. It is for what is not part of
// the tree, .git among it, which a command has moved away from there. With moved an error is of the flush.
func (t *Tree) Rename(from, to string) (moved bool, err error) {
	h := newHandles(t.root)
	defer h.close()
	source, err := h.dir(dirOf(from))
	if err != nil {
		return false, &stepError{from, err}
	}
	defer source.release()
	target, err := h.dir(dirOf(to))
	if err != nil {
		return false, &stepError{to, err}
	}
	defer target.release()
	err = source.RenameNew(nameOf(from), target.Dir, nameOf(to))
	if errors.Is(err, fs.ErrExist) {
		return false, &stepError{to, errors.New("something else has taken its name")}
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(target.Sync(), source.Sync())
}
