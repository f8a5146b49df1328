package recorder

import (
	"errors"
	"os"
	"slices"
	"time"

	"decree/history"
	"decree/runner"
)

// endGrace is how long processes that a dead decree has left have to end by themselves.
const endGrace = 2 * time.Second

// mayEnd is the user whose processes alone may be ended for what the store says, nil for
// all that the system allows. As root in another user's store we would otherwise end any
// process whose number this user has written there.
func (r *Reader) mayEnd() (*uint32, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	st, err := r.project.Store.Self()
	if err != nil || st.UID == 0 {
		return nil, err
	}
	return &st.UID, nil
}

// endGroup ends the command that l led, and names whom it ended; what says in words
// which they are. Whom it may not end it returns.
func (c *recovery) endGroup(l runner.Leader, what string) (left []runner.Process, err error) {
	live, err := runner.Alive(l)
	if err != nil || len(live) == 0 {
		return nil, err
	}
	only, err := c.r.mayEnd()
	if err != nil {
		return nil, err
	}
	left, err = processesOfOthers(runner.Kill(l, only, endGrace))
	if err != nil {
		return nil, err
	}
	c.addEnded(what, slices.DeleteFunc(live, func(p runner.Process) bool { return slices.Contains(left, p) }))
	return left, nil
}

// endMounted ends the processes that see the mount of a layer; what says in words
// which they are. Whom it may not end it names.
func (c *recovery) endMounted(mount, what string) error {
	only, err := c.r.mayEnd()
	if err != nil {
		return err
	}
	met, err := runner.KillMounted(mount, only, endGrace)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	c.addEnded(what, met)
	left, err := processesOfOthers(err)
	c.addLeft(what, left)
	return err
}

// nameOutside names what of a run in place left its command's group and goes on, as the run's end would have.
func (c *recovery) nameOutside(o *history.Opened, l runner.Leader) {
	if list := runner.Outside(l, o.Record.ID, c.r.project.Root); len(list) > 0 {
		c.add(nil, "of run %s, whose decree died, these left the command's process group and are still running in the tree: %s", o.Record.ID, processNames(list))
	}
}

func (c *recovery) addEnded(what string, list []runner.Process) {
	if len(list) > 0 {
		c.add(nil, "ended %s: %s", what, processNames(list))
	}
}

func (c *recovery) addLeft(what string, list []runner.Process) {
	if len(list) > 0 {
		c.add(nil, "left alone what the store says is %s, as it belongs to another user than the store: %s", what, processNames(list))
	}
}

// processesOfOthers takes the processes out of an error that only says that they are another user's.
func processesOfOthers(err error) ([]runner.Process, error) {
	if f := (*runner.ForeignError)(nil); errors.As(err, &f) {
		return f.Processes, nil
	}
	return nil, err
}
