package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	// Queue tells what the project's queue remembers; nil: nothing is asked.
	Queue Queue
	held  *heldLock // from one operation on a place to the next; nil: each takes a lock of its own
	under bool      // the project's lock is held, beside which nobody is waited for
}

// Queue is what a backup needs of the project's queue. DoneSpecs is what it remembers of specs that are done, in its own form;
// RestoredState is its state file after a restore of a generation that has these, with what the project itself remembers of them.
type Queue interface {
	DoneSpecs() (json.RawMessage, error)
	RestoredState(specs json.RawMessage) ([]byte, error)
}

// Made is what a backup has made.
type Made struct {
	Place    *Place
	Manifest *Manifest
	NewBytes int64 // of the packs that were sent
	// Lost says what records name, or the log held, and the store has lost, so that the generation does not have it: a sentence each.
	Lost []string
	// Older says that what the target had was older than what had been acknowledged there, and what was done about
	// that; "" where it was not.
	Older string
}

// making is a backup under way.
type making struct {
	o         Options
	place     *Place
	snapshot  *recorder.Snapshot
	files     map[FileName]File
	plugins   []string
	underWay  []string // messages: see Manifest.UnderWay
	doneSpecs json.RawMessage
	known     *contents
	unsound   []string // what the newest proof has found damaged
	m         *Manifest
	sent      int64
	unmarked  error // the generation counts, and the marker does not say so
}

// generate makes a generation. Until it is acknowledged the one before is whole. An error that comes with a result is about what follows that.
func generate(ctx context.Context, o Options) (*Made, error) {
	place, unlock, err := o.openPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	older, err := place.takeUp(ctx, &o.Recorder.Project().Site)
	if err != nil {
		return nil, err
	}
	mk, err := o.begin(ctx, place)
	if err != nil {
		return nil, err
	}
	defer mk.snapshot.Close()
	for _, step := range []func(context.Context) error{mk.adopt, mk.drop, mk.findContents, mk.send, mk.claim, mk.archive, mk.makeCurrent, mk.commit} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	lost, err := mk.lost()
	made := &Made{Place: place, Manifest: mk.m, NewBytes: mk.sent, Lost: lost, Older: older}
	if err = cmp.Or(mk.acknowledged(ctx), err); err != nil {
		err = project.LeftIn(fmt.Errorf("%s: %w", o.Target, err), "the backup of "+mk.m.Generation()+" was made, but not all that follows it was done",
			cmp.Or(project.HintOf(err), "mend that, and run 'decree backup' again"))
	}
	return made, err
}

// begin collects what a generation is to have, and puts its manifest together as far as that is known before anything is sent. The
// caller closes the snapshot.
func (o Options) begin(ctx context.Context, place *Place) (*making, error) {
	mk := &making{o: o, place: place, files: map[FileName]File{}}
	if err := mk.tidy(ctx); err != nil {
		return nil, err
	}
	if err := mk.observe(ctx); err != nil {
		return nil, err
	}
	if err := mk.describe(ctx); err != nil {
		mk.snapshot.Close()
		return nil, err
	}
	return mk, nil
}

