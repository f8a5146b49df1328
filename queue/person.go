package queue

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"

	"decree/disk"
	"decree/message"
	"decree/project"
)

// What a person does to one message takes no lock, so that it works while another
// message is done: files are moved whole, and the queue looks at each again before it
// begins it. The message that is being done is refused.

// UnderWay is the message that a process on host is doing now, "" for none.
func UnderWay(p *project.Project, host string) (name string, by project.Holder, err error) {
	by = p.Holder()
	if !by.Working(host) {
		return "", by, nil
	}
	s, err := readState(p.Store)
	if err != nil {
		return "", by, err
	}
	return s.Name, by, nil
}

// refuseUnderWay is the refusal to touch a message that is being done.
func refuseUnderWay(p *project.Project, host, name string) error {
	now, by, err := UnderWay(p, host)
	if err != nil || now != name {
		return err
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s is being done by process %d", name, by.PID),
		Advice: fmt.Sprintf("wait for its end, or end its routine: 'kill -INT %d' puts its changes back and leaves the message in the inbox (a daemon needs the signal twice)", by.PID)}
}

// Where finds a message by the name of its file: in the inbox (""), "dead" or "done",
// in this order.
func Where(p *project.Project, name string) (string, error) {
	for _, where := range []string{"", deadName, doneName} {
		dir, err := openBelow(p.Dir, path.Join(".decree", inboxName, where))
		if isMissing(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		info, err := dir.Stat(name)
		dir.Close()
		if err == nil && info.Kind == disk.Regular && isMessage(name) {
			return where, nil
		}
		if err != nil && !isMissing(err) {
			return "", err
		}
	}
	return "", noMessage(name)
}

func noMessage(name string) error {
	return &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: name + ": no such message",
		Advice: "'decree inbox' lists those that wait; --dead and --done list the others"}
}

// Cancel moves a message that waits to dead, with a reason, and returns its name there.
func Cancel(p *project.Project, host, name, reason string) (as string, err error) {
	if err := refuseUnderWay(p, host, name); err != nil {
		return "", err
	}
	inbox, err := openBelow(p.Dir, ".decree/"+inboxName)
	if isMissing(err) {
		return "", noMessage(name)
	}
	if err != nil {
		return "", err
	}
	defer inbox.Close()
	if info, err := inbox.Stat(name); err != nil || info.Kind != disk.Regular || !isMessage(name) {
		return "", errors.Join(noMessage(name), notMissing(err))
	}
	dead, err := ownDir(p, inbox, deadName)
	if err != nil {
		return "", err
	}
	defer dead.Close()
	for {
		if as, err = free(dead, name, reasonEnd); err != nil {
			return "", err
		}
		text := reason + "\n\nqueue it again: " + retryCommand(as) + "\n"
		if err = p.Drop(inboxName+"/"+deadName, reasonOf(as), []byte(text)); !isExist(err) {
			break
		}
	}
	if err == nil {
		err = carry(inbox, name, dead, as)
	}
	if err != nil {
		_ = dead.Remove(reasonOf(as))
		return "", err
	}
	return as, errors.Join(dead.Sync(), inbox.Sync())
}

func notMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

// ErrEdited says that a message is not any more what it was when its editing began.
var ErrEdited = errors.New("it was changed or taken away meanwhile")

// Edit puts a new text in the place of a message that waits ("") or is dead; was is
// the text that was edited. Its place among those that wait stays.
func Edit(p *project.Project, host, where, name string, was, text []byte) error {
	if _, err := message.Parse(name, text); err != nil {
		return err
	}
	if where == "" {
		if err := refuseUnderWay(p, host, name); err != nil {
			return err
		}
	}
	dir, err := openBelow(p.Dir, path.Join(".decree", inboxName, where))
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	var now []byte
	if err == nil {
		now, err = project.ReadFile(dir, name, message.MaxSize)
	}
	if isMissing(err) || err == nil && !bytes.Equal(now, was) {
		return ErrEdited
	}
	if err != nil {
		return err
	}
	return rewriteAs(dir, fmt.Sprintf("%sedit-%d-", queueDraft, os.Getpid()), name, text, info)
}
