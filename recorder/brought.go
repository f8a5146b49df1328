package recorder

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/message"
	"decree/project"
	"decree/tree"
)

// What an isolated run's command left in the run's directory lies in the layer, which goes
// with the publish. It is brought into the directory that the record keeps: the outbox of a
// message's routine, its notebook. Messages that it put into the inbox come into the outbox's
// directory project.LayerInbox, since they are to be taken over with the publish alone. The layer
// may show messages that came into the inbox while the command worked; those that it has touched are in
// the layer then. What a person's command has put there (cameByActs) is not brought; of the others the
// queue knows what it has begun. Nor is one brought that it has renamed there: the inbox has that under its name.

// bringWritten copies it, before the record ends. What is there already stays as it is, so
// that it can be done again after a death.
func (r *Recorder) bringWritten(l *layer.Layer, o *history.Opened) error {
	at := ".decree/runs/" + o.Record.ID
	return r.bringFrom(l, o, nil, []brought{{at, ""}, {at + "/" + project.OutboxDir, project.OutboxDir}, {inbox, project.LayerInbox}})
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
	return u.r.bringFrom(u.layer, u.opened, goes, []brought{{at, project.OutboxDir}, {inbox, project.LayerInbox}})
}

// brought is a directory below the root, as it is in a layer, and where in the run's directory its files come.
type brought struct{ from, to string }

const inbox = ".decree/" + project.InboxDir

