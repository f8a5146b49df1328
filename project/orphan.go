package project

import (
	"errors"
	"io/fs"
	"path/filepath"

	"decree/disk"
)

// Orphan is a store whose root is not where it was: it was deleted, or another
// directory stands in its place. Of a root that was moved, or whose disk is not
// mounted, the store says the same until that tree's next record.
type Orphan struct {
	Path string
	Root string // where it was
}

// Orphans calls found for each orphan among the stores beside this project's own, with
// its directory, in the order of their paths. What cannot be looked at is passed over.
func (p *Project) Orphans(found func(o Orphan, store disk.Dir) error) error {
	base := filepath.Dir(p.StorePath)
	b, err := p.Disk.OpenRoot(base)
	if err != nil {
		return unlessAbsent(err)
	}
	defer b.Close()
	list, err := b.List()
	if err != nil {
		return unlessAbsent(err)
	}
	for _, e := range list {
		if !validID(e.Name) || e.Name == p.ID {
			continue
		}
		if err := p.orphan(b, e.Name, found); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) orphan(base disk.Dir, id string, found func(o Orphan, store disk.Dir) error) error {
	store, err := base.OpenDir(id)
	if err != nil {
		return unlessAbsent(err)
	}
	defer store.Close()
	m, err := readMemory(store)
	if err != nil || m.ID != id || !p.rootIsGone(m) {
		return nil //nolint:nilerr // not a store that this decree knows
	}
	return found(Orphan{Path: store.Path(), Root: string(m.Root)}, store)
}

// rootIsGone says whether the root that m remembers is known not to be there.
func (p *Project) rootIsGone(m *memory) bool {
	root, err := p.Disk.OpenRoot(string(m.Root))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer root.Close()
	self, err := factsOf(root)
	return err == nil && !claims(root, m.ID) && !m.remembers(string(m.Root), self)
}
