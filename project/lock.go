package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"decree/disk"
)

const lockFile = "lock.json"

// Holder is who holds the lock, for the message of the one who waits.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Start   time.Time `json:"start"`
	Command []string  `json:"command"`
	Run     string    `json:"run,omitempty"` // the open record's id
}

// HeldError says that another process holds the lock of a root.
type HeldError struct {
	Holder Holder // PID 0: unknown, as when the other has its store elsewhere
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return "another decree is at work on this tree"
	}
	s := fmt.Sprintf("another decree is at work on this tree: process %d on %s since %s", e.Holder.PID, e.Holder.Host, e.Holder.Start.Format(time.RFC3339))
	if len(e.Holder.Command) > 0 {
		s += ": " + strings.Join(e.Holder.Command, " ")
	}
	if e.Holder.Run != "" {
		s += " (record " + e.Holder.Run + ")"
	}
	return s
}

// Category is Refused: nothing was changed.
func (e *HeldError) Category() Kind { return Refused }

// Hint is the next step to take.
func (e *HeldError) Hint() string { return "wait for it with '--wait 5m', or end that process" }

const (
	firstPause = 5 * time.Millisecond
	longPause  = 100 * time.Millisecond
)

// Lock takes the project's lock: flock on the root's own handle, which no
// command can delete and which two stores of one root share. It tries for wait,
// and once if wait is 0; then, or when ctx ends, the error is a *HeldError or
// ctx's. unlock must be called once; the lock ends with the process in any case.
func (p *Project) Lock(ctx context.Context, h Holder, wait time.Duration) (unlock func(), err error) {
	ctxWait, cancel := context.WithTimeout(ctx, max(wait, 0))
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		release, err := p.Dir.TryLock()
		if err == nil {
			if err := p.Hold(h); err != nil {
				_ = release()
				return nil, err
			}
			store := p.Store
			return func() {
				_ = store.Remove(lockFile)
				for _, other := range p.also {
					_ = other()
				}
				p.also = nil
				_ = release()
			}, nil
		}
		if !errors.Is(err, disk.ErrLocked) {
			return nil, err
		}
		select {
		case <-ctxWait.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &HeldError{Holder: p.Holder()}
		case <-time.After(pause):
		}
	}
}

// Hold writes who holds the lock; its owner calls it again when it opens a record.
func (p *Project) Hold(h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return ReplaceFile(p.Store, lockFile, append(b, '\n'), PrivateFile, false)
}

// Holder is who last said that it holds the lock; zero when nobody does.
func (p *Project) Holder() Holder {
	var h Holder
	b, err := ReadFile(p.Store, lockFile, maxIdentity)
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}
