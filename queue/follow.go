package queue

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// A routine leaves follow-ups in its outbox, a directory of its run, under any
// names, or in the inbox as <chain>-<n>.md or with the running chain in their front
// matter. Every other file that comes into the inbox meanwhile is somebody else's.

// followUp is a file that is to join the running chain.
type followUp struct {
	dir   disk.Dir
	name  string
	named bool // <chain>-<n>.md: it keeps that name
}

// cameUntilDeath is what came into the inbox since the run of a dead process began.
func (q *job) cameUntilDeath(d *dirs) ([]Pending, error) {
	list, err := files(d.inbox)
	before := make(map[string]bool, len(q.u.Before))
	for _, name := range q.u.Before {
		before[name] = true
	}
	return slices.DeleteFunc(list, func(p Pending) bool {
		return before[p.Name] || q.u.Partly && !q.ofChain(p.Name)
	}), err
}

// adopt gives the follow-ups of a run that succeeded their places in its chain, and
// returns their names in the order of their turns. Each step can be repeated.
func (q *job) adopt(d *dirs, id string, came []Pending) ([]string, error) {
	found := q.followUps(d.inbox, came)
	layers, err := q.openTakenOver(id)
	if err != nil {
		return nil, err
	}
	if layers != nil {
		defer layers.Close()
		follow, others, err := q.takenOver(d, layers)
		if err != nil {
			return nil, err
		}
		for _, name := range others {
			if err := notDead(d, layers, name); err != nil {
				return nil, err
			}
			if err := move(layers, name, d.inbox, name); err != nil {
				return nil, err
			}
		}
		found, q.list.stale = append(found, follow...), true
	}
	outbox, err := openOutbox(q.rec, id)
	if err == nil {
		defer outbox.Close()
		var sent []followUp
		if sent, err = q.sent(outbox); err != nil {
			return nil, err
		}
		found = append(found, sent...)
		if err := q.tellUnsent(outbox, id); err != nil {
			return nil, err
		}
	} else if ofFile(err) {
		q.note("%s: what its routine has sent, if anything, cannot be read (%v), and stays in .decree/runs/%s/%s: once that is a directory that can be read, 'decree send' sends it", q.u.Name, err, id, outboxName)
	} else if !isMissing(err) {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b followUp) int {
		if a.named != b.named { // the names that are taken come first
			return map[bool]int{true: -1, false: 1}[a.named]
		}
		return compareNaturally(a.name, b.name)
	})
	q.list.stale = q.list.stale || len(found) > 0 // there are names that it does not know
	var out []string
	seq := q.u.Seq + 1
	for _, f := range found {
		name, err := q.join(d, &f, &seq)
		if isMissing(err) { // somebody has taken it away meanwhile, whose it is then
			if there, herr := disk.Has(f.dir, f.name); !there && herr == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	slices.SortFunc(out, compareNaturally)
	return out, nil
}

// followUps are those of the files that came into a directory, the inbox or a layer's, that
// are of the running chain, and that its routine has written.
func (q *job) followUps(dir disk.Dir, came []Pending) (out []followUp) {
	for _, p := range came {
		if p.Name == q.u.Name || slices.Contains(q.u.Before, p.Name) {
			continue
		}
		named := q.ofChain(p.Name)
		m, _ := parseFile(dir, p.Name) // what cannot be read is nil: its own turn says what is wrong with it
		switch {
		case m != nil && isComplete(m) && (q.hasBegun(m.ID) || q.isOlder(dir, p.Name)):
		case named, m != nil && m.Chain == q.u.Chain && m.Seq != 0:
			out = append(out, followUp{dir, p.Name, named})
		}
	}
	return out
}

// isComplete says whether a message says all of itself, as decree writes it when it begins.
func isComplete(m *message.Message) bool {
	if chain, seq, ok := message.NameParts(m.Name, maxNumber); ok && (chain != m.Chain || seq != m.Seq) {
		return false // a routine's copy of its own message under another number
	}
	return m.Seq >= 0 && m.Type != "" && m.ID == m.Chain+"-"+strconv.Itoa(m.Seq)
}

// hasBegun says whether a message was begun already: then it was put back from dead or done, or is done beside this one, and is
// nobody's follow-up though it may be of the same chain.
func (q *job) hasBegun(id string) bool {
	recorded, err := q.rec.History().Recorded(id)
	return recorded || err != nil || slices.ContainsFunc(q.s.UnderWay, func(u *underWay) bool { return u.ID == id })
}

// isOlder says whether a file was written before the run began, and so only moved since.
func (q *job) isOlder(dir disk.Dir, name string) bool {
	info, err := dir.Stat(name)
	return err == nil && info.Mtime < q.whenBegun()
}

// sent are the follow-ups in an outbox.
func (q *job) sent(outbox disk.Dir) (out []followUp, err error) {
	names, err := messagesIn(outbox)
	for _, name := range names {
		out = append(out, followUp{outbox, name, q.ofChain(name)})
	}
	return out, err
}

// ofChain says whether a file is named as one of the running chain. The first of a
// chain follows none.
func (q *job) ofChain(name string) bool {
	rest, ok := strings.CutPrefix(name, q.u.Chain+"-")
	n, isMessage := strings.CutSuffix(rest, suffix)
	return ok && isMessage && n != "" && len(n) < 10 && strings.Trim(n, "0123456789") == "" && n[0] != '0'
}

// join names a file as one of the chain, notes its depth in it, and has it in the
// inbox. In an outbox it gets its name first: where the inbox is another file
// system, a death leaves the file under that name in both.
func (q *job) join(d *dirs, f *followUp, seq *int) (string, error) {
	for ; ; *seq++ {
		as := f.name
		if !f.named {
			as = fmt.Sprintf("%s-%d%s", q.u.Chain, *seq, suffix)
			if free, err := q.isFree(d, as); err != nil {
				return "", err
			} else if !free {
				continue
			}
			if err := f.dir.RenameNew(f.name, f.dir, as); isExist(err) {
				continue
			} else if err != nil {
				return "", err
			}
			f.name = as
		}
		if err := q.signAsItIs(f.dir, as); err != nil {
			return "", err
		}
		if f.dir == d.inbox {
			return as, d.inbox.Sync()
		}
		err := moveOrCopy(f.dir, as, d.inbox, as)
		if isExist(err) {
			if same, serr := sameContent(f.dir, d.inbox, as); serr != nil {
				return "", serr
			} else if same {
				return as, f.dir.Remove(as)
			}
			f.name, f.named = as, false // a name of the routine's own that is taken
			continue
		}
		if err != nil {
			return "", err
		}
		return as, errors.Join(d.inbox.Sync(), f.dir.Sync())
	}
}

// isFree says whether no message and no record has a name of the chain.
func (q *job) isFree(d *dirs, name string) (bool, error) {
	id := strings.TrimSuffix(name, suffix)
	for _, dir := range []disk.Dir{d.inbox, d.done, d.dead} {
		if there, err := disk.Has(dir, name); there || err != nil {
			return false, err
		}
	}
	recorded, err := q.rec.History().Recorded(id)
	return !recorded, err
}

func sameContent(a, b disk.Dir, name string) (bool, error) {
	one, err := project.ReadFile(a, name, message.MaxSize)
	if err != nil {
		return false, err
	}
	other, err := project.ReadFile(b, name, message.MaxSize)
	return bytes.Equal(one, other), err
}

// signAsItIs is sign for a follow-up that somebody may change meanwhile. One that is still open for writing joins the chain
// without its depth, and its turn comes when it is closed: the message that it follows has ended. A file that was
// written a moment ago counts as open where the system does not tell; it is waited for.
func (q *job) signAsItIs(dir disk.Dir, name string) (err error) {
	waited := false
	for range mostChanges {
		if err = q.sign(dir, name); err == nil || isMissing(err) {
			return err
		}
		if errors.Is(err, errGone) && !waited {
			waited = true
			if err := restOfSecond(dir, name); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, errGone) || errors.Is(err, errChanged) {
		return nil
	}
	return err
}

// restOfSecond returns when the file was left alone for a second.
func restOfSecond(dir disk.Dir, name string) error {
	info, err := dir.Stat(name)
	if err == nil && !leftAlone(info.Mtime, time.Second) {
		time.Sleep(time.Until(time.Unix(0, info.Mtime).Add(time.Second)))
	}
	return err
}

// sign writes into a follow-up of which chain it is and how deep. What cannot be
// understood stays as it is: its own turn says why.
func (q *job) sign(dir disk.Dir, name string) error {
	info, err := dir.Stat(name)
	if err != nil {
		return err
	}
	data, err := project.ReadFile(dir, name, message.MaxSize)
	if ofFile(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := message.Parse(name, data)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	fields := []message.Param{{Name: "depth", Value: strconv.Itoa(q.u.Depth + 1)}}
	if m.Chain != "" { // else its name says both
		seq := strings.TrimSuffix(strings.TrimPrefix(name, q.u.Chain+"-"), suffix)
		fields = append(fields, message.Param{Name: "chain", Value: q.u.Chain}, message.Param{Name: "seq", Value: seq})
	}
	_, out, err := message.Set(m, fields)
	if err != nil || bytes.Equal(out, data) {
		return nil //nolint:nilerr // see above
	}
	if err := rewrite(dir, name, out, info, data); !ofFile(err) {
		return err
	}
	return nil
}

// withdraw takes the follow-ups of a failed attempt out of the inbox: they go to the run's
// outbox, and so stay with its record; as is what that is called then.
func (q *job) withdraw(d *dirs, id, as string, came []Pending) error {
	found, err := q.notPutBack(d, q.followUps(d.inbox, came))
	if len(found) == 0 || err != nil {
		return err
	}
	q.list.stale = true
	run, err := q.rec.History().EnsureRun(id)
	if err != nil {
		return err
	}
	defer run.Close()
	outbox, err := q.project().OwnDir(run, outboxName)
	if err != nil {
		return err
	}
	defer outbox.Close()
	for _, f := range found {
		if err := move(d.inbox, f.name, outbox, f.name); err != nil {
			return err
		}
		q.list.forget(f.name)
		q.note("%s was written by run %s, which failed; it is now in .decree/runs/%s/%s", tree.Quote(f.name), id, id, as)
	}
	return nil
}

// notPutBack leaves out what somebody has moved back from dead by hand, where its reason has stayed alone: 'decree inbox retry'
// takes that along, and notes the message in the state (see noFollowUp).
func (q *job) notPutBack(d *dirs, found []followUp) (left []followUp, err error) {
	for _, f := range found {
		reason, err := disk.Has(d.dead, reasonOf(f.name))
		elsewhere := false
		for _, dir := range []disk.Dir{d.dead, d.done} {
			there, derr := disk.Has(dir, f.name)
			elsewhere, err = elsewhere || there, errors.Join(err, derr)
		}
		if err != nil {
			return nil, err
		}
		if !reason || elsewhere {
			left = append(left, f)
		}
	}
	return left, nil
}

// withdrawAttempt takes back what the attempt n of a run in the tree itself has put into the inbox, or sent in runs inside
// of it; of one in a layer the recorder does it.
func (q *job) withdrawAttempt(d *dirs, n int) error {
	if q.u.Isolated {
		return nil
	}
	if err := q.reopen(d); err != nil {
		return err
	}
	opened, err := q.rec.History().Opened(q.u.Record)
	if err == nil {
		err = passOnInner(q.rec, opened.Record)
	}
	if err == nil {
		err = q.list.look(d.inbox)
	}
	if err != nil {
		return err
	}
	return q.withdraw(d, q.u.Record, recorder.OutboxOf(n), slices.Clone(q.list.appeared))
}

// compareNaturally orders names as people do: a2 before a10.
func compareNaturally(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digitsOf(x), digitsOf(y)
		if dx == "" || dy == "" {
			if x[0] != y[0] {
				return int(x[0]) - int(y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, ny := strings.TrimLeft(dx, "0"), strings.TrimLeft(dy, "0")
		if len(nx) != len(ny) {
			return len(nx) - len(ny)
		}
		if nx != ny {
			return strings.Compare(nx, ny)
		}
		x, y = x[len(dx):], y[len(dy):]
	}
	if x == "" && y == "" {
		return strings.Compare(a, b)
	}
	return len(x) - len(y)
}

// digitsOf are the digits that text begins with.
func digitsOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))] }
