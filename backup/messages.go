package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
)

const (
	messageEnd = ".md"
	reasonEnd  = ".error.txt" // of the file beside a dead message that says why
)

// doneStates are the directories of messages that do not wait.
var doneStates = []string{project.DoneDir, project.DeadDir}

// doneMessage is a live message that is done or dead, and which the generation does not have as it is.
type doneMessage struct {
	state, name string
	id          string // "": it has none, or could not be understood
	known       bool   // the generation has another file of this path
	err         error  // why it could not be read
}

// doneMessages are all of these: those that are done first.
type doneMessages struct {
	list  []doneMessage
	named map[string][]int // by the names that a message may have had while it waited
	ids   map[string][]int
}

// doneMessages reads each of them once.
func (b *restoring) doneMessages(live disk.Dir) (*doneMessages, error) {
	out := &doneMessages{named: map[string][]int{}, ids: map[string][]int{}}
	for _, state := range doneStates {
		err := eachFile(live, state, func(dir disk.Dir, name string) error {
			if !strings.HasSuffix(name, messageEnd) {
				return nil
			}
			at := state + "/" + name
			data, err := project.ReadFile(dir, name, message.MaxSize)
			// A message that is too large to be done fails again.
			if isMissing(err) || errors.Is(err, project.ErrTooLarge) || err == nil && b.has(at, data) {
				return nil
			}
			out.add(doneMessage{state: state, name: name, id: idOf(data), known: b.hasAny(at), err: err})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *doneMessages) add(m doneMessage) {
	i := len(d.list)
	d.list = append(d.list, m)
	d.named[m.name] = append(d.named[m.name], i)
	if was := unnumbered(m.name); was != m.name {
		d.named[was] = append(d.named[was], i)
	}
	if m.id != "" {
		d.ids[m.id] = append(d.ids[m.id], i)
	}
}

// find is what became of a message, in one of these states; nil: nothing that is known of. One of its name that certainly is another
// message is not meant, and one of its identity is, though a person has renamed it.
func (d *doneMessages) find(name, id string, states []string) *doneMessage {
	first := len(d.list)
	for _, i := range d.named[name] {
		if m := d.list[i]; slices.Contains(states, m.state) && (m.id == "" || id == "" || m.id == id) {
			first = min(first, i)
		}
	}
	for _, i := range d.ids[id] {
		if m := d.list[i]; slices.Contains(states, m.state) && !m.known {
			first = min(first, i)
		}
	}
	if first == len(d.list) {
		return nil
	}
	return &d.list[first]
}

// keepDone keeps the live messages that are done, or dead, and in the generation wait, or are dead. It returns the files of
// the generation that they stand for, as paths in .decree.
func (b *restoring) keepDone(live, to disk.Dir) (isDone map[string]bool, err error) {
	isDone = map[string]bool{}
	done, err := b.doneMessages(live)
	if err != nil {
		return nil, err
	}
	recorded, err := b.doneRuns()
	if err != nil {
		return nil, err
	}
	for _, file := range sortedFiles(b.staged.Manifest) {
		at, states := string(file), doneStates
		switch {
		case !strings.HasSuffix(at, messageEnd) || b.staged.Manifest.Files[file].Size > message.MaxSize:
			continue
		case path.Dir(at) == project.DeadDir:
			states = []string{project.DoneDir}
		case path.Dir(at) != project.InboxDir:
			continue
		}
		var text bytes.Buffer
		if err := b.staged.write(&text, file); err != nil {
			return nil, err
		}
		if m := done.find(path.Base(at), idOf(text.Bytes()), states); m != nil {
			err = b.keepAs(live, to, m)
		} else if was, rerr := b.recordedAsDone(live, recorded, at, idOf(text.Bytes())); was != nil || rerr != nil {
			if err = rerr; err == nil {
				err = b.keep(to, project.DoneDir, path.Base(at), was, nil)
			}
		} else {
			continue
		}
		if err != nil {
			return nil, err
		}
		b.out.Skipped = append(b.out.Skipped, path.Base(at))
		isDone[at], isDone[strings.TrimSuffix(at, messageEnd)+reasonEnd] = true, true
	}
	return isDone, nil
}

// eachFile does something for each name in a directory below another, in byte order; for none where it is no directory.
func eachFile(above disk.Dir, at string, do func(dir disk.Dir, name string) error) error {
	dir, err := disk.OpenPath(above, at)
	if err != nil {
		return disk.UnlessMissingOrOther(err)
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		if err := do(dir, e.Name); err != nil {
			return err
		}
	}
	return nil
}

// unnumbered is the name of a message without the number that it has got where its own was taken.
func unnumbered(name string) string {
	stem := strings.TrimSuffix(name, messageEnd)
	if dot := strings.LastIndex(stem, "."); dot >= 0 && dot < len(stem)-1 && strings.Trim(stem[dot+1:], "0123456789") == "" {
		stem = stem[:dot]
	}
	return stem + messageEnd
}

// idOf is the identity of a message; "" for one that has none, or cannot be understood.
func idOf(data []byte) string {
	m, err := message.Parse("", data)
	if err != nil {
		return ""
	}
	return m.ID
}

// has says whether the generation has a file of .decree with these bytes.
func (b *restoring) has(at string, data []byte) bool {
	f, ok := b.staged.Manifest.Files[FileName(at)]
	return ok && f.SHA256 == sha256.Sum256(data)
}

// completedSince says whether a message that waits is that of the generation, completed by a process since.
func (b *restoring) completedSince(at string, data []byte) bool {
	var text bytes.Buffer
	if b.staged.Manifest.Files[FileName(at)].Size > message.MaxSize || b.staged.write(&text, FileName(at)) != nil {
		return false
	}
	then, err := message.Parse("", text.Bytes())
	if err != nil {
		return false
	}
	now, err := message.Parse("", data)
	return err == nil && (then.ID == "" || then.ID == now.ID) && (then.Routine == "" || then.Routine == now.Routine) && bytes.Equal(then.Body, now.Body)
}

// keepAs brings a message that does not wait into the new state, with the reason that lies beside it, under a name that the
// generation does not have.
func (b *restoring) keepAs(live, to disk.Dir, m *doneMessage) error {
	at := m.state + "/" + m.name
	if slices.Contains(b.kept, at) { // for another one of the generation
		return nil
	}
	if m.err != nil {
		return m.err
	}
	from, err := disk.OpenPath(live, m.state)
	if err != nil {
		return err
	}
	defer from.Close()
	data, err := project.ReadFile(from, m.name, message.MaxSize)
	if err != nil {
		return err
	}
	b.kept = append(b.kept, at)
	reason, err := project.ReadFile(from, strings.TrimSuffix(m.name, messageEnd)+reasonEnd, message.MaxSize)
	if err != nil && !isMissing(err) && !disk.OtherKind(err) {
		return err
	}
	return b.keep(to, m.state, m.name, data, reason)
}

// keep writes a message that does not wait, and the reason beside it, nil being none, under a name that the generation does
// not have there.
func (b *restoring) keep(to disk.Dir, state, name string, data, reason []byte) error {
	stem := strings.TrimSuffix(name, messageEnd)
	free := stem
	for n := 2; b.hasAny(state+"/"+free+messageEnd, state+"/"+free+reasonEnd); n++ {
		free = fmt.Sprintf("%s.%d", stem, n)
	}
	files := map[string][]byte{free + messageEnd: data}
	if reason != nil {
		files[free+reasonEnd] = reason
	}
	for as, data := range files {
		err := into(to, state+"/"+as, func(dir disk.Dir, base string) error {
			return project.ReplaceFile(dir, base, data, project.PrivateFile, true)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// doneRuns are the records of the runs that have done messages, by what the descriptions of these say of the message.
func (b *restoring) doneRuns() (map[string][]*history.Record, error) {
	list, err := b.o.Recorder.History().List(history.ListOptions{Known: true, Keep: func(rec *history.Record) bool {
		return rec.Reason == history.Run && rec.Status == history.StatusSucceeded && (rec.Draft == nil || rec.Draft.State == history.DraftPublished)
	}})
	if err != nil {
		return nil, err
	}
	out := map[string][]*history.Record{}
	for _, rec := range list.Records {
		if of := recorder.MessageOf(rec); of != "" {
			out[of] = append(out[of], rec)
		}
	}
	return out, nil
}

// recordedAsDone is the text of the message of the generation at that path as a run of the live records has done it, although
// done does not have it any more, since a person or a command has emptied that; nil where there is none. One that waits here was
// queued again.
func (b *restoring) recordedAsDone(live disk.Dir, runs map[string][]*history.Record, at, id string) ([]byte, error) {
	of := runs[recorder.OfMessage(path.Base(at))]
	if id == "" || path.Dir(at) != project.InboxDir || len(of) == 0 {
		return nil, nil
	}
	if inbox, err := disk.OpenPath(live, project.InboxDir); err == nil {
		data, err := project.ReadFile(inbox, path.Base(at), message.MaxSize)
		inbox.Close()
		if err == nil && idOf(data) == id {
			return nil, nil
		}
	}
	for _, rec := range of {
		f, err := b.o.Recorder.History().OpenFile(rec.ID, recorder.MessageFile)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, message.MaxSize+1))
		f.Close()
		if err != nil {
			return nil, err
		}
		if idOf(data) == id {
			return data, nil
		}
	}
	return nil, nil
}

// hasAny says whether the generation has a file of .decree with one of these names.
func (b *restoring) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := b.staged.Manifest.Files[FileName(name)]
		return ok
	})
}

// goneFrom are the live messages that the generation does not have where they are, as paths below the inbox: those that wait also
// where another one has their name there.
func (b *restoring) goneFrom(live disk.Dir) (gone []string, err error) {
	for _, state := range append([]string{project.InboxDir}, doneStates...) {
		err := eachFile(live, state, func(dir disk.Dir, name string) error {
			if !strings.HasSuffix(name, messageEnd) {
				return nil
			}
			at := path.Join(state, name)
			has := b.hasAny(at)
			if has && state == project.InboxDir {
				data, err := project.ReadFile(dir, name, message.MaxSize)
				has = err == nil && (b.has(at, data) || b.completedSince(at, data))
			}
			if !has && !slices.Contains(b.kept, at) {
				gone = append(gone, strings.TrimPrefix(at, project.InboxDir+"/"))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(gone)
	return gone, nil
}
