package recorder

import (
	"context"
	"fmt"
	"strings"

	"decree/history"
	"decree/project"
	"decree/tree"
)

// CheckpointOptions are a checkpoint's.
type CheckpointOptions struct {
	Description          string
	Reason               string // manual (also ""), auto, publish
	Label                string
	SkipUnreadable, Full bool
	Yes                  bool

	// unasked: nobody is there to be asked or told; what cannot be read, or is too large, is
	// listed, as after a run.
	unasked bool
	// again says of the newest record and the present tree whether both are recorded
	// already: then there is no record; nil: never.
	again func(newest *history.Record, now tree.Hash) bool
}

// Checkpoint records the tree as it is.
func (r *Recorder) Checkpoint(ctx context.Context, o CheckpointOptions) (*history.Record, error) {
	reason, err := checkpointReason(o)
	if err != nil {
		return nil, err
	}
	x, err := r.enterFor(ctx, opRecord, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	rec, err := r.checkpoint(ctx, x, o, reason)
	if rec == nil {
		r.auditFailure(opRecord, err)
	}
	return rec, err
}

// opRecord is what the audit calls a run and a checkpoint.
const opRecord = "record"

func (r *Recorder) checkpoint(ctx context.Context, x *writeSession, o CheckpointOptions, reason history.Reason) (*history.Record, error) {
	id, started, err := r.history.NewID()
	if err != nil {
		return nil, err
	}
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", full: o.Full, skipUnreadable: o.SkipUnreadable, afterRun: o.unasked, unlimited: o.Yes, anyFile: o.Yes})
	if err != nil {
		return nil, &BeginError{err}
	}
	defer res.Close()
	if err := r.introduce(res); err != nil {
		return nil, &BeginError{err}
	}
	r.noteCapture(res)
	if o.again != nil {
		if k, err := r.lastKnown(); err != nil || k.newest != nil && o.again(k.newest, res.Tree) {
			return nil, err
		}
	}
	out, err := r.observeOutside(ctx, x, res, nil)
	if err != nil {
		return nil, &BeginError{err}
	}
	if err := r.keep(x, res); err != nil {
		return nil, &BeginError{err}
	}
	plain, sum, err := r.manifestFile(res.Tree, res.WriteManifest)
	if err != nil {
		return nil, &BeginError{err}
	}
	rec := &history.Record{
		ID: id, Chain: id[:16], Reason: reason, Status: history.StatusSucceeded, Description: r.describeCheckpoint(o, reason),
		Started: started, Unrecorded: res.Unrecorded, Files: res.Files, Bytes: res.Bytes,
		Before: res.Tree, After: res.Tree, ManifestSHA256: sum, Actor: r.opt.Actor, Inside: x.activity.inside, Origin: r.origin(),
	}
	if err := r.noteMounts(rec); err != nil {
		return nil, err
	}
	if err := out.mark(rec); err != nil {
		return nil, err
	}
	end := &ending{Record: rec, Files: out.stored(nil), build: out.files(r, plain)}
	if o.Label != "" {
		end.effects.Labels = map[string]string{o.Label: id}
	}
	if err := r.end(end); err != nil {
		return nil, err
	}
	r.retain(ctx, x, reason)
	return rec, nil
}

func checkpointReason(o CheckpointOptions) (history.Reason, error) {
	if err := checkDescription(o.Description); err != nil {
		return "", err
	}
	if o.Label != "" {
		if err := history.CheckLabel(o.Label); err != nil {
			return "", err
		}
	}
	switch reason := history.Reason(o.Reason); reason {
	case "":
		return history.Manual, nil
	case history.Manual, history.Auto, history.Publish:
		return reason, nil
	}
	return "", &project.Error{Kind: project.Usage, Msg: "reason " + o.Reason + ": not manual, auto or publish"}
}

// checkDescription refuses a text that would not stay one line in a list.
func checkDescription(text string) error {
	if strings.ContainsAny(text, "\n\r") {
		return &project.Error{Kind: project.Usage, Msg: "a description is one line", Advice: "leave out what follows the first line"}
	}
	return nil
}

// describeCheckpoint is the user's text; a checkpoint that a program makes without
// one says in words what it is, never by an id.
func (r *Recorder) describeCheckpoint(o CheckpointOptions, reason history.Reason) string {
	agent := r.opt.Actor.Agent
	switch {
	case o.Description != "" || reason == history.Manual:
		return o.Description
	case reason == history.Publish:
		return "Published state"
	case r.opt.Actor.Turn > 0 && agent != "":
		return fmt.Sprintf("Before turn %d of %s", r.opt.Actor.Turn, agent)
	case r.opt.Actor.Turn > 0:
		return fmt.Sprintf("Before turn %d", r.opt.Actor.Turn)
	case agent != "":
		return "Before the work of " + agent
	}
	return "Automatic checkpoint"
}
