package backup

import (
	"context"

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
	var dated []datedGeneration
	for _, name := range p.Generations() {
		at, _ := timeOf(name)
		dated = append(dated, datedGeneration{name, at})
	}
	proofs, err := p.proofs(ctx)
	if err != nil {
		return nil, err
	}
	unsound := map[string]bool{}
	if n := len(proofs); n > 0 {
		unsound = setOf(proofs[n-1].Damaged)
	}
	lengths := p.packs()
	for _, v := range verdicts(dated, keep) {
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

// Newest is the newest generation of a list, without what restores have replaced; nil where there is none.
func Newest(list []Listed) *Listed {
	for i, l := range list {
		if !IsPreRestore(l.Generation) {
			return &list[i]
		}
	}
	return nil
}
