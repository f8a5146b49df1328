//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killWait bounds the wait for processes that were sent KILL: one that waits
// inside the kernel may not end for hours.
const killWait = 2 * time.Second

// errGroup refuses numbers with which kill(2) means something else than a group.
var errGroup = errors.New("not a command's process group")

// A group is a command's process group and, if it has one, its session; with an overlay
// it is also all that sees that.
type group struct {
	pgid    int    // 0: none
	since   uint64 // the leader's start; nothing older belongs to it
	session bool
	tty     *os.File // the session's pseudo-terminal
	mount   string   // the overlay's name; "": none
	only    *uint32  // the user whose processes belong to it; nil: anybody's
}

// emptyLooks is how many looks in a row that meet nobody prove that nobody lives, where
// processes are born all the time. Each one more catches one more generation of processes
// that fork and end within a single look.
const emptyLooks = 4

// members lists those who live, by pid. Others reports whether there may be processes
// that left the group.
//
// A look is not one moment: a process that forks and ends meanwhile leaves a child behind
// that the look misses. So a look that meets nobody counts at once only if the system
// started nothing meanwhile.
func (g group) members() (list []Process, others bool, err error) {
	for range emptyLooks {
		before := newestTask()
		list, others, err = g.look()
		if err != nil || len(list) > 0 || newestTask() == before {
			break
		}
	}
	return list, others, err
}

// look lists those who live, as members does, but may miss who is born during it.
func (g group) look() (list []Process, others bool, err error) {
	list, others, err = g.anybody()
	if g.only == nil {
		return list, others, err
	}
	own := slices.DeleteFunc(slices.Clone(list), func(p Process) bool { return !ownedBy(p.PID, *g.only) })
	return own, others || len(own) < len(list), err
}

// anybody is members, whoever they belong to.
func (g group) anybody() (list []Process, others bool, err error) {
	if g.pgid != 0 {
		list, others, err = members(g.pgid, g.since)
		if err != nil || !others {
			return list, others, err
		}
	}
	if g.mount == "" {
		return list, others, nil
	}
	more, err := mounted(g)
	list = append(list, more...)
	slices.SortFunc(list, func(a, b Process) int { return a.PID - b.PID })
	return list, others, err
}

// signal sends each of sigs to the whole group. Members that may not be signalled
// are passed over.
func (g group) signal(sigs ...unix.Signal) {
	if g.only != nil {
		list, _, _ := g.members()
		for _, p := range list {
			signalOwned(p.PID, *g.only, sigs)
		}
		return
	}
	var to []int
	switch {
	case g.pgid == 0:
	case g.session:
		to = groups(g.pgid, g.since, g.tty)
	default:
		to = []int{g.pgid}
	}
	for i, pgid := range to {
		to[i] = -pgid
	}
	if g.mount != "" {
		more, _ := mounted(g) // without /proc the group itself is left
		for _, p := range more {
			to = append(to, p.PID)
		}
	}
	for _, sig := range sigs {
		for _, pid := range to {
			_ = unix.Kill(pid, sig)
		}
	}
}

// terminate sends TERM, and CONT so that a stopped process gets it.
func (g group) terminate() { g.signal(unix.SIGTERM, unix.SIGCONT) }

// kill ends the group without asking.
func (g group) kill() { g.signal(unix.SIGKILL) }

// A pause waits d and reports whether the wait for a graceful end is still on.
type pause func(d time.Duration) bool

// An ending is what was met when a group was ended.
type ending struct {
	met, left []Process // those who had to be ended, and those of them who did not end; by pid
	others    bool      // there may be processes that left the group before
}

// end ends all that lives in the group: TERM, up to grace, KILL. Wait is called
// between looks; when it returns false, KILL follows at once.
func (g group) end(grace time.Duration, wait pause) (ending, error) {
	left, others, err := g.members()
	if err != nil || len(left) == 0 {
		return ending{others: others}, err
	}
	met := left
	if grace > 0 {
		g.terminate()
		met, left, err = g.await(met, grace, wait)
	}
	if err == nil && (grace <= 0 || len(left) > 0) {
		// Those who are born while the others die are killed in the next round.
		met, left, err = g.await(met, killWait, func(d time.Duration) bool {
			g.kill()
			time.Sleep(d)
			return true
		})
	}
	slices.SortFunc(met, func(a, b Process) int { return a.PID - b.PID })
	return ending{met: met, left: left, others: true}, err
}

