package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
)

// settle deals with the message that a process left under way, after the
// recorder has recovered: it ends one whose run had ended, and names one that is
// to be gone on with.
func (q *Queue) settle(ctx context.Context, d *dirs) (res *Result, resume string, err error) {
	s := q.s
	if s.Name == "" {
		return nil, "", nil
	}
	var rec *history.Record
	if s.Record != "" { // else its attempts were counted, and the next was not begun
		if rec, err = q.o.Recorder.History().Get(s.Record); project.KindOf(err) == project.NotFound || isMissing(err) {
			rec, err = nil, nil
		}
		if err != nil {
			return nil, "", err
		}
	}
	here, err := q.waits(d)
	if err != nil {
		return nil, "", err
	}
	res = &Result{Name: s.Name, ID: s.ID, Record: rec}
	switch {
	case rec == nil && here:
		return nil, s.Name, nil // it had not begun
	case rec == nil:
		s.forget()
		return nil, "", nil
	case succeeded(rec):
		return q.settleDone(d, res)
	}
	if err := q.takeBack(ctx, rec); err != nil {
		return nil, "", err
	}
	came, err := q.cameUntilDeath(d)
	if err == nil {
		err = q.withdraw(d, rec.ID, came)
	}
	if err != nil {
		return nil, "", err
	}
	spent := s.Attempt
	if rec.Status != history.StatusInterrupted && rec.Status != history.StatusUndone {
		spent = max(spent, rec.Attempts)
	}
	if !here {
		as, err := q.in(d.dead)
		if err != nil {
			return nil, "", err
		}
		if as == "" && rec.Recovered == nil { // its routine had deleted it, and it was to go to dead
			res, err = q.dead(d, res, fmt.Sprintf("failed after %d attempts", spent), rec)
			return res, "", err
		}
		if as == "" {
			q.tellCancelled(rec)
		}
		s.forget()
		return nil, "", s.write(q.project().Store, false)
	}
	if spent >= q.project().Config.MaxAttempts || final(rec) {
		reason := fmt.Sprintf("failed after %d attempts", spent)
		if rec.Recovered != nil {
			reason = fmt.Sprintf("decree's process ended in attempt %d of %d", spent, q.project().Config.MaxAttempts)
		}
		res, err = q.dead(d, res, reason, rec)
		return res, "", err
	}
	s.Spent, s.Interrupted = spent, append(s.Interrupted, rec.ID)
	s.Record, s.Attempt = "", 0
	q.note("%s was under way when decree's process ended: %d of %d attempts are spent", s.Name, spent, q.project().Config.MaxAttempts)
	return nil, s.Name, s.write(q.project().Store, true)
}

// tellCancelled says that the message under way was taken out of the inbox.
func (q *Queue) tellCancelled(rec *history.Record) {
	q.note("%s was deleted from the inbox, and is not done again; its text is in .decree/runs/%s/%s", q.s.Name, rec.ID, messageFile)
}

// succeeded says whether a run had: also if it was undone since.
func succeeded(rec *history.Record) bool {
	return rec.Status == history.StatusSucceeded || rec.ExitCode != nil && *rec.ExitCode == 0
}

// final says whether a run ended with a command that cannot be executed.
func final(rec *history.Record) bool {
	return rec.Recovered == nil && rec.ExitCode != nil && (*rec.ExitCode == 126 || *rec.ExitCode == 127) && rec.Attempts == 1
}

// settleDone ends a message whose run had succeeded. If its file is in done
// already, what came into the inbox since is no follow-up of it.
func (q *Queue) settleDone(d *dirs, res *Result) (*Result, string, error) {
	found, err := q.s.find(d.inbox, q.s.Name)
	if err != nil {
		return nil, "", err
	}
	if found != itself {
		if as, err := q.in(d.done); as != "" || err != nil {
			q.s.Last = q.s.Chain
			q.s.forget()
			return nil, "", err
		}
	}
	came, err := q.cameUntilDeath(d)
	if err != nil {
		return nil, "", err
	}
	res, err = q.accept(d, res, came)
	return res, "", err
}

// takeBack brings the tree back to what it was before an interrupted run, and
// before one that could not put itself back.
func (q *Queue) takeBack(ctx context.Context, rec *history.Record) error {
	if rec.Status != history.StatusInterrupted && rec.Status != history.StatusFailed {
		return nil
	}
	res, err := q.o.Recorder.Revert(ctx, recorder.MoveOptions{Refs: []string{rec.ID}, Yes: true})
	var conflict *recorder.ConflictError
	if errors.As(err, &conflict) {
		conflict.Advice = fmt.Sprintf("message %s waits for it: take its run back with 'decree revert --merge %s' (or --force), or take the message out of the inbox", q.s.Name, rec.ID)
	}
	if err != nil {
		return err
	}
	if res.Record != nil {
		q.note("run %s of %s was interrupted, and is taken back: record %s", rec.ID, q.s.Name, res.Record.ID)
	}
	return nil
}

// Waiting lists the messages of the inbox ("", in the order of their turn), of
// "done" or of "dead". It takes no lock and makes nothing.
func Waiting(p *project.Site, where string) ([]Pending, error) {
	dir, err := disk.OpenPath(p.Dir, path.Join(".decree", inboxName, where))
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return files(dir)
}

// Read is the content of a file that Waiting has named; a dead message's reason
// is beside it.
func Read(p *project.Site, where, name string) (data []byte, reason string, err error) {
	dir, err := disk.OpenPath(p.Dir, path.Join(".decree", inboxName, where))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	if data, err = project.ReadFile(dir, name, message.MaxSize); err != nil {
		return nil, "", err
	}
	if text, err := project.ReadFile(dir, strings.TrimSuffix(name, suffix)+reasonEnd, message.MaxFront); err == nil {
		reason, _, _ = strings.Cut(string(text), "\n")
	}
	return data, reason, nil
}

// Retry moves a dead message back into the inbox, where its turn comes again
// with all its attempts. The caller holds the lock.
func Retry(p *project.Project, name string) (as string, err error) {
	inbox, err := ownDir(p, p.Decree, inboxName)
	if err != nil {
		return "", err
	}
	defer inbox.Close()
	dead, err := inbox.OpenDir(deadName)
	if err == nil {
		defer dead.Close()
		var info disk.Info
		if info, err = dead.Stat(name); err == nil && info.Kind != disk.Regular {
			err = fmt.Errorf("%s: not a plain file", name)
		}
	}
	if isMissing(err) {
		return "", &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: fmt.Sprintf("%s: no such dead message", name), Advice: "'decree inbox --dead' lists them"}
	}
	if err != nil {
		return "", err
	}
	if as, err = move(dead, name, inbox, ""); err != nil {
		return "", err
	}
	err = dead.Remove(strings.TrimSuffix(name, suffix) + reasonEnd)
	if isMissing(err) {
		err = nil
	}
	return as, err
}
