package recorder

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/layer"
	"decree/project"
	"decree/runner"
	"decree/runner/fence"
	"decree/runner/userns"
)

// fakeMachine lets a run do all that it names no error for.
type fakeMachine struct {
	overlay, clone, noNet error
	landlock              int
	policy                userns.Policy
}

func (m fakeMachine) Overlay(*layer.Place) error { return m.overlay }
func (m fakeMachine) Clone(*layer.Place) error   { return m.clone }
func (m fakeMachine) Landlock() int              { return m.landlock }
func (m fakeMachine) NoNet() error               { return m.noNet }
func (m fakeMachine) Policy() userns.Policy      { return m.policy }

// fencedRun is a run on a machine; got is the fence that its command was given.
func fencedRun(t *testing.T, m fakeMachine, before func(*bench), change func(*RunOptions)) (got *fence.Fence, res *RunResult, notes []string, err error) {
	b := newBench(t)
	before(b)
	r := b.commanded(func() int { return 0 })
	defer r.Close()
	r.machine = m
	r.Reader.opt.Note = func(n string) { notes = append(notes, n) }
	execute := r.execute
	r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
		got = &c.Fence
		return execute(ctx, c)
	}
	o := command(b)
	o.Env = []string{"HOME=/home/u", "TMPDIR=/t"}
	change(&o)
	res, err = r.Run(context.Background(), o)
	return got, res, notes, err
}

// asItIs leaves the bench as it is.
func asItIs(*bench) {}

// TestFencedRun: where the command may write, and what its record says.
func TestFencedRun(t *testing.T) {
	var root string
	got, res, notes, err := fencedRun(t, fakeMachine{landlock: 3}, func(b *bench) {
		root = b.root
		b.write(".decree/config.yml", "fence: {write: [~/x, $TMPDIR/y, /z]}\n")
	}, func(o *RunOptions) {
		o.Fence, o.NoNet = FencedStrictly, true
	})
	require.NoError(t, err)
	assert.Equal(t, fence.Fence{Write: []string{root, "/t", "/home/u/x", "/t/y", "/z"}, NoNet: true}, *got)
	assert.Equal(t, "landlock", res.Record.Fence)
	assert.True(t, res.Record.NoNet)
	assert.NotContains(t, strings.Join(notes, "\n"), "fence")
	assert.Contains(t, string(res.Record.JSON(nil)), "\"fence\": \"landlock\",\n  \"no_net\": true")

	for tmp, want := range map[string][]string{"TMPDIR=": {"/tmp"}, "TMPDIR=relative": nil} {
		got, _, _, err = fencedRun(t, fakeMachine{landlock: 3}, func(b *bench) {
			root = b.root
			b.write(".decree/config.yml", "fence: {write: []}\n")
		}, func(o *RunOptions) {
			o.Fence, o.Env = Fenced, []string{tmp}
		})
		require.NoError(t, err)
		assert.Equal(t, append([]string{root}, want...), got.Write)
	}

	got, res, _, err = fencedRun(t, fakeMachine{noNet: errors.New("not asked for")}, asItIs, func(*RunOptions) {})
	require.NoError(t, err)
	assert.True(t, got.IsZero())
	assert.NotContains(t, string(res.Record.JSON(nil)), "fence")
	assert.NotContains(t, string(res.Record.JSON(nil)), "no_net")
}

// TestFenceOfAKernel: what a kernel lacks is said, and with strict refused before anything
// is done.
func TestFenceOfAKernel(t *testing.T) {
	for landlock, want := range map[int][3]string{
		0: {"none", "no fence is set: ", "this system has no Landlock"},
		1: {"none", "no fence is set: ", "cannot allow that files move"},
		2: {"partly", "the fence has a gap: ", "truncate"},
	} {
		_, res, notes, err := fencedRun(t, fakeMachine{landlock: landlock}, asItIs, func(o *RunOptions) { o.Fence = Fenced })
		require.NoError(t, err)
		assert.Equal(t, want[0], res.Record.Fence)
		assert.Contains(t, strings.Join(notes, "\n"), want[1])
		assert.Contains(t, strings.Join(notes, "\n"), want[2])

		got, _, _, err := fencedRun(t, fakeMachine{landlock: landlock}, asItIs, func(o *RunOptions) { o.Fence = FencedStrictly })
		require.ErrorContains(t, err, "no whole fence can be set here: ")
		assert.ErrorContains(t, err, want[2])
		assert.ErrorContains(t, err, project.NotStarted)
		assert.Equal(t, project.Refused, project.KindOf(err))
		assert.NotEmpty(t, project.HintOf(err))
		assert.Nil(t, got, "nothing was executed")
	}
}

