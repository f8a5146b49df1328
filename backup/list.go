package backup

import (
	"context"
	"slices"
	"time"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// Listed is a generation as `backup list --json` shows it.
type Listed struct {
	Generation string    `json:"generation"`
	Timestamp  time.Time `json:"timestamp"`
	Host       string    `json:"host"`
	Bytes      int64     `json:"bytes"`
	NewBytes   int64     `json:"new_bytes"`
	Records    int       `json:"records"`
	KeptBy     []string  `json:"kept_by"` // "newest", "last", "daily", "weekly", "monthly", "pre-restore"; none: the next rotation takes it
	Provable   bool      `json:"provable"`
	unread     bool      // it has packs, and as far as is known it cannot be read what it needs of them
}

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
	for _, v := range slices.Backward(verdicts(dated, keep)) {
		l := p.listed(v.Name, there, lengths, unsound)
		l.KeptBy = append([]string{}, v.KeptBy...)
		out = append(out, l)
	}
	return out, nil
}

// listed is one generation. It is provable as far as a look can tell: all its packs are there, as
// long as they were, and its zip is, if it has one; and no proof has found one of them damaged.
func (p *Place) listed(name string, there map[string]int64, lengths map[tree.Hash]int64, unsound map[string]bool) Listed {
	zip, zipped := p.zips()[name]
	g, newest := zip, p.Manifest != nil && name == p.Manifest.Generation()
	if newest {
		g = p.Manifest.generation()
	}
	l := Listed{Generation: name, Timestamp: g.Timestamp, Host: g.Host, Bytes: g.Bytes, NewBytes: g.NewBytes, Records: g.Records,
		Provable: !unsound[name] && !zip.Damaged}
	if _, ok := there[p.archiveName(name)]; zipped && !ok {
		l.Provable = false
	}
	l.unread = !l.Provable && len(g.Packs) > 0
	for _, h := range g.Packs {
		got, ok := there[p.packName(h)]
		if size := lengths[h]; !ok || size > 0 && got != size || unsound[h.String()] {
			l.Provable = false
		}
	}
	l.unread = l.unread || !l.Provable && newest
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
