package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// What a sample has at least, if the generation has so much: records, and of each of their trees so many
// files, or so many bytes.
const (
	sampleRecords = 3
	sampleFiles   = 20
	sampleBytes   = 10 << 20
)

// drill is a restore to scratch that is compared by hash.
type drill struct {
	o       Options
	place   *Place
	m       *Manifest
	c       *contents
	scratch disk.Dir
	proof   Proof
	lacks   map[tree.Hash]bool // contents without which the generation was made
	seen    map[tree.Hash]bool // contents that were restored, or could not be
}

// Drill restores a sample of the newest generation to scratch, or all of it, and compares each file with
// its hash. The sample goes on where the one before ended; after a proof that failed it is the whole.
// What it finds is a line of proofs.jsonl and of the audit, and the store remembers it. A proof that fails is no
// error: its OK is false. An error is that there was nothing to prove, or that the target could not be read.
func Drill(ctx context.Context, o Options, whole bool) (*Proof, error) {
	place, unlock, err := o.openStanding(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if place.Manifest == nil {
		return nil, notFound("'decree backup' makes the first", "%s has no backup of this project, so there is nothing to prove", o.Target)
	}
	if err := Unreadable(ctx, o.Target, place.Name); err != nil {
		return nil, err
	}
	d := &drill{o: o, place: place, m: place.Manifest, lacks: setOf(place.Manifest.Missing, place.Manifest.Forgotten), seen: map[tree.Hash]bool{}}
	newest, err := o.newestProof(ctx, place)
	if err != nil {
		return nil, err
	}
	began, from := o.Now(), ""
	if newest != nil {
		from = newest.Next
		whole = whole || !newest.OK
	}
	d.proof = Proof{At: began.UTC(), Generation: d.m.Generation(), Host: o.Host, Whole: whole}
	if err := d.run(ctx, from); err != nil {
		return nil, err
	}
	if newest != nil {
		d.carry(ctx, newest.Damaged)
	}
	d.proof.Duration = o.Now().Sub(began).Milliseconds()
	d.proof.OK = len(d.proof.Problems) == 0
	return &d.proof, d.note(ctx)
}

// run restores to scratch.
func (d *drill) run(ctx context.Context, from string) (err error) {
	scratch, remove, err := newScratch(d.o.Recorder.Project().Store)
	if err != nil {
		return err
	}
	d.scratch = scratch
	defer func() { err = cmp.Or(err, remove()) }()
	d.stale()
	if err = d.checkCurrent(ctx); err != nil {
		return err
	}
	if d.proof.Whole {
		return d.all(ctx)
	}
	if err = d.findContents(ctx); err != nil {
		return err
	}
	return d.sample(ctx, from)
}

// findContents finds out where the contents lie.
func (d *drill) findContents(ctx context.Context) (err error) {
	d.c, err = d.place.packContents(ctx, d.m.Packs, new(store.Numbers), d.damagedPack)
	return err
}

// stale sees that what stands there is what was acknowledged last, or newer.
func (d *drill) stale() {
	switch older := d.place.Older(&d.o.Recorder.Project().Site); {
	case d.place.Damage != "":
		d.problem("%s", d.place.Damage)
	case older != "":
		d.problem("%s", older)
	case !d.place.agreed:
		d.problem("%s is not the one that was written there", manifestFile)
	}
}

func (d *drill) problem(format string, args ...any) {
	d.proof.Problems = append(d.proof.Problems, fmt.Sprintf(format, args...))
}

// damagedPack notes a pack that is to be sent again.
func (d *drill) damagedPack(pack tree.Hash, err error) {
	name := pack.String()
	if !slices.Contains(d.proof.Damaged, name) {
		d.proof.Damaged = append(d.proof.Damaged, name)
		d.problem("%v", err)
	}
}

// sample restores parts of some records' trees, and what is to be read of these records, beginning with
// the record called from, or the first that comes after it.
func (d *drill) sample(ctx context.Context, from string) error {
	names := sortedFiles(d.m)
	ids := recordIDs(names)
	at, _ := slices.BinarySearch(ids, from)
	for i := range min(sampleRecords, len(ids)) {
		id := ids[(at+i)%len(ids)]
		d.proof.Next = ids[(at+i+1)%len(ids)]
		if err := d.record(ctx, id, names); err != nil {
			return err
		}
	}
	if err := d.tree(ctx, d.m.Tree); err != nil {
		return err
	}
	// What belongs to no record is config, messages, routines, and what plugins have written.
	least := d.proof.Of + sampleFiles
	start := seed(d.proof.Generation, "") % max(1, len(names))
	for i := range names {
		name := names[(start+i)%len(names)]
		if d.proof.Of >= least || d.proof.Bytes > 2*sampleBytes {
			break
		}
		if !strings.HasPrefix(string(name), recordsPart) {
			if err := d.file(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordIDs are the records that have files among names, in order.
func recordIDs(names []FileName) (ids []string) {
	for _, name := range names {
		rest, ok := strings.CutPrefix(string(name), recordsPart)
		id, _, below := strings.Cut(rest, "/")
		if ok && below && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// record restores the files of a record, and a part of its trees.
func (d *drill) record(ctx context.Context, id string, names []FileName) error {
	prefix := FileName(recordsPart + id + "/")
	at, _ := slices.BinarySearch(names, prefix)
	for ; at < len(names) && strings.HasPrefix(string(names[at]), string(prefix)); at++ {
		if err := d.file(ctx, names[at]); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if d.c.Write(ctx, &b, d.m.Files[prefix+"run.json"].SHA256) != nil {
		return ctx.Err() // that it cannot be read was noted
	}
	rec, err := history.ParseRecord(b.Bytes())
	if err != nil {
		d.problem("%srun.json: %v", prefix, err)
		return nil
	}
	for _, object := range []tree.Hash{rec.Before, rec.After} {
		if err := d.tree(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

var errEnough = errors.New("enough for a sample")

// tree restores files of a tree: first those of some directories, which the generation's name chooses, then of
// others, until they are enough. What the store had lost when the backup was made is no part of it.
func (d *drill) tree(ctx context.Context, root tree.Hash) error {
	if root.IsZero() {
		return nil
	}
	files, size := d.proof.Of+sampleFiles, d.proof.Bytes+sampleBytes
	for _, some := range []bool{true, false} {
		r := tree.Reader{From: objects{ctx, d.c}, Skip: func(e *tree.DamagedError) bool { return d.lacks[e.Hash] }}
		err := r.Walk(root, func(dir []byte, _ tree.Hash) bool {
			return len(dir) == 0 || !some || seed(d.proof.Generation, string(dir))%2 == 0
		}, func(path []byte, n *tree.Node) error {
			if n.Type != tree.Regular || some && seed(d.proof.Generation, string(path))%2 == 0 {
				return nil
			}
			if err := d.content(ctx, tree.Quote(string(path)), n.SHA256, n.Size); err != nil {
				return err
			}
			if d.proof.Of >= files || d.proof.Bytes >= size {
				return errEnough
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil && !isDamagedContent(err):
			return err
		case err != nil:
			object := root
			if told, ok := errors.AsType[*tree.DamagedError](err); ok {
				object = told.Hash
			}
			d.broken(fmt.Sprintf("tree %s", root), object, err)
			return nil
		}
	}
	return nil
}

// seed is a number that a generation's name and a path always lead to.
func seed(generation, path string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(generation + "\x00" + path)) // never an error
	return int(h.Sum32() >> 1)
}

func (d *drill) file(ctx context.Context, name FileName) error {
	f := d.m.Files[name]
	return d.content(ctx, tree.Quote(string(name)), f.SHA256, f.Size)
}

// content restores a content to a file in scratch and reads that again.
func (d *drill) content(ctx context.Context, name string, h tree.Hash, size int64) error {
	if d.seen[h] || d.lacks[h] {
		return nil
	}
	d.seen[h] = true
	d.proof.Of++
	err := d.restored(ctx, h, size)
	switch {
	case err == nil:
		d.proof.Files++
		d.proof.Bytes += size
	case !isDamagedContent(err):
		return err
	default:
		d.broken(name, h, err)
	}
	return nil
}

const scratchFile = "file"

func (d *drill) restored(ctx context.Context, h tree.Hash, size int64) error {
	f, err := disk.CreateFile(d.scratch, scratchFile, project.PrivateFile)
	if err != nil {
		return err
	}
	defer func() { _ = d.scratch.Remove(scratchFile) }() // scratch is removed as a whole
	defer f.Close()
	if err := d.c.Write(ctx, &atMost{f, size}, h); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return copyChecked(ctx, io.Discard, f, h, size)
}

// broken notes what could not be restored, and the pack that is to blame.
func (d *drill) broken(name string, h tree.Hash, err error) {
	pack, known := d.c.pack(h)
	if !known {
		if len(d.proof.Damaged) == 0 || len(d.proof.Problems) < mostProblems {
			d.problem("%s: %s is in no pack that can be read", name, h)
		}
		return
	}
	d.damagedPack(pack, fmt.Errorf("%s: %w", name, err))
}

// mostProblems bounds what a proof lists.
const mostProblems = 20

// all restores the generation whole, as a restore would: a store made of its packs, with all its contents. That it
// outlives a power failure is not asked of it.
func (d *drill) all(ctx context.Context) error {
	d.archives(ctx)
	d.proof.Of = d.m.Counts.Contents
	staged, err := Stage(ctx, d.place.source(d.m, true), d.scratch, d.o.Recorder.Project().Site, func(done, total int64) { d.o.Progress("proving", done, total) })
	if project.KindOf(err) == project.Integrity {
		return d.blame(ctx, err)
	}
	if err != nil {
		return err
	}
	defer staged.Close()
	problems, err := staged.Store.Check(ctx)
	if err != nil {
		return err
	}
	packs, lost := map[string]tree.Hash{}, map[tree.Hash]bool{}
	for i, pack := range sortedPacks(d.m) {
		_, name := store.PackFile(i + 1)
		packs[name] = pack
	}
	for _, p := range problems {
		lost[p.Hash] = true
		if pack, ok := packs[p.Pack]; ok {
			d.damagedPack(pack, p)
		} else {
			d.problem("%v", p)
		}
	}
	d.proof.Of = staged.Needs.Len()
	for h := range staged.Needs.All() {
		if size, ok := staged.Store.Size(h); ok && !lost[h] {
			d.proof.Files++
			d.proof.Bytes += size
		}
	}
	return nil
}

// blame finds the packs because of which the generation could not be restored.
func (d *drill) blame(ctx context.Context, reason error) error {
	if err := d.findContents(ctx); err != nil {
		return err
	}
	found := false
	for _, pack := range sortedPacks(d.m) {
		err := verify(ctx, d.place.Target, d.place.packName(pack), pack, d.m.Packs[pack])
		if err == nil {
			continue
		}
		if !isDamage(err) {
			return err
		}
		found = true
		d.damagedPack(pack, err)
	}
	if !found {
		d.problem("%v", reason)
		return nil
	}
	d.proof.Files = min(d.proof.Of, d.countSound())
	return nil
}

// countSound counts the contents that lie in packs which are whole.
func (d *drill) countSound() (n int) {
	for _, b := range d.c.at.All() {
		if !slices.Contains(d.proof.Damaged, d.c.blocks[b-1].pack.String()) {
			n++
		}
	}
	return n
}

// archives notes the zips of older generations that are damaged. They are not what this proof is about,
// and nothing can mend them: they are named as not to be restored.
func (d *drill) archives(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(d.m.Others)) {
		_, err := d.place.checkZip(ctx, name)
		if isDamage(err) {
			d.proof.Damaged = append(d.proof.Damaged, name)
			d.o.Tell(fmt.Sprintf("generation %s cannot be restored any more: its zip is missing or damaged", name))
		}
	}
}

// carry goes on naming what earlier proofs have found damaged, as long as a generation names it and it
// is not sound by now: the newest generation may have been mended, older ones are not.
func (d *drill) carry(ctx context.Context, before []string) {
	packs := d.place.packs()
	for _, name := range before {
		if slices.Contains(d.proof.Damaged, name) {
			continue
		}
		if g, ok := d.m.Others[name]; ok {
			if _, err := d.place.provenManifest(ctx, name); err != nil && !g.SHA256.IsZero() {
				d.proof.Damaged = append(d.proof.Damaged, name)
			}
			continue
		}
		h, err := tree.ParseHash(name)
		if err != nil {
			continue
		}
		if _, named := packs[h]; !named {
			continue
		}
		size := packs[h]
		if size == 0 {
			size, _ = sizeOf(ctx, d.place.Target, d.place.packName(h)) // verify says what is wrong with it
		}
		if verify(ctx, d.place.Target, d.place.packName(h), h, size) != nil {
			d.proof.Damaged = append(d.proof.Damaged, name)
		}
	}
}

// note writes down what was found: in the store first, so that it is known whatever becomes of the target.
func (d *drill) note(ctx context.Context) error {
	p := d.o.Recorder.Project()
	err := Remember(p.Store, d.o.Target.String(), func(r *Remembered) {
		proof := d.proof
		r.Proof = &proof
		if proof.Whole {
			r.Whole = proof.At
		}
	})
	if err == nil {
		err = d.o.Recorder.Audit("drill", d.proof.String())
	}
	if aerr := d.place.addProof(ctx, d.proof); err == nil && aerr != nil { // what the proof has found is more
		d.o.Tell(fmt.Sprintf("the proof is not written down in %s, as other machines would read it: %v; the store and the audit of this project have it", d.place.At(proofsFile), aerr))
	}
	return cmp.Or(err, ctx.Err())
}
