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

// acting has do move a message out of the inbox, while no person's command is at work that may have taken it away and puts it back. Where a
// run in place or a turn may write it again, do notes it.
func (q *job) acting(do func(note noteActs) error) error {
	open, _, err := q.rec.History().ListOpen()
	if err != nil {
		return err
	}
	mayWrite := func(o *history.Opened) bool {
		return o.Record.Reason == history.Turn || o.Record.Reason == history.Run && o.Record.Isolated == ""
	}
	if !slices.ContainsFunc(open, mayWrite) {
		return q.project().HoldActs(func() error {
			return do(func(...project.Act) error { return nil })
		})
	}
	return q.project().Act(do)
}

// gone are the acts of a file that leaves a directory below .decree for good; it may have had several names there.
func gone(at string, names ...string) (acts []project.Act) {
	for _, name := range names {
		if name != "" {
			acts = append(acts, project.Act{Path: []byte(at + "/" + name), Gone: true})
		}
	}
	return acts
}

// came is the act of a file that has come, or is about to come, to a path below .decree, and is dir/name now. One that cannot
// be read is not made again where the command of a run deletes it.
func came(dir disk.Dir, name, to string) []project.Act {
	info, err := dir.Stat(name)
	if err != nil {
		return nil
	}
	data, err := project.ReadFile(dir, name, message.MaxSize)
	if err != nil {
		return nil
	}
	return []project.Act{{Path: []byte(to), New: true, Mode: info.Mode, Ino: info.Ino, Data: data}}
}

// moves are the acts of a move of a message.
func moves(from disk.Dir, name, at, to, as string) []project.Act {
	return append(gone(at, name), came(from, name, to+"/"+as)...)
}

// cameToDead are the acts of a message that has come into dead with its reason.
func cameToDead(dead disk.Dir, as string) []project.Act {
	return append(came(dead, reasonOf(as), project.DeadDir+"/"+reasonOf(as)), came(dead, as, project.DeadDir+"/"+as)...)
}
