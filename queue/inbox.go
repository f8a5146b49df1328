package queue

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"decree/disk"
	"decree/message"
	"decree/project"
)

const (
	doneName  = "done"
	deadName  = "dead"
	suffix    = ".md"
	reasonEnd = ".error.txt"
	dirMode   = 0o755
	fileMode  = 0o644
)

// Pending is a message's file as it lies in the inbox, in done or in dead.
type Pending struct {
	Name  string
	Mtime int64 // ns since 1970: when it was written
	Size  int64
	Ino   uint64
}

// isMessage says whether a file of this name is one: hidden ones are not.
func isMessage(name string) bool {
	return strings.HasSuffix(name, suffix) && name[0] != '.' && len(name) > len(suffix)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// openInbox opens the inbox ("") of a root, or its directory where: done or dead.
func openInbox(root disk.Dir, where string) (disk.Dir, error) {
	return disk.OpenPath(root, path.Join(".decree", project.InboxDir, where))
}

// files are the messages in dir, the oldest first.
func files(dir disk.Dir) ([]Pending, error) {
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	var out []Pending
	for _, e := range list {
		p, ok, err := pending(dir, e.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byTurn)
	return out, nil
}

// Waiting lists the messages of the inbox ("", in the order of their turn), of
// "done" or of "dead". It takes no lock and makes nothing.
func Waiting(p *project.Site, where string) ([]Pending, error) {
	dir, err := openInbox(p.Dir, where)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer dir.Close()
	return files(dir)
}

// NotMessages are the names in the inbox of what is passed over there, though somebody may have meant it for a message: links and
// directories, and files with another ending.
func NotMessages(p *project.Site) (names []string, err error) {
	dir, err := openInbox(p.Dir, "")
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.List()
	for _, e := range list {
		if e.Name[0] == '.' || e.Name == doneName || e.Name == deadName || strings.HasSuffix(e.Name, reasonEnd) {
			continue
		}
		if _, ok, perr := pending(dir, e.Name); !ok && perr == nil {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Read is the content of a file that Waiting has named; a dead message's reason
// is beside it.
func Read(p *project.Site, where, name string) (data []byte, reason string, err error) {
	dir, err := openInbox(p.Dir, where)
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	if data, err = project.ReadFile(dir, name, message.MaxSize); err != nil {
		return nil, "", err
	}
	if text, err := project.ReadFile(dir, reasonOf(name), message.MaxFront); err == nil {
		reason, _, _ = strings.Cut(string(text), "\n")
	}
	return data, reason, nil
}

// pending looks at one file; ok is false where it is no message, or not there.
func pending(dir disk.Dir, name string) (p Pending, ok bool, err error) {
	if !isMessage(name) {
		return p, false, nil
	}
	info, err := dir.Stat(name)
	if isMissing(err) || err == nil && info.Kind != disk.Regular {
		return p, false, nil
	}
	return Pending{name, info.Mtime, info.Size, info.Ino}, err == nil, err
}

// parseFile reads a message.
func parseFile(dir disk.Dir, name string) (*message.Message, error) {
	data, err := project.ReadFile(dir, name, message.MaxSize)
	if err != nil {
		return nil, err
	}
	return message.Parse(name, data)
}

// byTurn puts the oldest first.
func byTurn(a, b Pending) int {
	return cmp.Or(cmp.Compare(a.Mtime, b.Mtime), compareNames(a.Name, b.Name))
}

// compareNames puts <chain>-2 before <chain>-10.
func compareNames(a, b string) int {
	ca, sa, oka := message.NameParts(a, maxNumber)
	cb, sb, okb := message.NameParts(b, maxNumber)
	if oka && okb {
		return cmp.Or(strings.Compare(ca, cb), cmp.Compare(sa, sb))
	}
	return strings.Compare(a, b)
}

const maxNumber = 1 << 30

// free is name, or name with the lowest number that makes it new in dir; a dead
// message's reason must be new too. Where the file system has no room for the longer
// names, the end of name is left out.
func free(dir disk.Dir, name string, also string) (string, error) {
	base := strings.TrimSuffix(name, suffix)
	for n := 1; ; n++ {
		try := base
		if n > 1 {
			try = base + "." + strconv.Itoa(n)
		}
		taken, err := isTaken(dir, try, suffix, also)
		switch {
		case errors.Is(err, syscall.ENAMETOOLONG) && len(base) > len(reasonEnd):
			base, n = strings.ToValidUTF8(base[:len(base)-len(reasonEnd)], ""), 0
		case err != nil:
			return "", err
		case !taken:
			return try + suffix, nil
		}
	}
}

// isTaken says whether dir has a file called base with one of the ends; "" is no end.
func isTaken(dir disk.Dir, base string, ends ...string) (bool, error) {
	for _, end := range ends {
		if end == "" {
			continue
		}
		if there, err := disk.Has(dir, base+end); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// move moves a file without overwriting anything, to the name it is wanted under or one
// beside it, and flushes both directories, the new one first: a power loss may leave two
// names, and never none.
func move(from disk.Dir, name string, to disk.Dir, wanted string) error {
	_, err := moveToFreeName(from, name, to, wanted)
	if err == nil {
		err = errors.Join(to.Sync(), from.Sync())
	}
	return err
}

// moveToFreeName is moveOrCopy to the name that is wanted, or else to the first free one like it.
func moveToFreeName(from disk.Dir, name string, to disk.Dir, wanted string) (as string, err error) {
	for {
		if as, err = free(to, wanted, ""); err == nil {
			err = moveOrCopy(from, name, to, as)
		}
		if !isExist(err) { // else somebody else took the name
			return as, err
		}
	}
}

// moveOrCopy renames a file to a new name, or copies it durably and removes it where
// the two directories are on different file systems.
func moveOrCopy(from disk.Dir, name string, to disk.Dir, as string) error {
	err := from.RenameNew(name, to, as)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := put(to, queueDraft, as, f, info.Mode&0o777, to.RenameNew); err != nil {
		return err
	}
	return from.Remove(name)
}

// The files that are being written are called so until they are whole, whatever
// their own names are, which may be as long as a name can be. Those of the queue are
// written under the project's lock alone, so one that is found later is a dead
// process's; cron's are its daemon's. Names that begin so are drafts too.
const (
	queueDraft = project.InboxDraft
	cronDraft  = ".cron-"
	draftEnd   = "draft"
)

// clean removes what dead processes had begun to write: the files that ours names. What may not
// be removed stays. aside takes what has such a name and is no file; nil leaves it.
func clean(dir disk.Dir, ours func(name string) bool, aside func(dir disk.Dir, name string) error) error {
	list, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		if !ours(e.Name) {
			continue
		}
		info, err := dir.Stat(e.Name)
		switch {
		case err != nil:
		case info.Kind == disk.Regular:
			err = removeDraft(dir, e.Name)
		case aside != nil:
			err = aside(dir, e.Name)
		}
		if err != nil && !isMissing(err) && !ofFile(err) {
			return err
		}
	}
	return nil
}

// removeDraft removes a draft that a dead process has left, but for what it may hold of a person's.
func removeDraft(dir disk.Dir, name string) error {
	if strings.HasPrefix(name, swapDraft) {
		if err := swapBack(dir, name); err != nil {
			return err
		}
	}
	return disk.UnlessMissing(dir.Remove(name))
}

// begins says whether a name begins with that of a draft in .decree, where all such names are decree's.
func begins(draft string) func(name string) bool {
	return func(name string) bool { return strings.HasPrefix(name, draft) && !slices.Contains(takenDirs, name) }
}

// putNew writes a file that must not replace another, durably.
func putNew(dir disk.Dir, name string, data []byte) error {
	return put(dir, queueDraft, name, bytes.NewReader(data), fileMode, dir.RenameNew)
}

// replace writes a file in the place of one that is there, durably.
func replace(dir disk.Dir, name string, data []byte) error {
	return put(dir, queueDraft, name, bytes.NewReader(data), fileMode, dir.Rename)
}

// rewrite replaces a message by its completed form. It keeps the time at which it
// was written, which is its place among those that wait. One that somebody takes away,
// replaces or writes to in this moment is left alone: was is what it held, and the error
// is fs.ErrNotExist, errChanged, or errGone while somebody has it open for writing.
func rewrite(dir disk.Dir, name string, data []byte, old disk.Info, was []byte) error {
	return writeAs(dir, queueDraft, name, data, old, swapped(data, old, was))
}

// swapped is exchanged with the file that was old; the errors are those of rewrite.
func swapped(data []byte, old disk.Info, was []byte) func(string, disk.Dir, string) error {
	return exchanged(data, was, func(dir disk.Dir, swap string, same bool) error {
		switch {
		case !hasNoWriter(dir, swap, old.Mtime):
			return errGone // its turn comes when it is saved
		case !same:
			return errChanged
		}
		return nil
	})
}

// exchanged gives a draft that holds data its name, by changing places with the file that held was. One that somebody takes away,
// replaces or writes to in this moment is left alone. judge looks at what has come out, and says whether it is was; with its
// error that goes back.
func exchanged(data, was []byte, judge func(dir disk.Dir, swap string, same bool) error) func(string, disk.Dir, string) error {
	return func(tmp string, dir disk.Dir, name string) error {
		swap := swapName(data, was)
		err := dir.Rename(tmp, dir, swap)
		if err == nil {
			err = dir.Exchange(swap, dir, name)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			return dir.Rename(swap, dir, name)
		}
		if err != nil {
			return errors.Join(err, disk.UnlessMissing(dir.Remove(swap)))
		}
		same, err := identify(was).isAt(dir, swap)
		if there, terr := disk.Has(dir, swap); !same && !there && err == nil { // a queue that begins took it for what a death has left
			other, oerr := isAnother(dir, name, data)
			return cmp.Or(terr, oerr, judge(dir, swap, !other))
		}
		if err == nil {
			err = judge(dir, swap, same)
		}
		if err != nil {
			if back := dir.Exchange(swap, dir, name); back != nil { // somebody has taken the name away too
				kept := move(dir, swap, dir, name)
				return errors.Join(err, kept)
			}
			if ours, oerr := identify(data).isAt(dir, swap); !ours { // saved once more before that
				kept := move(dir, swap, dir, name)
				return errors.Join(err, oerr, disk.UnlessMissing(kept))
			}
		}
		return errors.Join(err, disk.UnlessMissing(dir.Remove(swap)))
	}
}

// isAnother says whether a file is there that does not hold data.
func isAnother(dir disk.Dir, name string, data []byte) (bool, error) {
	same, err := identify(data).isAt(dir, name)
	if same || err != nil {
		return false, err
	}
	return disk.Has(dir, name)
}

// swapName is what a whole text is called that changes places with the message that held was;
// after that it is the name of what the message's file held, which may be neither of the two
// where a person has just saved another one.
func swapName(data, was []byte) string {
	return swapDraft + hashOf(data)[:swapDigits] + "-" + hashOf(was)[:swapDigits]
}

const (
	swapDraft  = queueDraft + "swap-"
	swapDigits = 32
	swapOut    = "-out"
)

// swapBack has a text that a person saved wait again under its name: a death has left it where
// it came when it changed places with the completed form of an earlier one.
func swapBack(dir disk.Dir, swap string) error {
	data, err := project.ReadFile(dir, swap, message.MaxSize)
	if err != nil && !ofFile(err) {
		return err
	}
	completed, _, _ := strings.Cut(strings.TrimPrefix(swap, swapDraft), "-")
	if strings.Contains(swap, hashOf(data)[:swapDigits]) {
		return nil
	}
	waiting, err := files(dir)
	for _, p := range waiting {
		if now, rerr := project.ReadFile(dir, p.Name, message.MaxSize); rerr == nil && strings.HasPrefix(hashOf(now), completed) {
			if err := dir.Exchange(swap, dir, p.Name); err != nil {
				return err
			}
			return cameOut(dir, swap, p.Name, completed)
		}
	}
	if err == nil { // saved once more since, or taken away: it waits beside
		return cameOut(dir, swap, "saved"+suffix, completed)
	}
	return err
}

// cameOut removes what has come out of a message's file, unless that is a person's: saved once more in this moment, or exchanged again by an
// edit that goes on. It is looked at under a name at which nobody exchanges anything.
func cameOut(dir disk.Dir, swap, name, completed string) error {
	out := strings.TrimSuffix(swap, swapOut) + swapOut
	if err := dir.Rename(swap, dir, out); err != nil {
		return disk.UnlessMissing(err)
	}
	if now, err := project.ReadFile(dir, out, message.MaxSize); err == nil && strings.HasPrefix(hashOf(now), completed) {
		return disk.UnlessMissing(dir.Remove(out))
	}
	return move(dir, out, dir, name)
}

// writeAs writes a file with the mode and the time of an old one.
func writeAs(dir disk.Dir, draft, name string, data []byte, old disk.Info, rename func(string, disk.Dir, string) error) error {
	var is disk.Info
	how := replacement(draft, old.Mode&0o777, func(tmp string, to disk.Dir, name string) error {
		if err := dir.SetMtime(tmp, is, old.Mtime); err != nil {
			return err
		}
		return rename(tmp, to, name)
	})
	return disk.Replace(dir, name, how, func(f disk.File) (err error) {
		if _, err = f.Write(data); err == nil {
			is, err = f.Stat()
		}
		return err
	})
}

func put(dir disk.Dir, draft, name string, data io.Reader, mode uint32, rename func(string, disk.Dir, string) error) error {
	return disk.Replace(dir, name, replacement(draft, mode, rename), func(f disk.File) error {
		_, err := io.Copy(f, data)
		return err
	})
}

// replacement writes a file as a draft, to which rename gives its name.
func replacement(draft string, mode uint32, rename func(string, disk.Dir, string) error) disk.Replacement {
	return disk.Replacement{Perm: mode, Flush: true, Temp: draft + draftEnd, Place: rename}
}

// moveToDead puts a reason into dead and the message beside it. The reason comes first:
// after a death in between the message goes back into the inbox and is moved again.
// t is the message; nil: its routine has deleted it, and content is what it held. mark is a
// line that the reason of no other message has.
//
// The reason depends on the name that the message gets in dead.
func moveToDead(t *takenOut, dead disk.Dir, name string, reason func(as string) string, mark string, content []byte) (string, error) {
	as, err := writeReason(dead, name, reason, mark)
	switch {
	case err != nil:
	case t == nil:
		err = putNew(dead, as, content)
	default:
		err = moveOrCopy(t.dir, t.name, dead, as)
	}
	switch {
	case err != nil && t != nil:
		err = errors.Join(err, t.putBack())
	case err == nil && t != nil:
		t.close()
		err = errors.Join(dead.Sync(), t.inbox.Sync())
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return as, nil
}

// writeReason writes the reason under a name that is new, or that an earlier try at the
// move of the same message has taken.
func writeReason(dead disk.Dir, name string, reason func(as string) string, mark string) (string, error) {
	as, err := free(dead, name, "")
	if err != nil {
		return "", err
	}
	text := []byte(reason(as))
	old, err := project.ReadFile(dead, reasonOf(as), message.MaxFront)
	if err == nil && (bytes.Equal(old, text) || mark != "" && bytes.Contains(old, []byte(mark))) {
		return as, replace(dead, reasonOf(as), text)
	}
	if as, err = free(dead, name, reasonEnd); err != nil {
		return "", err
	}
	return as, putNew(dead, reasonOf(as), []byte(reason(as)))
}

// reasonOf is the file that says why the message called name is dead.
func reasonOf(name string) string { return strings.TrimSuffix(name, suffix) + reasonEnd }

// makeDir opens a child directory and makes it, durably, if it is missing. One that
// is there keeps its mode.
func makeDir(d disk.Dir, name string, perm uint32) (disk.Dir, error) {
	c, err := d.OpenDir(name)
	if !isMissing(err) {
		return c, err
	}
	if c, err = project.MakeDir(d, name, perm); err != nil {
		return nil, err
	}
	return c, d.Sync()
}

// ownDir is makeDir for a directory of the queue's in .decree: what a routine made in
// its place is put aside, and its owner gets the rights back that the queue needs.
func ownDir(p *project.Project, d disk.Dir, name string) (disk.Dir, error) {
	was, serr := d.Stat(name)
	c, err := p.OwnDirAs(d, name, dirMode)
	if err != nil || serr == nil && was.Kind == disk.Directory {
		return c, err
	}
	return c, d.Sync()
}

func isExist(err error) bool { return errors.Is(err, fs.ErrExist) }
