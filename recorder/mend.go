package recorder

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/manifest"
	"decree/project"
)

// mend writes again what the command deleted of .decree: the run's own files,
// the other records from the store, the config.
func (u *run) mend() error {
	h := u.r.history
	dir, err := h.EnsureRun(u.rec.ID)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := u.log.Sync(); err != nil {
		return err
	}
	held, err := u.log.Stat()
	if err != nil {
		return err
	}
	if err := u.mendFiles(dir); err != nil {
		return err
	}
	if now, err := dir.Stat(logFile); err != nil || !now.SameFile(held) {
		if err := h.ReplaceFile(u.rec.ID, logFile, func(w io.Writer) error { return copyFile(w, u.log) }); err != nil {
			return err
		}
	}
	plain, err := dir.Stat("manifest.json")
	if isMissing(err) || err == nil && plain.Kind != disk.Regular {
		err = h.ReplaceFile(u.rec.ID, "manifest.json", func(w io.Writer) error { return h.WriteManifest(u.before, w) })
	}
	if err != nil {
		return err
	}
	return u.mendOthers()
}

// mendOthers does nothing unless .decree/runs is another directory than before.
func (u *run) mendOthers() error {
	decree := u.r.project.Decree
	now, err := decree.Stat("runs")
	if err != nil {
		return err
	}
	if now.SameFile(u.runs) {
		return nil
	}
	n, err := u.r.bringBack()
	if err != nil {
		return err
	}
	if n > 0 {
		u.say("the command deleted .decree/runs; %d records were written again", n)
	}
	if err := u.r.bringOwn(u.own); err != nil {
		return err
	}
	u.runs = now // not before: what failed is tried again
	return nil
}

// ownFile is what a person put into .decree: the config, a routine, a message, a
// link, a directory.
type ownFile struct {
	Path   string        `json:"path"` // below .decree
	Mode   uint32        `json:"mode"`
	Hash   manifest.Hash `json:"sha256"`
	Target string        `json:"target,omitempty"` // of a link
	Dir    bool          `json:"dir,omitempty"`
}

// extraOwn is the place of the user's own files in an open record.
const extraOwn = "own"

// notOwn is what decree makes itself in .decree.
var notOwn = map[string]bool{".gitignore": true, "project.json": true, "runs": true, "tmp": true, "store": true, "aside": true,
	"inbox/done": true} // each message that was done is in its run's directory

// ownFiles stores the user's own files in .decree: the tree's manifest leaves
// .decree out, and a command may delete it. A directory comes before what it holds.
func (r *Recorder) ownFiles(x *writing) ([]ownFile, error) {
	var out []ownFile
	err := eachOwn(r.project.Decree, "", func(dir disk.Dir, name, path string, info disk.Info) error {
		own := ownFile{Path: path, Mode: info.Mode, Dir: info.Kind == disk.Directory}
		var err error
		switch info.Kind {
		case disk.Symlink:
			own.Target, err = dir.Readlink(name)
		case disk.Regular:
			own.Hash, err = r.putOwn(x, dir, name, path, info)
		}
		out = append(out, own)
		return err
	})
	return out, err
}

// ownStamp is what was known of a file when it was stored.
type ownStamp struct {
	info disk.Info
	hash manifest.Hash
}

// ownTick is more than any file system's grain of time, in nanoseconds: a file
// that changed within it before it was read may have changed after, unseen.
const ownTick = int64(time.Second)

// putOwn stores a file. In a process that records many runs over a full inbox a
// file that is as it was is not read again.
func (r *Recorder) putOwn(x *writing, dir disk.Dir, name, path string, info disk.Info) (manifest.Hash, error) {
	if s, ok := r.owned[path]; ok && s.info == info && x.w.Has(s.hash) {
		return s.hash, nil
	}
	now := time.Now().UnixNano()
	sum, err := putFile(x, dir, name, info.Size)
	if err == nil && info.Ctime < now-ownTick && info.Mtime < now-ownTick {
		if r.owned == nil || len(r.owned) > maxOwned {
			r.owned = map[string]ownStamp{}
		}
		r.owned[path] = ownStamp{info, sum}
	}
	return sum, err
}

