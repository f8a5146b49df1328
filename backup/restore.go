package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"decree/backup/target"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// RestoreOptions are those of a restore, beside Options, whose Target takes what is replaced.
type RestoreOptions struct {
	Source *Source
	// Fresh: there is nothing here yet that could be lost.
	Fresh bool
	// Aside is where what is replaced goes if Options.Target does not take it; nil: nowhere else.
	Aside func() (target.Target, error)
	// Then is what is to follow, as project.Swap has it.
	Then *project.Into
}

// Restored is what a restore has done.
type Restored struct {
	Manifest *Manifest
	Before   string        // where what was here before is kept: a path or a name in a target; "" for nothing
	Foreign  bool          // it is the generation of another host or root
	Held     *project.Held // what waits in it is held, since it is foreign or was held when it was made; nil: it is not
	Skipped  []string      // messages that were not queued again, since they are done or dead here
	// UnderWay are the messages that wait now and were being done when the generation was made, quoted: see Manifest.UnderWay.
	UnderWay []string
	Gone     []string // messages that were here, in whatever state, and are not in the generation; Before has them
}

// storeNames are what a store has of its records and contents. All else in it is this machine's own.
var storeNames = []string{"packs", "index", "index.log", "cache", "cap.json", "records.jsonl", "labels.json", "audit.jsonl", "forgotten.json", "own", "queue.json", project.HeldFile}

// Restore replaces all that the project has by a generation: proven first, and what is here
// kept first. An error leaves everything as it was, but where it says otherwise; one that comes with a result is about what
// follows, when all was replaced.
func Restore(ctx context.Context, o Options, r RestoreOptions) (*Restored, error) {
	p, m := o.Recorder.Project(), r.Source.Manifest
	out := &Restored{Manifest: m, Foreign: m.Project != p.ID || !m.MadeFrom(o.Host, p.Root), Held: m.Held}
	if out.Foreign {
		out.Held = &project.Held{From: m.Project, Host: m.Host, Root: m.Root}
	}
	o.held = &heldLock{}
	defer o.held.end()
	var busy error
	if _, alone := o.Target.(target.Locker); alone && !r.Fresh {
		busy = o.hold(ctx)
	}
	prepare := func() error {
		if r.Fresh {
			return unrecorded(o.Recorder.History())
		}
		var err error
		out.Before, err = o.keepBefore(ctx, busy, r.Aside)
		return err
	}
	build := func(s *project.Swap) (store, decree []string, from string, err error) {
		s.Then = r.Then
		staged, err := Stage(ctx, r.Source, s.Store, p.Site, func(done, total int64) { o.Progress("reading", done, total) })
		if err != nil {
			return nil, nil, "", err
		}
		defer staged.Close()
		b := &restoring{o: o, out: out, staged: staged}
		if decree, err = b.decree(s.Decree); err != nil {
			return nil, nil, "", err
		}
		if out.Held != nil {
			if err := project.Hold(s.Store, *out.Held); err != nil {
				return nil, nil, "", err
			}
		}
		if m.Project != p.ID {
			from = m.Project
		}
		return storeNames, decree, from, nil
	}
	done, err := o.Recorder.Swap(ctx, fmt.Sprintf("%s of %s, from %s:%s", m.Generation(), m.Project, m.Host, m.Root), build, prepare)
	if done {
		out.UnderWay = slices.DeleteFunc(slices.Clone(m.UnderWay), func(quoted string) bool {
			name, err := tree.Unquote(quoted)
			return err != nil || slices.Contains(out.Skipped, name)
		})
		return out, cmp.Or(err, r.Source.remembered(p))
	}
	if out.Before != "" {
		o.Tell("what is here is kept in " + out.Before + " all the same")
	}
	return nil, err
}

// unrecorded refuses to take the place of what somebody has recorded while a backup was looked at that was to come where nothing is.
func unrecorded(h *history.History) error {
	empty, err := h.Empty()
	if err == nil && !empty {
		err = &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "something was recorded here while the backup was looked at",
			Advice: "repeat the restore, which then keeps an archive of what is here"}
	}
	return err
}

