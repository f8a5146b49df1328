package recorder

import (
	"fmt"
	"slices"

	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/tree"
)

// What a run's command mounts in the tree looks like changes: at the place of a directory lies another one, which may be
// anybody's. To put that back would delete and replace files that are no part of the tree. So a run notes what was mounted while
// it worked, and nothing is taken back there before it is unmounted.

// extraMounted is the field of run.json that names the places at and below which a run has changes, and something was mounted
// while its command worked.
const extraMounted = "mounted"

// mounts are the places in the tree where something is mounted, each as often as that is so.
func (r *Reader) mounts() (places []tree.Path) {
	root := realPath(r.project.Root)
	for _, place := range layer.MountsBelow(root) {
		places = append(places, tree.Path(place[len(root)+1:]))
	}
	return places
}

// noteMounted writes into the record where something was mounted since the command began, as far as that is seen in the changes.
func (u *run) noteMounted(changes []tree.Change) error {
	before, came := slices.Clone(u.mounts), []string(nil)
	u.mounted = nil
	for _, place := range u.r.mounts() {
		if i := slices.Index(before, place); i >= 0 {
			before = slices.Delete(before, i, i+1)
		} else if slices.ContainsFunc(changes, func(c tree.Change) bool { return c.Path.Within(place) }) {
			u.mounted, came = append(u.mounted, place), append(came, tree.Quote(place))
		}
	}
	return setExtra(u.rec, extraMounted, came)
}

// stillMounted refuses to take back what a record has of places where something was mounted by its command, or beside it, and
// something is mounted still.
func (r *Reader) stillMounted(rec *history.Record) error {
	now := r.mounts()
	places := slices.DeleteFunc(pathsIn(rec, extraMounted), func(p tree.Path) bool { return !slices.Contains(now, p) })
	if len(places) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    fmt.Sprintf("while run %s worked something was mounted at %s, and what lies there is not the tree's", rec.ID, some(places)),
		Advice: "unmount it ('umount'), then repeat this"}
}
