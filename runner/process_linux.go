package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"decree/layer/overlay"
)

// A row is what /proc/PID/stat says about a process.
type row struct {
	pid, parent, pgrp, session int
	name                       string
	state                      byte
	start                      uint64
	threads                    int
}

// live reports whether the process still runs. A zombie whose first thread alone
// has ended still does.
func (r row) live() bool {
	switch r.state {
	case 'Z', 'X', 'x':
		return r.threads > 1
	}
	return true
}

func (r row) process() Process { return Process{PID: r.pid, Name: r.name} }

var errStat = errors.New("not a process status")

// parseStat reads the text of /proc/PID/stat: "pid (name) state ppid pgrp session
// ... threads(20) itrealvalue start(22) ...". The name may hold anything, also ") ".
func parseStat(b []byte) (row, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return row{}, errStat
	}
	pid, ok := number(bytes.TrimRight(b[:open], " "))
	r := row{pid: int(pid), name: string(b[open+1 : end])}
	rest := bytes.TrimLeft(b[end+1:], " ")
	for i := 3; i <= 22 && ok; i++ {
		var f []byte
		f, rest, _ = bytes.Cut(rest, []byte{' '})
		var v uint64
		switch i {
		case 3:
			ok = len(f) == 1
			if ok {
				r.state = f[0]
			}
		case 4, 5, 6, 20, 22:
			v, ok = number(f)
		default:
			ok = len(f) > 0
		}
		switch i {
		case 4:
			r.parent = int(v)
		case 5:
			r.pgrp = int(v)
		case 6:
			r.session = int(v)
		case 20:
			r.threads = int(v)
		case 22:
			r.start = v
		}
	}
	if !ok {
		return row{}, errStat
	}
	return r, nil
}

// number reads a decimal number without making a string of it.
func number(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

func procFile(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// lookAt returns the row of one process; fs.ErrNotExist if there is none.
func lookAt(pid int) (row, error) {
	name := procFile(pid, "stat")
	// The system gives the whole text, some 300 bytes, in one read.
	b, err := readProc(name, 1, 1024)
	if err != nil {
		return row{}, err
	}
	r, err := parseStat(b)
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", name, err)
	}
	r.start -= bootOffset()
	return r, nil
}

// bootOffset is by how many ticks the starts that this process reads are later than those that
// the system counts: in a time namespace the time since boot begins elsewhere, and what is
// noted of a process has to mean the same one outside and in.
var bootOffset = sync.OnceValue(func() uint64 {
	b, err := readProc("/proc/self/timens_offsets", 1, 256)
	if err != nil { // the kernel has none
		return 0
	}
	return parseOffsets(b)
})

// ticks is how many of them a second has in /proc.
const ticks = 100

// parseOffsets reads the text of /proc/PID/timens_offsets, "boottime SECONDS NANOSECONDS" on
// a line of its own, as ticks. One below 0
// wraps round, and so does what is taken from it.
func parseOffsets(b []byte) uint64 {
	for line := range strings.Lines(string(b)) {
		var seconds, nanoseconds int64
		if n, _ := fmt.Sscanf(line, "boottime %d %d", &seconds, &nanoseconds); n == 2 {
			return uint64(seconds*ticks + nanoseconds/(1e9/ticks)) //nolint:gosec // see above
		}
	}
	return 0
}

// readProc reads a file of /proc in at most so many reads of size bytes, by plain
// system calls: a scan reads hundreds. The end of a process between two steps is
// fs.ErrNotExist.
func readProc(name string, reads, size int) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var out []byte
	for range reads {
		out = slices.Grow(out, size)
		n, err := unix.Read(fd, out[len(out):len(out)+size])
		if err == unix.EINTR {
			continue
		}
		if err == unix.ESRCH {
			err = unix.ENOENT
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			break
		}
		out = out[:len(out)+n]
	}
	return out, nil
}

// processes lists the live processes that were started at since (clock ticks) or
// later, by pid. One that ends meanwhile is left out.
func processes(since uint64) ([]row, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		r, err := lookAt(pid)
		if err == nil && r.live() && r.start >= since {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return a.pid - b.pid })
	return rows, nil
}

// of reports whether the process belongs to the group: a session has the number
// of the group exactly if the command was given a session of its own.
func (r row) of(pgid int) bool { return r.pgrp == pgid || r.session == pgid }

// members lists the live processes of the group, by pid. Others reports whether
// there are processes outside of it that are young enough to come from it.
func members(pgid int, since uint64) (list []Process, others bool, err error) {
	rows, err := processes(since)
	for _, r := range rows {
		if r.of(pgid) {
			list = append(list, r.process())
		} else {
			others = true
		}
	}
	return list, others, err
}

// newestTask is the number of the process or thread that was started last (proc_loadavg(5),
// the last field); "" where the system does not tell.
func newestTask() string {
	b, err := readProc("/proc/loadavg", 1, 256)
	if err != nil {
		return ""
	}
	return string(b[bytes.LastIndexByte(b, ' ')+1:])
}

// infoReads bounds what is read of a process's mounts; each read gives a few of them.
const infoReads = 1 << 12

// mounted lists the live processes that see the overlay of g and are not of its process
// group, by pid. Also those are seen who have made a mount namespace of their own since.
func mounted(g group) (list []Process, err error) {
	rows, err := processes(g.since)
	own, _ := os.Readlink("/proc/self/ns/mnt")
	for _, r := range rows {
		if g.pgid != 0 && r.of(g.pgid) {
			continue
		}
		// The link alone tells of nearly all that they are elsewhere.
		if ns, err := os.Readlink(procFile(r.pid, "ns/mnt")); err != nil || ns == own {
			continue
		}
		b, err := readProc(procFile(r.pid, "mountinfo"), infoReads, 16<<10)
		if err == nil && overlay.Within(b, g.mount) {
			list = append(list, r.process())
		}
	}
	return list, err
}

