package recorder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/layer"
	"decree/project"
)

// refMover moves what a publish moves in the tree's .git.
type refMover struct {
	*gitReader      // of the tree's and the layer's commits
	again      bool // a process has died in it
}

// bringRefs moves the refs, and what goes with them. What has come in between is told, and
// left as it is. whole says that no ref was left, and no stash.
func (r *Recorder) bringRefs(l *layer.Layer, g *gitWork, again bool) (notes []string, whole bool) {
	live, err := r.project.Dir.OpenDir(gitDir)
	if err != nil {
		return []string{fmt.Sprintf("no ref was moved in .git: %v", err)}, len(g.refs) == 0
	}
	defer live.Close()
	m := &refMover{&gitReader{live: live, layer: l}, again}
	left := func(name string, err error, more string) {
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s of .git is left as it is: %v%s", name, err, more))
		}
	}
	whole = true
	stays := map[string]bool{} // the refs that were left
	refs, first, err := m.inOrder(g.refs)
	if err != nil {
		left("HEAD", err, "")
		return notes, len(g.refs) == 0
	}
	for i, ref := range refs {
		err := errBehind
		if i < first || whole {
			err = m.moveRef(ref)
		}
		left(ref.name, err, "; in the draft it was "+cmp.Or(ref.is, "deleted"))
		stays[ref.name] = err != nil
		whole = whole && err == nil
	}
	stays["HEAD"] = !whole // its log tells also of what moves the branch that it names
	stashed := true
	for _, name := range slices.Sorted(maps.Keys(g.logs)) {
		if !stays[strings.TrimPrefix(name, "logs/")] {
			err := extendLog(live, name, g.logs[name])
			left(name, err, "")
			stashed = stashed && (err == nil || name != stashLog)
		}
	}
	switch {
	case g.index == nil:
	case whole:
		left("the index", m.replaceIndex(l, g.index), "; 'git reset' makes it that of HEAD")
	default:
		left("the index", errBehind, "")
	}
	return notes, whole && stashed
}

// inOrder is the order in which refs are moved. Those that are deleted come first, since no ref can lie
// where the directory of another one is. What git takes for the present commit comes last, and only if all of
// the first could be moved: HEAD must name no branch that is not there, and the index must
// be that of the branch.
func (m *refMover) inOrder(refs []gitRef) (all []gitRef, first int, err error) {
	head, _, err := readRef(m.live, "HEAD")
	branch := strings.TrimPrefix(head, "ref: ")
	rank := func(ref gitRef) int {
		switch {
		case ref.name == "HEAD":
			return 3
		case ref.name == branch && ref.is != "":
			return 2
		case ref.name == branch && !inTheWayOf(refs, branch):
			return 4 // HEAD names it until then
		case ref.is != "":
			return 1
		}
		return 0
	}
	all = slices.SortedStableFunc(slices.Values(refs), func(a, b gitRef) int { return cmp.Compare(rank(a), rank(b)) })
	for first < len(all) && rank(all[first]) < 2 {
		first++
	}
	return all, first, err
}

// inTheWayOf says whether one of refs can only be made where the ref called name is not.
func inTheWayOf(refs []gitRef, name string) bool {
	return slices.ContainsFunc(refs, func(ref gitRef) bool {
		return ref.is != "" && (strings.HasPrefix(ref.name, name+"/") || strings.HasPrefix(name, ref.name+"/"))
	})
}

var (
	errMoved  = errors.New("somebody else has just changed it")
	errBehind = errors.New("not all other refs could be moved")
)

// moveRef gives a ref its value, as git does: under a lock of its own.
func (m *refMover) moveRef(ref gitRef) error {
	if ref.is == "" {
		return m.deleteRef(ref)
	}
	return m.locked(ref.name, []byte(ref.is+"\n"), func(p gitPlace) (bool, error) {
		now, err := m.valueOf(ref.name)
		switch {
		case err != nil || now == ref.is:
			return false, err
		case now != ref.was && m.descends(now, ref.is):
			return false, nil // it was moved, and somebody has gone on from there
		case now != ref.was:
			return false, errMoved
		}
		_ = p.Rmdir(p.base) // refs may have lain in it, and git passes it over
		return true, nil
	})
}

// valueOf is a ref's value in the tree, "" for none.
func (m *refMover) valueOf(name string) (string, error) {
	now, at, err := readRef(m.live, name)
	if err == nil && at == nil {
		var packed map[string]string
		packed, _, err = readPacked(m.live)
		now = packed[name]
	}
	return now, err
}

// deleteRef deletes a ref and its log, with the directories that are empty then, as git does:
// they would be in the way of a ref that is called as they are.
func (m *refMover) deleteRef(ref gitRef) error {
	p, err := placeOf(m.live, ref.name, false)
	switch {
	case isMissing(err) || errors.Is(err, syscall.ENOTDIR): // it has no file, and nobody holds its lock
		if err = m.unpack(ref.name, ref.was); err == nil {
			m.removeLog("logs/" + ref.name)
		}
	case err == nil:
		p.close()
		err = m.locked(ref.name, nil, func(p gitPlace) (bool, error) { return false, m.deleteLocked(ref, p) })
	}
	if err == nil {
		m.removeEmptied(ref.name)
	}
	return err
}

