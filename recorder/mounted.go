package recorder

import (
	"errors"
	"fmt"
	"slices"

	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// What a run's command mounts in the tree looks like changes: at the place of a directory lies another one, which may be
// anybody's. To put that back would delete and replace files that are no part of the tree. So a run notes what was mounted while
// it worked, and nothing is taken back there before it is unmounted.

// extraMounted is the field of run.json that names the places at and below which a run has changes, and something was mounted
// while its command worked.
const extraMounted = "mounted"

// extraUnmounted is that of the places where something was mounted when the command began, and is no more: what lay there looks deleted.
const extraUnmounted = "unmounted"

// mounts are the places in the tree where something is mounted, each as often as that is so.
func (r *Reader) mounts() (places []tree.Path) {
	root := realPath(r.project.Root)
	for _, place := range layer.MountsBelow(root) {
		places = append(places, tree.Path(place[len(root)+1:]))
	}
	return places
}

// noteMounted writes into the record where something was mounted since the command began, or is not mounted any more, as far as that
// is seen in the changes.
func (u *run) noteMounted(changes []tree.Change) error {
	before := slices.Clone(u.mounts)
	u.mounted, u.unmounted = nil, nil
	seen := func(place tree.Path) bool {
		return slices.ContainsFunc(changes, func(c tree.Change) bool { return c.Path.Within(place) })
	}
	for _, place := range u.r.mounts() {
		if i := slices.Index(before, place); i >= 0 {
			before = slices.Delete(before, i, i+1)
		} else if seen(place) {
			u.mounted = append(u.mounted, place)
		}
	}
	for _, place := range before {
		if seen(place) {
			u.unmounted = append(u.unmounted, place)
		}
	}
	return errors.Join(setExtra(u.rec, extraMounted, quoted(u.mounted)), setExtra(u.rec, extraUnmounted, quoted(u.unmounted)))
}

func quoted(paths []tree.Path) (names []string) {
	for _, p := range paths {
		names = append(names, tree.Quote(p))
	}
	return names
}

// stillMounted refuses to take back what a record has of places where something was mounted by its command, or beside it, and
// something is mounted still, or was unmounted, is not mounted again, and is to be changed by steps.
func (r *Reader) stillMounted(rec *history.Record, steps []worktree.Step) error {
	now := r.mounts()
	mounted := func(p tree.Path) bool { return slices.Contains(now, p) }
	gone := slices.DeleteFunc(pathsIn(rec, extraUnmounted), func(p tree.Path) bool {
		return mounted(p) || !slices.ContainsFunc(steps, func(s worktree.Step) bool { return s.Path.Within(p) })
	})
	if len(gone) > 0 {
		return &project.Error{Kind: project.Refused, State: project.Unchanged,
			Msg:    fmt.Sprintf("what was mounted at %s when run %s began is not mounted any more, and what it deleted there may be on it still", some(gone), rec.ID),
			Advice: fmt.Sprintf("mount it again, then repeat this; 'decree revert --exclude %s %s' takes back the rest", tree.ShellWord(string(gone[0])), rec.ID)}
	}
	places := slices.DeleteFunc(pathsIn(rec, extraMounted), func(p tree.Path) bool { return !mounted(p) })
	if len(places) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    fmt.Sprintf("while run %s worked something was mounted at %s, and what lies there is not the tree's", rec.ID, some(places)),
		Advice: "unmount it ('umount'), then repeat this"}
}

// refuseMountPoints refuses to replace or remove a file that something is mounted at, as a container does with single files: the system does not
// allow that.
func refuseMountPoints(steps []worktree.Step, mounts []tree.Path) error {
	var at []tree.Path
	for _, s := range steps {
		if s.From != nil && s.From.Type != tree.Dir && (s.To == nil || s.To.Type != s.From.Type || s.To.SHA256 != s.From.SHA256) && slices.Contains(mounts, s.Path) {
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
