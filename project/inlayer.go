package project

// In a layer the project has a store of its own, below .decree, from the first command on
// that records something there. Until then the store of the tree that the layer lies over,
// or is a clone of, is read.

// examineLayer finds the store that the layer has, nil if there is none.
func (p *Project) examineLayer() (*finding, error) {
	id, err := readIdentity(p.Decree)
	if err != nil || id == nil || id.Store != inTree {
		return nil, nil //nolint:nilerr // no decree has written that in the layer
	}
	self, err := factsOf(p.Dir)
	if err != nil {
		return nil, err
	}
	store, m, err := p.openKnown(Where{}, storeBase{}, id)
	if err != nil {
		return nil, nil //nolint:nilerr // a command has deleted it
	}
	return &finding{bond: compare(p.Disk, m, p.Root, self), base: string(id.Store), store: store, mem: m}, nil
}

// examineToWrite is examine, but in a layer no store outside of it is found.
func (p *Project) examineToWrite(w Where) (*finding, error) {
	if !w.inLayer {
		return p.examine(w)
	}
	f, err := p.examineLayer()
	if f == nil && err == nil {
		f = &finding{bond: strangers}
	}
	return f, err
}

// examineToRead is examine, but in a layer its own store comes first, and of a clone the
// store of what was cloned is taken for its own.
func (p *Project) examineToRead(w Where) (*finding, error) {
	if !w.inLayer {
		return p.examine(w)
	}
	f, err := p.examineLayer()
	if f == nil && err == nil {
		f, err = p.examine(w)
	}
	if f != nil && f.bond == copied {
		f.bond = bonded
	}
	return f, err
}

// StoreInLayer says whether the project, which lies in a layer, has a store there.
func (p *Project) StoreInLayer() bool { return p.base == inTree }
