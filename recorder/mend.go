package recorder

import (
	"fmt"
	"io"
	"strings"

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
	if now, err := dir.Stat(logFile); err != nil || !now.SameFile(held) {
		if err := h.ReplaceFile(u.rec.ID, logFile, func(w io.Writer) error { return copyFile(w, u.log) }); err != nil {
			return err
		}
	}
	if _, err := dir.Stat("manifest.json"); isMissing(err) {
		err = h.ReplaceFile(u.rec.ID, "manifest.json", func(w io.Writer) error { return h.WriteManifest(u.before, w) })
		if err != nil {
			return err
		}
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

// ownFile is a file in .decree that a person wrote: the config, a routine, a message.
type ownFile struct {
	Path string        `json:"path"` // below .decree
	Mode uint32        `json:"mode"`
	Hash manifest.Hash `json:"sha256"`
}

// extraOwn is the place of the user's own files in an open record.
const extraOwn = "own"

// notOwn is what decree makes itself in .decree.
var notOwn = map[string]bool{".gitignore": true, "project.json": true, "runs": true, "tmp": true, "store": true}

// ownFiles stores the user's own files in .decree: the tree's manifest leaves
// .decree out, and a command may delete it.
func (r *Recorder) ownFiles(x *writing) ([]ownFile, error) {
	var out []ownFile
	err := eachFile(r.project.Decree, "", func(dir disk.Dir, name, path string, info disk.Info) error {
		if top, _, _ := strings.Cut(path, "/"); notOwn[top] {
			return nil
		}
		f, err := dir.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		sum, _, err := x.w.Put(f, info.Size)
		out = append(out, ownFile{path, info.Mode, sum})
		return err
	})
	return out, err
}

// eachFile calls each for the regular files below dir; decree's own directories
// at the top are passed over.
func eachFile(dir disk.Dir, prefix string, each func(dir disk.Dir, name, path string, info disk.Info) error) error {
	list, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		if prefix == "" && notOwn[e.Name] {
			continue
		}
		info, err := dir.Stat(e.Name)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		switch info.Kind {
		case disk.Regular:
			err = each(dir, e.Name, prefix+e.Name, info)
		case disk.Directory:
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = eachFile(sub, prefix+e.Name+"/", each)
				sub.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bringOwn writes the user's own files in .decree again where they are missing.
func (r *Recorder) bringOwn(files []ownFile) error {
	for _, f := range files {
		if err := r.bringOne(f); err != nil {
			return fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
	}
	return nil
}

func (r *Recorder) bringOne(f ownFile) error {
	parts := strings.Split(f.Path, "/")
	dir, err := r.project.Dir.OpenDir(".decree")
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()
	for _, p := range parts[:len(parts)-1] {
		next, err := dir.OpenDir(p)
		if isMissing(err) {
			next, err = project.MakeDir(dir, p, 0o755)
		}
		if err != nil {
			return err
		}
		dir.Close()
		dir = next
	}
	name := parts[len(parts)-1]
	if _, err := dir.Stat(name); !isMissing(err) {
		return err
	}
	data, err := r.object(f.Hash)
	if err != nil {
		return err
	}
	return project.ReplaceFile(dir, name, data, f.Mode&0o777, true)
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
