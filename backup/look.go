package backup

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// List is what stands there, newest first, with what the rotation would keep.
func (p *Place) List(ctx context.Context, keep project.BackupRetention) ([]Listed, error) {
	out := []Listed{}
	if p.Manifest == nil && len(p.replaced) == 0 {
		return out, nil
	}
	there := map[string]int64{}
	err := p.Target.List(ctx, p.Name+"/", func(o target.Object) error {
		there[o.Name] = o.Size
		return nil
	})
	if err != nil {
		return nil, err
	}
	var dated []Dated
	for _, name := range p.Generations() {
		at, _ := TimeOf(name)
		dated = append(dated, Dated{name, at})
	}
	proofs, err := p.Proofs(ctx)
	if err != nil {
		return nil, err
	}
	unsound := map[string]bool{}
	if n := len(proofs); n > 0 {
		unsound = setOf(proofs[n-1].Damaged)
	}
	lengths := p.packs()
	for _, v := range Rotate(dated, keep) {
		l := p.listed(v.Name, there, lengths, unsound)
		l.KeptBy = append([]string{}, v.KeptBy...)
		out = append([]Listed{l}, out...)
	}
	return out, nil
}

// listed is one generation. It is provable as far as a look can tell: all its packs are there, as
// long as they were, and its zip is, if it has one; and no proof has found one of them damaged.
func (p *Place) listed(name string, there map[string]int64, lengths map[tree.Hash]int64, unsound map[string]bool) Listed {
	l := Listed{Generation: name, Provable: !unsound[name]}
	packs := map[tree.Hash]int64{}
	g, zipped := p.zips()[name]
	if p.Manifest != nil && name == p.Manifest.Generation() {
		packs = p.Manifest.Packs
		c := p.Manifest.Counts
		l.Timestamp, l.Host, l.Bytes, l.NewBytes, l.Records = p.Manifest.Timestamp, p.Manifest.Host, c.Bytes, c.NewBytes, c.Records
	} else {
		l.Timestamp, l.Host, l.Bytes, l.NewBytes, l.Records = g.Timestamp, g.Host, g.Bytes, g.NewBytes, g.Records
		for _, h := range g.Packs {
			packs[h] = lengths[h]
		}
	}
	if _, ok := there[p.archiveName(name)]; zipped && !ok || g.Damaged {
		l.Provable = false
	}
	l.unread = !l.Provable && len(packs) > 0
	for h, size := range packs {
		got, ok := there[p.packName(h)]
		if !ok || size > 0 && got != size || unsound[h.String()] {
			l.Provable = false
		}
	}
	l.unread = l.unread || !l.Provable && p.Manifest != nil && name == p.Manifest.Generation()
	return l
}

func (p *Place) archiveName(generation string) string {
	return p.At(archivesDir, generation+".zip")
}

// SameDisk says whether a target is on the disk that the project's store is on: it goes with it.
func SameDisk(t target.Target, p *project.Site) bool {
	placed, ok := t.(target.Placed)
	if !ok {
		return false
	}
	_, dev, _, err := placed.Place()
	self, serr := p.Store.Self()
	return err == nil && serr == nil && dev == self.Dev
}

// InTree says whether a target is a directory below the root that .decree has: what deletes what
// no record has, such as 'git clean -xfd', deletes it too.
func InTree(t target.Target, root string) bool {
	placed, ok := t.(target.Placed)
	if !ok {
		return false
	}
	at, _, _, err := placed.Place()
	return err == nil && strings.HasPrefix(at+"/", path.Clean(root)+"/")
}

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

// Rotate removes the generations that no rule keeps, and packs that were condemned a day ago. dry only
// says what would go.
func (o Options) Rotate(ctx context.Context, keep project.BackupRetention, dry bool) (*Prune, error) {
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
	var proof *Proof
	if known, ok := ReadMemory(p.Store).Targets[o.Target.String()]; ok {
		proof = known.Proof
	}
	held := MarkerFile + " does not say that " + ManifestFile + " is what was written there; the next backup mends that"
	if place.marked() {
		held = place.Standstill(proof, p.Config.Backup.Warn, o.Now())
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
	left := map[tree.Hash]string{}
	maps.Copy(left, m.Condemned)
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
		at, _ := TimeOf(name)
		if _, listed := p.Manifest.Others[name]; listed || IsPreRestore(name) || p.Manifest.Timestamp.Sub(at) < day {
			continue
		}
		m, err := p.inZip(ctx, name)
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
	t, err := parseTime(since)
	return err == nil && o.Now().Sub(t) >= day
}
