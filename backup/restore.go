package backup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
	prepare := func() (err error) {
		if r.Fresh {
			return unrecorded(o.Recorder.History())
		}
		out.Before, err = o.keepBefore(ctx, busy, r.Aside)
		return err
	}
	b := &restoring{o: o, out: out}
	build := func(s *project.Swap) (store, decree []string, from string, err error) {
		s.Then = r.Then
		decree, err = b.build(ctx, r.Source, s)
		if m.Project != p.ID {
			from = m.Project
		}
		return storeNames, decree, from, err
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

// unrecorded refuses a restore that was to come where nothing is, when somebody has recorded something there since
// the backup was looked at.
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

// build makes the new state of the store and of .decree, and returns the names in .decree that are replaced.
func (b *restoring) build(ctx context.Context, src *Source, s *project.Swap) (names []string, err error) {
	b.staged, err = Stage(ctx, src, s.Store, b.o.Recorder.Project().Site, func(done, total int64) { b.o.Progress("reading", done, total) })
	if err != nil {
		return nil, err
	}
	defer b.staged.Close()
	if names, err = b.decree(s.Decree); err == nil && b.out.Held != nil {
		err = project.Hold(s.Store, *b.out.Held)
	}
	if err == nil && b.o.Queue != nil {
		err = b.queue(s.Store)
	}
	return names, err
}

// queue writes the queue's state: which specs are done.
func (b *restoring) queue(to disk.Dir) error {
	data, err := b.o.Queue.RestoredState(b.staged.Manifest.DoneSpecs)
	if err != nil || data == nil {
		return err
	}
	return project.ReplaceFile(to, project.QueueFile, data, project.PrivateFile, true)
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
		if !ok || isDone[at] {
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
