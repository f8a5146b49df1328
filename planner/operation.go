package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// Request asks for a plan.
type Request struct {
	Operation string      // undo, redo, revert, apply, restore, publish, discard
	Ref       string      // the record; of a publish or discard the draft
	Refs      []string    // several records, of a revert, apply or discard
	Paths     []tree.Path // only these, and what is below them; none: all
	Marks     []Mark      // only these, of what the plan is about; none: all
	// Of is the plan in whose pieces the marks were made, which says what else is asked for: its paths, and what becomes of
	// edits. "": it is not checked whether that still holds.
	Of string
	// OfRecord says that the hunks of the marks are counted in the record's own diff, not in that of a plan.
	OfRecord bool
	// Exclude are paths that are left as they are, with all below them: those that were in the way.
	Exclude []tree.Path

	After bool // of a restore: the state when the record ended, not when it began
	Limit int  // of an undo or redo: how many changes; 0: one
	Force bool // overwrite what was edited since
	Merge bool // keep what was edited since, and merge
	// Markers is a way of merging: conflicts are marked in the files.
	Markers bool
}

// The operations by name.
const (
	undo    = "undo"
	redo    = "redo"
	revert  = "revert"
	apply   = "apply"
	restore = "restore"
	publish = "publish"
	discard = "discard"
)

// attempt is one try at an operation.
type attempt struct {
	Request
	exclude []tree.Path
	dryRun  bool
	choose  recorder.Chooser
	// ok is asked about a plan, where the operation asks, before anything is changed.
	ok func(*plan.Plan) (bool, error)
	// show is given the plan of a dry run, while what it brings can be read.
	show func(*plan.Plan) error
}

// operations are what can be planned, but for the discard, which has no plan of paths.
var operations = map[string]func(context.Context, *recorder.Recorder, attempt) (*recorder.MoveResult, error){
	undo: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Undo(ctx, a.undoOptions())
	},
	redo: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Redo(ctx, a.undoOptions())
	},
	revert: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Revert(ctx, a.moveOptions())
	},
	apply: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Apply(ctx, a.moveOptions())
	},
	restore: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Restore(ctx, recorder.RestoreOptions{Ref: a.Ref, After: a.After, Paths: a.Paths, DryRun: a.dryRun, Show: a.show,
			Confirm: func(_ recorder.Point, p *plan.Plan) (bool, error) { return a.ok(p) }})
	},
	publish: func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Publish(ctx, recorder.PublishOptions{Ref: a.Ref, Paths: a.Paths, Exclude: a.exclude, Merge: a.merging(), Force: a.Force,
			DryRun: a.dryRun, Show: a.show, Choose: a.choose, Confirm: a.ok})
	},
}

func (a attempt) moveOptions() recorder.MoveOptions {
	return recorder.MoveOptions{Refs: a.refs(), Paths: a.Paths, Exclude: a.exclude, Merge: a.merging(), Force: a.Force,
		DryRun: a.dryRun, Show: a.show, Choose: a.choose, Confirm: func(p *plan.Plan, _ []string) (bool, error) { return a.ok(p) }}
}

func (a attempt) undoOptions() recorder.UndoOptions {
	return recorder.UndoOptions{N: a.Limit, Paths: a.Paths, Merge: a.Merge, Force: a.Force, DryRun: a.dryRun, Show: a.show,
		Confirm: func(p *plan.Plan, _ []string) (bool, error) { return a.ok(p) }}
}

func (q Request) merging() plan.Merging {
	switch {
	case q.Markers:
		return plan.Mark
	case q.Merge:
		return plan.Refuse
	}
	return plan.Off
}

func (q Request) refs() []string {
	if q.Ref == "" {
		return q.Refs
	}
	return slices.Concat([]string{q.Ref}, q.Refs)
}

func (q Request) walks() bool { return q.Operation == undo || q.Operation == redo }

// chooses says whether hunks can be chosen.
func (q Request) chooses() bool {
	return q.Operation == revert || q.Operation == apply || q.Operation == publish
}

// takesMarkers says whether conflicts can be marked in the files.
func (q Request) takesMarkers() bool { return q.Operation == revert || q.Operation == apply }

// HasHunks says whether hunks are marked, which are those of one diff alone.
func (q Request) HasHunks() bool {
	return slices.ContainsFunc(q.Marks, func(m Mark) bool { return len(m.Hunks) > 0 })
}

