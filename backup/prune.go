package backup

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// Prune is what a rotation has removed.
type Prune struct {
	Removed []string `json:"removed"` // generations
	Packs   int      `json:"packs"`   // that were removed
	Freed   int64    `json:"freed"`   // bytes
	// Held is why what no rule keeps may not be removed now, and was not.
	Held string `json:"held,omitempty"`
	// Unread is a generation that cannot be read, because of which packs stay that no generation names.
	Unread string `json:"unread,omitempty"`
}

// Prune removes the generations that no rule keeps, and packs that were condemned a day ago. dry only
// says what would go.
func (o Options) Prune(ctx context.Context, keep project.BackupRetention, dry bool) (*Prune, error) {
	place, unlock, err := o.openStanding(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := &Prune{Removed: []string{}}
	if place.Manifest == nil {
		return out, nil
	}
	if err := Unreadable(ctx, o.Target, place.Name); err != nil {
		return nil, err
	}
	list, err := place.List(ctx, keep)
	if err != nil {
		return nil, err
	}
	unread := ""
	for _, l := range list {
		if len(l.KeptBy) == 0 {
			out.Removed = append(out.Removed, l.Generation)
		} else if l.unread {
			unread = l.Generation
		}
	}
	p := o.Recorder.Project()
	held := markerFile + " does not say that " + manifestFile + " is what was written there; the next backup mends that"
	if place.marked() {
		held = place.standstill(recall(p.Store, o.Target.String()).Proof, p.Config.Backup.Warn, o.Now())
	}
	if older := place.Older(&p.Site); older != "" {
		held = older
	}
	if place.Damage != "" {
		held = place.Damage
	}
	if len(out.Removed) > 0 {
		out.Held = held
	}
	if dry {
		return out, nil
	}
	if held != "" {
		out.Removed = []string{}
		return out, nil
	}
	if err := place.prune(ctx, o, out, unread); err != nil {
		return out, err
	}
	return out, Remember(p.Store, o.Target.String(), func(r *Remembered) { r.Manifest, r.Generations = place.sum, place.Generations() })
}

// prune commits first that the generations are gone, since when no generation names a pack, and which packs go now, of which a backup
// elsewhere takes nothing from then on; then it deletes. While an archive cannot be read, the one called unread, no pack goes.
func (p *Place) prune(ctx context.Context, o Options, out *Prune, unread string) error {
	known := p.packs()
	if err := cmp.Or(p.strays(ctx, known), p.removeUnlisted(ctx, out)); err != nil {
		return err
	}
	m := *p.Manifest
	m.Others, m.Condemned = map[string]Generation{}, map[tree.Hash]string{}
	maps.Copy(m.Others, p.Manifest.Others)
	for _, name := range out.Removed {
		delete(m.Others, name)
	}
	maps.Copy(m.Condemned, p.Manifest.Condemned)
	m.Going = slices.Clone(p.Manifest.Going)
	m.condemn(known, o.Now())
	var going []tree.Hash
	for h, since := range m.Condemned {
		// It was listed as condemned already by the commit before this one, a day ago.
		if before := p.Manifest.Condemned[h]; before == since && olderThanADay(since, o) {
			going = append(going, h)
		}
	}
	if len(going) > 0 && unread != "" {
		going, out.Unread = nil, unread
	}
	if len(out.Removed) == 0 && len(going) == 0 && len(m.Condemned) == len(p.Manifest.Condemned) {
		return nil
	}
	m.Going = slices.Compact(slices.SortedFunc(slices.Values(append(m.Going, going...)), compareHash))
	if err := p.commit(ctx, &m); err != nil {
		return err
	}
	for _, name := range out.Removed {
		if err := p.remove(ctx, out, p.archiveName(name)); err != nil {
			return err
		}
	}
	return p.removePacks(ctx, out, going, m)
}

// removePacks deletes packs and then says that they are gone.
func (p *Place) removePacks(ctx context.Context, out *Prune, going []tree.Hash, m Manifest) error {
	if len(going) == 0 {
		return nil
	}
	left := maps.Clone(m.Condemned)
	for _, h := range going {
		if err := p.remove(ctx, out, p.packName(h)); err != nil {
			return err
		}
		if err := p.remove(ctx, out, p.indexName(h)); err != nil {
			return err
		}
		delete(left, h)
		out.Packs++
	}
	m.Condemned = left
	m.Going = slices.DeleteFunc(slices.Clone(m.Going), func(h tree.Hash) bool { return left[h] == "" })
	return p.commit(ctx, &m)
}

func (p *Place) remove(ctx context.Context, out *Prune, name string) error {
	size, err := sizeOf(ctx, p.Target, name)
	if isMissing(err) {
		return nil
	}
	out.Freed += size
	return p.Target.Delete(ctx, name)
}

// strays adds the packs that no manifest has ever named: those of a backup that died, or was refused.
func (p *Place) strays(ctx context.Context, known map[tree.Hash]int64) error {
	return p.Target.List(ctx, p.At(packsDir)+"/", func(o target.Object) error {
		name, ok := strings.CutSuffix(path.Base(o.Name), ".pack")
		if h, err := tree.ParseHash(name); ok && err == nil {
			if _, named := known[h]; !named {
				known[h] = o.Size
			}
		}
		return nil
	})
}

// removeUnlisted removes the zips of the project that no manifest.json can list any more: those of backups that died, or were refused, and
// of prunes that died. A backup lists none that is older than the newest generation which it has read.
func (p *Place) removeUnlisted(ctx context.Context, out *Prune) error {
	there, err := p.archives(ctx)
	if err != nil {
		return err
	}
	for name := range there {
		at, _ := timeOf(name)
		if _, listed := p.Manifest.Others[name]; listed || IsPreRestore(name) || p.Manifest.Timestamp.Sub(at) < day {
			continue
		}
		m, err := p.manifestInZip(ctx, name)
		switch {
		case err == nil && m.Project == p.Manifest.Project:
			err = p.remove(ctx, out, p.archiveName(name))
		case err == nil || unusable(err): // it is nobody's, or somebody else's
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func olderThanADay(since string, o Options) bool {
	t, err := time.Parse(time.RFC3339, since)
	return err == nil && o.Now().Sub(t) >= day
}

// packs are all that manifest.json names, with their lengths where it says them.
func (p *Place) packs() map[tree.Hash]int64 {
	out := map[tree.Hash]int64{}
	if p.Manifest == nil {
		return out
	}
	for h := range p.Manifest.Condemned {
		out[h] = 0
	}
	for _, g := range p.Manifest.Others {
		for _, h := range g.Packs {
			out[h] = 0
		}
	}
	for h, size := range p.Manifest.Lengths {
		if _, named := out[h]; named {
			out[h] = size
		}
	}
	maps.Copy(out, p.Manifest.Packs)
	return out
}

// condemn writes down since when no generation names a pack, and how long those are that other generations need.
func (m *Manifest) condemn(known map[tree.Hash]int64, now time.Time) {
	named := m.named()
	lengths := maps.Clone(known)
	maps.DeleteFunc(lengths, func(h tree.Hash, _ int64) bool { return !named[h] })
	m.Lengths = nil
	m.keepLengths(lengths)
	for h := range known {
		if named[h] {
			delete(m.Condemned, h)
		} else if m.Condemned[h] == "" {
			m.Condemned[h] = now.UTC().Format(time.RFC3339)
		}
	}
	m.Going = slices.DeleteFunc(m.Going, func(h tree.Hash) bool { return m.Condemned[h] == "" })
}

// named are the packs that a generation names.
func (m *Manifest) named() map[tree.Hash]bool {
	out := setOf(slices.Collect(maps.Keys(m.Packs)))
	for _, g := range m.Others {
		for _, h := range g.Packs {
			out[h] = true
		}
	}
	return out
}

// keepLengths writes down how long packs are, where that is known and m does not say it yet.
func (m *Manifest) keepLengths(packs map[tree.Hash]int64) {
	out := map[tree.Hash]int64{} // a new one: m may be a copy of a manifest that stays
	maps.Copy(out, packs)
	maps.Copy(out, m.Lengths)
	maps.DeleteFunc(out, func(h tree.Hash, size int64) bool { return size <= 0 || m.Packs[h] > 0 })
	m.Lengths = out
}
