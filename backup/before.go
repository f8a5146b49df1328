package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/tree"
)

// keepBefore keeps what is here as an archive that needs nothing else: in the target, or aside where the target does
// not take it. err is why the target is known not to take it, nil where that was not tried yet.
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
	g.SHA256, g.NewBytes, err = writeNew(ctx, mk.o.Target, name, func(w io.Writer) error {
		return writeWhole(ctx, w, m, mk.snapshot.Store, mk.snapshot.Needs)
	})
	if err != nil {
		return g, err
	}
	if err := mk.proveZip(ctx, name, g.SHA256, g.NewBytes); err != nil {
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
