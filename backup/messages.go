package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/message"
	"decree/project"
)

const (
	messageEnd = ".md"
	reasonEnd  = ".error.txt" // of the file beside a dead message that says why
)

const (
	inDone = "inbox/done"
	inDead = "inbox/dead"
)

// doneStates are the directories of messages that do not wait.
var doneStates = []string{inDone, inDead}

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
	for _, file := range sortedFiles(b.staged.Manifest) {
		at, states := string(file), doneStates
		switch {
		case !strings.HasSuffix(at, messageEnd) || b.staged.Manifest.Files[file].Size > message.MaxSize:
			continue
		case path.Dir(at) == inDead:
			states = []string{inDone}
		case path.Dir(at) != "inbox":
			continue
		}
		var text bytes.Buffer
		if err := b.staged.write(&text, at); err != nil {
			return nil, err
		}
		m := done.find(path.Base(at), idOf(text.Bytes()), states)
		if m == nil {
			continue
		}
		if err := b.keepAs(live, to, m); err != nil {
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
	if isMissing(err) || disk.OtherKind(err) {
		return nil
	}
	if err != nil {
		return err
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
	if b.staged.Manifest.Files[FileName(at)].Size > message.MaxSize || b.staged.write(&text, at) != nil {
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
	stem := strings.TrimSuffix(m.name, messageEnd)
	free := stem
	for n := 2; b.hasAny(m.state+"/"+free+messageEnd, m.state+"/"+free+reasonEnd); n++ {
		free = fmt.Sprintf("%s.%d", stem, n)
	}
	files := map[string][]byte{free + messageEnd: data}
	switch reason, err := project.ReadFile(from, stem+reasonEnd, message.MaxSize); {
	case err == nil:
		files[free+reasonEnd] = reason
	case !isMissing(err) && !disk.OtherKind(err):
		return err
	}
	for as, data := range files {
		err := into(to, m.state+"/"+as, func(dir disk.Dir, base string) error {
			return project.ReplaceFile(dir, base, data, project.PrivateFile, true)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
	for _, state := range append([]string{"inbox"}, doneStates...) {
		err := eachFile(live, state, func(dir disk.Dir, name string) error {
			if !strings.HasSuffix(name, messageEnd) {
				return nil
			}
			at := path.Join(state, name)
			has := b.hasAny(at)
			if has && state == "inbox" {
				data, err := project.ReadFile(dir, name, message.MaxSize)
				has = err == nil && (b.has(at, data) || b.completedSince(at, data))
			}
			if !has && !slices.Contains(b.kept, at) {
				gone = append(gone, strings.TrimPrefix(at, "inbox/"))
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
