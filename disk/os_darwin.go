package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that need not be readable.
const searchOnly = unix.O_SEARCH

func statTimes(st *unix.Stat_t) (mtime, ctime int64) { return st.Mtim.Nano(), st.Ctim.Nano() }

func exchange(afd int, a string, bfd int, b string) error {
	return unsupported(unix.RenameatxNp(afd, a, bfd, b, unix.RENAME_SWAP))
}

func renameNew(ofd int, old string, nfd int, new string) error {
	err := unix.RenameatxNp(ofd, old, nfd, new, unix.RENAME_EXCL)
	if errors.Is(unsupported(err), errors.ErrUnsupported) {
		return renameNewPortable(ofd, old, nfd, new)
	}
	return err
}

func unsupported(err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// chmodAt has no handle for a file that cannot be read: it looks at the name first.
func chmodAt(dirfd int, name string, is Info, mode uint32) error {
	if err := stillIs(dirfd, name, is); err != nil {
		return err
	}
	return unix.Fchmodat(dirfd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// timesAt looks at the name first as well: through a handle the system takes no nanoseconds.
func timesAt(dirfd int, name string, is Info, times []unix.Timespec) error {
	if err := stillIs(dirfd, name, is); err != nil {
		return err
	}
	return unix.UtimesNanoAt(dirfd, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

func stillIs(dirfd int, name string, is Info) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if now := infoOf(&st); !now.SameFile(is) || now.Kind != is.Kind {
		return ErrReplaced
	}
	return nil
}

// openItself opens a directory, so that it can be listed, or a link itself.
func openItself(dirfd int, name string, kind Kind) (int, error) {
	how := unix.O_SYMLINK
	if kind == Directory {
		how = unix.O_DIRECTORY | unix.O_NOFOLLOW
	}
	return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK|how|unix.O_CLOEXEC, 0)
}

func chownItself(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }
