package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"decree/layer"
	"decree/runner/fence"
	"decree/runner/userns"
)

// machine tells what of isolated runs, fences and runs without a network works here: each is
// tried. What does not work is no fault of the project's.
func (d *doctor) machine(context.Context, bool) error {
	m := d.r.machine
	place, err := d.r.layers()
	if err != nil {
		d.add(Info, "isolated runs", "they could not be tried: "+err.Error(), "", false)
		place = nil
	}
	refused := false
	if place != nil {
		defer closePlace(place)
		place.Boot = "" // what worked before is tried again
		refused = d.isolated(m.Overlay(place), func() error { return m.Clone(place) })
	}
	if hold, lacks := fence.HoldOf(m.Landlock()); hold == fence.Whole {
		d.add(OK, "fence", "a run can be fenced in (--fence), by Landlock", "", false)
	} else {
		d.add(Info, "fence", map[fence.Hold]string{fence.None: "a run cannot be fenced in: ", fence.Partly: "a run can be fenced in with a gap: "}[hold]+lacks, "a newer Linux has all of it", false)
	}
	if err := m.NoNet(); err == nil {
		d.add(OK, "no-net", "a run can be kept from the network (--no-net)", "", false)
	} else {
		reason, advice := noNetReason(m.Policy(), err)
		d.add(Info, "no-net", "a run cannot be kept from the network: "+reason, advice, false)
		refused = true
	}
	if refused && m.Policy().AppArmor {
		d.profile()
	}
	return nil
}

// isolated tells how runs are isolated, given what came of trying an overlay. It says whether
// that was refused.
func (d *doctor) isolated(overlay error, clone func() error) (refused bool) {
	if overlay == nil {
		d.add(OK, "isolated runs", "they work in an overlay, at the tree's own path", "", false)
		return false
	}
	text, advice := untried(overlay)
	switch err := clone(); {
	case err == nil:
		text += "; they work in a clone, at another path"
	default:
		why, more := untried(err)
		text += "; " + why + "; --copy makes them work in a full copy"
		if advice = strings.TrimSuffix(advice, layer.OrClone); advice == "" { // that would be refused, too
			advice = more
		}
	}
	d.add(Info, "isolated runs", text, advice, false)
	return true
}

// untried says why a mechanism does not work, and what would help.
func untried(err error) (text, advice string) {
	if no := (*layer.Refusal)(nil); errors.As(err, &no) {
		return fmt.Sprintf("no %s: %s", no.Mechanism, no.Reason), no.Advice
	}
	return err.Error(), ""
}

// profile prints what AppArmor must be told.
func (d *doctor) profile() {
	exe, err := os.Executable()
	if err != nil {
		exe = "/usr/bin/decree"
	}
	d.checks = append(d.checks, Check{
		Level: Info, Name: "AppArmor", Text: "it lets only programs with a profile use user namespaces; this is one for decree",
		Hint: "write it to /etc/apparmor.d/decree, then 'sudo apparmor_parser -r /etc/apparmor.d/decree'", Profile: userns.Profile(exe),
	})
}
