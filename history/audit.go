package history

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"decree/disk"
	"decree/jsonread"
	"decree/project"
	"decree/tree"
)

const (
	auditFile = "audit.jsonl"
	maxDetail = 4 << 10
	// maxAuditLine bounds a line, so that the last one is found in a tail of the file.
	maxAuditLine = 64 << 10
)

// opTorn is the operation of the line that follows a torn one.
const opTorn = "torn"

// OpRecover is the operation of a recovery of Record, which has a line of its own where it was recorded.
const OpRecover = "recover"

// Operation is one line of audit.jsonl:
//
//	{"time":"...","op":"revert","record":"<id>","actor":{...},"outcome":"done","detail":"...","mistake":true,"prev":"<sha256>"}
//
// prev is the SHA-256 of the line before, without its newline; of the first
// line it is 64 zeros. A line that a death tore is ended by a newline, stays as
// it is, and is followed by one of op "torn" that has its hash.
type Operation struct {
	Time    time.Time
	Op      string // record, label, revert, restore, apply, recover, prune, ...
	Record  string
	Actor   Actor
	Outcome string // "done", or the error
	Detail  string
	// Mistake says that what was asked for does not exist, as after a typing error.
	Mistake bool
	Prev    string
}

func (o *Operation) append(dst []byte) []byte {
	w := compact(dst)
	w.time("time", o.Time)
	w.text("op", cut(o.Op))
	w.text("record", cut(o.Record))
	w.value("actor", o.Actor.append)
	w.text("outcome", cut(o.Outcome))
	w.textIfAny("detail", cut(o.Detail))
	if o.Mistake {
		w.raw("mistake", "true")
	}
	w.text("prev", o.Prev)
	return w.end()
}

func cut(s string) string {
	if len(s) > maxDetail {
		return strings.ToValidUTF8(s[:maxDetail], "") + "..."
	}
	return s
}

// Failed says whether the operation did not do what it was to do: it was refused
// or went wrong, or it is a run whose command failed or whose process died. A mistake of
// the person who asked is no failure.
func (o *Operation) Failed() bool {
	return !o.Mistake && o.Op != opTorn && o.Outcome != "done" && o.Outcome != string(StatusSucceeded)
}

// MarshalJSON is the operation as its line has it.
func (o Operation) MarshalJSON() ([]byte, error) { return o.append(nil), nil }

func parseOperation(b []byte) (*Operation, error) {
	o := &Operation{}
	err := jsonread.Object(b, func(key string, v *jsonread.Value) error {
		switch key {
		case "time":
			o.Time = timeOf(v)
		case "op":
			o.Op = v.Text()
		case "record":
			o.Record = v.Text()
		case "actor":
			o.Actor = actorOf(v)
		case "outcome":
			o.Outcome = v.Text()
		case "detail":
			o.Detail = v.Text()
		case "mistake":
			o.Mistake = v.Bool()
		case "prev":
			o.Prev = v.Text()
		}
		return v.Err()
	})
	if err == nil && (o.Op == "" || len(o.Prev) != 64) {
		err = errors.New("not a line of the audit log")
	}
	return o, err
}

var zeroPrev = strings.Repeat("0", 64)

func lineSum(b []byte) string { return tree.Sum(b).String() }

// A line is appended under a lock of its own, flock on the store's directory. Some lines are
// written by a process that does not have the project's lock, such as the one that says that
// it was refused the lock. They must not come between what another process reads of the
// last line, for prev, and the line that it appends.
const (
	auditPause = time.Millisecond
	auditWait  = 5 * time.Second
)

// Audit appends an operation and flushes it. Time, if zero, is now; Prev is
// filled in. Nothing that was written before is touched. The caller has the
// project's lock, which is enough where the file system cannot lock the store's directory.
func (h *History) Audit(o Operation) error {
	unlock, err := disk.LockWithin(context.Background(), h.p.Store, auditPause, auditWait)
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s: %w", auditFile, err)
	}
	if err == nil {
		defer func() { _ = unlock() }()
	}
	return h.appendAudit(o)
}

// AuditAside is Audit for a caller that does not have the project's lock.
func (h *History) AuditAside(o Operation) error {
	unlock, err := disk.LockWithin(context.Background(), h.p.Store, auditPause, auditWait)
	if err != nil {
		return fmt.Errorf("%s: %w", auditFile, err)
	}
	defer func() { _ = unlock() }()
	return h.appendAudit(o)
}

