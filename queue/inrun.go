package queue

import (
	"slices"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
)

// A message may be done inside a run in place, by a 'decree process' in its script, or beside or inside an agent's turn. When these end, what was
// deleted of .decree meanwhile is written again. A message that was done, or has failed, is not deleted: the log of acts says so, as of
// what people's commands do.

// acting has do move a message out of the inbox. Where a run in place or a turn may write that again, do notes it.
func (q *job) acting(do func(note noteActs) error) error {
	open, _, err := q.rec.History().ListOpen()
	if err != nil {
		return err
	}
	mayWrite := func(o *history.Opened) bool {
		return o.Record.Reason == history.Turn || o.Record.Reason == history.Run && o.Record.Isolated == ""
	}
	if !slices.ContainsFunc(open, mayWrite) {
		return do(func(...project.Act) error { return nil })
	}
	return q.project().Act(do)
}

// goneActs are the acts of a message that leaves the inbox for good; it may have had several names there.
func goneActs(names ...string) (acts []project.Act) {
	for _, name := range names {
		if name != "" {
			acts = append(acts, project.Act{Path: []byte(project.InboxDir + "/" + name), Gone: true})
		}
	}
	return acts
}

// cameToDead are the acts of files that have come into dead. One that cannot be read is not made again.
func cameToDead(dead disk.Dir, names ...string) (acts []project.Act) {
	for _, name := range names {
		info, err := dead.Stat(name)
		if err != nil {
			continue
		}
		if data, err := project.ReadFile(dead, name, message.MaxSize); err == nil {
			acts = append(acts, project.Act{Path: []byte(project.DeadDir + "/" + name), New: true, Mode: info.Mode, Ino: info.Ino, Data: data})
		}
	}
	return acts
}