// await looks at the group until it is empty, limit has passed or wait says no. It
// adds whom it saw to met.
func (g group) await(met []Process, limit time.Duration, wait pause) (all, left []Process, err error) {
	met = slices.Clone(met)
	seen := make(map[int]bool, len(met))
	for _, p := range met {
		seen[p.PID] = true
	}
	step, until := time.Millisecond, time.Now().Add(limit)
	for {
		left, _, err = g.members()
		if err != nil {
			return met, nil, err
		}
		for _, p := range left {
			if !seen[p.PID] {
				seen[p.PID] = true
				met = append(met, p)
			}
		}
		if len(left) == 0 || !time.Now().Before(until) || !wait(step) {
			return met, left, nil
		}
		step = min(2*step, 50*time.Millisecond)
	}
}

// Alive lists the live members of the group that l led, by pid; zombies do not
// count. A group of another boot, one whose number another process has by now, and one
// of a container into which this process does not see, is gone.
func Alive(l Leader) ([]Process, error) {
	if l.PGID <= 1 {
		return nil, fmt.Errorf("group %d: %w", l.PGID, errGroup)
	}
	if l.ofAnotherBoot() {
		return nil, nil
	}
	l, seen := here(l)
	if gone, err := reused(l); !seen || gone || err != nil {
		return nil, err
	}
	list, _, err := group{pgid: l.PGID, since: l.StartTime}.members()
	return list, err
}

// ofAnotherBoot says whether the system is known to have been started since.
func (l Leader) ofAnotherBoot() bool {
	now := BootID()
	return l.BootID != "" && now != "" && l.BootID != now
}

// Outside lists the live processes that left the group that l led and still work in root, by pid, on Linux: those that
// inherited its run's DECREE_RUN_ID.
func Outside(l Leader, run, root string) []Process {
	if l.ofAnotherBoot() {
		return nil
	}
	return outsiders{pgid: l.PGID, since: l.StartTime, mark: runMark + run, root: root}.find()
}

// A ForeignError is what was left alone because it belongs to another user than the one
// whose processes alone may be ended.
type ForeignError struct {
	Owner     uint32    // whose processes may be ended
	Processes []Process // the others, by pid
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("not ended, as they are not user %d's: %s", e.Owner, names(e.Processes))
}

// Kill ends what Alive lists: TERM, up to grace, KILL. It returns nil when all are
// gone, and an error that names those who are not. With only it ends that user's
// processes, and a *ForeignError names the others.
func Kill(l Leader, only *uint32, grace time.Duration) error {
	alive, err := Alive(l)
	if err != nil || len(alive) == 0 {
		return err
	}
	l, seen := here(l)
	if !seen {
		return nil // they have ended since
	}
	self := os.Getpid()
	for _, p := range alive {
		if p.PID == self {
			return fmt.Errorf("group %d: this process belongs to it", l.PGID)
		}
	}
	g := group{pgid: l.PGID, since: l.StartTime, session: true, only: only}
	_, err = g.finish(grace, fmt.Sprintf("group %d", l.PGID))
	return err
}

// KillMounted ends all processes that see the overlay called name, as Kill does, whoever
// started them; it returns whom it met. An overlay is gone with the last who sees it.
func KillMounted(name string, only *uint32, grace time.Duration) ([]Process, error) {
	return group{mount: name, only: only}.finish(grace, "overlay "+name)
}

// finish ends the group; what names it in the error for those who still live.
func (g group) finish(grace time.Duration, what string) ([]Process, error) {
	e, err := g.end(grace, func(d time.Duration) bool {
		time.Sleep(d)
		return true
	})
	if err == nil && len(e.left) > 0 {
		err = fmt.Errorf("%s: still alive: %s", what, names(e.left))
	}
	if err == nil && g.only != nil {
		var rest []Process
		if rest, _, err = g.anybody(); len(rest) > 0 {
			err = &ForeignError{Owner: *g.only, Processes: rest}
		}
	}
	return e.met, err
}

// names is a list for a message: "sleep (123), sh (124)".
func names(list []Process) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%d)", p.Name, p.PID)
	}
	return b.String()
}

// outsiders is a search for what left the group.
type outsiders struct {
	pgid  int
	since uint64
	mark  string   // an entry of the environment that all the command's processes inherit; "": none
	root  string   // absolute
	held  []string // link texts of /proc/PID/fd that mean the command's output
}