func (h *History) appendAudit(o Operation) error {
	if o.Time.IsZero() {
		o.Time = h.now()
	}
	f, err := h.p.Store.OpenWrite(auditFile, project.PrivateFile)
	if err != nil {
		return err
	}
	defer f.Close()
	tail, size, err := auditTail(f)
	if err != nil {
		return err
	}
	if size == 0 { // its name is durable before it has a line
		if err := cmp.Or(f.Chmod(project.PrivateFile), h.p.Store.Sync()); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(auditLines(o, tail, size), size); err != nil {
		return err
	}
	return f.Sync()
}

// auditLines are the bytes to be appended after tail, the end of a file of size bytes: the
// operation's line. Where the last line is torn, a newline that ends it and a line of op
// "torn" come before.
func auditLines(o Operation, tail []byte, size int64) []byte {
	o.Prev = zeroPrev
	if size == 0 {
		return append(o.append(nil), '\n')
	}
	var buf []byte
	last, ended := bytes.CutSuffix(tail, []byte{'\n'})
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	o.Prev = lineSum(last)
	if !ended {
		buf = append(buf, '\n')
		torn := Operation{Time: o.Time, Op: opTorn, Outcome: "the line before is incomplete: its writer died", Prev: o.Prev}
		at := len(buf)
		buf = torn.append(buf)
		o.Prev = lineSum(buf[at:])
		buf = append(buf, '\n')
	}
	return append(o.append(buf), '\n')
}

func auditTail(f disk.File) (tail []byte, size int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	tail = make([]byte, min(st.Size, maxAuditLine))
	_, err = f.ReadAt(tail, st.Size-int64(len(tail)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return tail, st.Size, err
}

// auditOnce is Audit, unless one of the last lines says the same of the same record: the end
// of a record may be repeated.
func (h *History) auditOnce(o Operation) error {
	f, err := h.p.Store.Open(auditFile)
	if errors.Is(err, fs.ErrNotExist) {
		return h.Audit(o)
	}
	if err != nil {
		return err
	}
	tail, _, err := auditTail(f)
	f.Close()
	if err != nil {
		return err
	}
	for b := range bytes.SplitSeq(tail, []byte{'\n'}) {
		if p, err := parseOperation(b); err == nil && p.Op == o.Op && p.Record == o.Record && p.Outcome == o.Outcome && p.Detail == cut(o.Detail) {
			return h.flushFile(auditFile)
		}
	}
	return h.Audit(o)
}

// AuditReport is what a reading of the audit found.
type AuditReport struct {
	Lines int   // read
	Torn  []int // numbers of lines that a death cut, and that the line after them accounts for
	// Broken is the first line at which the chain does not hold, 0 if it does;
	// Since is the time of the last line before that.
	Broken int
	Reason string
	Since  time.Time
}

// Err is nil, or an error of kind Integrity that says where the chain is broken.
func (r *AuditReport) Err() error {
	if r.Broken == 0 {
		return nil
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s:%d: the chain is broken: %s", auditFile, r.Broken, r.Reason),
		Advice: "the lines before are as they were written; the order and number of those after it are not proven"}
}

// ReadAudit calls each (nil: no one) for every operation, oldest first, and
// checks the chain. It goes on behind a broken line.
func (h *History) ReadAudit(each func(*Operation) error) (*AuditReport, error) {
	rep := &AuditReport{}
	f, err := h.p.Store.Open(auditFile)
	if errors.Is(err, fs.ErrNotExist) {
		return rep, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := chainCheck{rep: rep, prev: zeroPrev, each: each}
	in := bufio.NewReaderSize(f, maxAuditLine)
	for {
		b, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			// No line of ours is that long: it counts as one broken line.
			if cerr := c.line(nil, true); cerr != nil {
				return nil, cerr
			}
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
		case len(b) > 0:
			if cerr := c.line(bytes.TrimSuffix(b, []byte{'\n'}), err == nil); cerr != nil {
				return nil, cerr
			}
		}
		if errors.Is(err, io.EOF) {
			c.end()
			return rep, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// chainCheck goes along the chain.
type chainCheck struct {
	rep    *AuditReport
	prev   string
	last   time.Time
	unread int // the number of a line that is none, until the next one explains it
	each   func(*Operation) error
}

func (c *chainCheck) line(b []byte, ended bool) error {
	c.rep.Lines++
	o, err := parseOperation(b)
	if err != nil {
		if c.unread != 0 {
			c.broken(c.unread, "not a line of the audit log")
		}
		c.unread, c.prev = c.rep.Lines, lineSum(b)
		if !ended {
			c.rep.Torn, c.unread = append(c.rep.Torn, c.unread), 0 // the next writer will say so
		}
		return nil
	}
	switch {
	case o.Prev != c.prev:
		c.broken(c.rep.Lines, "it does not follow the line before")
	case c.unread != 0 && o.Op == opTorn:
		c.rep.Torn = append(c.rep.Torn, c.unread)
	case c.unread != 0:
		c.broken(c.unread, "not a line of the audit log")
	}
	c.unread, c.prev, c.last = 0, lineSum(b), o.Time
	if c.each != nil {
		return c.each(o)
	}
	return nil
}

func (c *chainCheck) end() {
	if c.unread != 0 {
		c.broken(c.unread, "not a line of the audit log")
	}
}

func (c *chainCheck) broken(line int, reason string) {
	if c.rep.Broken == 0 {
		c.rep.Broken, c.rep.Reason, c.rep.Since = line, reason, c.last
	}
}

var _ json.Marshaler = Operation{}
