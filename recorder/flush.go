package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// flushWork makes durable what the command of a message has left in the tree and in its outbox,
// before its record counts: from then on the message is done for good, and what a power loss
// took of its work would be made again by nobody.
func (u *run) flushWork() error {
	if u.o.Task == "" || u.rec.Status != history.StatusSucceeded {
		return nil
	}
	var files, dirs []tree.Path
	for _, c := range u.changes {
		switch {
		case c.New == nil || c.New.Type == tree.Symlink:
			dirs = append(dirs, c.Path.Parent())
		case c.New.Type == tree.Regular:
			files = append(files, c.Path)
		default:
			dirs = append(dirs, c.Path)
		}
	}
	if err := flushPaths(context.Background(), u.r.project.Dir, files, dirs); err != nil {
		return fmt.Errorf("not flushed: %w", err)
	}
	if err := u.flushOutbox(); err != nil {
		return fmt.Errorf("the outbox of record %s: not flushed: %w", u.rec.ID, err)
	}
	if err := u.flushInbox(); err != nil {
		return fmt.Errorf(".decree/%s: not flushed: %w", project.InboxDir, err)
	}
	return nil
}

// flushers is how many flushes wait at once, so that they share the file system's commits.
const flushers = 32

// flushRewritten makes durable what the command has written and is no change, since the bytes are those of before: no put-back
// and no revert writes it again, and a power loss would leave it empty. changes are those that there are now; what was
// one before, and is none any more, an earlier attempt had changed.
func (u *run) flushRewritten(ctx context.Context, res *capture.Result, changes []tree.Change) {
	paths := slices.Clone(res.Rewritten)
	i := 0
	for _, was := range u.changes {
		for i < len(changes) && changes[i].Path.Compare(was.Path) < 0 {
			i++
		}
		if was.Old.IsFile() && (i == len(changes) || changes[i].Path != was.Path) {
			paths = append(paths, was.Path)
		}
	}
	if err := flushPaths(ctx, u.r.project.Dir, paths, nil); err != nil {
		u.say("written anew by the command with the bytes that it had, and not flushed to the disk: %v; should a power failure empty it, 'decree restore %s PATH' brings it", err, u.rec.ID)
	}
}

// flushPaths makes files below the root durable, directories, and the names of all of them. What is not there any more, or may
// not be read, is passed over.
func flushPaths(ctx context.Context, root disk.Dir, files, dirs []tree.Path) error {
	all := map[tree.Path]bool{}
	for _, p := range dirs {
		all[p] = true
	}
	for _, p := range slices.Concat(files, dirs) {
		for p != "" && !all[p.Parent()] {
			p = p.Parent()
			all[p] = true
		}
	}
	errs := sideBySide(ctx, flushers, len(files), func(i int) error {
		return tree.At(files[i], notThere(disk.InDir(root, string(files[i].Parent()), func(d disk.Dir) error { return flushed(d, files[i].Name()) })))
	})
	for _, p := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, tree.At(p, notThere(disk.InDir(root, string(p), disk.Dir.Sync))))
	}
	return cmp.Or(errs...)
}

// flushed flushes a file.
func flushed(dir disk.Dir, name string) error {
	file, err := dir.Open(name)
	if err != nil {
		return notThere(err)
	}
	defer file.Close()
	return file.Sync()
}

// notThere is nil for what is no fault of the disk: somebody has changed the path since it was
// recorded, or it may not be read.
func notThere(err error) error {
	if isMissing(err) || disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// flushOutbox flushes the follow-ups that the command has left.
func (u *run) flushOutbox() error {
	run, err := u.r.history.OpenRun(u.rec.ID)
	if err != nil {
		return notThere(err)
	}
	defer run.Close()
	outbox, err := run.OpenDir(project.OutboxDir)
	if err != nil {
		return notThere(err)
	}
	defer outbox.Close()
	list, err := outbox.List()
	for _, e := range list {
		if err == nil && e.Kind == disk.Regular {
			err = flushed(outbox, e.Name)
		}
	}
	return errors.Join(err, outbox.Sync())
}

// flushInbox flushes the messages that the command has put into the inbox, where the inbox has changed since the run began.
// After a power loss they would be empty, and be done as such.
func (u *run) flushInbox() error {
	inbox, err := u.r.project.Decree.OpenDir(project.InboxDir)
	if err != nil {
		return notThere(err)
	}
	defer inbox.Close()
	now, err := inbox.Self()
	if err != nil || now.SameFile(u.inbox) && now.Ctime == u.inbox.Ctime {
		return err
	}
	list, err := inbox.List()
	for _, e := range list {
		if err != nil {
			return err
		}
		st, serr := inbox.Stat(e.Name)
		if serr == nil && st.Kind == disk.Regular && st.Ctime >= u.inbox.Ctime {
			err = flushed(inbox, e.Name)
		}
	}
	return errors.Join(err, inbox.Sync())
}
