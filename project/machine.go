package project

import (
	"cmp"
	"path/filepath"
)

// Machine is the id of this machine, which stands as origin in the records that are made
// on it, so that those of two machines can be told apart. The stores of a base have the
// same. The lock is held where it is asked for: a store that has none gets that of the
// others, or the first one a new one.
func (p *Project) Machine() (string, error) {
	if p.form.Machine == "" {
		if err := p.Reread(); err != nil { // another process may have written it
			return "", err
		}
	}
	if p.form.Machine != "" {
		return p.form.Machine, nil
	}
	others, err := p.machineOfOthers()
	if err != nil {
		return "", err
	}
	p.form.Machine = cmp.Or(others, newID())
	if err := p.remember(); err != nil {
		p.form.Machine = ""
		return "", err
	}
	return p.form.Machine, nil
}

// machineOfOthers is the id that a store beside this one has, "" for none. What cannot be
// looked at is passed over.
func (p *Project) machineOfOthers() (string, error) {
	base, err := p.Disk.OpenRoot(filepath.Dir(p.StorePath))
	if err != nil {
		return "", err
	}
	defer base.Close()
	list, err := base.List()
	for _, e := range list {
		if !validID(e.Name) || e.Name == p.ID {
			continue
		}
		store, err := base.OpenDir(e.Name)
		if err != nil {
			continue
		}
		m, err := readMemory(store)
		store.Close()
		if err == nil && validID(m.Machine) {
			return m.Machine, nil
		}
	}
	return "", err
}