// TestNoNetRefused: nothing is executed with the network where it was to be without.
func TestNoNetRefused(t *testing.T) {
	for _, c := range []struct {
		policy       userns.Policy
		err          error
		reason, hint string
	}{
		{userns.Policy{AppArmor: true}, syscall.EPERM, "AppArmor", "decree doctor"},
		{userns.Policy{Filtered: true}, syscall.EPERM, "filter of system calls", "--security-opt"},
		{userns.Policy{Exhausted: true}, syscall.ENOSPC, "user.max_user_namespaces is 0", "sysctl"},
		{userns.Policy{Off: true}, syscall.EPERM, "unprivileged_userns_clone is 0", "sysctl"},
		{userns.Policy{}, syscall.ENOSPC, "no more of them", "max_net_namespaces"},
		{userns.Policy{}, syscall.EINVAL, "make a network namespace: invalid argument", ""},
	} {
		got, _, _, err := fencedRun(t, fakeMachine{landlock: 7, policy: c.policy, noNet: &fence.Error{Step: "make a network namespace", Err: c.err}},
			asItIs, func(o *RunOptions) { o.NoNet = true })
		require.ErrorContains(t, err, "the network cannot be kept from a command here: ")
		assert.ErrorContains(t, err, c.reason)
		assert.Contains(t, project.HintOf(err), c.hint)
		assert.Nil(t, got)
	}
}

// TestDoctorOfMachines: what works is ok; what does not is told with what would help, and is
// no warning.
func TestDoctorOfMachines(t *testing.T) {
	b := newBench(t)
	b.write("f", "f\n")
	b.checkpoint(CheckpointOptions{})
	overlay := func(reason, advice string) *layer.Refusal {
		return &layer.Refusal{Mechanism: layer.Overlay, Reason: reason, Advice: advice, Err: syscall.EPERM}
	}
	noClone := &layer.Refusal{Mechanism: layer.Clone, Reason: "nothing is shared", Advice: "--copy makes a full copy"}
	noNet := &fence.Error{Step: "make a network namespace", Err: syscall.EPERM}
	for name, c := range map[string]struct {
		machine fakeMachine
		want    []string // of the level, name, text and hint of a check each; they come in this order
	}{
		"all works": {fakeMachine{landlock: 7}, []string{
			"ok isolated runs they work in an overlay, at the tree's own path ", "ok fence a run can be fenced in (--fence), by Landlock ", "ok no-net a run can be kept from the network (--no-net) "}},
		"AppArmor": {fakeMachine{landlock: 2, policy: userns.Policy{AppArmor: true}, overlay: overlay("AppArmor lets nobody", "install the profile"), noNet: noNet}, []string{
			"info isolated runs no overlay: AppArmor lets nobody; they work in a clone, at another path install the profile",
			"info fence a run can be fenced in with a gap: ", "info no-net a run cannot be kept from the network: AppArmor lets only programs with a profile use user namespaces (",
			"info AppArmor "}},
		"in Docker": {fakeMachine{landlock: 7, policy: userns.Policy{Filtered: true}, overlay: overlay("a filter", "start the container"+layer.OrClone), clone: noClone, noNet: noNet}, []string{
			"info isolated runs no overlay: a filter; no clone: nothing is shared; --copy makes them work in a full copy start the container",
			"ok fence ", "info no-net a run cannot be kept from the network: a filter of system calls"}},
		"no namespaces": {fakeMachine{policy: userns.Policy{Exhausted: true}, overlay: overlay("none", ""), clone: errors.New("disk on fire"), noNet: noNet}, []string{
			"info isolated runs no overlay: none; disk on fire; --copy makes them work in a full copy ",
			"info fence a run cannot be fenced in: this system has no Landlock", "info no-net a run cannot be kept from the network: no user namespaces may be made: user.max_user_namespaces is 0"}},
	} {
		r := b.open()
		r.machine = c.machine
		checks, err := r.Doctor(context.Background())
		require.NoError(t, err)
		var got []Check
		for _, check := range checks {
			if check.Name == "isolated runs" || len(got) > 0 {
				got = append(got, check)
			}
		}
		require.Len(t, got, len(c.want), name)
		for i, check := range got {
			assert.True(t, strings.HasPrefix(string(check.Level)+" "+check.Name+" "+check.Text+" "+check.Hint, c.want[i]), "%s: %+v", name, check)
			assert.False(t, strings.Contains(check.Text, "no clone") && strings.Contains(check.Hint, layer.OrClone), "%s: %+v", name, check)
			assert.Equal(t, check.Name == "AppArmor", strings.Contains(check.Profile, "userns,\n"), "%s: %+v", name, check)
		}
		require.NoError(t, r.Close())
	}
}

// TestDoctorTries: on this machine, whatever it can do, doctor finds out by trying, and
// leaves nothing.
func TestDoctorTries(t *testing.T) {
	b := newBench(t)
	b.write("f", "f\n")
	b.checkpoint(CheckpointOptions{})
	r := b.open()
	defer r.Close()
	checks, err := r.Doctor(context.Background())
	require.NoError(t, err)
	names := map[string]Level{}
	for _, c := range checks {
		names[c.Name] = c.Level
	}
	for _, name := range []string{"isolated runs", "fence", "no-net"} {
		assert.Contains(t, []Level{OK, Info}, names[name], name)
	}
	left, err := filepath.Glob(filepath.Join(b.base, "store", "*", "layers", "probe*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
