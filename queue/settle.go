package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

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
	came, err := q.arrivalsUntilDeath(d, rec)
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
		if err := q.tellCancelled(d, rec); err != nil {
			return nil, "", err
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

// tellCancelled says that the message under way was taken out of the inbox, unless
// that was done here: it is in dead then.
func (q *Queue) tellCancelled(d *dirs, rec *history.Record) error {
	if as, err := q.in(d.dead); as != "" || err != nil {
		return err
	}
	q.note("%s was deleted from the inbox, and is not done again; its text is in .decree/runs/%s/%s", q.s.Name, rec.ID, messageFile)
	return nil
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
	came, err := q.arrivalsUntilDeath(d, res.Record)
	if err != nil {
		return nil, "", err
	}
	res, err = q.accept(d, res, came)
	return res, "", err
}

// arrivals are the files that came into the inbox during a run.
type arrivals struct {
	list []Pending
	// until, in ns since 1970, is when files without a chain ceased to be the
	// run's; 0 is now.
	until int64
}

// has says whether a file came during the run; chained: it names the run's chain.
func (a arrivals) has(p Pending, chained bool) bool {
	return chained || a.until == 0 || p.Ctime <= a.until
}

// arrivalsUntilDeath are those of a run whose process died. When that was, nobody
// has written down: a file without a chain that came later than a second after the
// routine's last output is taken for a person's.
func (q *Queue) arrivalsUntilDeath(d *dirs, rec *history.Record) (arrivals, error) {
	a := arrivals{until: 1}
	list, err := files(d.inbox)
	if err != nil {
		return a, err
	}
	before := map[string]bool{}
	for _, name := range q.s.Before {
		before[name] = true
	}
	a.list = slices.DeleteFunc(list, func(p Pending) bool { return before[p.Name] })
	if q.s.Before == nil {
		return a, nil
	}
	dir, err := q.o.Recorder.History().OpenRun(rec.ID)
	if err != nil {
		return a, nil //nolint:nilerr // then only those with the chain's name are its
	}
	defer dir.Close()
	if info, err := dir.Stat("routine.log"); err == nil {
		a.until = info.Mtime + int64(time.Second)
	}
	return a, nil
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

// adopt gives the files that appeared during a run that succeeded their place in
// its chain, and returns them in order.
func (q *Queue) adopt(d *dirs, came arrivals) ([]string, error) {
	var out []string
	for _, p := range came.list {
		if p.Name == q.s.Name {
			continue
		}
		name, ours, err := q.belongs(d, p.Name)
		if err != nil {
			return nil, err
		}
		if !ours || !came.has(p, name != "") {
			continue
		}
		q.list.stale = true // it gets another name
		if name == "" {
			if name, err = q.join(d, p.Name); err != nil {
				return nil, err
			}
		}
		out = append(out, name)
	}
	return out, nil
}

// belongs says whether a new file is of the running chain: by its name, which it
// then keeps, or for want of any chain. What cannot be read is no follow-up.
func (q *Queue) belongs(d *dirs, name string) (keeps string, ours bool, err error) {
	if chain, _, ok := message.NameParts(name, q.maxDepth()); ok {
		return name, chain == q.s.Chain, nil
	}
	if rest, ok := strings.CutPrefix(name, q.s.Chain+"-"); ok && digits(strings.TrimSuffix(rest, suffix)) {
		return name, true, nil // of a depth that the queue refuses, with a reason
	}
	data, err := project.ReadFile(d.inbox, name, message.MaxSize)
	if isMissing(err) || ofFile(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	m, err := message.Parse(name, data)
	if err != nil {
		return "", false, nil //nolint:nilerr // its own turn says what is wrong with it
	}
	if m.Chain == "" {
		return "", true, nil
	}
	return name, m.Chain == q.s.Chain, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// join names a file as the next one of the chain.
func (q *Queue) join(d *dirs, name string) (string, error) {
	for seq := q.s.Seq + 1; ; seq++ {
		as := fmt.Sprintf("%s-%d%s", q.s.Chain, seq, suffix)
		err := d.inbox.RenameNew(name, d.inbox, as)
		if err == nil {
			return as, d.inbox.Sync()
		}
		if !isExist(err) {
			return "", err
		}
	}
}

// withdraw takes the follow-ups of a failed run out of the inbox: those named
// after the chain go with the record, those without any chain may be a person's
// and go to dead with a reason.
func (q *Queue) withdraw(d *dirs, id string, came arrivals) error {
	for _, p := range came.list {
		if p.Name == q.s.Name {
			continue
		}
		keeps, ours, err := q.belongs(d, p.Name)
		switch {
		case err != nil:
			return err
		case !ours || !came.has(p, keeps != ""):
			continue
		}
		q.list.stale = true
		switch {
		case keeps != "":
			err = q.fileWithRecord(d, id, p.Name)
		default:
			reason := func(as string) string {
				return fmt.Sprintf("appeared while run %s was going, which failed\n\nif it is not a follow-up of that run: %s\n", id, retryCommand(as))
			}
			_, err = bury(d.inbox, d.dead, p.Name, true, reason, "", nil)
		}
		if err != nil {
			return err
		}
		q.note("%s was written by run %s, which failed, and is out of the inbox", p.Name, id)
	}
	return nil
}

// fileWithRecord moves a file into followups/ of a record's directory.
func (q *Queue) fileWithRecord(d *dirs, id, name string) error {
	run, err := q.o.Recorder.History().EnsureRun(id)
	if err != nil {
		return err
	}
	defer run.Close()
	to, err := project.MakeDir(run, "followups", project.PrivateDir)
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = move(d.inbox, name, to, "")
	return err
}

// Waiting lists the messages of the inbox ("", in the order of their turn), of
// "done" or of "dead". It takes no lock and makes nothing.
func Waiting(p *project.Project, where string) ([]Pending, error) {
	dir, err := openBelow(p.Dir, path.Join(".decree", inboxName, where))
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
func Read(p *project.Project, where, name string) (data []byte, reason string, err error) {
	dir, err := openBelow(p.Dir, path.Join(".decree", inboxName, where))
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
	decree := p.Decree
	inbox, err := makeDir(decree, inboxName, dirMode)
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
		return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s: no such dead message; nothing was changed", name), Advice: "'decree inbox --dead' lists them"}
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