// merges are the requests by which a conflict of this one may be merged away, the one that touches less first. Their
// hunks are others than those that are marked.
func (q Request) merges() (out []Request) {
	q.Paths = slices.Concat(q.Paths, q.markedPaths())
	q = q.whole()
	if !q.Merge && !q.Force && (q.walks() || q.chooses()) {
		q.Merge = true
		out = append(out, q)
	}
	if !q.Markers && !q.Force && q.takesMarkers() {
		q.Merge, q.Markers = true, true
		out = append(out, q)
	}
	return out
}

// whole is the request without its marks.
func (q Request) whole() Request {
	q.Marks, q.Of, q.OfRecord = nil, "", false
	return q
}

// forced is the request by which what is in the way is overwritten; false where there is none.
func (q Request) forced() (Request, bool) {
	q.Of, q.Merge, q.Markers = "", false, false
	forces := !q.Force && (q.walks() || q.chooses())
	q.Force = true
	return q, forces && q.lasts()
}

// others is the request about all but what is in the way; false where nothing can be left out.
func (q Request) others(inTheWay []plan.Item) (Request, bool) {
	marked := len(q.Marks) > 0
	q.Of = ""
	for _, it := range inTheWay {
		q.Exclude = append(slices.Clip(q.Exclude), it.Path)
		q.Marks = slices.DeleteFunc(slices.Clone(q.Marks), func(m Mark) bool { return m.Path == it.Path })
	}
	return q, q.chooses() && q.lasts() && len(q.Exclude) <= maxAnswers && marked == (len(q.Marks) > 0)
}

// lasts says whether the marks mean the same in another plan: those of a plan's hunks do not.
func (q Request) lasts() bool { return q.OfRecord || !q.HasHunks() }

func (q Request) check() error {
	named := len(q.refs()) > 0
	one := q.Ref != "" && len(q.Refs) == 0
	switch {
	case operations[q.Operation] == nil && q.Operation != discard:
		return usagef("operation %q is not known", q.Operation).Hintf("it is one of undo, redo, revert, apply, restore, publish and discard")
	case q.walks() && named:
		return usagef("%s takes no ref", q.Operation).Hintf("it takes the newest change; revert is of any record")
	case q.Limit < 0 || q.Limit > 0 && !q.walks():
		return usagef("limit %d: only an undo or redo has one, which is positive", q.Limit)
	case q.Operation == restore && !one, q.Operation == publish && len(q.Refs) > 0:
		return usagef("a %s is of one ref", q.Operation)
	case !named && !q.walks() && q.Operation != publish:
		return usagef("a ref is missing").Hintf(`"last" is the newest record; history lists them`)
	case len(q.Exclude) > 0 && !q.chooses():
		return usagef("%s leaves no paths out", article(q.Operation))
	case q.OfRecord && (len(q.refs()) != 1 || q.Of != ""):
		return usagef("marks of a record's own diff are of one ref, and of no plan")
	case q.Operation == discard && (len(q.Paths) > 0 || len(q.Marks) > 0):
		return usagef("a discard is of whole drafts")
	case q.After && q.Operation != restore:
		return usagef("after: only a restore has another state to go to")
	case q.Force && q.Merge:
		return usagef("force and merge cannot be used together").Hintf("merge keeps what was edited since, force does not")
	case q.Markers && (!q.Merge || !q.takesMarkers()):
		return usagef("markers are of a revert or apply that merges")
	case (q.Force || q.Merge) && !q.walks() && !q.chooses():
		return usagef("%s has nothing to force or merge", article(q.Operation))
	}
	return q.checkMarks()
}

func usagef(format string, args ...any) *project.Error {
	return &project.Error{Kind: project.Usage, Msg: fmt.Sprintf(format, args...)}
}

func article(operation string) string {
	if strings.ContainsRune("aeiou", rune(operation[0])) {
		return "an " + operation
	}
	return "a " + operation
}

// sight is what an operation would do, as a dry run says it.
type sight struct {
	attempt attempt
	answers []plan.Answer // that the marks gave
	result  *recorder.MoveResult
	drafts  []recorder.Discarded
	seen    string // a hash of what the plan saw, and makes of it
}

var (
	errStale   = errors.New("stale")
	errPlanned = errors.New("planned") // ends a discard at its question
)

