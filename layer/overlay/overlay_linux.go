package overlay

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"decree/runner/userns"
)

// needed are the capabilities, in the new namespace alone, that mounting takes: the
// overlay works on its upper and work directories with those of the process that made it.
var needed = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_SETPCAP,
}

// Attr adds to attr what gives a process its namespaces.
func (m *Mount) Attr(attr *syscall.SysProcAttr) error {
	attr.Cloneflags |= unix.CLONE_NEWNS
	return userns.Attr(attr, needed...)
}

// Enter makes the mount that words tell of, in a process that Attr gave its namespaces.
// It must be called on the thread that will execute the command. An error is an *Error.
func Enter(words []string) error {
	m, err := parse(words)
	if err != nil {
		return &Error{err.Error(), unix.EINVAL}
	}
	if m.Dir == "" {
		m.Dir, _ = syscall.Getwd() // a directory that is gone stays the working one
	}
	if err := m.mount(); err != nil {
		return err
	}
	if m.Dir != "" {
		if err := unix.Chdir(m.Dir); err != nil {
			return &Error{"enter " + m.Dir, err}
		}
	}
	return nil
}

// mount mounts the overlay over the root.
func (m *Mount) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &Error{"make the mounts private", err}
	}
	root, err := unix.Open(m.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &Error{"open " + m.Root, err}
	}
	defer unix.Close(root)
	if err := m.same(root); err != nil {
		return err
	}
	layer, err := unix.Open(m.Layer, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &Error{"open " + m.Layer, err}
	}
	defer unix.Close(layer)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(root, &fs); err != nil {
		return &Error{"look at " + m.Root, err}
	}
	const kept = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC // the bits of statfs are those of mount
	at := "/proc/self/fd/" + strconv.Itoa(layer)
	over := "/proc/self/fd/" + strconv.Itoa(root)
	lower := over
	if m.Below != "" {
		below, err := unix.Open(m.Below, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &Error{"open " + m.Below, err}
		}
		defer unix.Close(below)
		lower = "/proc/self/fd/" + strconv.Itoa(below) + ":" + over
	}
	options := "lowerdir=" + lower + ",upperdir=" + at + "/upper,workdir=" + at + "/work,userxattr,index=off,volatile"
	if err := unix.Mount(m.Name, over, "overlay", uintptr(fs.Flags)&kept, options); err != nil {
		return &Error{"mount the overlay", err}
	}
	return nil
}

// same refuses a directory that is in the place of the root.
func (m *Mount) same(root int) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return &Error{"look at " + m.Root, err}
	}
	if m.Ino != 0 && (st.Ino != m.Ino || uint64(st.Dev) != m.Dev) {
		return &Error{"find " + m.Root + ", in whose place is another directory", unix.ESTALE}
	}
	return nil
}