// remembered has a store that was lost, and knows of no backup, remember where those of its project are.
func (s *Source) remembered(p *project.Project) error {
	if s.place == nil || s.place.Manifest == nil || s.place.Manifest.Project != p.ID {
		return nil
	}
	if _, last := ReadMemory(p.Store).newest(); last != nil && last.Generation != "" {
		return nil
	}
	return Remember(p.Store, s.place.Target.String(), func(r *Remembered) { *r = s.place.standing(*r) })
}

// restoring is a restore that builds the new state.
type restoring struct {
	o      Options
	out    *Restored
	staged *Staged
	kept   []string // the live messages that stay, as paths in .decree
}

// decree writes what people have in .decree, durably, and returns the names that are replaced.
func (b *restoring) decree(to disk.Dir) (names []string, err error) {
	names = []string{"runs"}
	live := b.o.Recorder.Project().Decree
	list, err := live.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if !slices.Contains(ownNames, e.Name) {
			names = append(names, e.Name)
		}
	}
	isDone, err := b.keepDone(live, to)
	if err != nil {
		return nil, err
	}
	if b.out.Gone, err = b.goneFrom(live); err != nil {
		return nil, err
	}
	for _, name := range sortedFiles(b.staged.Manifest) {
		at, ok := placeOf(name)
		if !ok {
			continue
		}
		if isDone[at] {
			continue
		}
		if err := b.file(to, at, name); err != nil {
			return nil, err
		}
		if top, _, _ := strings.Cut(at, "/"); !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	return names, nil
}

// file writes one file of the generation.
func (b *restoring) file(to disk.Dir, at string, name FileName) error {
	f := b.staged.Manifest.Files[name]
	mode, err := f.mode()
	if err != nil {
		return err
	}
	return into(to, at, func(dir disk.Dir, base string) error {
		err := disk.Replace(dir, base, disk.Replacement{Perm: mode, Flush: true}, func(out disk.File) error { return b.staged.write(out, name) })
		if err != nil || f.Mtime == 0 {
			return err
		}
		is, err := dir.Stat(base)
		if err != nil {
			return err
		}
		return dir.SetMtime(base, is, min(f.Mtime, is.Mtime)) // the clock of another machine may be ahead
	})
}