// bringFrom copies the files in some directories of a layer; those that go then leave it, nil: none does.
func (r *Recorder) bringFrom(l *layer.Layer, o *history.Opened, goes func(from string, dir disk.Dir, name string) bool, list []brought) error {
	id := o.Record.ID
	known, err := r.knownMessages(l, o)
	if err != nil {
		return err
	}
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
			if e.Name[0] == '.' || d.from == inbox && !strings.HasSuffix(e.Name, messageEnd) {
				return nil
			}
			if d.from == inbox {
				if others, err := known.has(from, e.Name, goes == nil); others || err != nil {
					return err
				}
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

// knownMessages are those that may lie in the inbox of a layer as the run's command left that, and are not its own.
type knownMessages struct {
	r       *Recorder
	run     string
	came    cameActs
	deleted func() (messageFiles, error)
}

func (r *Recorder) knownMessages(l *layer.Layer, o *history.Opened) (k knownMessages, err error) {
	k = knownMessages{r: r, run: o.Record.ID, deleted: sync.OnceValues(func() (messageFiles, error) { return r.deletedMessages(l) })}
	k.came, err = r.cameByActs(o)
	return k, err
}

// has says whether dir/name is one of them; tell: a renamed one is noted.
func (k *knownMessages) has(dir disk.Dir, name string, tell bool) (bool, error) {
	if k.came.has(dir, name) {
		return true, nil
	}
	deleted, err := k.deleted()
	was := deleted.renamed(dir, name)
	if was != "" && tell {
		k.r.note("%s is message %s, which run %s renamed in its layer, where messages can be sent and read, but not changed; outside it is still called %[2]s",
			tree.Quote(name), tree.Quote(was), k.run)
	}
	return was != "", err
}

// messageFiles are files of messages, with their names in the inbox.
type messageFiles []messageFile

type messageFile struct {
	name string
	text sentText
}

// deletedMessages are those that a run has deleted in the inbox of its layer, as they are now: waiting, or done meanwhile.
func (r *Recorder) deletedMessages(l *layer.Layer) (out messageFiles, err error) {
	dir, err := disk.OpenPath(r.project.Dir, inbox)
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be read tells nothing
	}
	defer dir.Close()
	names, err := l.Deleted(inbox, dir)
	if len(names) == 0 || err != nil {
		return nil, err
	}
	for _, in := range []string{inbox, ".decree/" + project.DoneDir, ".decree/" + project.DeadDir} {
		at, err := disk.OpenPath(r.project.Dir, in)
		if err != nil {
			continue
		}
		for _, name := range names {
			if data, err := project.ReadFile(at, name, message.MaxSize); err == nil && strings.HasSuffix(name, messageEnd) {
				out = append(out, messageFile{name, sentTextOf(name, data)})
			}
		}
		at.Close()
	}
	return out, nil
}

// renamed is the name of the one of them that dir/name is: it has that one's id, or none and the same text. "": it is none of them.
func (d messageFiles) renamed(dir disk.Dir, name string) string {
	if len(d) == 0 {
		return ""
	}
	is, err := readSent(dir, name)
	for _, f := range d {
		if err == nil && (f.text.sum == is.sum || is.id != "" && f.text.id == is.id || is.id == "" && is.body != nil && bytes.Equal(f.text.body, is.body)) {
			return f.name
		}
	}
	return ""
}

// cameActs are what messages held that people's commands have put into the inbox, by the names of their files there.
type cameActs map[string][]sentText

// sentText is what one held.
type sentText struct {
	sum  [sha256.Size]byte
	id   string // "": it had none
	body []byte // the hash of what it says below its front matter; nil: nothing
}

func sentTextOf(name string, data []byte) sentText {
	t := sentText{sum: sha256.Sum256(data), id: message.IDOf(name, data)}
	if m, err := message.Parse(name, data); err == nil && len(bytes.TrimSpace(m.Body)) > 0 {
		body := sha256.Sum256(bytes.TrimSpace(m.Body))
		t.body = body[:]
	}
	return t
}

// readSent reads what a file in a layer holds, also where the command has taken its rights away.
func readSent(dir disk.Dir, name string) (t sentText, err error) {
	err = disk.GiveRights(dir, name, disk.Regular, 0o400)
	var data []byte
	if err == nil {
		data, err = project.ReadFile(dir, name, message.MaxSize)
	}
	if err == nil {
		t = sentTextOf(name, data)
	}
	return t, err
}

// cameByActs are those since a record was opened, also of messages that have left the inbox: cancelled, edited, deleted, renamed.
func (r *Recorder) cameByActs(o *history.Opened) (cameActs, error) {
	from := actsOf(o)
	if from == nil {
		return nil, nil
	}
	came, last := cameActs{}, project.Act{}
	err := r.project.EachAct(*from, func(_ int64, a project.Act) {
		for _, at := range [][]byte{a.Path, last.Path} {
			moved := a.New && last.Gone // so it was there before
			if dir, name := path.Split(string(at)); dir == project.InboxDir+"/" && !a.Gone && (moved || bytes.Equal(at, a.Path)) {
				came[name] = append(came[name], sentTextOf(name, a.Data))
			}
		}
		last = a
	})
	return came, err
}

// has says whether dir/name holds such a message: its bytes, or another text with its id.
func (t cameActs) has(dir disk.Dir, name string) bool {
	if len(t[name]) == 0 {
		return false
	}
	is, err := readSent(dir, name)
	if err != nil {
		return false // why is said where it is brought
	}
	return slices.ContainsFunc(t[name], func(was sentText) bool { return was.sum == is.sum || is.id != "" && was.id == is.id })
}

// bringFile copies one file into a directory of the run's, which is made if it is missing. The time at which it was written comes
// along: by it messages have their turns, and the queue knows what was done before.
func (r *Recorder) bringFile(from disk.Dir, name string, run disk.Dir, to string) error {
	was, err := from.Stat(name)
	if err != nil {
		return err
	}
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
	var is disk.Info
	how := disk.Replacement{Perm: project.PrivateFile, Flush: true, Temp: project.InboxDraft + "brought"}
	how.Place = func(temp string, to disk.Dir, name string) error {
		if err := dir.SetMtime(temp, is, min(was.Mtime, was.Ctime)); err != nil {
			return err
		}
		return dir.Rename(temp, to, name)
	}
	return disk.Replace(dir, name, how, func(w disk.File) (err error) {
		if _, err = io.Copy(w, f); err == nil {
			is, err = w.Stat()
		}
		return err
	})
}

// barredFile says whether an error is about how one file is, and not about the disk.
func barredFile(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, disk.ErrNotRegular) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO)
}