// tidy removes what backups that died have left. Where that cannot be, it costs space and is no reason to make no backup.
func (mk *making) tidy(ctx context.Context) error {
	t, at := mk.o.Target, mk.place.Name
	if mk.place.Manifest == nil && mk.place.Marker == nil {
		return nil
	}
	err := t.Tidy(ctx, at)
	if err == nil || ctx.Err() != nil || errors.Is(err, target.ErrGone) {
		return err
	}
	mk.o.Tell(fmt.Sprintf("%s: what backups that ended early have left there was not removed, and takes space: %v", t, err))
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
		if mk.o.Queue != nil {
			var err error
			if mk.doneSpecs, err = mk.o.Queue.DoneSpecs(); err != nil {
				return err
			}
		}
		begun, err := mk.o.Recorder.BegunInTree()
		if err != nil {
			return err
		}
		for _, name := range begun {
			if _, ok := g.files[FileName(project.InboxDir+"/"+name)]; ok {
				mk.underWay = append(mk.underWay, tree.Quote(name))
				mk.o.Tell(fmt.Sprintf("message %s is being done: this backup has it as one that waits, and in its tree what it has done so far", tree.Quote(name)))
			}
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
	dir := path.Join(at, place.Name) // what lies beside it may be the tree's
	if dir == root || strings.HasPrefix(root, dir+"/") {
		return nil // it contains the tree
	}
	if d, err := o.Recorder.Project().Disk.OpenRoot(dir); err == nil {
		if self, err := d.Self(); err == nil {
			out = append(out, self)
		}
		d.Close()
	}
	return out
}

// describe puts the manifest together.
func (mk *making) describe(ctx context.Context) (err error) {
	p, s := mk.o.Recorder.Project(), mk.snapshot
	mk.m = &Manifest{Version: Version, Timestamp: mk.time(), Decree: mk.o.Version, Name: mk.place.Name,
		Project: p.ID, Host: mk.o.Host, Root: tree.Quote(p.Root), Tree: s.Tree, Files: mk.files, Packs: map[tree.Hash]int64{},
		Others: map[string]Generation{}, Condemned: map[tree.Hash]string{}}
	if from := p.From(); from != "" {
		mk.m.From = &from
	}
	if prev := mk.place.Manifest; prev != nil {
		if mk.m.Others, err = mk.place.others(ctx); err != nil {
			return err
		}
		maps.Copy(mk.m.Condemned, prev.Condemned)
		mk.m.Going = slices.Clone(prev.Going)
	}
	mk.m.UnderWay, mk.m.DoneSpecs = mk.underWay, mk.doneSpecs
	mk.m.Held, _ = p.Held() // one that cannot be read holds back too
	if err := mk.recordFiles(); err != nil {
		return err
	}
	mk.count()
	mk.tellOlder()
	return nil
}

// tellOlder says that the generation before has records that are newer than all that are here: they were pruned, or an older state is here, as
// after a restore or where the log was cut between two lines, which nothing else would show.
func (mk *making) tellOlder() {
	prev, records := mk.place.Manifest, mk.snapshot.Records
	if prev == nil || len(records) == 0 {
		return
	}
	newest := slices.MaxFunc(records, func(a, b *history.Record) int { return strings.Compare(a.ID, b.ID) }).ID
	var newer []string
	for _, id := range recordIDs(sortedFiles(prev)) {
		if id > newest {
			newer = append(newer, id)
		}
	}
	if n := len(newer); n > 0 {
		mk.o.Tell(fmt.Sprintf("generation %s has records that are newer than the newest one here, %s (%d, the newest is %s): if nobody has pruned them or restored an older state, the log was cut: '%s'",
			prev.Generation(), newest, n, newer[n-1], "decree backup restore "+prev.Generation()))
	}
}

// count counts what the generation has, and lists what it has not.
func (mk *making) count() {
	s := mk.snapshot
	mk.m.Missing = slices.SortedFunc(slices.Values(s.Missing), compareHash)
	mk.m.Forgotten = slices.SortedFunc(slices.Values(s.Forgotten), compareHash)
	mk.m.Counts = Counts{TreeBytes: s.TreeBytes, Records: len(s.Records), Contents: s.Needs.Len(), Plugins: append([]string{}, mk.plugins...)}
	c := &mk.m.Counts
	for h := range s.Needs.All() {
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
}

// lose goes on without contents that the store has damaged.
func (mk *making) lose(lost []tree.Hash) {
	if len(lost) == 0 {
		return
	}
	mk.snapshot.Lose(lost)
	for name, f := range mk.files {
		if mk.snapshot.Needs.Get(f.SHA256) == 0 && slices.Contains(mk.snapshot.Missing, f.SHA256) {
			delete(mk.files, name)
		}
	}
	mk.count()
}

// lost says what of the records, of their log or of the present state is not in the generation. An error comes with what is said of the log.
func (mk *making) lost() (out []string, err error) {
	const most = 10
	unread := mk.snapshot.Unread
	for _, d := range unread[:min(most, len(unread))] {
		out = append(out, "not in the backup: "+d.Err.Error())
	}
	if more := len(unread) - most; more > 0 {
		out = append(out, fmt.Sprintf("not in the backup: %d more records whose lines cannot be read", more))
	}
	users, err := mk.snapshot.Users(mk.o.Recorder.History())
	if err != nil {
		return out, err
	}
	missing := mk.m.Missing
	for _, h := range missing[:min(most, len(missing))] {
		out = append(out, fmt.Sprintf("not in the backup: %s, which is missing from the store or damaged there", cmp.Or(users[h], "content "+h.String())))
	}
	if more := len(missing) - most; more > 0 {
		out = append(out, fmt.Sprintf("not in the backup: %d more contents, which are missing from the store or damaged there", more))
	}
	return out, nil
}

// time is now, or the second after all generations that stand there, or of which the store knows that they
// stood there: whatever the clock says, a generation comes after those that were made before it.
func (mk *making) time() time.Time {
	now := mk.o.Now().UTC().Truncate(time.Second)
	newest := recall(mk.o.Recorder.Project().Store, mk.o.Target.String()).Timestamp
	for _, name := range mk.place.Generations() {
		if at, ok := timeOf(name); ok && at.After(newest) {
			newest = at
		}
	}
	if newest.Before(now) {
		return now
	}
	if newest.Sub(now) > time.Minute { // else it is two backups within a second
		mk.o.Tell(fmt.Sprintf("this machine's clock says %s, and the newest generation is of %s: the clock was set back, so what is kept now is called %s",
			NameOf(now), NameOf(newest), NameOf(newest.Add(time.Second))))
	}
	return newest.UTC().Add(time.Second)
}

// recordFiles lists the files of the records, which the store has.
func (mk *making) recordFiles() error {
	h := mk.o.Recorder.History()
	for _, rec := range mk.snapshot.Records {
		list, err := h.RecordFiles(rec.ID)
		if err != nil {
			return err
		}
		for _, f := range list {
			if size, ok := mk.snapshot.Store.Size(f.SHA256); ok && !slices.Contains(mk.snapshot.Missing, f.SHA256) {
				mk.files[FileName(recordsPart+rec.ID+"/"+f.Name)] = File{SHA256: f.SHA256, Size: size}
			}
		}
	}
	return nil
}

// findContents finds out what the target has already. A pack that cannot be read, or that a proof has found
// damaged, or that is going, counts as not there: what the generation needs of it is sent again.
func (mk *making) findContents(ctx context.Context) error {
	packs := mk.place.packs()
	for _, h := range mk.m.Going {
		delete(packs, h)
	}
	newest, err := mk.o.newestProof(ctx, mk.place)
	if err != nil {
		return err
	}
	if newest != nil {
		mk.unsound = newest.Damaged
		for _, name := range mk.unsound {
			if h, err := tree.ParseHash(name); err == nil {
				delete(packs, h)
			}
		}
	}
	mk.known, err = mk.place.packContents(ctx, packs, mk.snapshot.Store.Numbers(), func(pack tree.Hash, err error) {
		mk.o.Tell(fmt.Sprintf("%s: %v; what is needed of it is sent again", mk.o.Target, err))
	})
	if err != nil {
		return err
	}
	if err := mk.known.reindex(ctx); err != nil {
		mk.o.Tell(fmt.Sprintf("%s: %v; the pack itself was read", mk.o.Target, err))
	}
	return ctx.Err()
}

// send sends the packs that the target lacks.
func (mk *making) send(ctx context.Context) error {
	needs := mk.snapshot.Needs.Clone()
	if err := mk.snapshot.Store.Parts(needs); err != nil {
		return mk.notMade(err)
	}
	left := mk.snapshot.Store.Numbers()
	for h := range needs.All() {
		if mk.known.at.Get(h) == 0 {
			left.Set(h, 1)
		}
	}
	u := &upload{ctx: ctx, p: mk.place, have: mk.known.have, packs: map[tree.Hash]int64{}, said: func(n int64) {
		mk.sent += n
		mk.o.Progress("sending", mk.sent, 0)
	}}
	defer u.abort()
	err := mk.snapshot.Store.CopyPacks(ctx, left, store.PackSink{Begin: u.begin, End: func(headers []byte) error {
		if err := u.end(headers); err != nil {
			return err
		}
		return mk.known.headers(tree.Hash(u.sum.Sum(nil)), headers, u.n)
	}})
	if err == nil {
		err = u.ending.Wait()
	}
	if err != nil {
		return mk.notMade(err)
	}
	for h := range mk.snapshot.Needs.All() { // what is kept as chunks that cannot be told
		if needs.Get(h) == 0 {
			left.Set(h, 1)
		}
	}
	if left.Len() > 0 {
		lost, err := mk.snapshot.Store.Without(mk.snapshot.Needs, left)
		if err != nil {
			return err
		}
		mk.lose(lost)
	}
	mk.m.Counts.NewBytes = mk.sent
	return mk.choose(needs, u.packs)
}

// choose lists the packs that the generation needs.
func (mk *making) choose(needs *store.Numbers, sent map[tree.Hash]int64) error {
	lengths := mk.known.lengths
	maps.Copy(lengths, sent)
	for h := range needs.All() {
		pack, ok := mk.known.pack(h)
		if !ok {
			continue // the store has lost it
		}
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
	if e, ok := errors.AsType[*project.Error](err); ok && e.State != "" {
		return err
	}
	advice := "mend that, and run 'decree backup' again, which uses or removes what was sent already"
	switch {
	case disk.Full(err) && mk.inStore(err):
		advice = "" // that of every command
	case disk.Full(err):
		advice = "free some space on that disk, or name another target with backup.to; 'decree backup prune' frees little at once: contents that no generation names any more go a day later"
	case project.HintOf(err) != "":
		advice = project.HintOf(err)
	case notAFile(err):
		advice = notAFileNext
	}
	return &project.Error{Kind: project.KindOf(err), Msg: mk.o.Target.String(), Err: err, State: state, Advice: advice}
}

// inStore says whether an error is about a file of the store.
func (mk *making) inStore(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && strings.HasPrefix(e.Path, mk.o.Recorder.Project().StorePath+"/")
}

// claim writes the marker, where there is none, before any manifest.json: a generation's copy of its manifest without
// a marker beside it then means that both were lost, not that the first backup died.
func (mk *making) claim(ctx context.Context) error {
	if mk.place.Manifest != nil || mk.place.Marker != nil {
		return nil
	}
	return mk.place.claim(ctx, mk.m.Project)
}

// commit makes the generation the newest. From then on it counts, whether or not the marker could be written.
func (mk *making) commit(ctx context.Context) error {
	packs := mk.place.packs()
	for h, size := range packs {
		if size == 0 { // an earlier decree did not keep it
			packs[h] = mk.known.lengths[h]
		}
	}
	mk.m.condemn(packs, mk.o.Now())
	err := mk.place.commit(ctx, mk.m)
	switch {
	case mk.place.Manifest == mk.m:
		mk.unmarked = err
		return nil
	case errors.Is(err, target.ErrGone): // the answer was lost, or the question
		return &project.Error{Kind: project.KindOf(err), Err: err, State: "the backup of " + mk.m.Generation() + " may have been made",
			Advice: "'decree backup list' says whether it was, once the target is there again"}
	}
	return mk.notMade(err)
}

// acknowledged writes down that the generation is the newest.
func (mk *making) acknowledged(ctx context.Context) error {
	p := mk.o.Recorder.Project()
	err := Remember(p.Store, mk.o.Target.String(), func(r *Remembered) {
		*r = mk.place.standing(*r)
		r.Failed = nil
	})
	if s, ok := mk.o.Target.(target.Shelf); ok {
		if err := s.Clear(ctx, mk.place.At(currentDir+newSuffix)); err != nil {
			mk.o.Tell(fmt.Sprintf("%s: what current/ had before could not be removed: %v", mk.o.Target, err))
		}
	}
	return cmp.Or(mk.unmarked, err, mk.o.Recorder.Audit("backup", fmt.Sprintf("%s to %s, manifest %s", mk.m.Generation(), mk.o.Target, mk.place.sum)))
}
