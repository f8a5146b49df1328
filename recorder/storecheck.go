package recorder

import (
	"fmt"

	"decree/disk"
	"decree/project"
)

// packsOf are the packs of the store in the directory dir, by their names. It is an error
// where store.json is not there.
func packsOf(dir disk.Dir) (map[string]disk.Info, error) {
	if _, err := dir.Stat("store.json"); err != nil {
		return nil, err
	}
	packs, err := dir.OpenDir("packs")
	if err != nil {
		return nil, err
	}
	defer packs.Close()
	list, err := packs.List()
	if err != nil {
		return nil, err
	}
	infos := make(map[string]disk.Info, len(list))
	for _, e := range list {
		if infos[e.Name], err = packs.Stat(e.Name); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// storeThere says what has become of the store's directory, nil if nothing: it is
// looked at by its path, where the next command will look for it.
func (r *Recorder) storeThere() error {
	p := r.project
	dir, err := r.opt.Disk.OpenRoot(p.StorePath)
	if isMissing(err) {
		return storeGone(p, "was deleted", nil)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	opened, err := p.Store.Self()
	if err != nil {
		return err
	}
	self, err := dir.Self()
	if err != nil {
		return err
	}
	if !self.SameFile(opened) {
		return storeGone(p, "was replaced by another directory", nil)
	}
	return nil
}

// checkStore says what the command has done to the store, nil if nothing: a command may
// delete it too. Then nothing more can be recorded, and that must be said before anything is
// built on contents that only open files still have. Packs may go
// while a decree beside the run frees space; then catchUp asks for the contents.
func (u *run) checkStore() error {
	p := u.r.project
	if err := u.r.storeThere(); err != nil {
		return err
	}
	now, err := packsOf(p.Store)
	if isMissing(err) {
		return storeGone(p, "was emptied", err)
	}
	if err != nil {
		return err
	}
	if collected, err := p.Collected(u.rec.ID); err != nil || collected {
		return err
	}
	if lost := lostPacks(u.packs, now); lost > 0 {
		return storeGone(p, fmt.Sprintf("has lost %d of its %d packs", lost, len(u.packs)), nil)
	}
	return nil
}

// lostPacks is how many of the packs that were there are not any more, or not whole.
func lostPacks(were, are map[string]disk.Info) (lost int) {
	for name, pack := range were {
		if info, ok := are[name]; !ok || !info.SameFile(pack) || info.Size < pack.Size {
			lost++
		}
	}
	return lost
}

func storeGone(p *project.Project, what string, err error) error {
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("the store %s %s since the command was started", p.StorePath, what), Err: err,
		Advice: "restore it from a copy, then 'decree recover' records the run; if there is none, what the tree held before is listed in manifest.json of the run's directory"}
}
