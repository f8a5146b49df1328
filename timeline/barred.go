package timeline

import (
	"fmt"
	"slices"

	"decree/history"
	"decree/recorder"
	"decree/view"
)

// Barred says of operations that cannot be performed now why not, in words for people;
// those that are not in it can be. The operations are undo, redo, revert, apply, restore, publish
// and checkpoint.
//
// A run that works in place is in the way of all that moves files. While a draft waits, nothing is restored
// and no checkpoint made by a click or a key, unless drafts.block is false in the config: whoever
// looks at a draft expects that it goes into the tree that it was made from.
func Barred(rec *recorder.Reader) (map[string]string, error) {
	out := map[string]string{}
	drafts, err := rec.WaitingDrafts()
	if err != nil {
		return nil, err
	}
	if len(drafts) > 0 && rec.Project().Config.DraftsBlock {
		which := ": " + whichWait(drafts)
		out["restore"] = "Discard or publish your draft to restore" + which
		out["checkpoint"] = "Discard or publish your draft to create a checkpoint" + which
	}
	run, err := works(rec)
	if err != nil || run == "" {
		return out, err
	}
	for _, verb := range []string{"undo", "redo", "revert", "apply", "restore", "publish"} {
		out[verb] = "Wait until the run has ended that works here: " + run
	}
	return out, nil
}

// mostWaiting is how many of the drafts that wait are named.
const mostWaiting = 3

// whichWait names the drafts that wait: "race.1 and race.2 wait".
func whichWait(drafts []*history.Record) string {
	var names []string
	for _, d := range drafts[:min(len(drafts), mostWaiting)] {
		names = append(names, view.Called(d))
	}
	if more := len(drafts) - mostWaiting; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return view.List(names) + map[bool]string{true: " waits", false: " wait"}[len(drafts) == 1]
}

// works is what the run in place is about that is under way; "" for none. One whose process is
// dead is in nobody's way: the next command that writes ends its record.
func works(rec *recorder.Reader) (string, error) {
	open, _, err := rec.History().ListOpen()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(open, func(o *history.Opened) bool { return o.Record.Reason == history.Run && o.Record.Isolated == "" })
	if i < 0 {
		return "", nil
	}
	if dead, err := rec.Waiting(); err != nil || len(dead) > 0 {
		return "", err
	}
	return view.Called(open[i].Record), nil
}
