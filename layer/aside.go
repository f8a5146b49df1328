package layer

import (
	"bufio"
	"context"
	"io"

	"decree/disk"
	"decree/layer/overlay"
)

// Somebody may look at what a run has made, and write while he looks, as a test does that
// judges it. What he writes must not become a part of the layer: he works in a layer over the
// layer, in the directory aside, which is removed when he is done.

// MountAside is Mount for who looks at what the layer has: what he writes lies in aside, and
// goes with LeaveAside. It makes an overlay over an overlay, and a clone of a clone, for which
// nothing is mounted; Workspace says where it is.
func (l *Layer) MountAside(ctx context.Context) (*overlay.Mount, error) {
	if err := l.LeaveAside(); err != nil {
		return nil, err
	}
	if err := l.dir.Mkdir(asideName, 0o700); err != nil {
		return nil, err
	}
	aside, err := l.dir.OpenDir(asideName)
	if err != nil {
		return nil, err
	}
	defer aside.Close()
	l.aside = true
	if l.facts.Mechanism == Clone {
		return nil, l.cloneInto(ctx, aside)
	}
	return l.overlayIn(aside)
}

// LeaveAside removes what was written beside the layer. Nobody may see it any more.
func (l *Layer) LeaveAside() error {
	l.aside = false
	return disk.RemoveTree(l.dir, asideName)
}

// overlayIn makes what an overlay over the layer needs.
func (l *Layer) overlayIn(aside disk.Dir) (*overlay.Mount, error) {
	upper, err := l.dir.OpenDir(upperName)
	if err != nil {
		return nil, err
	}
	defer upper.Close()
	if err := makeUpper(aside, upper); err != nil {
		return nil, err
	}
	if err := aside.Mkdir(workName, 0o700); err != nil {
		return nil, err
	}
	m, err := l.mountOf(aside.Path())
	if err == nil {
		m.Below = upper.Path()
	}
	return m, err
}

// cloneInto clones the layer's clone. What cannot be shared now could not be shared when that
// was made: the caller has said then that it may be copied.
func (l *Layer) cloneInto(ctx context.Context, aside disk.Dir) error {
	tree, err := l.Top()
	if err != nil {
		return err
	}
	defer tree.Close()
	c := &cloning{CloneOptions: CloneOptions{Context: ctx, Copy: true}, whole: cloneWhole, names: bufio.NewWriter(io.Discard)}
	return c.tree(tree, aside)
}