// into opens the directory of a name below a directory, making it, and flushes what it made.
func into(to disk.Dir, name string, do func(dir disk.Dir, base string) error) error {
	first, rest, below := strings.Cut(name, "/")
	if !below {
		return do(to, first)
	}
	dir, err := project.MakeDir(to, first, 0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := to.Sync(); err != nil {
		return err
	}
	return into(dir, rest, do)
}

// keepBefore keeps what is here as an archive that needs nothing else, in the target, unless that has failed with err before, else aside.
func (o Options) keepBefore(ctx context.Context, err error, aside func() (target.Target, error)) (where string, _ error) {
	if err == nil {
		where, err = o.keepIn(ctx)
	}
	if err == nil || aside == nil || ctx.Err() != nil {
		return where, err
	}
	o.Tell(fmt.Sprintf("%s does not take what is here before the restore: %v", o.Target, err))
	t, aerr := aside()
	if aerr != nil {
		return "", errors.Join(err, aerr)
	}
	defer t.Close()
	o.Target, o.held = t, nil
	return o.keepIn(ctx)
}

// keepIn is called under the project's lock.
func (o Options) keepIn(ctx context.Context) (string, error) {
	o.under = true
	place, unlock, err := o.openPlace(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	older, err := place.takeUp(ctx, &o.Recorder.Project().Site)
	if err != nil {
		return "", err
	}
	if place.Manifest != nil && !place.agreed { // a commit would have the damage pass for what was written there
		return "", place.disagreed()
	}
	mk, err := o.begin(ctx, place)
	if err != nil {
		return "", err
	}
	defer mk.snapshot.Close()
	if err := mk.loseUnread(ctx); err != nil {
		return "", err
	}
	mk.m.Timestamp = mk.freeTime(ctx)
	name := preRestore + mk.m.Generation()
	g, err := mk.wholeZip(ctx, place.archiveName(name))
	if err != nil {
		return "", err
	}
	if err := mk.listReplaced(ctx, name, g); err != nil {
		return "", err
	}
	return o.Target.String() + "/" + place.archiveName(name), Remember(o.Recorder.Project().Store, o.Target.String(), func(r *Remembered) {
		*r = r.in(place.Name)
		r.Manifest = place.sum
		if older == "" { // else the next backup still has to say what is gone
			r.Generations = place.Generations()
		}
	})
}

// loseUnread leaves out the contents that the store has damaged, all of which are read, and tells what is lost.
func (mk *making) loseUnread(ctx context.Context) error {
	unread, err := mk.snapshot.Store.Lost(ctx, mk.snapshot.Needs)
	if err != nil {
		return err
	}
	mk.lose(unread)
	lost, err := mk.lost()
	if err != nil {
		return err
	}
	for _, text := range lost {
		mk.o.Tell(text)
	}
	return nil
}

// listReplaced has manifest.json list the archive of what a restore replaces. Where there is none yet the marker alone says whose the archive is.
func (mk *making) listReplaced(ctx context.Context, name string, g Generation) error {
	place := mk.place
	if place.Manifest == nil {
		return place.claim(ctx, mk.m.Project)
	}
	m := *place.Manifest
	m.Others = map[string]Generation{name: g}
	maps.Copy(m.Others, place.Manifest.Others)
	return place.commit(ctx, &m)
}

// claim writes the marker of a place that has no generation yet.
func (p *Place) claim(ctx context.Context, id string) error {
	data, version, err := p.Target.Read(ctx, p.At(markerFile), 1<<20)
	if err == nil && version == "" {
		_, err = p.Target.Swap(ctx, p.At(markerFile), Marker{Version: Version, Project: id}.Encode(), "")
	} else if has, perr := parseMarker(data); err == nil && perr == nil && has.Project != id {
		err = target.ErrConflict
	}
	if errors.Is(err, target.ErrConflict) {
		return faster(p.Target, p.Name)
	}
	return err
}

// freeTime is the generation's time, or the next second that no archive has, listed or not.
func (mk *making) freeTime(ctx context.Context) (t time.Time) {
	for t = mk.m.Timestamp; ; t = t.Add(time.Second) {
		if _, err := sizeOf(ctx, mk.o.Target, mk.place.archiveName(preRestore+NameOf(t))); err != nil {
			return t
		}
	}
}

// wholeZip writes the snapshot as a zip that needs nothing else, reads it back and proves it.
func (mk *making) wholeZip(ctx context.Context, name string) (g Generation, err error) {
	m := mk.m
	g = m.generation()
	u, err := mk.o.Target.Create(ctx, name)
	if err != nil {
		return g, err
	}
	defer u.Abort() //nolint:errcheck // after Commit it does nothing
	sum := sha256.New()
	n := &counter{w: io.MultiWriter(u, sum)}
	if err := writeWhole(ctx, n, m, mk.snapshot.Store, mk.snapshot.Needs); err != nil {
		return g, err
	}
	if err := u.Commit(ctx, name); err != nil {
		return g, err
	}
	g.SHA256, g.NewBytes = tree.Hash(sum.Sum(nil)), n.n
	if err := mk.proveZip(ctx, name, g.SHA256, n.n); err != nil {
		_ = mk.o.Target.Delete(context.WithoutCancel(ctx), name) // nothing lists it yet
		return g, err
	}
	return g, nil
}

// proveZip reads a zip that needs nothing else back and restores it to scratch, where the rest of it is removed: what replaces
// live data may count on that only.
func (mk *making) proveZip(ctx context.Context, name string, sum tree.Hash, size int64) (err error) {
	site := mk.o.Recorder.Project().Site
	scratch, remove, err := newScratch(site.Store)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, remove()) }()
	f, err := disk.CreateFile(scratch, scratchFile, project.PrivateFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := copyVerified(ctx, mk.o.Target, f, name, sum, size); err != nil {
		return readBack(mk.o.Target, err)
	}
	dir, err := project.MakeDir(scratch, "store", project.PrivateDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	src, err := FromZip(f, size)
	var staged *Staged
	if err == nil {
		src.scratch = true
		staged, err = Stage(ctx, src, dir, site, func(done, total int64) { mk.o.Progress("proving", done, total) })
	}
	if err != nil {
		return fmt.Errorf("%s/%s was written, but cannot be restored: %w", mk.o.Target, name, err)
	}
	return staged.Close()
}
