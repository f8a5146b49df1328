package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/runner"
	"decree/runner/fence"
	"decree/runner/userns"
)

// FenceMode says whether the writes of a run's command are kept to the root, the temporary
// directory and fence.write of the config.
type FenceMode uint8

// The modes.
const (
	NoFence        FenceMode = iota
	Fenced                   // as far as the kernel can: what it lacks is said
	FencedStrictly           // whole, or the run is refused
)

// machine is what the system lets a run do. A test has one that refuses.
type machine interface {
	Overlay(*layer.Place) error // nil, a *layer.Refusal, or why it could not be tried
	Clone(*layer.Place) error   // likewise
	Landlock() int              // the version of the kernel's Landlock, 0: none
	NoNet() error               // nil, or why the system makes no network namespace
	Policy() userns.Policy
}

// thisMachine is the one that this process runs on; each is found out by trying it.
type thisMachine struct{}

func (thisMachine) Overlay(p *layer.Place) error { return p.TryOverlay() }
func (thisMachine) Clone(p *layer.Place) error   { return p.TryClone() }
func (thisMachine) Landlock() int                { return fence.Kernel() }
func (thisMachine) NoNet() error                 { return runner.TryNoNet() }
func (thisMachine) Policy() userns.Policy        { return userns.Read() }

// limits are what the command of a run is kept to.
type limits struct {
	fenced bool
	hold   fence.Hold
	noNet  bool
}

// limitsOf refuses what this machine cannot do of what is asked for; what it can do in part
// is told.
func (r *Recorder) limitsOf(o RunOptions) (l limits, err error) {
	defer func() {
		if err != nil {
			_ = r.history.AuditAside(r.audit(opRecord, err.Error()))
		}
	}()
	l = limits{fenced: o.Fence != NoFence, noNet: o.NoNet}
	if l.noNet {
		if err := r.machine.NoNet(); err != nil {
			reason, advice := noNetReason(r.machine.Policy(), err)
			return l, &project.Error{Kind: project.Refused, State: project.NotStarted, Msg: "the network cannot be kept from a command here: " + reason, Advice: advice}
		}
	}
	if !l.fenced {
		return l, nil
	}
	hold, lacks := fence.HoldOf(r.machine.Landlock())
	l.hold = hold
	switch {
	case lacks == "":
	case o.Fence == FencedStrictly:
		return l, &project.Error{Kind: project.Refused, State: project.NotStarted, Msg: "no whole fence can be set here: " + lacks,
			Advice: "with --fence alone the command runs with what there is; where it must not, a container or another user keeps it in"}
	case hold == fence.None:
		r.note("no fence is set: %s", lacks)
	default:
		r.note("the fence has a gap: %s", lacks)
	}
	return l, nil
}

// noNetReason says why the system makes no network namespace, and what would help.
func noNetReason(p userns.Policy, err error) (reason, advice string) {
	reason, advice = p.Reason()
	switch {
	case reason == "" && errors.Is(err, syscall.ENOSPC):
		reason, advice = "no more of them may be made", "raise user.max_net_namespaces and user.max_user_namespaces with 'sudo sysctl'"
	case reason == "":
		return err.Error(), ""
	}
	return fmt.Sprintf("%s (%v)", reason, err), advice
}

// record notes the limits.
func (l limits) record(rec *history.Record) { rec.Fence, rec.NoNet = string(l.hold), l.noNet }

// fenceFor is the fence of a command whose tree is at the paths trees.
func (u *run) fenceFor(trees ...string) fence.Fence {
	f := fence.Fence{NoNet: u.limits.noNet}
	if !u.limits.fenced {
		return f
	}
	get := func(name string) (value string) {
		for _, e := range u.o.Env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				value = v
			}
		}
		return value
	}
	temporary := cmp.Or(get("TMPDIR"), "/tmp")
	f.Write = append(trees, temporary)
	if !filepath.IsAbs(temporary) {
		f.Write = trees // below the root, or not meant
	}
	f.Write = append(f.Write, u.r.project.Config.FencePlaces(get)...)
	return f
}

// BehindFence explains an error that says that the store may not be written, where this process
// is inside a run whose fence keeps its command from it; other errors stay as they are.
func (r *Recorder) BehindFence(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	now, lerr := r.currentActivity()
	for inside := now.inside; lerr == nil && inside != ""; {
		o, oerr := r.history.Opened(inside)
		if oerr != nil {
			break
		}
		if f := o.Record.Fence; f != "" && f != string(fence.None) {
			return &project.Error{Kind: project.Refused, Err: fmt.Errorf("run %s keeps its command behind a fence, and the store, %s, lies outside of it (%w)", inside, r.project.StorePath, fs.ErrPermission),
				Advice: "call decree outside of that run, or give the run --isolated too: a decree inside has a store in the layer then"}
		}
		inside = o.Record.Inside
	}
	return err
}
