package project

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"decree/disk"
)

// atWork says whether the lock on the directory dir, which another process holds, is
// decree's own: the holder is called decree, as this process is or by its usual name,
// and its user is this one, root, or the directory's owner. Everybody who can read a
// directory can lock it, and that must keep nobody from working.
//
// known is false where the system does not tell who holds the lock, as only Linux does.
func atWork(dir disk.Info) (held, known bool) {
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false, false
	}
	for line := range bytes.Lines(locks) {
		pid := holderOf(string(line), dir.Ino)
		if pid == "" {
			continue
		}
		known = true
		uid, ok := ownerOfProcess(pid)
		if ok && (uid == 0 || uid == dir.UID || uid == uint32(os.Geteuid())) && namedDecree(pid) {
			return true, true
		}
	}
	return false, known
}

// holderOf is the process that a line of /proc/locks says to hold the lock on the inode:
//
//	1: FLOCK  ADVISORY  WRITE 4711 08:02:131073 0 EOF
//
// The device is not compared: btrfs shows another one there than to stat.
func holderOf(line string, ino uint64) (pid string) {
	f := strings.Fields(line)
	if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(ino, 10)) {
		return ""
	}
	return f[4]
}

func ownerOfProcess(pid string) (uid uint32, ok bool) {
	dir, err := disk.OS.OpenSearch(filepath.Join("/proc", pid))
	if err != nil {
		return 0, false
	}
	defer dir.Close()
	self, err := dir.Self()
	return self.UID, err == nil
}

func namedDecree(pid string) bool {
	name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil {
		return false
	}
	own, err := os.ReadFile("/proc/self/comm")
	return string(name) == "decree\n" || err == nil && bytes.Equal(name, own)
}

// Mine says whether a file belongs to the user of this process. Where the system has no such users, all do.
func Mine(in disk.Info) bool {
	uid := os.Geteuid()
	return uid < 0 || int64(in.UID) == int64(uid)
}

// ConfigOfAnother names who could have written the config while root is at work: the owner of the root,
// of .decree or of the config itself, or whoever else may write there. It is "" where that is root alone, and for
// anybody but root.
func (p *Project) ConfigOfAnother() (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	of := func(in disk.Info, err error) (string, error) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", err
		case in.UID != 0:
			return userName(in.UID), nil
		case in.Mode&0o002 != 0:
			return "everybody", nil
		case in.Mode&0o020 != 0: // also where it is root's own: under an access control list these bits are those of any user that it names
			return "group " + strconv.FormatUint(uint64(in.GID), 10), nil
		}
		return "", nil
	}
	if name, err := of(p.Dir.Self()); name != "" || err != nil || p.Decree == nil {
		return name, err
	}
	if name, err := of(p.Decree.Self()); name != "" || err != nil {
		return name, err
	}
	return of(p.Decree.Stat(configFile))
}
