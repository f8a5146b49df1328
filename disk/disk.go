// Package disk is the seam between decree and the file system: every step that
// store, worktree, history and capture make on a disk is a method of a Disk, a
// Dir or a File, so that a test can fail the n-th step, end the "process" there,
// or run on a disk in memory that forgets what was not flushed.
//
// A Dir is an open directory. Its methods take a name of exactly one component
// and never follow a symbolic link, so a path is walked handle by handle and
// nothing outside the first handle can be reached, whatever the tree holds.
//
// Errors are *fs.PathError with the whole path, so they name the file as they are.
package disk

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
)

// Kind is what a directory entry is.
type Kind uint8

const (
	Unknown Kind = iota // the listing did not say: Stat does
	Regular
	Directory
	Symlink
	Special // socket, pipe, device: never recorded
)

// Info is what lstat says of an entry. Times are in nanoseconds since 1970.
type Info struct {
	Kind Kind
	// Whiteout says of a Special that it is the device 0/0, which an overlay has in the
	// place of a name that was deleted.
	Whiteout     bool
	Mode         uint32 // permission bits with setuid, setgid and sticky (07777)
	Size         int64
	Mtime, Ctime int64
	Dev, Ino     uint64
	Nlink        uint64
	UID, GID     uint32
}

// SameFile says whether both are the same file by device and inode.
func (i Info) SameFile(o Info) bool { return i.Dev == o.Dev && i.Ino == o.Ino }

// Origin tells a directory from another one that had the same device and inode at
// another time: two disks mounted at one place in turn. What is not known is 0.
type Origin struct {
	Born int64  // when it was made, in nanoseconds since 1970
	FS   uint64 // the id of its file system, unless that is only the device's number
}

// Differs says whether the two cannot be one directory.
func (o Origin) Differs(p Origin) bool {
	return o.Born != 0 && p.Born != 0 && o.Born != p.Born || o.FS != 0 && p.FS != 0 && o.FS != p.FS
}

// FileSystem is what can be relied on of the file system that a directory is on.
type FileSystem struct {
	// Steady: a local one that is known to change a directory's times with each change of
	// its names, and to be right about the holes of files.
	Steady bool
	// ChangeTimes: it keeps a change time of its own, which nobody can set. FAT gives the
	// time of the last write in its place, which anybody can set back.
	ChangeTimes bool
	// TryTimes: whether it keeps one must be tried, as KeepsTimes does; ChangeTimes is false. FUSE shows
	// what a program has behind it: a FAT, or another machine's files; so does SMB, of a server's.
	TryTimes bool
	// MoveTimes: it changes the change time of whatever is renamed, and of both where two
	// are exchanged, which XFS does not. So what has an old one has stood where it is.
	MoveTimes bool
	// ID tells whether directories of different devices are on one file system, as those of the
	// subvolumes of a btrfs are. "" where the device alone tells.
	ID string
	// Spent: little can still be written to it, less than Scant bytes.
	Spent bool
}

// unflushed is the path of the first directory that could not be flushed in this process.
var unflushed atomic.Pointer[string]

// Unflushed is the path of a directory whose file system cannot flush any, "" if this process met none:
// what was renamed there last may be as before after a power failure.
func Unflushed() string {
	if path := unflushed.Load(); path != nil {
		return *path
	}
	return ""
}

// Scant is so little of a disk that a few files' journals and records may not fit any more.
const Scant = 16 << 20

// Entry is one name of a directory listing.
type Entry struct {
	Name string
	Kind Kind // may be Unknown
}

// Xattr is one extended attribute; ACLs are among them.
type Xattr struct {
	Name  string
	Value []byte
}

var (
	// ErrLocked is returned by TryLock when another holds the lock.
	ErrLocked = errors.New("locked")
	// ErrNotRegular is returned by Open for what is no regular file and no link.
	ErrNotRegular = errors.New("not a regular file")
	// ErrOwner is returned by OpenWrite for a file of another user than its directory's.
	ErrOwner = errors.New("it belongs to another user than its directory")
	// ErrReplaced says that a name has come to another file meanwhile.
	ErrReplaced = errors.New("it was replaced by another process meanwhile")
	// ErrName refuses a name that is not one plain component.
	ErrName = errors.New("not a plain name")
)

// Disk opens root handles.
type Disk interface {
	// OpenRoot opens the directory at path (absolute); links in path are followed.
	OpenRoot(path string) (Dir, error)
	// OpenSearch does the same for looking up names alone: the directory may be one
	// that the user can pass and not read, as other users' homes often are. Such a
	// handle cannot be listed, locked or flushed.
	OpenSearch(path string) (Dir, error)
	// MkdirAll makes path and its missing parents with perm (before umask) and opens it. What
	// root makes in a directory of another user's is that user's.
	MkdirAll(path string, perm uint32) (Dir, error)
}

