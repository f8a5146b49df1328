package recorder

import (
	"fmt"

	"decree/disk"
	"decree/project"
)

// standing is what was in the store when a command was started. A command may
// delete the store too: then nothing more can be recorded, and that must be said
// before anything is built on contents that only open files still hold.
type standing struct {
	memory disk.Info            // store.json
	packs  map[string]disk.Info // by name
}

const (
	storeMemory = "store.json"
	storePacks  = "packs"
)

// stand looks at the store as it is in the directory dir.
func stand(dir disk.Dir) (s standing, err error) {
	if s.memory, err = dir.Stat(storeMemory); err != nil {
		return s, err
	}
	packs, err := dir.OpenDir(storePacks)
	if err != nil {
		return s, err
	}
	defer packs.Close()
	list, err := packs.List()
	if err != nil {
		return s, err
	}
	s.packs = make(map[string]disk.Info, len(list))
	for _, e := range list {
		if s.packs[e.Name], err = packs.Stat(e.Name); err != nil {
			return s, err
		}
	}
	return s, nil
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
	held, err := p.Store.Self()
	if err != nil {
		return err
	}
	self, err := dir.Self()
	if err != nil {
		return err
	}
	if !self.SameFile(held) {
		return storeGone(p, "was replaced by another directory", nil)
	}
	return nil
}

// stillStands says what the command has done to the store, nil if nothing. Packs may go
// while a decree beside the run frees space; then catchUp asks for the contents.
func (u *run) stillStands() error {
	p := u.r.project
	if err := u.r.storeThere(); err != nil {
		return err
	}
	now, err := stand(p.Store)
	if isMissing(err) {
		return storeGone(p, "was emptied", err)
	}
	if err != nil {
		return err
	}
	if collected, err := p.Collected(u.rec.ID); err != nil || collected {
		return err
	}
	if lost := lostPacks(u.stands.packs, now.packs); lost > 0 {
		return storeGone(p, fmt.Sprintf("has lost %d of its %d packs", lost, len(u.stands.packs)), nil)
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
