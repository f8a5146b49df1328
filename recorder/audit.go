package recorder

import (
	"decree/history"
	"decree/project"
)

// audit is the audit's line about an operation of this command.
func (r *Recorder) audit(op, outcome string) history.Operation {
	return history.Operation{Op: op, Actor: r.opt.Actor, Outcome: outcome}
}

// auditFailure writes down an operation that failed; its own failure is the lesser one.
func (r *Recorder) auditFailure(op string, err error) {
	o := r.audit(op, err.Error())
	kind := project.KindOf(err)
	o.Mistake = kind == project.Usage || kind == project.NotFound
	_ = r.history.Audit(o)
}

// auditOf is the audit's line about a record that ends.
func (r *Recorder) auditOf(rec *history.Record) history.Operation {
	switch rec.Reason {
	case history.Run:
		return r.audit(opRecord, string(rec.Status))
	case history.Manual, history.Auto:
		return r.audit(opRecord, "done")
	case history.Publish:
		if rec.DiffSHA256.IsZero() { // a checkpoint
			return r.audit(opRecord, "done")
		}
	}
	return r.audit(string(rec.Reason), "done")
}

// Audit writes down an operation that works on no record, such as a backup.
func (r *Recorder) Audit(op, detail string) error {
	o := r.audit(op, "done")
	o.Detail = detail
	return r.history.AuditAside(o)
}
