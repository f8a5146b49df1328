package recorder

import (
	"context"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/tree"
)

// Status is where a project stands.
type Status struct {
	Root, StorePath string
	Used            Used
	Last            *history.Record   // the newest closed record; nil: none
	Open            []*history.Record // begun and not ended
	Changed         []tree.Change     // in the tree since the last record, or since the run in Since began
	Since           *history.Record   // a run that is open; nil: none
	Drafts          []*history.Record // that wait, newest first
	Lost            error             // why Changed cannot be told: the store has lost that state; nil: it can
	Hooks           []string          // what hooks of agents could not record since the newest turn
	RuleOnly        int               // paths that joined or left by ignore rules alone

	Tally
}

// Tally is what the audit counts, so also of records that were removed since. What was
// asked for by mistake, such as a REF that names nothing, is not counted.
type Tally struct {
	Reverts, Applies, Restores int // that were made
	Failures                   int // all that failed or was refused
	FailedRuns                 int // of these the runs whose command failed, or whose process died
}

// Status looks at the project and the tree; it changes nothing.
func (r *Reader) Status(ctx context.Context) (*Status, error) {
	r.catchUp()
	st := &Status{Root: r.project.Root, StorePath: r.project.StorePath}
	var err error
	if st.Used, err = r.used(); err != nil {
		return nil, err
	}
	if err := r.tally(st); err != nil {
		r.note("the audit cannot be read: %v", err)
	}
	if st.Hooks, err = r.HooksLog(); err != nil {
		r.note("%v", err)
	}
	open, _, err := r.history.ListOpen()
	if err != nil {
		return nil, err
	}
	for _, o := range open {
		st.Open = append(st.Open, o.Record)
	}
	if st.Drafts, err = r.WaitingDrafts(); err != nil {
		return nil, err
	}
	list, err := r.history.List(history.ListOptions{Limit: 1, Keep: func(rec *history.Record) bool {
		return rec.Status != history.StatusOpen && rec.Isolated == ""
	}})
	if err != nil {
		return nil, err
	}
	for _, w := range list.Warnings() {
		r.note("%s", w)
	}
	if len(list.Records) > 0 {
		st.Last = list.Records[0]
	}
	for _, o := range st.Open {
		if (o.Reason == history.Run || o.Reason == history.Turn && st.Since == nil) && o.Isolated == "" {
			st.Since = o
		}
	}
	if st.Last == nil && st.Since == nil {
		return st, nil
	}
	return st, r.changed(ctx, st)
}

// tally counts what the audit tells of.
func (r *Reader) tally(st *Status) error {
	_, err := r.history.ReadAudit(func(o *history.Operation) error {
		switch {
		case o.Failed():
			st.Failures++
			if o.Op == opRecord && o.Record != "" {
				st.FailedRuns++
			}
		case o.Mistake:
		case o.Op == string(history.Revert):
			st.Reverts++
		case o.Op == string(history.Apply):
			st.Applies++
		case o.Op == string(history.Restore):
			st.Restores++
		}
		return nil
	})
	return err
}

// changed compares the tree with what the last record left, or, while a run is open,
// with what that began with.
func (r *Reader) changed(ctx context.Context, st *Status) error {
	res, err := r.captureToCompare(ctx)
	if err != nil {
		return err
	}
	defer res.Close()
	if st.Since != nil {
		st.Changed, err = r.since(st.Since.Before, res)
		if lostContents(err) {
			st.Lost, err = err, nil
		}
		return err
	}
	s, err := r.sinceLast(ctx, res)
	if err == nil {
		st.RuleOnly = s.ruleOnly
		st.Changed, err = collected(s.changes)
	}
	if lostContents(err) {
		st.Lost, err = err, nil
	}
	return err
}

// FilesOptions narrow Files.
type FilesOptions struct {
	Prefix  tree.Path // a path; "" is the whole tree
	Ignored bool      // what is left out, instead of what is recorded
}

// Files lists the tree's files and links, in byte order of the paths; of what is
// left out, a directory stands for all below it.
func (r *Reader) Files(ctx context.Context, o FilesOptions, yield func(path tree.Path) error) error {
	req, err := r.request(captureOptions{unlimited: true})
	if err != nil {
		return err
	}
	req.Progress = nil
	return capture.List(ctx, req, capture.ListOptions{Prefix: o.Prefix, Ignored: o.Ignored}, func(path tree.Path, k disk.Kind) error {
		if k == disk.Directory && !o.Ignored {
			return nil
		}
		return yield(path)
	})
}

// Ignored says of each path whether it is left out, and by which rule.
func (r *Reader) Ignored(ctx context.Context, paths []tree.Path) ([]capture.Answer, error) {
	req, err := r.request(captureOptions{unlimited: true})
	if err != nil {
		return nil, err
	}
	req.Progress = nil
	return capture.Explain(ctx, req, paths)
}
