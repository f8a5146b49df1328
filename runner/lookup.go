//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"decree/layer/overlay"
	"decree/runner/fence"
)

const (
	exitTimeout    = 124
	exitCannotExec = 126
	exitNotFound   = 127
)

// errNotFound is the reason for a name that no directory of PATH holds.
var errNotFound = errors.New("command not found")

// defaultPath is searched when the environment has no PATH at all, as execvp does.
const defaultPath = "/bin:/usr/bin"

// lookup finds the file to execute for name as execvp would in dir with PATH
// being path: a name with a slash is taken as it is, an empty or relative element
// of PATH starts at dir. The result may be relative to dir. On an error code is
// the exit status, 126 or 127.
func lookup(name, dir, path string) (file string, code int, err error) {
	if strings.Contains(name, "/") {
		if err := executable(within(dir, name)); err != nil {
			return "", lookupCode(err), fmt.Errorf("%s: %w", name, err)
		}
		return name, 0, nil
	}
	var denied error
	for _, d := range filepath.SplitList(path) {
		if name == "" {
			break
		}
		file := d + "/" + name
		if d == "" {
			file = "./" + name
		}
		err := executable(within(dir, file))
		if err == nil {
			return file, 0, nil
		}
		// A file that may not be executed does not end the search, but it is the
		// better reason if nothing else is found. Directories are passed over, and so
		// are those of PATH that may not be searched: nothing was found in them.
		if denied == nil && errors.Is(err, errNotExecutable) {
			denied = fmt.Errorf("%s: %w", file, err)
		}
	}
	if denied != nil {
		return "", exitCannotExec, denied
	}
	return "", exitNotFound, fmt.Errorf("%s: %w", name, errNotFound)
}

func lookupCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return exitNotFound
	}
	return exitCannotExec
}

// errNotExecutable is the reason for a file that is there and may not be executed:
// EACCES, but not that of a directory on the way to it.
var errNotExecutable = fmt.Errorf("%w", syscall.EACCES)

// executable returns nil if file can be executed by this user, else
// errNotExecutable or a bare errno: the caller names the path as the user knows it.
func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			return errno
		}
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	err = unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
	if info.Mode()&0o111 == 0 || errors.Is(err, syscall.EACCES) {
		return errNotExecutable
	}
	return nil
}

// within resolves file as seen from dir.
func within(dir, file string) string {
	if dir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// searchPath is the value of PATH in env.
func searchPath(env []string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			return v
		}
	}
	return defaultPath
}

// lastWins drops all but the last of equal names from env: getenv returns the
// first, so an inherited value would hide one that was added. It never returns
// nil, which would mean decree's own environment.
func lastWins(env []string) []string {
	last := make(map[string]int, len(env))
	name := func(e string) string {
		n, _, _ := strings.Cut(e, "=")
		return n
	}
	for i, e := range env {
		last[name(e)] = i
	}
	out := make([]string, 0, len(last))
	for i, e := range env {
		if last[name(e)] == i {
			out = append(out, e)
		}
	}
	return out
}

// candidates are the files that lookup would look at, in their order.
func candidates(name, path string) (files []string) {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "."
		}
		files = append(files, d+"/"+name)
	}
	return files
}

// startFailure tells a command that cannot be executed from decree's own failure
// to start anything: out of processes, memory or handles, or no overlay or fence.
func (a *attempt) startFailure(err error) (notStarted, failed error) {
	name := a.c.Args[0]
	var errno syscall.Errno
	if errors.As(err, new(*overlay.Error)) || errors.As(err, new(*fence.Error)) || !errors.As(err, &errno) {
		return nil, err
	}
	switch errno {
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return nil, fmt.Errorf("%s: %w", name, errno)
	case syscall.ENOENT:
		if a.c.Overlay != nil && !strings.Contains(name, "/") {
			return fmt.Errorf("%s: %w", name, errNotFound), nil
		}
	}
	return fmt.Errorf("%s: %w", name, errno), nil
}