// groups lists the process groups that make up the group: itself, and those of
// the jobs in its session.
func groups(pgid int, since uint64, _ *os.File) []int {
	out := []int{pgid}
	rows, _ := processes(since) // without /proc the group itself is left
	for _, r := range rows {
		if r.session == pgid && !slices.Contains(out, r.pgrp) {
			out = append(out, r.pgrp)
		}
	}
	return out
}

// parentAt says what started the process pid and when pid itself started; ok is false
// where the system does not tell.
func parentAt(pid int) (parent int, start uint64, ok bool) {
	r, err := lookAt(pid)
	return r.parent, r.start, err == nil
}

// leaderAt describes the running process pid, the leader of its group.
func leaderAt(pid int) Leader {
	l := Leader{PID: pid, PGID: pid, BootID: BootID(), Space: space("self")}
	if r, err := lookAt(pid); err == nil {
		l.StartTime = r.start
	}
	return l
}

// space is the process's namespace of pids, "" where the system does not tell.
func space(pid string) string {
	link, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return link
}

// here is a leader with its numbers as this process sees them, those of a container from
// outside of it too. ok is false where none of its group is seen, as from another container.
func here(l Leader) (_ Leader, ok bool) {
	if l.Space == "" || l.Space == space("self") {
		return l, true
	}
	rows, _ := processes(l.StartTime)
	for _, r := range rows {
		if space(strconv.Itoa(r.pid)) == l.Space && groupInside(r.pid) == l.PGID {
			l.PID, l.PGID = r.pgrp, r.pgrp
			return l, true
		}
	}
	return l, false
}

// groupInside is a process's group as its own namespace numbers it; 0: not known.
func groupInside(pid int) int {
	b, _ := readProc(procFile(pid, "status"), 4, 4096)
	_, rest, _ := bytes.Cut(b, []byte("\nNSpgid:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	n, _ := number(line[bytes.LastIndexByte(line, '\t')+1:])
	return int(n)
}

// stopped reports whether pid is stopped by a signal now.
func stopped(pid int) bool {
	r, err := lookAt(pid)
	return err == nil && (r.state == 'T' || r.state == 't')
}

// BootID names this boot of the system; "" if it has no name.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// BootTime is when the system was started, by the clock as it is now; zero where that is not known.
func BootTime() time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(info.Uptime) * time.Second)
}

// reused reports whether the leader's number belongs to another process by now.
// Then the whole group has gone: the system gives no number out again that is
// still a group's.
func reused(l Leader) (bool, error) {
	r, err := lookAt(l.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return l.StartTime != 0 && r.start != l.StartTime, nil
}

// find lists the live processes outside the group that came from the command
// (by mark, or as holders of its output) and still work in the root or hold the
// output. What this process may not read about another is not known.
func (o outsiders) find() []Process {
	rows, err := processes(o.since)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	if real, err := filepath.EvalSymlinks(o.root); err == nil {
		o.root = real
	}
	var out []Process
	for _, r := range rows {
		if r.pid == self || r.of(o.pgid) {
			continue
		}
		if holds, works := o.inspect(r.pid); holds || works && o.marked(r.pid) {
			out = append(out, r.process())
		}
	}
	return out
}

// inspect reports whether pid holds the command's output, and whether its working
// directory or an open file lies in the root.
func (o outsiders) inspect(pid int) (holds, works bool) {
	works = o.inRoot(procFile(pid, "cwd"))
	dir, err := os.Open(procFile(pid, "fd"))
	if err != nil {
		return false, works
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		target, err := os.Readlink(procFile(pid, "fd/"+name))
		if err != nil {
			continue
		}
		holds = holds || slices.Contains(o.held, target)
		works = works || o.covers(target)
	}
	return holds, works
}

func (o outsiders) inRoot(link string) bool {
	target, err := os.Readlink(link)
	return err == nil && o.covers(target)
}

func (o outsiders) covers(path string) bool {
	if o.root == "" {
		return false
	}
	return path == o.root || strings.HasPrefix(path, strings.TrimSuffix(o.root, "/")+"/")
}

// environReads bounds what is read of another process's environment, 64 KiB at a
// time, to twice the system's usual limit for arguments and environment.
const environReads = 64

func (o outsiders) marked(pid int) bool {
	if o.mark == "" {
		return false
	}
	b, err := readProc(procFile(pid, "environ"), environReads, 64<<10)
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(b, []byte{0}) {
		if string(e) == o.mark {
			return true
		}
	}
	return false
}

// heldLink is the link text under which other processes hold f open.
func heldLink(f *os.File) string {
	conn, err := f.SyscallConn()
	if err != nil {
		return ""
	}
	link := ""
	_ = conn.Control(func(fd uintptr) {
		link, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
	})
	return link
}

// nameAt is the system's short name for the process pid; "" where it does not tell.
func nameAt(pid int) string {
	r, err := lookAt(pid)
	if err != nil {
		return ""
	}
	return r.name
}

// argumentsAt are those of the process pid, each with a NUL behind it; "" where it does not tell.
func argumentsAt(pid int) string {
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(words)
}

// startAt says when the process pid started, and whether it still runs. One that may not
// be looked at does.
func startAt(pid int) (start uint64, live bool) {
	r, err := lookAt(pid)
	if err != nil {
		return 0, !errors.Is(err, fs.ErrNotExist)
	}
	return r.start, r.live()
}
