package project

import (
	"fmt"
	"path/filepath"
	"slices"

	"decree/disk"
)

// StoreMissing is the error of a project whose store is not where project.json says.
type StoreMissing struct {
	why *Error
	ID  string // of the project
}

func (e *StoreMissing) Error() string { return e.why.Error() }

func (e *StoreMissing) Unwrap() error { return e.why }

func (p *Project) storeMissing(id *identity) error {
	path := filepath.Join(storeBase{base: string(id.Store)}.abs(p.Root), id.ID)
	return &StoreMissing{&Error{Kind: Failed, Msg: path + ": this project's store is missing",
		Advice: fmt.Sprintf("bring it back there; if it is lost, 'decree backup restore --from TARGET' makes it anew from a backup; or, to do without it, remove %s: a store that remembers this root is then used again, else a new history begins",
			filepath.Join(p.Root, dirName, identityFile))}, id.ID}
}

// makeAnew makes the missing store of a project, empty, which counts as missing until a restore has filled it. project.json
// may have come with somebody else's tree: a store is made only where this user's stores are.
func (p *Project) makeAnew(w Where, asked storeBase, id *identity) (disk.Dir, error) {
	at := storeBase{base: string(id.Store)}
	usual := w.defaultBases()
	if asked.asked && !asked.config {
		usual = append(usual, asked)
	}
	if !slices.ContainsFunc(usual, func(own storeBase) bool { return sameBase(p.Disk, own.abs(p.Root), at.abs(p.Root)) }) {
		return nil, &Error{Kind: Refused, State: Unchanged, Msg: fmt.Sprintf("%s names a store in %s, which is no usual place of stores, and is missing", filepath.Join(p.Root, dirName, identityFile), at.abs(p.Root)),
			Advice: "name that directory with DECREE_STORE if it is yours; else remove that file, and repeat the restore"}
	}
	at.origin = filepath.Join(p.Root, dirName, identityFile)
	if err := p.refuseGiving(at); err != nil {
		return nil, err
	}
	base, err := makePath(p.Disk, at.abs(p.Root))
	if err != nil {
		return nil, err
	}
	defer base.Close()
	self, err := factsOf(p.Dir)
	if err != nil {
		return nil, err
	}
	fresh, err := MakeDir(base, id.ID+".new", PrivateDir)
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	if err = ReplaceJSON(fresh, memoryFile, newMemory(id.ID, p.Root, self, form{Version: storeNow, Awaits: true}), PrivateFile, true); err == nil {
		err = base.RenameNew(id.ID+".new", base, id.ID)
	}
	if err == nil {
		err = base.Sync()
	}
	if err != nil {
		return nil, err
	}
	return base.OpenDir(id.ID)
}
