package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// tidyLayers removes the layers that belong to no draft and to no run: what a death has left
// before a record was opened, or after a draft was published or discarded. Of the drafts that
// wait it leaves as many layers, and as long, as the config says. What may be the only copy of
// some work, since its record cannot be read, is moved aside.
func (c *recovery) tidyLayers() error {
	r, x := c.r, c.x
	if err := r.history.TidyProbes(); err != nil {
		return err
	}
	var kept map[string]bool
	return r.eachLayer(func(place *layer.Place, name string) (err error) {
		if kept == nil {
			if kept, err = r.keptLayers(); err != nil {
				return err
			}
		}
		if x.activity.live(name) || kept[name] {
			return nil
		}
		if _, err := r.history.Opened(name); !isMissing(err) {
			return nil
		}
		rec, err := r.history.Get(name)
		switch {
		case diskTrouble(err):
			return err
		case err != nil && project.KindOf(err) != project.NotFound:
			return nil // what cannot be read may be a draft that waits
		case err == nil && rec.Draft.Waits() && inUse(place, name):
			return nil
		}
		if unknown, err := r.unknownWork(name, rec); err != nil {
			return err
		} else if unknown {
			return c.unknownAside(place, name)
		}
		if only, err := r.onlyCopy(place, name, rec); err != nil {
			return err
		} else if only {
			return c.layerAside(place, name, "the layer of isolated run "+name, "no record tells of that run, as after the restore of a backup from before it, "+
				"and nothing else may have what it wrote; where its draft comes back, the layer is its own again once it is moved to "+tree.Quote(place.Dir.Path()+"/"+name))
		}
		only, err := r.mayEnd()
		if err != nil {
			return err
		}
		_, err = runner.KillMounted(place.MountName(name), only, 0)
		if left, err := processesOfOthers(err); len(left) > 0 || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err // another user's process sees the layer: it stays
		}
		r.removeLayer(place, name)
		return nil
	})
}

// errWork ends a walk that has found work.
var errWork = errors.New("the run has changed something")

// onlyCopy says whether a run has worked in a layer of which no record tells, and none was removed: the history that had
// one was replaced. The layer of a run that has died before its record was opened has nothing in it.
func (r *Recorder) onlyCopy(place *layer.Place, name string, rec *history.Record) (bool, error) {
	if rec != nil {
		return false, nil
	}
	if given, err := r.history.Given(name); given || err != nil {
		return false, err
	}
	l, err := place.Open(name)
	if errors.Is(err, layer.ErrUnfinished) || isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer l.Close()
	o, err := r.layerOptions()
	if err != nil {
		return false, err
	}
	t, err := l.Changes(context.Background(), o, func(c *layer.Change) error {
		if c.Equal {
			return nil
		}
		return errWork
	})
	return err != nil || t.Git+t.Ignored+t.Decree+len(t.Special)+len(t.Unread)+len(t.Large) > 0, nil //nolint:nilerr // what cannot be read may be work
}

// unknownWork says whether a layer that nothing needs may be the only copy of a run's work: the open record of that was
// damaged, or its line, and at most run.json tells of it. rec is what tells of the run, nil for nothing.
func (r *Recorder) unknownWork(name string, rec *history.Record) (bool, error) {
	if rec == nil {
		return r.mayHaveLost(name)
	}
	if rec.Status != history.StatusOpen && !rec.Draft.Waits() {
		return false, nil
	}
	recorded, err := r.history.Recorded(name)
	return !recorded, err
}

// mayHaveLost says whether a run of which nothing tells may have had a record: its open record was set aside, or the log has
// what cannot be read, and does not say that the record was removed.
func (r *Recorder) mayHaveLost(name string) (bool, error) {
	if recorded, err := r.history.Recorded(name); recorded || err != nil {
		return false, err
	}
	if aside, err := r.history.WasSetAside(name); aside || err != nil {
		return aside, err
	}
	if given, err := r.history.Given(name); given || err != nil {
		return false, err
	}
	unread, err := r.history.Unread()
	return len(unread) > 0, err
}

// untoldLayers moves the layers aside that belong to one of these records, whose lines go aside, or to none at all.
func (c *recovery) untoldLayers(records []string) error {
	return c.r.eachLayer(func(place *layer.Place, name string) error {
		if c.x.activity.live(name) {
			return nil
		}
		if _, err := c.r.history.Opened(name); !isMissing(err) {
			return nil
		}
		is, err := slices.Contains(records, name), error(nil)
		if !is {
			is, err = c.r.mayHaveLost(name)
		}
		if err != nil || !is {
			return err
		}
		return c.unknownAside(place, name)
	})
}

