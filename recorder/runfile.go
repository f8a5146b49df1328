package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"

	"decree/disk"
	"decree/history"
	"decree/store"
	"decree/tree"
)

// What lies in .decree/runs is a copy for people. Where a command, somebody else's rights, a
// mount or a full disk lets nothing be written there, a run still ends, and is put back: its
// files are then in the store alone.

// extraAlone is the place in an open record of the files that the store alone has.
const extraAlone = "alone"

// writeFile puts a file into a record's run directory, or, where that cannot take it, into
// the store alone.
func (r *Recorder) writeFile(x *writeSession, id, name string, write func(io.Writer) error) error {
	err := r.history.ReplaceFile(id, name, write)
	if !history.KeepsOut(err) {
		delete(x.onlyInStore[id], name)
		return err
	}
	sum, serr := store.PutWritten(x.w, write)
	if serr == nil {
		serr = x.w.Flush()
	}
	if serr != nil {
		return serr
	}
	x.keepAlone(id, map[string]tree.Hash{name: sum})
	r.history.NoteKeptOut(id, err)
	return nil
}

// keepAlone notes files of a record that the store alone has, for storeFiles.
func (x *writeSession) keepAlone(id string, files map[string]tree.Hash) {
	if x.onlyInStore == nil {
		x.onlyInStore = map[string]map[string]tree.Hash{}
	}
	if x.onlyInStore[id] == nil {
		x.onlyInStore[id] = map[string]tree.Hash{}
	}
	maps.Copy(x.onlyInStore[id], files)
}

// makeRoom removes the run's plain changes.diff, which the store has too, on the full disk
// that full tells of. It says whether there was one.
func (u *run) makeRoom(full error) bool {
	if _, alone := u.x.onlyInStore[u.rec.ID][diffFile]; alone || !u.x.w.Has(u.rec.DiffSHA256) {
		return false
	}
	dir, err := u.r.history.OpenRun(u.rec.ID)
	if err != nil {
		return false
	}
	defer dir.Close()
	if dir.Remove(diffFile) != nil {
		return false
	}
	u.x.keepAlone(u.rec.ID, map[string]tree.Hash{diffFile: u.rec.DiffSHA256})
	if at := new(fs.PathError); errors.As(full, &at) {
		full = at
	}
	u.r.history.NoteKeptOut(u.rec.ID, full)
	return true
}

// statFile is lstat of a file in a record's run directory, which is put in order first. None
// is there where that cannot be.
func (r *Recorder) statFile(id, name string) (info disk.Info, err error) {
	dir, err := r.history.EnsureRun(id)
	if history.KeepsOut(err) {
		return info, fs.ErrNotExist
	}
	if err != nil {
		return info, err
	}
	defer dir.Close()
	return dir.Stat(name)
}

// unlessKeptOut notes an err that keeps a record's files out of .decree/runs, and returns any other.
func (r *Recorder) unlessKeptOut(id string, err error) error {
	if !history.KeepsOut(err) {
		return err
	}
	r.history.NoteKeptOut(id, err)
	return nil
}

// storeFiles puts the files of a run's directory into the store, and adds those that it has
// already. outside.diff is as old as the run: one that the command deleted or changed is
// written again.
func (r *Recorder) storeFiles(x *writeSession, rec *history.Record) (map[string]tree.Hash, error) {
	files, err := r.history.StoreFiles(cmp.Or(x.storing, context.Background()), x.w, rec.ID, r.project.Config.MaxFile)
	if err != nil {
		return nil, err
	}
	if files == nil {
		files = map[string]tree.Hash{}
	}
	maps.Copy(files, x.onlyInStore[rec.ID])
	o, ok := rec.Outside()
	if !ok || files[history.OutsideFile] == o.SHA256 {
		return files, nil
	}
	err = r.history.RewriteFile(rec.ID, history.RecordFile{Name: history.OutsideFile, SHA256: o.SHA256})
	if err = r.unlessKeptOut(rec.ID, err); err != nil && !lostContents(err) {
		return nil, err
	}
	files[history.OutsideFile] = o.SHA256
	return files, nil
}

// nameAlone writes into the open record, durably, which of the run's files the store alone
// has: otherwise who frees space while the lock is free would free them.
func (u *run) nameAlone() error {
	alone := u.x.onlyInStore[u.rec.ID]
	if len(alone) == 0 {
		return nil
	}
	raw, err := json.Marshal(alone)
	if err != nil {
		return err
	}
	return u.r.saveExtra(u.opened, u.rec, extraAlone, raw)
}

// aloneOf are the files that nameAlone wrote.
func aloneOf(o *history.Opened) (files map[string]tree.Hash) {
	if json.Unmarshal(o.Extra[extraAlone], &files) != nil {
		return nil
	}
	return files
}
