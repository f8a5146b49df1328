package userns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attr adds to attr what gives a process a user namespace and, in it alone, caps as ambient
// capabilities, so that they outlive that the program of the process is executed.
func Attr(attr *syscall.SysProcAttr, caps ...uintptr) error {
	users, err := ids("/proc/self/uid_map", os.Getuid())
	if err != nil {
		return err
	}
	groups, err := ids("/proc/self/gid_map", os.Getgid())
	if err != nil {
		return err
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings, attr.GidMappings = users, groups
	attr.GidMappingsEnableSetgroups = os.Getuid() == 0
	attr.AmbientCaps = append(attr.AmbientCaps, caps...)
	return nil
}

// ids maps a plain user's own id to itself, and of root all that this namespace has:
// whoever lacks the right to a file lacks it in the layer too, but it has an owner.
func ids(file string, own int) ([]syscall.SysProcIDMap, error) {
	if os.Getuid() != 0 {
		return []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) { // "first-here first-outside how-many"
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(f[0])
		size, err2 := strconv.Atoi(f[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return out, nil
}

// Drop gives up every capability of this thread, for good: a program that root executes
// would get all of its namespace's back otherwise, and could undo what was set up in it.
func Drop() error {
	const noRoot = 1 | 2 // SECBIT_NOROOT and its lock
	err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err = unix.Capset(&head, &none[0])
	}
	if err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// Read reads the settings that bear on this process.
func Read() Policy {
	has := func(file, want string) bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.TrimSpace(string(b)) == want
	}
	user := os.Geteuid() != 0
	status, _ := os.ReadFile("/proc/self/status")
	return Policy{
		AppArmor:  user && has("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
		Off:       user && has("/proc/sys/kernel/unprivileged_userns_clone", "0"),
		Exhausted: has("/proc/sys/user/max_user_namespaces", "0"),
		Filtered:  strings.Contains(string(status), "\nSeccomp:\t2"),
	}
}