// unknownAside is layerAside for what may be the only copy of a run's work.
func (c *recovery) unknownAside(place *layer.Place, name string) error {
	return c.layerAside(place, name, "the layer of isolated run "+name, "the store cannot read its record, so that nothing else may have what it changed")
}

// removeLayer removes the layer of a run that needs it no more. Where that fails it stands in nobody's way:
// the next writing command tries again. In a clone the command may have had others make directories, as a
// container's root does.
func (r *Recorder) removeLayer(place *layer.Place, name string) {
	err := place.Remove(name)
	if errors.Is(err, fs.ErrPermission) {
		at := place.Dir.Path() + "/" + name
		r.note("the layer of run %s is not needed any more, and stays: %v; %s", name, err,
			cmp.Or(project.SealedAdvice(err), fmt.Sprintf("it may be another user's: 'sudo rm -rf %s' removes it", tree.ShellWord(at))))
	} else if err != nil {
		r.note("the layer of run %s is not removed yet: %v", name, err)
	}
}

// leaveAside removes what a judge wrote beside the layer. What stays goes with the layer.
func (r *Recorder) leaveAside(l *layer.Layer) {
	if err := l.LeaveAside(); err != nil {
		r.note("what the judge wrote is not removed yet: %v", err)
	}
}

// damagedLayers moves layers that somebody has changed from outside, or the command itself,
// out of the way. What was recorded of their drafts is in the store, as of any.
func (c *recovery) damagedLayers() error {
	return c.r.eachLayer(func(place *layer.Place, name string) error {
		if c.x.activity.live(name) {
			return nil
		}
		l, err := place.Open(name)
		if err == nil {
			l.Close()
		}
		if diskTrouble(err) {
			return err
		}
		if !errors.Is(err, layer.ErrDamaged) {
			return nil
		}
		return c.layerAside(place, name, fmt.Sprintf("a layer cannot be used (%v) and", err), "what is recorded of its run stays, what is not, as commits in its .git, can be copied from there")
	})
}

// layerAside moves a layer out of the way, where nothing removes it, and says so.
func (c *recovery) layerAside(place *layer.Place, name, what, why string) error {
	if err := c.endMounted(place.MountName(name), "what still worked in the layer "+name); err != nil {
		return err
	}
	to, err := c.r.project.StoreAside(layersDir + "/" + name)
	if err != nil {
		return err
	}
	c.add(nil, "%s is now at %s; %s", what, tree.Quote(to), why)
	return nil
}

// diskTrouble says whether something could not be looked for, unlike what is not there or is
// damaged.
func diskTrouble(err error) bool {
	return errors.As(err, new(*fs.PathError)) && !isMissing(err) && project.KindOf(err) != project.NotFound
}

// eachLayer calls do for the name of each layer.
func (r *Recorder) eachLayer(do func(place *layer.Place, name string) error) error {
	dir, err := r.project.Store.OpenDir(layersDir)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	dir.Close()
	place, err := r.layers()
	if err != nil {
		return err
	}
	defer closePlace(place)
	names, err := place.Names()
	for _, name := range names {
		if err == nil {
			err = do(place, name)
		}
	}
	return err
}

// keptLayers are the names of the layers that stay for their drafts: those of the newest that
// wait, while they are young enough, and those that alone have a part of the work: a .git
// that was changed, or what could not be recorded.
func (r *Recorder) keptLayers() (map[string]bool, error) {
	drafts, err := r.WaitingDrafts()
	if err != nil {
		return nil, err
	}
	config, now := r.project.Config.Isolated, r.opt.Clock()
	kept := map[string]bool{}
	for i, rec := range drafts {
		if rec.Draft.Git > 0 || len(rec.Unrecorded) > 0 || i < config.Keep && max(0, now.Sub(rec.Ended)) < config.MaxAge {
			kept[rec.ID] = true
		}
	}
	return kept, nil
}

// inUse says whether somebody works in the layer, or may do so, or whether what one did who was
// let in is nowhere else.
func inUse(place *layer.Place, name string) bool {
	l, err := place.Open(name)
	if err != nil {
		return !isMissing(err) && !errors.Is(err, layer.ErrUnfinished)
	}
	defer l.Close()
	if unrenewed(l) {
		return true
	}
	unlock, err := l.Lock()
	return err != nil || unlock() != nil
}

// unrenewed says whether a command has worked in a draft's layer, nil being none, that is not
// recorded, or may have.
func unrenewed(l *layer.Layer) bool {
	if l == nil {
		return false
	}
	is, err := l.Entered()
	return is || err != nil
}

// unrenewed is that of the layer of a draft, which it may have no more.
func (r *Recorder) unrenewed(draft *history.Record) bool {
	l, free, err := r.holdLayer(draft)
	if err == nil {
		defer free()
	}
	return err != nil || unrenewed(l)
}
