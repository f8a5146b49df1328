package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"decree/backup/target"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/store"
	"decree/tree"
)

// Options are those of all that works on the backups of a project.
type Options struct {
	Recorder *recorder.Recorder
	Target   target.Target
	Where    project.Where
	Version  string // of this decree
	Host     string
	Now      func() time.Time
	Yes      bool // a tree of any size
	// Tell takes one-line notes for people, Progress what is under way; neither is nil.
	Tell     func(string)
	Progress func(phase string, done, total int64)
	// Extra adds files to the generation, plugins' under "plugins/<name>/", and returns the names of
	// the plugins that succeeded. It is called under the project's lock; nil: there are none.
	Extra func(put func(name string, r io.Reader, size int64) error) (plugins []string, err error)
}

// Made is what a backup has made.
type Made struct {
	Place    *Place
	Manifest *Manifest
	NewBytes int64 // of the packs that were sent
	Missing  int   // contents that records name and the store has lost
}

// making is a backup under way.
type making struct {
	o        Options
	place    *Place
	snapshot *recorder.Snapshot
	files    map[FileName]File
	plugins  []string
	known    *contents
	m        *Manifest
	sent     int64
}

// Make makes a generation. Until it is acknowledged the one before is whole.
func Make(ctx context.Context, o Options) (*Made, error) {
	place, unlock, err := o.openPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	mk := &making{o: o, place: place, files: map[FileName]File{}}
	if err := mk.tidy(ctx); err != nil {
		return nil, err
	}
	if err := mk.observe(ctx); err != nil {
		return nil, err
	}
	defer mk.snapshot.Close()
	if err := mk.begin(ctx); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{mk.send, mk.archive, mk.show, mk.acknowledge} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &Made{Place: place, Manifest: mk.m, NewBytes: mk.sent, Missing: len(mk.m.Missing)}, nil
}

// openPlace finds the project's directory and makes sure that nobody else writes there, where
// the target can.
func (o Options) openPlace(ctx context.Context) (*Place, func(), error) {
	p := o.Recorder.Project()
	place, err := Find(ctx, o.Target, p.BackupName(o.Where), p.ID)
	if err != nil {
		return nil, nil, err
	}
	unlock := func() {}
	if l, ok := o.Target.(target.Locker); ok {
		release, err := l.Lock(ctx, place.Name)
		if errors.Is(err, target.ErrLocked) {
			return nil, nil, refused("wait until it has ended", "%s: another backup of this project is under way", o.Target)
		}
		if err != nil {
			return nil, nil, err
		}
		unlock = func() { _ = release() }
		if err := place.Read(ctx); err != nil { // it may have changed until the lock was ours
			unlock()
			return nil, nil, err
		}
	}
	if err := o.recognise(place); err != nil {
		unlock()
		return nil, nil, err
	}
	return place, unlock, nil
}

// recognise refuses a target that has had generations and has none now: its disk is not mounted, or
// somebody has taken them away.
func (o Options) recognise(place *Place) error {
	known, ok := ReadMemory(o.Recorder.Project().Store).Targets[o.Target.String()]
	if !ok || known.Generation == "" || place.Marker != nil && place.Manifest != nil {
		return nil
	}
	return refused("mount the disk that belongs there; or, if it was emptied on purpose, remove "+path.Join(o.Recorder.Project().StorePath, memoryFile),
		"%s held backups of this project, the newest of %s, and has none now: another disk may be missing from its place", o.Target, known.Generation)
}

// tidy removes what backups that died have left.
func (mk *making) tidy(ctx context.Context) error {
	t, at := mk.o.Target, mk.place.Name
	if mk.place.Manifest == nil && mk.place.Marker == nil {
		return nil
	}
	if err := t.Tidy(ctx, at); err != nil {
		return err
	}
	if s, ok := t.(target.Shelf); ok {
		return s.Clear(ctx, mk.place.At(currentDir+newSuffix))
	}
	return nil
}

const newSuffix = ".new"

// observe collects all that the generation has.
func (mk *making) observe(ctx context.Context) (err error) {
	p, h := mk.o.Recorder.Project(), mk.o.Recorder.History()
	options := recorder.SnapshotOptions{Yes: mk.o.Yes, Exclude: mk.o.apart(mk.place)}
	options.Files = func(put func(io.Reader, int64) (tree.Hash, int64, error)) error {
		g := &gathering{files: mk.files, put: put, tell: mk.o.Tell}
		if err := g.all(p, h); err != nil {
			return err
		}
		if mk.o.Extra == nil {
			return nil
		}
		mk.plugins, err = mk.o.Extra(func(name string, r io.Reader, size int64) error {
			return g.add(name, project.PrivateFile, r, size)
		})
		return err
	}
	mk.snapshot, err = mk.o.Recorder.Snapshot(ctx, options)
	return err
}

