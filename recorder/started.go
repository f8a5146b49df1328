package recorder

import (
	"decree/disk"
	"decree/history"
	"decree/runner"
)

// started is what a recovery must know of the last attempt that was begun: it lies beside
// the open record, and is written before the command is executed.
type started struct {
	runner.Leader
	// Log is the inode of its routine.log; 0: not known, as where it was written again.
	Log uint64 `json:"log,omitempty"`
}

func (u *run) noteStarted(l runner.Leader) error {
	info, err := u.log.Stat()
	if err != nil {
		return err
	}
	u.started = started{Leader: l}
	if info.Nlink > 0 {
		u.started.Log = info.Ino
	}
	return u.setLeader()
}

// noteOtherLog makes it known that routine.log is written again.
func (u *run) noteOtherLog() error {
	if u.started.Log == 0 {
		return nil
	}
	u.started.Log = 0
	return u.setLeader()
}

// setLeader writes what is known of the last attempt. Without it the work of an isolated run
// would be dropped with its layer, so that it has to outlive a power loss too; what a run in the tree itself
// has changed is found there.
func (u *run) setLeader() error {
	return u.r.history.SetLeader(u.rec.ID, u.started, u.rec.Isolated != "")
}

// clearLog puts aside a file that the command has moved over its run's routine.log, as an
// ignored one, of which there is no copy.
func (c *recovery) clearLog(id string) error {
	var s started
	if ok, err := c.r.history.Leader(id, &s); err != nil || !ok || s.Log == 0 {
		return err
	}
	dir, err := c.r.history.EnsureRun(id)
	if err != nil {
		return c.r.unlessKeptOut(id, err)
	}
	defer dir.Close()
	st, err := dir.Stat(logFile)
	if isMissing(err) || err == nil && (st.Ino == s.Log || st.Kind == disk.Regular && st.Size == 0) {
		return nil // an empty one may be that of an attempt that was not begun any more
	}
	if err == nil {
		err = c.r.project.PutAside(dir, logFile)
	}
	if history.KeepsOut(err) {
		return nil // it stays where it is
	}
	return err
}
