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
	run, err := r.history.EnsureRun(id)
	if err != nil {
		return r.unlessKeptOut(id, err)
	}
	defer run.Close()
	at := ".decree/runs/" + id
	for _, d := range []struct{ from, to string }{
		{at, ""}, {at + "/" + project.OutboxDir, project.OutboxDir}, {".decree/inbox", project.LayerInbox},
	} {
		if d.from == ".decree/inbox" {
			if _, err := run.Stat(project.OutboxDir); err != nil {
				break // it is no message's run
			}
		}
		err := l.Written(d.from, func(from disk.Dir, e disk.Entry) error {
			if e.Name[0] == '.' || d.to == project.LayerInbox && !strings.HasSuffix(e.Name, ".md") {
				return nil
			}
			err := r.bringFile(from, e.Name, run, d.to)
			if barredFile(err) {
				r.note("%s of run %s cannot be read (%v), and goes with its layer", tree.Quote(path.Join(d.from, e.Name)), id, err)
				err = nil
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