// maxOwned bounds what putOwn remembers; above it, it begins anew.
const maxOwned = 20000

func putFile(x *writing, dir disk.Dir, name string, size int64) (manifest.Hash, error) {
	f, err := dir.Open(name)
	if err != nil {
		return manifest.Hash{}, err
	}
	defer f.Close()
	sum, _, err := x.w.Put(f, size)
	return sum, err
}

// eachOwn calls each for the files, links and directories below dir; decree's
// own at the top are passed over.
func eachOwn(dir disk.Dir, prefix string, each func(dir disk.Dir, name, path string, info disk.Info) error) error {
	list, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		if notOwn[prefix+e.Name] {
			continue
		}
		info, err := dir.Stat(e.Name)
		if isMissing(err) || err == nil && info.Kind == disk.Special {
			continue
		}
		if err == nil {
			err = each(dir, e.Name, prefix+e.Name, info)
		}
		if err == nil && info.Kind == disk.Directory {
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = eachOwn(sub, prefix+e.Name+"/", each)
				sub.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bringOwn makes the user's own files in .decree again where they are missing.
// Directories get their modes last: they may forbid what is made in them.
func (r *Recorder) bringOwn(files []ownFile) error {
	var made []ownFile
	for _, f := range files {
		missing, err := r.bringOne(f)
		if err != nil {
			return fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
		if missing && f.Dir {
			made = append(made, f)
		}
	}
	for _, f := range slices.Backward(made) {
		dir, name, err := r.ownDir(f.Path)
		if err == nil {
			err = dir.Chmod(name, f.Mode&0o777)
			dir.Close()
		}
		if err != nil {
			return fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
	}
	return nil
}

// ownDir opens the directory of a path below .decree, and makes what is missing of it.
func (r *Recorder) ownDir(path string) (disk.Dir, string, error) {
	parts := strings.Split(path, "/")
	dir, err := r.project.Dir.OpenDir(".decree")
	if err != nil {
		return nil, "", err
	}
	for _, p := range parts[:len(parts)-1] {
		next, err := dir.OpenDir(p)
		if isMissing(err) {
			next, err = project.MakeDir(dir, p, 0o755)
		}
		dir.Close()
		if err != nil {
			return nil, "", err
		}
		dir = next
	}
	return dir, parts[len(parts)-1], nil
}

// bringOne says whether there was nothing at the path, and it made the file,
// link or directory.
func (r *Recorder) bringOne(f ownFile) (missing bool, err error) {
	dir, name, err := r.ownDir(f.Path)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if _, err := dir.Stat(name); !isMissing(err) {
		return false, err
	}
	switch {
	case f.Dir:
		sub, err := project.MakeDir(dir, name, 0o755)
		if err == nil {
			sub.Close()
		}
		return true, err
	case f.Target != "":
		return true, errors.Join(makeLink(dir, f.Target, name), dir.Sync())
	}
	data, err := r.object(f.Hash)
	if err != nil {
		return true, err
	}
	return true, project.ReplaceFile(dir, name, data, f.Mode&0o777, true)
}

// makeLink makes a link that belongs to the directory's owner, also under sudo.
func makeLink(dir disk.Dir, target, name string) error {
	if err := dir.Symlink(target, name); err != nil {
		return err
	}
	self, err := dir.Self()
	if err != nil {
		return err
	}
	st, err := dir.Stat(name)
	if err != nil || st.UID == self.UID {
		return err
	}
	return dir.Chown(name, self.UID, self.GID)
}

// bringBack writes again the run directories that are gone, and returns how
// many there were. Plain manifests come back for the newest records only.
func (r *Recorder) bringBack() (int, error) {
	list, err := r.history.List(history.ListOptions{})
	if err != nil {
		return 0, err
	}
	newest := map[string]bool{}
	for i, rec := range list.Records {
		newest[rec.ID] = i < history.PlainManifests
	}
	for _, id := range list.Missing {
		if _, err := r.history.RestoreRun(id, newest[id]); err != nil {
			return 0, err
		}
	}
	return len(list.Missing), nil
}