// deleteLocked deletes the ref that lies at p, and its log: somebody may make a ref of this name as soon as its lock is given back.
func (m *refMover) deleteLocked(ref gitRef, p gitPlace) error {
	now, err := m.valueOf(ref.name)
	if err != nil || now == "" {
		return err
	}
	if now != ref.was {
		return errMoved
	}
	if err := m.unpack(ref.name, ""); err != nil {
		return err
	}
	if err := p.Remove(p.base); err != nil && !isMissing(err) {
		return err
	}
	m.removeLog("logs/" + ref.name)
	return nil
}

// removeLog removes the log of a ref that is gone. What of it stays only a ref of that name can meet.
func (m *refMover) removeLog(name string) {
	p, err := placeOf(m.live, name, false)
	if err != nil {
		return
	}
	defer p.close()
	if st, err := p.Stat(p.base); err == nil && st.Kind == disk.Regular && p.Remove(p.base) == nil {
		m.removeEmptied(name)
	}
}

// removeEmptied removes the directories of a file that is gone which nothing is in any more, but
// not refs/heads and its like.
func (m *refMover) removeEmptied(name string) {
	const kept = 2
	for range strings.Count(strings.TrimPrefix(name, "logs/"), "/") - kept {
		name = path.Dir(name)
		p, err := placeOf(m.live, name, false)
		if err != nil {
			return
		}
		err = p.Rmdir(p.base)
		if p.close(); err != nil {
			return
		}
	}
}

// locked makes text the lock file of name, which no git passes, and which takes the place of
// name if check says so. It comes with all its text, so that one that a death has left can
// be told from git's.
func (m *refMover) locked(name string, text []byte, check func(p gitPlace) (bool, error)) error {
	p, err := placeOf(m.live, name, true)
	if err != nil {
		return err
	}
	defer p.close()
	perm, err := gitPerm(p.Dir, 0o666)
	if err != nil {
		return err
	}
	lock := p.base + ".lock"
	err = disk.Replace(p.Dir, lock, disk.Replacement{Perm: perm, Flush: true, Temp: p.base + ".decree.lock", Place: p.RenameNew}, disk.Content(text))
	if errors.Is(err, fs.ErrExist) {
		has, rerr := project.ReadFile(p.Dir, lock, mostOfGit)
		if err = rerr; err == nil && (!m.again || !bytes.Equal(has, text)) {
			return fmt.Errorf("git is at work on it, or has died (%s)", path.Join(gitDir, name+".lock"))
		}
	}
	if err != nil {
		return err
	}
	replace, err := check(p)
	if err == nil && replace {
		if err = p.Rename(lock, p.Dir, p.base); err == nil {
			return p.Sync()
		}
	}
	return errors.Join(err, p.Remove(lock), p.Sync()) // a lock that comes back with a power failure keeps git from the ref
}

// unpack takes a ref out of packed-refs, where it must have the value only, unless that is "".
func (m *refMover) unpack(name, only string) error {
	text, err := project.ReadFile(m.live, "packed-refs", mostOfGit)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	if has := parsePacked(text)[name]; has != "" && only != "" && has != only {
		return errMoved
	}
	var out []byte
	gone := false // what follows with a "^" belongs to it
	for line := range bytes.Lines(text) {
		if gone = bytes.HasSuffix(bytes.TrimRight(line, " \t\r\n"), []byte(" "+name)) || gone && line[0] == '^'; !gone {
			out = append(out, line...)
		}
	}
	if len(out) == len(text) {
		return nil
	}
	return m.locked("packed-refs", out, func(p gitPlace) (bool, error) {
		now, err := project.ReadFile(p.Dir, p.base, mostOfGit)
		if err == nil && !bytes.Equal(now, text) {
			err = errMoved
		}
		return true, err
	})
}

// replaceIndex writes the index anew, unless somebody has just written it.
func (m *refMover) replaceIndex(l *layer.Layer, text []byte) error {
	return m.locked("index", text, func(p gitPlace) (bool, error) {
		st, err := p.Stat(p.base)
		if isMissing(err) {
			return true, nil
		}
		old := false
		if err == nil {
			old, err = l.Old(st)
		}
		if err == nil && !old {
			err = errMoved
		}
		return true, err
	})
}

// extendLog writes a ref's log, where the live one is its beginning.
func extendLog(live disk.Dir, name string, text []byte) error {
	p, err := placeOf(live, name, true)
	if err != nil {
		return err
	}
	defer p.close()
	has, err := project.ReadFile(p.Dir, p.base, mostOfGit)
	if err != nil && !isMissing(err) || bytes.HasPrefix(has, text) {
		return err
	}
	if !bytes.HasPrefix(text, has) {
		return errMoved
	}
	perm, err := gitPerm(p.Dir, 0o666)
	if err != nil {
		return err
	}
	return disk.Replace(p.Dir, p.base, disk.Replacement{Perm: perm, Flush: true}, disk.Content(text))
}
