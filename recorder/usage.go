package recorder

import (
	"cmp"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// Usage says what takes the space of a project's records. The bytes of the store are
// those of its compressed packs, and what several records need counts for the first.
type Usage struct {
	Used
	Packs    int64 // of the store; the rest are the history, the index and caches
	Layers   int64 // of isolated runs, which are not of the store's bytes
	Unneeded int64 // of the packs: about what no record needs; gc frees it
	Records  []RecordUsage
	Paths    []PathUsage // the largest
	Prune    *Pruned     // what prune would do now
}

// RecordUsage is the space of a record.
type RecordUsage struct {
	ID     string
	Record *history.Record // nil: the log of this store does not have it
	Store  int64           // bytes that it was the first to bring
	Runs   int64           // of its directory in .decree/runs
	Own    int64           // of both: what no other record needs for sure, so pruning it alone frees at least that
}

// Total is all of it.
func (u RecordUsage) Total() int64 { return u.Store + u.Runs }

// PathUsage is the space of all that was ever recorded of a path.
type PathUsage struct {
	Path     tree.Path
	Bytes    int64
	Contents int // other ones, also than those of earlier paths
}

// UsagePaths is how many of the largest paths a Usage has.
const UsagePaths = 20

// Usage reads the history once; the tree it does not look at.
func (r *Reader) Usage() (*Usage, error) {
	pruned, s, err := r.wouldPrune(PruneOptions{})
	if err != nil {
		return nil, err
	}
	layers, err := r.layersSize("")
	if err != nil {
		return nil, err
	}
	return r.usage(&Usage{Used: pruned.Used, Layers: max(0, layers), Prune: pruned}, s)
}

// Own are the bytes, by record, that no other record needs for sure: see RecordUsage.
func (r *Reader) Own() (map[string]int64, error) {
	s, err := r.survey()
	if err != nil {
		return nil, err
	}
	u, err := r.usage(&Usage{}, s)
	if err != nil {
		return nil, err
	}
	own := make(map[string]int64, len(u.Records))
	for _, rec := range u.Records {
		own[rec.ID] = rec.Own
	}
	return own, nil
}

func (r *Reader) usage(u *Usage, s survey) (*Usage, error) {
	t := &tally{u: u, at: map[string]int{}, owned: map[tree.Hash]owned{}, paths: map[tree.Path]*PathUsage{}}
	if err := t.begin(r, s); err != nil {
		return nil, err
	}
	if err := r.history.Closures(nil, history.Once(), t.part); err != nil {
		return nil, err
	}
	return t.end(), nil
}

// tally is a pass over what records need.
type tally struct {
	u      *Usage
	shares *store.Shares
	at     map[string]int // of a record in u.Records
	needed int64          // bytes that records that stay need
	owned  map[tree.Hash]owned
	paths  map[tree.Path]*PathUsage
}

// owned is a part of a record's file that no other one has named yet.
type owned struct {
	record int
	bytes  int64
}

func (t *tally) begin(r *Reader, s survey) error {
	packs, err := r.store.Stats()
	if err != nil {
		return err
	}
	t.u.Packs = packs.Bytes
	if t.shares, err = r.store.Shares(); err != nil {
		return err
	}
	for _, rec := range s.logged {
		t.u.Records[t.record(rec.ID)].Record = rec
	}
	open, _, err := r.history.ListOpen()
	if err != nil {
		return err
	}
	for _, o := range open {
		t.u.Records[t.record(o.Record.ID)].Record = o.Record
	}
	for id, n := range s.runs {
		u := &t.u.Records[t.record(id)]
		u.Runs, u.Own = n, n
	}
	return nil
}

// record is the record's place in Records.
func (t *tally) record(id string) int {
	i, known := t.at[id]
	if !known {
		i = len(t.u.Records)
		t.at[id] = i
		t.u.Records = append(t.u.Records, RecordUsage{ID: id})
	}
	return i
}

func (t *tally) part(p *history.Part) error {
	i, brought := t.record(p.Record), int64(0)
	t.shares.Take(p.Object, func(part tree.Hash, bytes int64) {
		if o, known := t.owned[part]; known && o.record != i {
			t.u.Records[o.record].Own -= o.bytes
			delete(t.owned, part)
		}
		if p.Kind == history.File && bytes > 0 {
			t.owned[part] = owned{i, bytes}
			t.u.Records[i].Own += bytes
		}
		brought += bytes
	})
	t.u.Records[i].Store += brought
	t.needed += brought
	if p.Kind == history.InTree && brought > 0 {
		t.path(tree.Path(p.Path), brought)
	}
	return p.Err
}

// manyPaths bounds the paths that are counted at a time, so that the memory does not
// grow with the tree. Where there are more, the smaller half is forgotten: a path of
// many contents that are all small may then be counted short.
const manyPaths = 1 << 14

func (t *tally) path(path tree.Path, bytes int64) {
	p := t.paths[path]
	if p == nil {
		if len(t.paths) == manyPaths {
			for _, small := range t.largest()[manyPaths/2:] {
				delete(t.paths, small.Path)
			}
		}
		path = tree.Path(strings.Clone(string(path))) // a view of a whole tree otherwise
		p = &PathUsage{Path: path}
		t.paths[path] = p
	}
	p.Bytes += bytes
	p.Contents++
}

// largest are the paths, the largest first.
func (t *tally) largest() []PathUsage {
	list := make([]PathUsage, 0, len(t.paths))
	for _, p := range t.paths {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b PathUsage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Path.Compare(b.Path))
	})
	return list
}

func (t *tally) end() *Usage {
	t.u.Unneeded = max(0, t.u.Packs-t.needed)
	slices.SortFunc(t.u.Records, func(a, b RecordUsage) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(b.ID, a.ID))
	})
	t.u.Paths = t.largest()
	t.u.Paths = t.u.Paths[:min(len(t.u.Paths), UsagePaths)]
	return t.u
}

// OrphanUsage is a store whose root is gone, and its size in bytes.
type OrphanUsage struct {
	project.Orphan
	Bytes int64
}

// Orphans are the stores beside this one whose roots are gone, the largest first.
func (r *Reader) Orphans() (list []OrphanUsage, err error) {
	err = r.project.Orphans(func(o project.Orphan, store disk.Dir) error {
		m := &measure{}
		n, err := m.below(store)
		r.tellBarred(m)
		list = append(list, OrphanUsage{o, n})
		return err
	})
	slices.SortStableFunc(list, func(a, b OrphanUsage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list, err
}
