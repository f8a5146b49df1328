package recorder

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"decree/disk"
	"decree/layer"
	"decree/project"
	"decree/tree"
)

// What an isolated run's command left in the run's directory lies in the layer, which goes
// with the publish. It is brought into the directory that the record keeps: the outbox of a
// message's routine, its notebook. Messages that it put into the inbox come into the outbox's
// directory project.LayerInbox, since they are to be taken over with the publish alone.

// bringWritten copies it, before the record ends. What is there already stays as it is, so
// that it can be done again after a death.
func (r *Recorder) bringWritten(l *layer.Layer, id string) error {
	at := ".decree/runs/" + id
	return r.bringFrom(l, id, nil, []brought{{at, ""}, {at + "/" + project.OutboxDir, project.OutboxDir}, {inbox, project.LayerInbox}})
}

// withdrawSent moves what an attempt has sent, which has failed, out of the layer, so that it is not
// sent beside what the next one sends.
func (u *isolatedRun) withdrawSent() error {
	if !u.o.Outbox {
		return nil
	}
	at := ".decree/runs/" + u.rec.ID + "/" + project.OutboxDir
	goes := func(from string, dir disk.Dir, name string) bool {
		return from == at || u.o.FollowsUp != nil && u.o.FollowsUp(dir, name)
	}
	return u.r.bringFrom(u.layer, u.rec.ID, goes, []brought{{at, project.OutboxDir}, {inbox, project.LayerInbox}})
}

// brought is a directory below the root, as it is in a layer, and where in the run's directory its files come.
type brought struct{ from, to string }

const inbox = ".decree/inbox"

// bringFrom copies the files in some directories of a layer; those that go then leave it, nil: none does.
func (r *Recorder) bringFrom(l *layer.Layer, id string, goes func(from string, dir disk.Dir, name string) bool, list []brought) error {
	run, err := r.history.EnsureRun(id)
	if err != nil {
		return r.unlessKeptOut(id, err)
	}
	defer run.Close()
	for _, d := range list {
		if d.from == inbox {
			if _, err := run.Stat(project.OutboxDir); err != nil {
				break // it is no message's run
			}
		}
		err := l.Written(d.from, func(from disk.Dir, e disk.Entry) error {
			if e.Name[0] == '.' || d.from == inbox && !strings.HasSuffix(e.Name, ".md") {
				return nil
			}
			err := r.bringFile(from, e.Name, run, d.to)
			if barredFile(err) {
				r.note("%s of run %s cannot be read (%v), and goes with its layer", tree.Quote(path.Join(d.from, e.Name)), id, err)
				err = nil
			}
			if err == nil && goes != nil && goes(d.from, from, e.Name) {
				err = from.Remove(e.Name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bringFile copies one file into a directory of the run's, which is made if it is missing.
func (r *Recorder) bringFile(from disk.Dir, name string, run disk.Dir, to string) error {
	if err := disk.GiveRights(from, name, disk.Regular, 0o400); err != nil {
		return err
	}
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	dir := run
	for part := range strings.SplitSeq(to, "/") {
		if part == "" {
			continue
		}
		next, err := r.project.OwnDir(dir, part)
		if err != nil {
			return err
		}
		defer next.Close()
		dir = next
	}
	if _, err := dir.Stat(name); !isMissing(err) {
		return err
	}
	return disk.Replace(dir, name, disk.Replacement{Perm: project.PrivateFile, Flush: true, Temp: project.InboxDraft + "brought"}, func(w disk.File) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// barredFile says whether an error is about how one file is, and not about the disk.
func barredFile(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, disk.ErrNotRegular) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO)
}
