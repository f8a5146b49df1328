package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
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
	if !history.IsID(id) || r.history.HasRun(id) {
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
	u.o.Args, u.files = c.Args, c.Files
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

// OfMessage ends the description of each run of the message called name.
func OfMessage(name string) string { return aboutMessage + tree.Quote(name) + ")" }

// MessageOf is what OfMessage gave a record; "" where it is of no message.
func MessageOf(rec *history.Record) string {
	at := strings.LastIndex(rec.Description, aboutMessage)
	if at < 0 {
		return ""
	}
	return rec.Description[at:]
}

// messageName is the name of the file of the message that a run was to do; "" where it was to do none.
func messageName(rec *history.Record) string {
	name, err := tree.Unquote(strings.TrimSuffix(strings.TrimPrefix(MessageOf(rec), aboutMessage), ")"))
	if err != nil || !strings.HasSuffix(name, messageEnd) || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// MessageFile is the file of a run's directory that holds the message which it does, as it was completed.
const MessageFile = "message.md"

const (
	aboutMessage = "(message "
	maxMessage   = 16 << 20 // as in the queue
)

// waitingMessage is the message that an isolated run was to do and that waits in the inbox, maybe under another name, with the text that
// the run had; "" where there is none. It will be done again, but where the queue is about to publish the run's work itself.
func (r *Reader) waitingMessage(rec *history.Record) (name string, err error) {
	begun := messageName(rec)
	if begun == "" {
		return "", nil
	}
	if rec.Status == history.StatusSucceeded {
		if queued, err := r.underWay(); err != nil || queued[rec.ID] {
			return "", err
		}
	}
	had, err := r.smallFile(".decree/runs/"+rec.ID, MessageFile)
	if err != nil || had == nil {
		return "", err
	}
	names, err := r.inboxOfSize(int64(len(had)))
	for _, name := range append([]string{begun}, names...) {
		waits, rerr := r.smallFile(inbox, name)
		if rerr == nil && bytes.Equal(had, waits) {
			return name, nil
		}
		err = errors.Join(err, rerr)
	}
	return "", err
}

// inboxOfSize are the messages of a size that wait.
func (r *Reader) inboxOfSize(size int64) (names []string, err error) {
	dir, err := disk.OpenPath(r.project.Dir, inbox)
	if err != nil {
		return nil, notThere(err)
	}
	defer dir.Close()
	list, err := dir.List()
	for _, e := range list {
		if strings.HasPrefix(e.Name, ".") || !strings.HasSuffix(e.Name, messageEnd) {
			continue
		}
		if st, err := dir.Stat(e.Name); err == nil && st.Kind == disk.Regular && st.Size == size {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// smallFile is the content of a file in a directory below the root; nil where there is none that can be read.
func (r *Reader) smallFile(dir, name string) ([]byte, error) {
	var data []byte
	err := disk.InDir(r.project.Dir, dir, func(d disk.Dir) (err error) {
		data, err = project.ReadFile(d, name, maxMessage)
		return err
	})
	if errors.Is(err, project.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, notThere(err)
	}
	return data, nil
}

// refuseWaiting refuses a publish beside which a message would do the draft's work once more.
func (r *Reader) refuseWaiting(rec *history.Record) error {
	name, err := r.waitingMessage(rec)
	if err != nil || name == "" {
		return err
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg: fmt.Sprintf("message %s waits, and will be done again from the beginning: with draft %s its work would be in the tree twice", tree.Quote(name), draftName(rec)),
		Advice: fmt.Sprintf("'decree process' goes on with it; for the draft instead: 'decree inbox cancel %s', then 'decree publish %s'",
			tree.ShellWord(strings.TrimSuffix(name, messageEnd)), rec.ID)}
}

// publishesOf are the records that published a part of the draft rec, the oldest first, also those that were undone since.
func (r *Reader) publishesOf(rec *history.Record) (by []string, err error) {
	err = r.history.Newest(func(o *history.Record) bool {
		if o.Reason == history.Publish && o.Parent == rec.ID {
			by = append(by, o.ID)
		}
		return o.ID != rec.ID
	})
	slices.Reverse(by)
	return by, err
}

// WasPublished says whether the files of the draft rec have all been in the tree: records have published each of them, also ones that were
// undone since, or it is there anyway. What its run did in .git does not count. What is older than rec is of another record that had its id before.
func (r *Reader) WasPublished(rec *history.Record) (bool, error) {
	by, err := r.publishesOf(rec)
	if len(by) == 0 || err != nil {
		return false, err
	}
	all, err := r.history.DiffChanges(rec)
	brought := r.broughtBy(rec.Draft, by)
	never := func(c tree.Change) bool { return !brought.whole(c.Path) && !r.isThere(c) }
	return err != nil || !slices.ContainsFunc(all, never), nil //nolint:nilerr // of what cannot be read nothing can be published any more
}

// extraOutbox says in an open record that the run has an outbox. An earlier version that began one, and may have been replaced
// since, has not said that.
const extraOutbox = "outbox"

// SendsNow says whether the run id is under way and has an outbox.
func (r *Reader) SendsNow(id string) bool {
	o, err := r.history.Opened(id)
	if err != nil || o.Extra[extraOutbox] != nil {
		return err == nil
	}
	run, err := r.history.OpenRun(id)
	if err != nil {
		return false
	}
	defer run.Close()
	info, err := run.Stat(project.OutboxDir)
	return err == nil && info.Kind == disk.Directory
}

// makeOutbox makes the command's outbox.
func (u *run) makeOutbox() error {
	if !u.o.Outbox {
		return nil
	}
	run, err := u.r.history.OpenRun(u.rec.ID)
	if err != nil {
		return err
	}
	defer run.Close()
	dir, err := project.MakeDir(run, project.OutboxDir, project.PrivateDir)
	if err != nil {
		return err
	}
	return dir.Close()
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
	if first {
		return nil
	}
	if u.o.Attempt != nil {
		if err := u.o.Attempt(n); err != nil {
			return u.unfinished("the next attempt is not counted", err)
		}
	}
	if err := u.setOutboxAside(n - 1); err != nil {
		return u.unfinished("what the attempt before sent is not put aside", err)
	}
	return nil
}

// OutboxOf is what the outbox of a run's attempt n, which has failed, is called in the record's directory once
// another attempt has begun.
func OutboxOf(n int) string { return fmt.Sprintf("%s.%d", project.OutboxDir, n) }

// setOutboxAside has an attempt begin with an empty outbox: what the attempt before it, which
// has failed, left there lies beside it.
func (u *run) setOutboxAside(attempt int) error {
	if !u.o.Outbox {
		return nil
	}
	run, err := u.r.history.EnsureRun(u.rec.ID)
	if err != nil {
		return err
	}
	defer run.Close()
	err = run.RenameNew(project.OutboxDir, run, OutboxOf(attempt))
	if errors.Is(err, fs.ErrExist) { // the command's own
		err = u.r.project.PutAside(run, project.OutboxDir)
	}
	if err != nil && !isMissing(err) {
		return err
	}
	outbox, err := u.r.project.OwnDir(run, project.OutboxDir)
	if err != nil {
		return err
	}
	return outbox.Close()
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