// Dir is an open directory. It is safe for concurrent use.
type Dir interface {
	// Path is the directory's path, for messages only.
	Path() string
	// Self is the directory's own Info.
	Self() (Info, error)
	// Origin is where the directory comes from.
	Origin() (Origin, error)
	FileSystem() FileSystem
	// Stat is lstat of a child.
	Stat(name string) (Info, error)
	// Born is when a child was made, in ns since 1970; 0: not known.
	Born(name string) int64
	// List returns all children in no order, without "." and "..".
	List() ([]Entry, error)
	// Open opens a regular file for reading (ELOOP for a link; never blocks on a pipe).
	Open(name string) (File, error)
	// OpenDir opens a child directory (ELOOP or ENOTDIR for anything else).
	OpenDir(name string) (Dir, error)
	// Create makes a new file, open for reading and writing; it fails if the name exists.
	Create(name string, perm uint32) (File, error)
	// OpenWrite opens an existing or new file for reading and writing at any offset. An
	// existing one must be a regular file (ErrNotRegular, ELOOP for a link; a pipe never
	// blocks) and belong to the directory's owner (ErrOwner). One that has other names, hard
	// links, becomes a file of its own first: what is written must reach no file but this.
	// A new one has exactly perm, whatever the umask.
	OpenWrite(name string, perm uint32) (File, error)
	Mkdir(name string, perm uint32) error
	// Remove unlinks a file or link.
	Remove(name string) error
	// Rmdir removes an empty directory.
	Rmdir(name string) error
	// Rename moves old over new in to, replacing a file.
	Rename(old string, to Dir, new string) error
	// RenameNew moves old to new in to; it fails with EEXIST if new exists.
	RenameNew(old string, to Dir, new string) error
	// Exchange swaps the two entries atomically; errors.ErrUnsupported where the system can't.
	Exchange(a string, to Dir, b string) error
	// Link makes new in to a hard link of old.
	Link(old string, to Dir, new string) error
	Symlink(target, name string) error
	Readlink(name string) (string, error)
	// Chmod changes the mode (07777) of the child that is, and of no link: ErrReplaced, and
	// nothing, where its name has come to something else.
	Chmod(name string, is Info, mode uint32) error
	// Chown changes the owner and group of the child that is, a link or an empty directory:
	// ErrReplaced, and nothing, where its name has come to something else. A file has its own Chown.
	Chown(name string, is Info, uid, gid uint32) error
	// SetMtime sets when the child that is was written last (ns since 1970), of a link itself:
	// ErrReplaced, and nothing, where its name has come to something else.
	SetMtime(name string, is Info, mtime int64) error
	// Xattrs lists the extended attributes of a child; nil where unsupported.
	Xattrs(name string) ([]Xattr, error)
	// SetXattr gives the child that is an attribute, and a link none: ErrReplaced, and
	// nothing, where its name has come to something else.
	SetXattr(name string, is Info, x Xattr) error
	// Sync flushes the directory's entries.
	Sync() error
	// SyncAll returns what flushes all that was written, before it is called, to
	// the file system that the directory is on: contents and entries, ours and
	// others'. It is nil where the system has nothing of the kind that is known to
	// wait for the medium and to tell of every failure; then each file and each
	// directory takes its own Sync.
	SyncAll() func() error
	// TryLock takes an exclusive advisory lock on the directory itself (flock),
	// which no command inside it can delete. ErrLocked when it is held.
	TryLock() (unlock func() error, err error)
	// Locked says whether TryLock's lock is held. Asking never makes another one's
	// Locked say yes, but it can make a TryLock in the same instant fail.
	Locked() (bool, error)
	Close() error
}

// File is an open regular file.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Stat() (Info, error)
	Truncate(size int64) error
	// Sync flushes the content and what Stat says of it, but not its name.
	Sync() error
	// StartSync begins to write what a later Sync waits for, and does not wait.
	// It promises nothing: what has only been started is as good as not flushed.
	StartSync()
	Chmod(mode uint32) error
	// Chown changes the owner and group.
	Chown(uid, gid uint32) error
	// BeingWritten says whether anybody has the file open for writing, or mapped so:
	// what is read then may be another's half work, and later writes may leave no
	// trace in its times. False where the system does not tell.
	BeingWritten() bool
	// Map returns the file's present bytes, mapped where the system can; they
	// are valid until release and must not be written. Only within Reading may they be looked at.
	Map() (data []byte, release func() error, err error)
	// Unload gives back the memory of what Map has returned, also after Close. It stays valid:
	// what is used of it again is read again.
	Unload(data []byte)
}

// Full says whether err is that a disk, or the user's part of it, is full.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// CheckName refuses a name that is empty, ".", "..", or holds a slash or NUL.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." {
		return ErrName
	}
	for i := 0; i < len(name); i++ {
		if name[i] == '/' || name[i] == 0 {
			return ErrName
		}
	}
	return nil
}

// handle is a Dir that has a descriptor of the system.
type handle interface{ fd() int }

// FD returns the descriptor below d, and false where d is wrapped or in memory.
func FD(d Dir) (int, bool) {
	h, ok := d.(handle)
	if !ok {
		return -1, false
	}
	return h.fd(), true
}