// apart is the project's directory in the target, which is no part of the tree.
func (o Options) apart(place *Place) (out []disk.Info) {
	placed, ok := o.Target.(target.Placed)
	if !ok {
		return nil
	}
	at, _, _, err := placed.Place()
	if err != nil {
		return nil
	}
	root := o.Recorder.Project().Root
	for _, dir := range []string{at, path.Join(at, place.Name)} {
		if dir == root || strings.HasPrefix(root, dir+"/") {
			continue // it contains the tree
		}
		if d, err := o.Recorder.Project().Disk.OpenRoot(dir); err == nil {
			if self, err := d.Self(); err == nil {
				out = append(out, self)
			}
			d.Close()
		}
	}
	return out
}

// begin puts the manifest together as far as it is known before anything is sent.
func (mk *making) begin(ctx context.Context) error {
	if err := mk.describe(); err != nil {
		return err
	}
	return mk.look(ctx)
}

// describe puts the manifest together.
func (mk *making) describe() error {
	p, s := mk.o.Recorder.Project(), mk.snapshot
	mk.m = &Manifest{Version: Version, Timestamp: mk.o.Now().UTC().Truncate(time.Second), Decree: mk.o.Version, Name: mk.place.Name,
		Project: p.ID, Host: mk.o.Host, Root: p.Root, Tree: s.Tree, Files: mk.files, Packs: map[tree.Hash]int64{},
		Others: map[string]Generation{}, Condemned: map[tree.Hash]string{}, Missing: slices.SortedFunc(slices.Values(s.Missing), compareHash)}
	if from := p.From(); from != "" {
		mk.m.From = &from
	}
	if prev := mk.place.Manifest; prev != nil {
		if least := prev.Timestamp.Add(time.Second); mk.m.Timestamp.Before(least) {
			mk.m.Timestamp = least
		}
		maps.Copy(mk.m.Others, prev.Others)
		maps.Copy(mk.m.Condemned, prev.Condemned)
	}
	if err := mk.recordFiles(); err != nil {
		return err
	}
	c := &mk.m.Counts
	c.TreeBytes = s.TreeBytes
	c.Records, c.Contents, c.Plugins = len(s.Records), len(s.Needs), append([]string{}, mk.plugins...)
	for h := range s.Needs {
		size, _ := s.Store.Size(h)
		c.Bytes += size
	}
	for name := range mk.files {
		if isConfig(string(name)) {
			c.ConfigFiles++
		}
		if isMessage(string(name)) {
			c.Messages++
		}
	}
	return nil
}

func compareHash(a, b tree.Hash) int { return strings.Compare(string(a[:]), string(b[:])) }

// recordFiles lists the files of the records, which the store has.
func (mk *making) recordFiles() error {
	h := mk.o.Recorder.History()
	for _, rec := range mk.snapshot.Records {
		list, err := h.RecordFiles(rec.ID)
		if err != nil {
			return err
		}
		for _, f := range list {
			if size, ok := mk.snapshot.Store.Size(f.SHA256); ok {
				mk.files[FileName(recordsPart+rec.ID+"/"+f.Name)] = File{SHA256: f.SHA256, Size: size}
			}
		}
	}
	return nil
}

// look finds out what the target has already. A pack that cannot be read, or that a proof has found
// damaged, counts as not there: what the generation needs of it is sent again.
func (mk *making) look(ctx context.Context) error {
	packs := mk.place.packs()
	proofs, err := mk.place.Proofs(ctx)
	if err != nil {
		return err
	}
	if n := len(proofs); n > 0 {
		for _, name := range proofs[n-1].Damaged {
			if h, err := tree.ParseHash(name); err == nil {
				delete(packs, h)
			}
		}
	}
	mk.known, err = mk.place.packContents(ctx, packs, func(pack tree.Hash, err error) {
		mk.o.Tell(fmt.Sprintf("%s: %v; what is needed of it is sent again", mk.o.Target, err))
	})
	return err
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
	maps.Copy(out, p.Manifest.Packs)
	return out
}

// send sends the packs that the target lacks.
func (mk *making) send(ctx context.Context) error {
	needs := maps.Clone(mk.snapshot.Needs)
	if err := mk.snapshot.Store.Parts(needs); err != nil {
		return err
	}
	left := map[tree.Hash]struct{}{}
	for h := range needs {
		if _, ok := mk.known.at[h]; !ok {
			left[h] = struct{}{}
		}
	}
	u := &upload{ctx: ctx, p: mk.place, packs: map[tree.Hash]int64{}, said: func(n int64) {
		mk.sent += n
		mk.o.Progress("sending", mk.sent, 0)
	}}
	defer u.abort()
	err := mk.snapshot.Store.CopyPacks(ctx, left, store.PackSink{Begin: u.begin, End: func(headers []byte) error {
		if err := u.end(headers); err != nil {
			return err
		}
		return mk.known.headers(tree.Hash(u.sum.Sum(nil)), headers)
	}})
	if err != nil {
		return mk.notMade(err)
	}
	mk.m.Counts.NewBytes = mk.sent
	return mk.choose(needs, u.packs)
}