// look makes the plan, and says in short what it saw. show is given it, with that, while what it
// brings can be read; nil: nobody looks.
func look(ctx context.Context, rec *recorder.Recorder, q Request, show func(p *plan.Plan, seen string) error) (*sight, error) {
	if q.Operation == discard {
		return lookAtDrafts(ctx, rec, q)
	}
	last, err := newest(rec)
	if err != nil {
		return nil, err
	}
	s := &sight{}
	marks := newMarking(q.Marks)
	a := attempt{Request: q.withPaths(), exclude: slices.Clip(q.Exclude), dryRun: true, choose: marks.chooser(q), show: func(p *plan.Plan) error {
		s.seen = last + " " + sawOf(p)
		if show == nil {
			return nil
		}
		return show(p, s.seen)
	}}
	res, err := operations[q.Operation](ctx, rec, a)
	if conflict, ok := errors.AsType[*recorder.ConflictError](err); ok && len(marks.marks) > 0 && q.chooses() && !slices.ContainsFunc(conflict.Items, func(it plan.Item) bool { return marks.covers(it.Path) }) {
		// Nobody wants what is in the way.
		for _, it := range conflict.Items {
			a.exclude = append(a.exclude, it.Path)
		}
		res, err = operations[q.Operation](ctx, rec, a)
	}
	if err != nil {
		return nil, err
	}
	if err := marks.unmet(q, res.Plan); err != nil {
		return nil, err
	}
	s.attempt, s.answers, s.result = a, marks.answers, res
	if s.seen == "" { // there was nothing to show
		s.seen = last + " " + sawOf(res.Plan)
	}
	return s, nil
}

func lookAtDrafts(ctx context.Context, rec *recorder.Recorder, q Request) (*sight, error) {
	s := &sight{attempt: attempt{Request: q}, result: &recorder.MoveResult{}}
	_, err := rec.Discard(ctx, recorder.DiscardOptions{Refs: q.refs(), Confirm: func(list []recorder.Discarded) (bool, error) {
		s.drafts = list
		return false, errPlanned
	}})
	if !errors.Is(err, errPlanned) {
		return nil, err
	}
	for _, d := range s.drafts {
		if lost := d.Lost(); lost != "" {
			s.result.Notes = append(s.result.Notes, "gone with the layer: "+lost)
		}
	}
	s.seen = sawDrafts(s.drafts)
	return s, nil
}

func sawDrafts(list []recorder.Discarded) string {
	h := sha256.New()
	for _, d := range list {
		fmt.Fprintf(h, "%s %s %s %q\n", d.ID, d.DiffSHA256, d.Draft.State, d.Lost())
	}
	return short(h)
}

// sawOf says in short what a plan saw at its paths, makes of them, and warns of.
func sawOf(p *plan.Plan) string {
	if p == nil {
		return ""
	}
	h := sha256.New()
	for _, it := range p.Items {
		fmt.Fprintf(h, "%q %+v %+v %s\n", it.Path, it.From, it.To, it.Verdict)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(h, "%q\n", warning)
	}
	return short(h)
}

func short(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:16]) }

// newest is the newest record's id; "" if there is none.
func newest(rec *recorder.Recorder) (string, error) {
	list, err := rec.Reader.History().List(history.ListOptions{Limit: 1})
	if err != nil || len(list.Records) == 0 {
		return "", err
	}
	return list.Records[0].ID, nil
}

// performHeld performs a plan under the lock, if the tree and the records are what it saw.
func performHeld(ctx context.Context, rec *recorder.Recorder, of *remembered) (*sight, error) {
	if q := of.request.Operation; q != publish && q != discard { // which are of drafts, whatever a turn comes to
		if err := rec.CloseTurns(ctx, of.request.Operation); err != nil {
			return nil, err
		}
	}
	s, err := look(ctx, rec, of.request, nil)
	if err != nil {
		return nil, err
	}
	if s.seen != of.seen {
		return nil, errStale
	}
	if of.request.Operation == discard {
		s.drafts, err = rec.Discard(ctx, recorder.DiscardOptions{Refs: of.request.refs(), Confirm: func(list []recorder.Discarded) (bool, error) {
			if sawDrafts(list) != s.seen {
				return false, errStale
			}
			return true, nil
		}})
		return s, err
	}
	// What is asked about must be the same plan still. Where nothing is asked nothing is
	// overwritten either: a file that is edited in between is refused by the operation itself.
	want := sawOf(s.result.Plan)
	a := s.attempt
	a.dryRun, a.choose = false, newMarking(of.request.Marks).chooser(of.request)
	a.ok = func(now *plan.Plan) (bool, error) {
		if sawOf(now) != want {
			return false, errStale
		}
		return true, nil
	}
	s.result, err = operations[of.request.Operation](ctx, rec, a)
	return s, err
}
