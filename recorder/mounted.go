package recorder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// What is mounted in the tree, or unmounted, looks like changes: at the place of a directory lies another one, which may be
// anybody's. To put that back would delete and replace files that are no part of the tree, and write those of one disk onto another. So a
// record has what was mounted where when it began, and at which of these and other places something else was mounted when it ended, or nothing.
// What it changed there is taken back as soon as what was there is there again.

const (
	// extraMounts is the field of run.json with what was mounted in the tree, by place.
	extraMounts = "mounts"
	// extraMounted is that of the places at and below which a record has changes, and where something else was mounted at its end.
	extraMounted = "mounted"
)

// mounts is what is mounted in the tree, by place.
func (r *Reader) mounts() map[tree.Path]string {
	root := realPath(r.project.Root)
	what := map[tree.Path]string{}
	for _, m := range layer.MountsBelow(root) {
		place := tree.Path(strings.TrimPrefix(strings.TrimPrefix(m.At, root), "/"))
		if m.Local { // a server that is gone is not asked
			m.What += r.originAt(place)
		}
		if below := what[place]; below != "" {
			m.What = below + ", " + m.What
		}
		what[place] = m.What
	}
	return what
}

// originAt is what tells the directory that is mounted at a place from another one of the same device: two disks in one drive, or loop device.
func (r *Reader) originAt(place tree.Path) string {
	dir, err := disk.OpenPath(r.project.Dir, string(place))
	if err != nil {
		return ""
	}
	defer dir.Close()
	o, err := dir.Origin()
	self, serr := dir.Self()
	if err != nil || serr != nil {
		return ""
	}
	return fmt.Sprintf(" %d-%x-%x", self.Ino, o.Born, o.FS)
}

// noteMounts writes into a record that begins what is mounted.
func (r *Reader) noteMounts(rec *history.Record) error {
	now := map[string]string{}
	for place, what := range r.mounts() {
		now[tree.Quote(place)] = what
	}
	return setField(rec, extraMounts, now, len(now) > 0)
}

// mountsOf is what noteMounts wrote.
func mountsOf(rec *history.Record) map[tree.Path]string {
	what := map[tree.Path]string{}
	for name, is := range fieldOf[map[string]string](rec, extraMounts) {
		what[tree.Path(tree.Unquoted(name))] = is
	}
	return what
}

// noteMounted writes into a record where something else is mounted than when it began, as far as that is seen in its changes.
func (r *Reader) noteMounted(rec *history.Record, changes changeSeq) error {
	before, now := mountsOf(rec), r.mounts()
	var places []string
	for _, place := range otherPlaces(before, now) {
		seen := false
		for c, err := range changes {
			if err != nil {
				return err
			}
			if seen = c.Path.Within(place); seen {
				places = append(places, tree.Quote(place))
				break
			}
		}
	}
	return setField(rec, extraMounted, places, len(places) > 0)
}

