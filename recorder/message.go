package recorder

import (
	"path/filepath"
	"time"

	"decree/history"
	"decree/project"
)

// newID is the id and start of a record that begins now; wanted is given where
// it is an id and free.
func (r *Recorder) newID(wanted string) (string, time.Time, error) {
	id, started, err := r.history.NewID()
	if err != nil || wanted == "" {
		return id, started, err
	}
	free, err := r.freeID(wanted)
	if err == nil && free {
		id = wanted
	}
	return id, started, err
}

// FreeID is the id that the next run has if it asks for wanted. It holds as long
// as the lock does: see Hold.
func (r *Recorder) FreeID(wanted string) (string, error) {
	id, _, err := r.newID(wanted)
	return id, err
}

func (r *Reader) freeID(id string) (bool, error) {
	if _, _, ok := history.ParseID(id); !ok || r.history.HasRun(id) {
		return false, nil
	}
	if _, err := r.history.Opened(id); !isMissing(err) {
		return false, err
	}
	given, err := r.history.Given(id)
	return !given, err
}

// runPlace says where the files of the record of this id lie.
func (r *Reader) runPlace(id string) Place {
	root := r.project.Root
	return Place{ID: id, Root: root, Dir: filepath.Join(root, ".decree", "runs", id)}
}

// compose asks the caller what to execute, now that it is known where the record lies.
func (u *run) compose(id string) error {
	if u.o.Compose == nil {
		return nil
	}
	return u.composeAt(u.r.runPlace(id))
}

// composeAt is compose for a command that sees the tree at another place.
func (u *run) composeAt(p Place) error {
	c, err := u.o.Compose(p)
	if err != nil {
		return err
	}
	u.o.Args, u.files, u.dirs = c.Args, c.Files, c.Dirs
	u.o.Env = append(append([]string(nil), u.o.Env...), c.Env...)
	return nil
}

// composedFiles adds the composed files to those of a new run directory.
func (u *run) composedFiles(files []history.RunFile) []history.RunFile {
	for name, data := range u.files {
		files = append(files, history.RunFile{Name: name, Write: history.Bytes(data)})
	}
	return files
}

// WasPublished says whether a record has brought the draft rec into the tree, also one that
// was undone since. What is older than rec is of another record that had its id before.
func (r *Recorder) WasPublished(rec *history.Record) (was bool, err error) {
	err = r.history.Newest(func(o *history.Record) bool {
		was = was || o.Reason == history.Publish && o.Parent == rec.ID
		return !was && o.ID != rec.ID
	})
	return was, err
}

// makeDirs makes the composed directories.
func (u *run) makeDirs() error {
	if len(u.dirs) == 0 {
		return nil
	}
	run, err := u.r.history.OpenRun(u.rec.ID)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, name := range u.dirs {
		dir, err := project.MakeDir(run, name, project.PrivateDir)
		if err != nil {
			return err
		}
		dir.Close()
	}
	return nil
}

// announce says that an attempt begins, and tells a last one that is the first
// of its run what came before it.
func (u *run) announce(n int) error {
	first := n == u.o.Spent+1
	if first && n > 1 && n == u.o.Attempts {
		text := interruptedContext(u.o.Args, u.o.Attempts, u.o.Earlier)
		if err := u.r.history.ReplaceFile(u.rec.ID, failureFile, history.Bytes(text)); err != nil {
			return u.unfinished(failureFile+" is not written", err)
		}
	}
	if first || u.o.Attempt == nil {
		return nil
	}
	if err := u.o.Attempt(n); err != nil {
		return u.unfinished("the next attempt is not counted", err)
	}
	return nil
}

// mendFiles writes the composed files again that the command deleted, and the
// log's second name.
func (u *run) mendFiles() error {
	for name, data := range u.files {
		if _, err := u.r.statFile(u.rec.ID, name); !isMissing(err) {
			if err != nil {
				return err
			}
			continue
		}
		if err := u.writeFile(name, history.Bytes(data)); err != nil {
			return err
		}
	}
	if u.o.LogCopy == "" {
		return nil
	}
	return u.nameLog(u.o.LogCopy)
}