// choose lists the packs that the generation needs.
func (mk *making) choose(needs map[tree.Hash]struct{}, sent map[tree.Hash]int64) error {
	lengths := mk.known.lengths
	maps.Copy(lengths, sent)
	for h := range needs {
		pack := mk.known.at[h].pack
		mk.m.Packs[pack] = lengths[pack]
		delete(mk.m.Condemned, pack)
	}
	return nil
}

// notMade says in which state an error leaves things.
func (mk *making) notMade(err error) error {
	state := "no backup was made"
	if mk.place.Manifest != nil {
		state = "the backup of " + mk.place.Manifest.Generation() + " stands as it was, and no new one was made"
	}
	var e *project.Error
	if errors.As(err, &e) && e.State != "" {
		return err
	}
	advice := "run 'decree backup' again; what was sent already and is not needed is removed by the next one"
	if disk.Full(err) {
		advice = "free some space there, or make 'backup.retention' smaller and run 'decree backup prune'"
	}
	return &project.Error{Kind: project.KindOf(err), Msg: mk.o.Target.String(), Err: err, State: state, Advice: advice}
}

// archive keeps the generation that was the newest until now as a zip, and on a target without a
// current/ the new one at once.
func (mk *making) archive(ctx context.Context) error {
	prev := mk.place.Manifest
	_, shelf := mk.o.Target.(target.Shelf)
	if prev != nil {
		if _, done := mk.m.Others[prev.Generation()]; !done {
			g, err := mk.place.zipGeneration(ctx, prev, mk.known)
			if err != nil {
				return mk.notMade(err)
			}
			mk.m.Others[prev.Generation()] = g
		}
	}
	if shelf {
		return nil
	}
	g, err := mk.place.zipGeneration(ctx, mk.m, fromStore{mk.snapshot.Store})
	if err == nil {
		mk.m.Others[mk.m.Generation()] = g
		return nil
	}
	return mk.notMade(err)
}

// plainSize is the length of a file, in bytes, up to which current/ and the zips have it.
const plainSize = 1 << 20

// show makes current/. What is the same as in the one before is a hard link to it.
func (mk *making) show(ctx context.Context) error {
	s, ok := mk.o.Target.(target.Shelf)
	if !ok {
		return nil
	}
	fresh, now := mk.place.At(currentDir+newSuffix), mk.place.At(currentDir)
	if err := s.Clear(ctx, fresh); err != nil {
		return mk.notMade(err)
	}
	for name, f := range mk.m.Files {
		if f.Size > plainSize {
			continue
		}
		if err := mk.showFile(ctx, s, path.Join(now, string(name)), path.Join(fresh, string(name)), name, f); err != nil {
			return mk.notMade(err)
		}
	}
	data, err := mk.m.Encode()
	if err == nil {
		err = s.Write(ctx, path.Join(fresh, ManifestFile), strings.NewReader(string(data)))
	}
	if err == nil {
		err = s.Exchange(ctx, fresh, now)
	}
	if err != nil {
		return mk.notMade(err)
	}
	return nil
}

func (mk *making) showFile(ctx context.Context, s target.Shelf, now, fresh string, name FileName, f File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if prev := mk.place.Manifest; prev != nil && prev.Files[name] == f && s.Link(ctx, now, fresh) == nil {
		return nil
	}
	r, _, err := mk.snapshot.Store.Open(f.SHA256)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.Write(ctx, fresh, r)
}

// acknowledge makes the generation the newest, and writes that down.
func (mk *making) acknowledge(ctx context.Context) error {
	mk.m.condemn(mk.place.packs(), mk.o.Now())
	if err := mk.place.commit(ctx, mk.m); err != nil {
		return mk.notMade(err)
	}
	p := mk.o.Recorder.Project()
	err := Remember(p.Store, mk.o.Target.String(), func(r *Remembered) {
		r.Name, r.Generation, r.Timestamp, r.Manifest = mk.place.Name, mk.m.Generation(), mk.m.Timestamp, mk.place.sum
	})
	if err != nil {
		return err
	}
	if s, ok := mk.o.Target.(target.Shelf); ok {
		if err := s.Clear(ctx, mk.place.At(currentDir+newSuffix)); err != nil {
			mk.o.Tell(fmt.Sprintf("%s: what current/ had before could not be removed: %v", mk.o.Target, err))
		}
	}
	return mk.o.Recorder.Audit("backup", fmt.Sprintf("%s to %s, manifest %s", mk.m.Generation(), mk.o.Target, mk.place.sum))
}

// condemn writes down since when no generation names a pack.
func (m *Manifest) condemn(known map[tree.Hash]int64, now time.Time) {
	named := maps.Clone(m.Packs)
	for _, g := range m.Others {
		for _, h := range g.Packs {
			named[h] = 0
		}
	}
	for h := range known {
		if _, ok := named[h]; ok {
			delete(m.Condemned, h)
		} else if m.Condemned[h] == "" {
			m.Condemned[h] = now.UTC().Format(time.RFC3339)
		}
	}
}

var _ history.Objects = (*store.Store)(nil)
