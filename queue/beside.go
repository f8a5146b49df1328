package queue

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
)

// The layer of an isolated run may show messages that come into the inbox while its routine
// works. One that the routine touches is in the layer then, as if the routine had written it,
// and may have been done meanwhile.

// beganBeside notes, for the isolated ones under way, that the message u begins.
func (s *state) beganBeside(u *underWay, as begunBeside) {
	for _, o := range s.UnderWay {
		if o == u || !o.Isolated || slices.Contains(o.Beside, as) {
			continue
		}
		o.Beside = append(o.Beside, as)
		o.Beside = o.Beside[max(0, len(o.Beside)-maxBefore):]
	}
}

// wasBegunBeside says whether from/name is a message that began beside the one under way, as it came or as it was completed. It may
// have left the inbox, done and the history since.
func (q *job) wasBegunBeside(from disk.Dir, name string) (bool, error) {
	for _, b := range q.u.Beside {
		if b.Name != name {
			continue
		}
		same, err := b.isAt(from, name)
		if err != nil {
			return false, err
		}
		data, err := project.ReadFile(from, name, message.MaxSize)
		if isMissing(err) || ofFile(err) {
			return same, nil
		}
		if err != nil {
			return false, err
		}
		id := message.IDOf(name, data)
		if same = same && (id != "" || !q.writtenSince(from, name, b.ID)); same || id == b.ID {
			return true, nil
		}
	}
	return false, nil
}

// writtenSince says whether from/name was written after the message id had begun, which was completed by then: what has its text
// without that id was not taken from its file. False where it is not known when that was, or the clock was set back since.
func (q *job) writtenSince(from disk.Dir, name, id string) bool {
	if id == "" {
		return false
	}
	info, err := from.Stat(name)
	began := q.whenRunBegan(id)
	return err == nil && began < info.Mtime && info.Mtime <= time.Now().UnixNano()
}

// whenBegun is when the run began, by the clock of the inbox's file system (ns since 1970).
// Where its record has lost that, nothing came since.
func (q *job) whenBegun() int64 { return q.whenRunBegan(q.u.Record) }

func (q *job) whenRunBegan(id string) int64 {
	run, err := q.rec.History().OpenRun(id)
	if err != nil {
		return math.MaxInt64
	}
	defer run.Close()
	info, err := run.Stat(messageFile)
	if err != nil {
		return math.MaxInt64
	}
	return info.Mtime
}

// cameBeside says whether from/name is a message that came from elsewhere: it waits in the
// inbox, or was put into done or dead since the run began.
func (q *job) cameBeside(d *dirs, from disk.Dir, name string, began int64) (bool, error) {
	if same, err := q.isOther(from, name, d.inbox, name); same && err == nil && !q.wasSent(from, name, d.inbox) || err != nil {
		return err == nil, err
	}
	for _, dir := range []disk.Dir{d.done, d.dead} {
		since, before, err := movedSince(dir, name, began)
		for _, other := range slices.Concat(since, before) {
			if err != nil {
				break
			}
			var same bool
			same, err = q.isOther(from, name, dir, other)
			if same && err == nil && (slices.Contains(since, other) || q.ranBeside(dir, other)) {
				return true, nil
			}
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// isOther says whether from/name, of a layer, is the message dir/other: of the same id, or, where one has none yet, with the same
// text and fields.
func (q *job) isOther(from disk.Dir, name string, dir disk.Dir, other string) (bool, error) {
	same, m, n, err := compareMessages(from, name, dir, other)
	if same || err != nil || m == nil || m.ID != "" && n.ID != "" || !sameButCompleted(m, n) {
		return same, err
	}
	return m.ID != "" || !q.writtenSince(from, name, n.ID), nil
}

// wasSent says whether from/name has no id, and the message of its name that waits came with one.
func (q *job) wasSent(from disk.Dir, name string, inbox disk.Dir) bool {
	id := idIn(inbox, name)
	return id != "" && idIn(from, name) == "" && !slices.ContainsFunc(q.u.Beside, func(b begunBeside) bool { return b.ID == id })
}

// movedSince are the files called name, or as free calls them then, that were put into dir since began, and those that were
// there before, as the times of the files tell.
func movedSince(dir disk.Dir, name string, began int64) (since, before []string, err error) {
	list, err := dir.List()
	for _, e := range list {
		if !isNumbered(e.Name, name) {
			continue
		}
		if info, serr := dir.Stat(e.Name); serr == nil && info.Ctime >= began {
			since = append(since, e.Name)
		} else if serr == nil {
			before = append(before, e.Name)
		}
	}
	return since, before, err
}

// ranBeside says whether a record tells that the message dir/name was done since the run began, whatever the clock said
// meanwhile. What cannot be read tells nothing.
func (q *job) ranBeside(dir disk.Dir, name string) bool {
	id := idIn(dir, name)
	rec, err := q.rec.History().Get(q.u.Record)
	if id == "" || err != nil {
		return false
	}
	ran := false
	_ = q.rec.History().Since(rec, func(o *history.Record) {
		if ran || o.Inside != rec.Inside || recorder.MessageOf(o) == "" {
			return
		}
		if run, err := q.rec.History().OpenRun(o.ID); err == nil {
			defer run.Close()
			ran = idIn(run, messageFile) == id
		}
	})
	return ran
}

// idIn is the id of the message dir/name, "" where none can be read.
func idIn(dir disk.Dir, name string) string {
	m, err := parseFile(dir, name)
	if err != nil {
		return ""
	}
	return m.ID
}

// isNumbered says whether a file is called name, or as free calls one where that is taken.
func isNumbered(file, name string) bool {
	rest, ok := strings.CutPrefix(file, strings.TrimSuffix(name, suffix))
	number, isMessage := strings.CutSuffix(rest, suffix)
	return ok && isMessage && (number == "" || number[0] == '.' && strings.Trim(number[1:], "0123456789") == "")
}

// compareMessages says whether two files have the same bytes or the same id; m and n are what they say, where that can be
// understood and is not needed to tell.
func compareMessages(a disk.Dir, name string, b disk.Dir, other string) (same bool, m, n *message.Message, err error) {
	one, err := project.ReadFile(a, name, message.MaxSize)
	var two []byte
	if err == nil {
		two, err = project.ReadFile(b, other, message.MaxSize)
	}
	if isMissing(err) || ofFile(err) {
		return false, nil, nil, nil
	}
	if err != nil || bytes.Equal(one, two) {
		return err == nil, nil, nil, err
	}
	m, err = message.Parse(name, one)
	n, nerr := message.Parse(other, two)
	if err != nil || nerr != nil {
		return false, nil, nil, nil //nolint:nilerr // what cannot be understood has no id
	}
	return m.ID != "" && m.ID == n.ID, m, n, nil
}

// sameButCompleted says whether two messages say the same, but for what decree itself writes into
// one that it completes.
func sameButCompleted(m, n *message.Message) bool {
	either := func(a, b string) bool { return a == b || a == "" || b == "" }
	return bytes.Equal(m.Body, n.Body) && slices.Equal(m.Params, n.Params) && m.InputFile == n.InputFile && m.CronJob == n.CronJob &&
		(m.Isolated == nil) == (n.Isolated == nil) && (m.Isolated == nil || *m.Isolated == *n.Isolated) &&
		either(m.Chain, n.Chain) && either(m.Type, n.Type) && either(m.Routine, n.Routine) &&
		(m.Seq == n.Seq || m.Seq < 0 || n.Seq < 0) && (m.Depth == n.Depth || m.Depth == 0 || n.Depth == 0)
}
