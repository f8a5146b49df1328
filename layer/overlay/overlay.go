// Package overlay gives a command a view of its own of a directory: the process that
// is to become the command is started in a user and a mount namespace of its own, and
// mounts an overlay over the directory's own path. What the command writes there goes to
// the overlay's upper directory; the directory itself is only read.
//
// The caller adds to the process's attributes what makes the namespaces (Attr), opens the
// layer's work directory for it (Open), and hands it Words; the process itself calls Enter with them, as plain system calls before
// any of the program's own work, and then executes the command:
//
//  1. All mounts become private, so that none of the outside reaches in or goes out.
//  2. The overlay is mounted, by handles: no character of a path means anything. It is
//     "userxattr", for which no privilege is needed, and "index=off", so that the lower
//     may be changed between two mounts. It is "volatile": the kernel flushes nothing
//     of the layer, neither at the end nor when the command asks for it. What has to
//     outlive a power failure is stored by whoever reads the layer.
//  3. The working directory is entered again, now through the overlay.
//  4. All capabilities are given up (userns.Drop, by whoever calls Enter). A command of
//     root's does not get them back.
//
// The process keeps its user and group, which are mapped to themselves. On other systems
// than Linux nothing of this is there: Attr returns errors.ErrUnsupported.
package overlay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Mount is an overlay that is to be. All paths are absolute.
type Mount struct {
	Root  string // the directory that is seen, and the place of the mount; links are followed
	Layer string // holds the directories upper, and work, which is empty
	held  int    // in the process itself: the handle of work that Open has opened
	Name  string // what the mount is called in the list of mounts; by it processes are found
	Dir   string // the working directory to enter; "": the one of the caller
	// Dev and Ino are the root's: what stands in its place by then is not mounted over. Zero:
	// whatever is there.
	Dev, Ino uint64
	// Below is the upper directory of another overlay over the root, which is seen as if that
	// were mounted, and only read; "": there is none.
	Below string
}

// An Error says which step a system refused, and why.
type Error struct {
	Step string // "mount the overlay"
	Err  error  // a syscall.Errno
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Words are what Enter takes in a process that has, as its handle held, what Open has opened.
func (m *Mount) Words(held int) []string {
	return []string{m.Root, m.Layer, m.Name, m.Dir, strconv.FormatUint(m.Dev, 10), strconv.FormatUint(m.Ino, 10), m.Below, strconv.Itoa(held)}
}

// parse is the opposite of Words.
func parse(words []string) (*Mount, error) {
	if len(words) != 8 {
		return nil, fmt.Errorf("%d words for a mount", len(words))
	}
	dev, err1 := strconv.ParseUint(words[4], 10, 64)
	ino, err2 := strconv.ParseUint(words[5], 10, 64)
	held, err3 := strconv.Atoi(words[7])
	return &Mount{Root: words[0], Layer: words[1], Name: words[2], Dir: words[3], Dev: dev, Ino: ino, Below: words[6], held: held}, errors.Join(err1, err2, err3)
}

// Within says whether the mount called name is one of those that mountinfo, the text of
// a /proc/PID/mountinfo, lists.
func Within(mountinfo []byte, name string) bool {
	want := " overlay " + escape(name) + " "
	for line := range strings.Lines(string(mountinfo)) {
		// "36 35 98:0 / /mnt rw,noatime - TYPE SOURCE OPTIONS", with optional fields
		// before the dash; spaces in a field are escaped.
		if _, after, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(" "+after, want) {
			return true
		}
	}
	return false
}

// Mounted is what is mounted at a place.
type Mounted struct {
	At string
	// What is the kind of file system, the device or server unless Local, and the path in it of the directory that is mounted, as after another
	// mount of the same.
	What  string
	Local bool // it is on a device, which may have another number when it is mounted again
}

// Below lists what mountinfo has mounted below root.
func Below(mountinfo []byte, root string) (list []Mounted) {
	below := strings.TrimSuffix(root, "/") + "/"
	for line := range strings.Lines(string(mountinfo)) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Split(before, " ")
		if len(f) < 5 {
			continue
		}
		at := unescape.Replace(f[4]) // the kernel escapes "#" in a source, and not in a place
		if !strings.HasPrefix(at, below) {
			continue
		}
		kind, source, _ := strings.Cut(after, " ")
		source, _, _ = strings.Cut(source, " ")
		m := Mounted{At: at, What: kind + " " + f[3], Local: strings.HasPrefix(source, "/dev/")}
		if !m.Local {
			m.What = kind + " " + source + " " + f[3]
		}
		list = append(list, m)
	}
	return list
}

// NamePrefix is what the names of all mounts begin with.
const NamePrefix = "decree "

// Over is what follows NamePrefix in the name of the mount of these that path lies in, by mountinfo; "" where it lies in none.
func Over(mountinfo []byte, path string) (name string) {
	longest := -1
	for line := range strings.Lines(string(mountinfo)) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Split(before, " ")
		if !ok || len(f) < 5 {
			continue
		}
		at := strings.TrimSuffix(unescape.Replace(f[4]), "/")
		if len(at) >= longest && strings.HasPrefix(path+"/", at+"/") { // of several at one place the last is seen
			longest, name = len(at), ""
			if ours, ok := strings.CutPrefix(after, "overlay "+escape(NamePrefix)); ok {
				ours, _, _ = strings.Cut(ours, " ")
				name = unescape.Replace(ours)
			}
		}
	}
	return name
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// escape writes a name as the kernel lists it.
func escape(name string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`).Replace(name)
}