// otherPlaces are the places at which not the same is mounted.
func otherPlaces(before, now map[tree.Path]string) (places []tree.Path) {
	for place := range maps.Keys(before) {
		if now[place] != before[place] {
			places = append(places, place)
		}
	}
	for place := range maps.Keys(now) {
		if before[place] == "" {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// stillMounted refuses to take back what a record has of places at which something else was mounted when it ended, as long as not that is mounted
// there which was when it began. touches says whether anything at or below a place is to be changed.
func (r *Reader) stillMounted(rec *history.Record, touches func(tree.Path) bool) *project.Error {
	places := pathsIn(rec, extraMounted)
	if len(places) == 0 {
		return nil
	}
	before, now := mountsOf(rec), r.mounts()
	for _, place := range places {
		if before[place] != now[place] && touches(place) {
			return otherMounted(rec, place, before[place], now[place],
				fmt.Sprintf("then 'decree revert %s' takes it back; 'decree revert --exclude %s %[1]s' takes back the rest", rec.ID, tree.ShellWord(string(place))))
		}
	}
	return nil
}

// otherMounted is the refusal to change what lies at a place at which something else is mounted than when a record began. advice is what can be done
// when that is mended.
func otherMounted(rec *history.Record, place tree.Path, was, is, advice string) *project.Error {
	kind := func(what string) string {
		word, _, _ := strings.Cut(what, " ")
		if word == "" {
			word = "nothing"
		}
		return word
	}
	now := kind(is)
	if now == kind(was) {
		now = "another " + now
	}
	what, mend := "something was mounted at %s since %s began (then: %s, now: %s), and what lies there is not the tree's", "unmount it ('umount')"
	if was != "" {
		what, mend = "what was mounted at %s when %s began is not mounted any more (then: %s, now: %s), and what belongs there may be on it still", "mount it again"
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Advice: mend + ", " + advice,
		Msg: fmt.Sprintf(what, tree.Quote(place), noun(rec)+" "+rec.ID, kind(was), now)}
}

// seenTwice says of a path that seems to have been written by another process while it was moved that it lies in a directory that may be mounted at
// a second place of the tree.
func (r *Reader) seenTwice(err error) string {
	var moved *worktree.Error
	if !errors.Is(err, worktree.ErrStranger) || !errors.As(err, &moved) {
		return ""
	}
	for place := range r.mounts() {
		at, err := disk.StatPath(r.project.Dir, string(place))
		for dir := moved.Path.Parent(); err == nil && dir != ""; dir = dir.Parent() {
			if is, err := disk.StatPath(r.project.Dir, string(dir)); err == nil && is.SameFile(at) {
				return fmt.Sprintf("what is mounted at %s may be a directory of the tree ('mount --bind'), whose files have two paths: 'decree revert REF PATH' with one of the two places takes them back, "+
					"and as long as .decreeignore has one they are recorded once", tree.Quote(place))
			}
		}
	}
	return ""
}

// mountedSince refuses a restore that changes what lies on something that was not mounted there in the state that it goes to: another thing
// was, or that state has nothing there. Records have what was mounted only where something was.
func (r *Reader) mountedSince(to *history.Record, target tree.Hash, p *plan.Plan) error {
	before, now := mountsOf(to), r.mounts()
	for _, place := range otherPlaces(before, now) {
		if now[place] == "" || !slices.ContainsFunc(p.Steps, func(s worktree.Step) bool { return s.Path.Below(place) }) {
			continue
		}
		if before[place] == "" && r.isOfTree(place) {
			holds, err := r.holdsBelow(target, place)
			if err != nil {
				return err
			}
			if holds {
				continue // as seen from a container, or from outside of it
			}
		}
		return otherMounted(to, place, before[place], now[place], "then repeat this, or name the other PATHs")
	}
	return nil
}

// isOfTree says whether what is mounted at a place is on the root's own device, as what a container binds there.
func (r *Reader) isOfTree(place tree.Path) bool {
	at, err := disk.StatPath(r.project.Dir, string(place))
	root, rerr := r.project.Dir.Self()
	return err == nil && rerr == nil && at.Dev == root.Dev
}

// holdsBelow says whether a tree has anything below a path.
func (r *Reader) holdsBelow(target tree.Hash, path tree.Path) (bool, error) {
	seq, err := r.history.Tree(target)
	if err != nil {
		return false, err
	}
	for it, err := range seq {
		if err != nil || it.Path.Below(path) {
			return err == nil, err
		}
	}
	return false, nil
}

// refuseMountPoints refuses to replace or remove a file that something is mounted at, as a container does with single files: the system does not
// allow that.
func refuseMountPoints(steps []worktree.Step, mounts map[tree.Path]string) error {
	var at []tree.Path
	for _, s := range steps {
		if s.From != nil && s.From.Type != tree.Dir && (s.To == nil || s.To.Type != s.From.Type || s.To.SHA256 != s.From.SHA256) && mounts[s.Path] != "" {
			at = append(at, s.Path)
		}
	}
	if len(at) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    fmt.Sprintf("something is mounted at %s, which cannot be replaced before it is unmounted", some(at)),
		Advice: "unmount it ('umount', or end the container), or name the other paths: 'decree revert REF PATH...'"}
}
