package project

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"decree/disk"
)

// While the command of a run works, people's own commands send, edit, cancel and retry
// messages beside it, and the command may then delete the whole inbox. What such a
// command does is an act, a line of a log in the store, so that the end of the run, or a
// recovery, knows how the person left each file, and which messages of an isolated run's
// layer are not its routine's:
//
//	own/             locked (flock) while an act is made, and while files are written again
//	own/acts.jsonl   there from before a run looks at the files in .decree, or an isolated
//	                 message's run begins, until no record is open; an act is flushed before
//	                 it is made
//
// An act that fails takes its line back. A death between the two leaves a line whose file is
// where it was, under its inode. No act begins without the lock, so that the lines of one are
// never among those of another.

// OwnLogs is the directory of the store with what is known of the user's own files in .decree.
const OwnLogs = "own"

// ActsLog is the name of the log of acts in OwnLogs.
const ActsLog = "acts.jsonl"

// Act is what became of one file below .decree by a person's command.
type Act struct {
	Path []byte `json:"path"` // below .decree; in base64, as all bytes of JSON
	Gone bool   `json:"gone,omitempty"`
	New  bool   `json:"new,omitempty"` // there was no file of this name
	Mode uint32 `json:"mode,omitempty"`
	Ino  uint64 `json:"ino,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Act has do change files below .decree, and note what it is about to do in the log,
// where there is one. What do has noted is taken back when it fails. On a full disk it
// goes on without the log: a message can be sent also then. While another act is made it
// waits, and after actsWait it refuses.
func (p *Project) Act(do func(note func(...Act) error) error) error {
	own, release, err := p.lockActs(actsWait)
	if disk.Full(err) { // without its directory no run has looked at the files
		return do(func(...Act) error { return nil })
	}
	if errors.Is(err, disk.ErrLocked) {
		return &Error{Kind: Refused, State: Unchanged, Msg: fmt.Sprintf("another decree command has been changing the messages for %v", actsWait),
			Advice: "repeat it when that has ended; if it was stopped, continue it with 'fg' or 'kill -CONT', or end it"}
	}
	if err != nil {
		return err
	}
	defer release()
	log, err := openActs(own)
	if log == nil {
		if err != nil {
			return err
		}
		return do(func(...Act) error { return nil }) // no run has looked at the files yet
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return err
	}
	end := before.Size
	err = do(func(acts ...Act) (err error) {
		end, err = addActs(log, acts)
		if err == nil && before.Size == 0 { // so its name may not be durable yet
			err = errors.Join(own.Sync(), p.Store.Sync())
		}
		if disk.Full(err) {
			err = nil
		}
		return err
	})
	if err == nil {
		return nil
	}
	if now, serr := log.Stat(); serr != nil || now.Size != end {
		return err // another program has written there
	}
	return errors.Join(err, log.Truncate(before.Size))
}

// addActs writes lines at the end of a log, and returns its new size. The first line feed
// ends what a death, or a full disk, has left half-written.
func addActs(log disk.File, acts []Act) (end int64, err error) {
	text := []byte{'\n'}
	for _, a := range acts {
		line, err := json.Marshal(a)
		if err != nil {
			return 0, err
		}
		text = append(append(text, line...), '\n')
	}
	now, err := log.Stat()
	if err != nil {
		return 0, err
	}
	n, err := log.WriteAt(text, now.Size)
	return now.Size + int64(n), errors.Join(err, log.Sync())
}

// BeginActs has acts noted from now on, and returns where in the log they will begin. The
// caller has the project's lock, and opens a record before it gives it back. brief: an agent waits for that.
func (p *Project) BeginActs(brief bool) (from int64, err error) {
	wait := holdWait
	if brief {
		wait = actsWait
	}
	own, release, err := p.lockActsOrGoOn(wait)
	if err != nil {
		return 0, err
	}
	defer release()
	log, err := own.OpenWrite(ActsLog, PrivateFile)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	st, err := log.Stat()
	return st.Size, err
}

// HoldActs calls do while no act is made, but for one that has been going on for holdWait.
func (p *Project) HoldActs(do func() error) error {
	_, release, err := p.lockActsOrGoOn(holdWait)
	if disk.Full(err) {
		return do()
	}
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// EndActs removes the log, or leaves that to a later command where an act is being made. The caller has the project's lock, and has seen
// that no record is open.
func (p *Project) EndActs() error {
	own, err := p.Store.OpenDir(OwnLogs)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer own.Close()
	unlock, err := own.TryLock()
	if errors.Is(err, disk.ErrLocked) {
		return nil
	}
	if err == nil {
		err = errors.Join(disk.UnlessMissing(own.Remove(ActsLog)), unlock())
	}
	return err
}

// EachAct calls each for the acts from a place in the log on, with the place of their line.
func (s *Site) EachAct(from int64, each func(at int64, a Act)) error {
	return eachLine(s, ActsLog, from, each)
}

// ActAt is the act whose line begins at a place in the log.
func (s *Site) ActAt(at int64) (a Act, err error) {
	log, err := s.readOwnLog(ActsLog)
	if err == nil && log == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return a, err
	}
	defer log.Close()
	if _, err = log.Seek(at, io.SeekStart); err != nil {
		return a, err
	}
	line, _, err := readLine(bufio.NewReader(log))
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(bytes.TrimSpace(line), &a)
}

// openActs opens the log for writing; nil where there is none.
func openActs(own disk.Dir) (disk.File, error) {
	if _, err := own.Stat(ActsLog); err != nil {
		return nil, disk.UnlessMissing(err)
	}
	return own.OpenWrite(ActsLog, PrivateFile)
}

// actsWait is how long an act is waited for. It has a few steps. A person's command that is
// stopped in its midst holds up other acts until it ends, and a run for no longer than holdWait: what that writes again then, the act may
// just have moved. A disk whose flushes stall takes less.
const (
	actsWait = 2 * time.Second
	holdWait = 10 * time.Second
)

// lockActs opens the directory of the log, and locks it, until release is called. The error
// is disk.ErrLocked where an act goes on for longer than wait.
func (p *Project) lockActs(wait time.Duration) (own disk.Dir, release func(), err error) {
	own, err = MakeDir(p.Store, OwnLogs, PrivateDir)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := disk.LockWithin(context.Background(), own, firstPause, wait)
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	return own, func() { _ = unlock(); own.Close() }, nil
}

// lockActsOrGoOn is lockActs for a run, which no command of a person may hold up, nor at each of its steps.
func (p *Project) lockActsOrGoOn(wait time.Duration) (own disk.Dir, release func(), err error) {
	if p.heldUp.Load() {
		wait = min(wait, actsWait)
	}
	own, release, err = p.lockActs(wait)
	locked := errors.Is(err, disk.ErrLocked)
	p.heldUp.Store(locked)
	if locked {
		own, err = p.Store.OpenDir(OwnLogs)
		release = func() { own.Close() }
	}
	return own, release, err
}
