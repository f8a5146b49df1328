package overlay

import (
	"os"
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

// Open opens the layer's work directory for the process, which mounts no other. A process can
// outlive its caller by some milliseconds, and find another layer at the path by then: the
// kernel would not mount that again for its own run. As long as a handle is open nothing else gets
// the number of its file. The mount itself cannot be made with it, since it is of the caller's
// mount namespace.
func (m *Mount) Open() (*os.File, error) {
	fd, err := m.openWork()
	return os.NewFile(uintptr(fd), m.Layer), err
}

func (m *Mount) openWork() (fd int, err error) {
	path := m.Layer + "/work"
	if fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, &Error{"open " + path, err}
	}
	return fd, nil
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
	defer unix.Close(m.held)
	opened, err := m.openWork()
	if err != nil {
		return err
	}
	defer unix.Close(opened)
	if err := m.sameWork(opened); err != nil {
		return err
	}
	// Held as well, and no link: who may write in the layer's directory could put one there in the last moment,
	// and root's command would work in the directory that it leads to.
	upper, err := unix.Openat(opened, "../upper", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &Error{"open " + m.Layer + "/upper", err}
	}
	defer unix.Close(upper)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(root, &fs); err != nil {
		return &Error{"look at " + m.Root, err}
	}
	const kept = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC // the bits of statfs are those of mount
	over := pathOf(root)
	lower := over
	if m.Below != "" {
		below, err := unix.Open(m.Below, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &Error{"open " + m.Below, err}
		}
		defer unix.Close(below)
		lower = pathOf(below) + ":" + over
	}
	options := "lowerdir=" + lower + ",upperdir=" + pathOf(upper) + ",workdir=" + pathOf(opened) + ",userxattr,index=off,volatile"
	if err := unix.Mount(m.Name, over, "overlay", uintptr(fs.Flags)&kept, options); err != nil {
		return &Error{"mount the overlay", err}
	}
	return nil
}

// pathOf is the path of an open file, which nothing can be put in the place of.
func pathOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

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

// sameWork refuses a work directory that is not the one that the caller has opened.
func (m *Mount) sameWork(work int) error {
	var is, was unix.Stat_t
	err := unix.Fstat(work, &is)
	if err == nil {
		err = unix.Fstat(m.held, &was)
	}
	if err == nil && (is.Ino != was.Ino || is.Dev != was.Dev) {
		err = unix.ESTALE
	}
	if err != nil {
		return &Error{"find " + m.Layer + " as it was made", err}
	}
	return nil
}
