package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/retention"
	"decree/tree"
)

// PruneOptions are a prune's.
type PruneOptions struct {
	// Last replaces the policies of reasons by "the last n".
	Last map[string]int
	// MaxStore replaces the config's cap, in bytes; 0: none.
	MaxStore *int64
	// Confirm is asked before manual checkpoints are removed; nil: they are.
	Confirm func(*Pruned) (bool, error)
}

// Pruned is what a prune did, or would do.
type Pruned struct {
	Verdicts []retention.Verdict // oldest first
	Freed    int64               // bytes; of WouldPrune, and when Confirm is asked, about so many
	Used                         // afterwards; of WouldPrune now
	// Fits is false where what is always kept is larger than the cap.
	Fits bool
}

// Gone are the verdicts on what goes.
func (p *Pruned) Gone() (list []retention.Verdict) {
	for _, v := range p.Verdicts {
		if !v.Keep {
			list = append(list, v)
		}
	}
	return list
}

// Prune removes the records that retention does not keep, and frees what they
// alone named.
func (r *Recorder) Prune(ctx context.Context, o PruneOptions) (*Pruned, error) {
	policies, most := r.policies(o)
	x, err := r.enterForSpace(ctx, opPrune)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if _, err := r.history.FinishRemove(r.audit(opPrune, "done")); err != nil {
		return nil, err
	}
	p, err := r.prune(ctx, x, policies, most, o.Confirm)
	if err != nil {
		r.auditFailure(opPrune, err)
	}
	return p, err
}

const opPrune = "prune"

func (r *Reader) policies(o PruneOptions) (map[string]retention.Policy, int64) {
	out := maps.Clone(r.project.Config.Retention)
	for reason, n := range o.Last {
		out[reason] = retention.Policy{Last: n}
	}
	most := r.project.Config.MaxStore
	if o.MaxStore != nil {
		most = *o.MaxStore
	}
	return out, most
}

// WouldPrune says what Prune would do. It asks nothing and removes nothing.
func (r *Reader) WouldPrune(o PruneOptions) (*Pruned, error) {
	p, _, err := r.wouldPrune(o)
	return p, err
}

// survey is what is read once of a history, whose reading takes a while where it is long.
type survey struct {
	runs   map[string]int64  // the sizes of the directories in .decree/runs
	logged []*history.Record // the oldest first
}

func (r *Reader) survey() (s survey, err error) {
	r.catchUp()
	if s.runs, err = r.runSizes(); err == nil {
		s.logged, err = r.history.Logged()
	}
	return s, err
}

// wouldPrune is WouldPrune, with what was read for it.
func (r *Reader) wouldPrune(o PruneOptions) (*Pruned, survey, error) {
	s, err := r.survey()
	if err != nil {
		return nil, s, err
	}
	p, err := r.decidePrune(o, s)
	return p, s, err
}

func (r *Reader) decidePrune(o PruneOptions, s survey) (*Pruned, error) {
	policies, most := r.policies(o)
	used, err := r.usedWith(s.runs)
	if err != nil {
		return nil, err
	}
	p := &Pruned{Used: used, Fits: true}
	if p.Verdicts, err = r.verdictsOn(s.logged, policies); err != nil {
		return nil, err
	}
	if most > 0 && used.Total() > most {
		if p.Fits, err = r.shrink(p.Verdicts, most); err != nil {
			return nil, err
		}
	}
	p.Freed, err = r.wouldFree(p)
	return p, err
}

// wouldFree is about how many bytes go with the records that do.
func (r *Reader) wouldFree(p *Pruned) (int64, error) {
	stay := map[string]bool{}
	for _, v := range p.Verdicts {
		if v.Keep {
			stay[v.ID] = true
		}
	}
	if len(stay) == len(p.Verdicts) {
		return 0, nil
	}
	s := &sizeWithout{r: r}
	if err := s.begin(); err != nil {
		return 0, err
	}
	left, err := s.size(stay)
	return max(0, p.Total()-left), err
}

// ask asks before manual checkpoints go: a person made each of them.
func (r *Recorder) ask(p *Pruned, confirm func(*Pruned) (bool, error)) error {
	manual := func(v retention.Verdict) bool { return v.Reason == string(history.Manual) }
	if confirm == nil || !slices.ContainsFunc(p.Gone(), manual) {
		return nil
	}
	var err error
	if p.Freed, err = r.wouldFree(p); err != nil {
		return err
	}
	yes, err := confirm(p)
	if err == nil && !yes {
		return &project.Error{Kind: project.Refused, Msg: "nothing was removed", Advice: "'decree label NAME ID' keeps a record whatever prune does"}
	}
	return err
}

// prune does it all: the policies, then the space, then the cap.
func (r *Recorder) prune(ctx context.Context, x *writeSession, policies map[string]retention.Policy, most int64, confirm func(*Pruned) (bool, error)) (*Pruned, error) {
	before, err := r.used()
	if err != nil {
		return nil, err
	}
	p := &Pruned{Fits: true, Used: before}
	if p.Verdicts, err = r.verdicts(policies); err != nil {
		return nil, err
	}
	capped := most > 0 && before.Total() > most
	if capped {
		if p.Fits, err = r.shrink(p.Verdicts, most); err != nil {
			return nil, err
		}
	}
	if err := r.ask(p, confirm); err != nil {
		return nil, err
	}
	if err := r.remove(p); err != nil {
		return nil, err
	}
	gone, _, err := r.history.Removed()
	if err != nil {
		return nil, err
	}
	if gone > 0 || capped {
		if _, err := r.collectUntilThereIsRoom(ctx, x, collectOptions{force: capped}); err != nil {
			return nil, notFreed(len(p.Gone()), capped, err)
		}
	}
	if p.Used, err = r.used(); err != nil {
		return nil, err
	}
	p.Freed = max(0, before.Total()-p.Total())
	return p, nil
}

// notFreed says what is so when removed records are gone and err kept decree from freeing
// what they alone needed. No record needs that any more, so it can be freed at any time: by gc,
// or where packs that are dead in part are to be written anew, by the same prune.
func notFreed(removed int, capped bool, err error) error {
	next := "'decree gc' frees the rest"
	if capped {
		next = "the same 'decree prune' frees the rest"
	}
	before := cmp.Or(project.HintOf(err), "remove the cause")
	if disk.Full(err) {
		before = "free some space on the store's disk"
	}
	state := "not all that no record needs any more is freed yet"
	if removed > 0 {
		state = fmt.Sprintf("%s removed, and %s", recordsWere(removed), state)
	}
	return &project.Error{Kind: project.KindOf(err), Err: err, Advice: before + "; then " + next, State: state}
}

// verdicts decides about the records of the log. Open ones are kept by not being
// asked about; what lies in .decree/runs alone is nobody's to remove.
func (r *Reader) verdicts(policies map[string]retention.Policy) ([]retention.Verdict, error) {
	logged, err := r.history.Logged()
	if err != nil {
		return nil, err
	}
	return r.verdictsOn(logged, policies)
}

func (r *Reader) verdictsOn(logged []*history.Record, policies map[string]retention.Policy) ([]retention.Verdict, error) {
	labels, err := r.history.LabelsOf()
	if err != nil {
		return nil, err
	}
	open, _, err := r.history.ListOpen()
	if err != nil {
		return nil, err
	}
	newer, err := r.history.Newer()
	if err != nil {
		return nil, err
	}
	underWay, err := r.underWay()
	if err != nil {
		return nil, err
	}
	inside := map[string]string{}
	for _, rec := range logged {
		inside[rec.ID] = rec.Inside
	}
	begun, going, sent := map[string]bool{}, slices.Collect(maps.Keys(underWay)), map[string]bool{}
	for _, o := range open {
		begun[o.Record.ID], inside[o.Record.ID], going = true, o.Record.Inside, append(going, o.Record.ID)
	}
	for i, rec := range logged {
		if sent[rec.ID], err = r.keepsMessages(rec); err != nil {
			return nil, err
		}
		if sent[rec.ID] && i == len(logged)-1 { // it has just ended, and what was sent in it is yet to be passed on to what is around it
			going = append(going, rec.ID)
		}
	}
	// What was made inside a record that is not over is a part of it, and what such a one was made inside of says whose part that is.
	parts := map[string]bool{}
	for _, rec := range logged {
		if slices.ContainsFunc(going, func(of string) bool { return madeInside(inside, rec.ID, of) || madeInside(inside, of, rec.ID) }) {
			parts[rec.ID] = true
			parts[rec.Parent] = parts[rec.Parent] || rec.Reason == history.Publish // the draft, which waits again where that is taken back
		}
	}
	list := make([]retention.Record, 0, len(logged))
	for i, rec := range logged {
		list = append(list, retention.Record{
			ID: rec.ID, Order: int64(i), Reason: string(rec.Reason), Started: rec.Started, Seq: rec.Seq, Needs: needsOf(rec),
			Labelled: slices.ContainsFunc(labels[rec.ID], func(name string) bool { return !history.OwnLabel(name) }), Newer: newer[rec.ID], Outbox: sent[rec.ID], UnderWay: underWay[rec.ID] || rec.Reason == history.Publish && underWay[rec.Parent], Draft: rec.Draft.Waits(), Part: parts[rec.ID], Open: begun[rec.ID] || rec.Status == history.StatusOpen,
		})
	}
	needRedos(list, logged)
	return retention.Decide(list, policies, r.opt.Location), nil
}

// needRedos has an undo need the redos of what it took back: without them that would count
// as undone.
func needRedos(list []retention.Record, logged []*history.Record) {
	at := map[string]int{}
	for i, rec := range logged {
		at[rec.ID] = i
		for _, b := range rec.Walked.Redoes {
			if k, known := at[b.Undo]; known {
				list[k].Needs = append(list[k].Needs, rec.ID)
			}
		}
	}
	for _, l := range history.Fold(logged).Redo {
		list[at[l.Undo.ID]].Redo = true
	}
}

// underWay are the records of the messages that the queue has begun and not ended: without
// its record a message whose run succeeded would be done again, and without that of its
// publish work that somebody has taken back since would be published again. A queue.json that cannot be
// understood names none; the queue refuses it.
func (r *Reader) underWay() (map[string]bool, error) {
	list, err := r.queued()
	if len(list) == 0 {
		return nil, err
	}
	ids := map[string]bool{}
	for _, m := range list {
		ids[m.Record] = true
	}
	delete(ids, "") // between two runs of a message
	return ids, nil
}

// queued is a message that the queue has begun and not ended.
type queued struct {
	Name, Record string
	Isolated     bool
}

// queued are all of these; none where that cannot be read.
func (r *Reader) queued() ([]queued, error) {
	data, err := project.ReadFile(r.project.Store, project.QueueFile, maxQueueFile)
	if isMissing(err) || disk.OtherKind(err) || errors.Is(err, project.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s struct {
		queued            // of version 1, which knew one
		UnderWay []queued `json:"under_way"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return append(s.UnderWay, s.queued), nil
}

// BegunInTree are the messages that are not done yet, by the names of their files, and of whose work the tree has a part already, or all.
func (r *Reader) BegunInTree() (names []string, err error) {
	list, err := r.queued()
	for _, m := range list {
		if m.Record == "" || m.Name == "" {
			continue
		}
		_, openErr := r.history.Opened(m.Record)
		rec, err := r.history.Get(m.Record)
		known := err == nil
		switch {
		case !m.Isolated && (openErr == nil || known && rec.Status == history.StatusSucceeded),
			m.Isolated && known && rec.Draft != nil && len(rec.Draft.By) > 0:
			names = append(names, m.Name)
		}
	}
	return names, err
}

const maxQueueFile = 4 << 20

// keepsMessages says whether messages lie in the outbox of a run that did not succeed, or that could not pass them on to the run around it.
// They are in no other place: a person may still want them, unless he has discarded what the run did.
func (r *Reader) keepsMessages(rec *history.Record) (bool, error) {
	discarded := rec.Draft != nil && rec.Draft.State == history.DraftDiscarded
	if rec.Reason != history.Run || rec.Status == history.StatusSucceeded && (rec.Inside == "" || discarded) {
		return false, nil
	}
	run, err := r.history.OpenRun(rec.ID)
	if err != nil {
		return false, nil //nolint:nilerr // it was deleted, or what stands there is not ours
	}
	defer run.Close()
	outbox, err := run.OpenDir(project.OutboxDir)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	defer outbox.Close()
	list, err := outbox.List()
	return slices.ContainsFunc(list, func(e disk.Entry) bool { return e.Name[0] != '.' }), err
}

// needsOf are the records whose status the undoing of rec sets again. A restore
// needs none: it has its own trees.
func needsOf(rec *history.Record) []string {
	if !rec.Partial() {
		return nil
	}
	var out []string
	if rec.Parent != "" {
		out = append(out, rec.Parent)
	}
	out = append(out, namesIn(rec, extraParents)...)
	for _, u := range undoneBy(rec) {
		out = append(out, u.ID)
	}
	for _, b := range rec.Walked.Redoes { // these need it: see needRedos
		out = slices.DeleteFunc(out, func(id string) bool { return id == b.Undo })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// idsALine is how many ids fit a line of the audit.
const idsALine = 200

// remove takes the records out of the history. What then are the newest ones have
// their plain manifests before that.
func (r *Recorder) remove(p *Pruned) error {
	gone := p.Gone()
	if len(gone) == 0 {
		return nil
	}
	var newest []string
	for _, v := range slices.Backward(p.Verdicts) {
		if v.Keep && len(newest) < history.PlainManifests {
			newest = append(newest, v.ID)
		}
	}
	if err := r.history.UnthinRuns(newest); err != nil && !disk.Full(err) {
		return err
	}
	ids := make([]string, len(gone))
	for i, v := range gone {
		ids[i] = v.ID
	}
	var lines []history.Operation
	for part := range slices.Chunk(ids, idsALine) {
		o := r.audit(opPrune, "done")
		o.Detail = strings.Join(part, " ")
		lines = append(lines, o)
	}
	return r.history.Remove(ids, lines...)
}

// shrink takes further verdicts until the records that stay fit most bytes, and
// says whether they do.
func (r *Reader) shrink(list []retention.Verdict, most int64) (fits bool, err error) {
	s := &sizeWithout{r: r, most: most}
	if err := s.begin(); err != nil {
		return false, err
	}
	// In which order they go does not depend on how many: so half of them is
	// tried, then half of that.
	var order []string
	retention.Shrink(slices.Clone(list), "", func() bool { return true }, func(id string) { order = append(order, id) })
	stay := map[string]bool{}
	for _, v := range list {
		if v.Keep {
			stay[v.ID] = true
		}
	}
	n, fits, err := s.least(order, stay)
	if err != nil {
		return false, err
	}
	why := fmt.Sprintf("the store and .decree/runs are larger than %d bytes", most)
	retention.Shrink(list, why, func() bool { n--; return n >= 0 }, func(string) {})
	return fits, nil
}

// sizeWithout computes how many bytes would be used without some records.
type sizeWithout struct {
	r      *Reader
	most   int64
	shares interface {
		Each(h tree.Hash, f func(part tree.Hash, bytes int64))
	}
	otherBytes int64            // bytes of the store that are not packs
	runs       map[string]int64 // of the records' directories in .decree/runs
}

func (s *sizeWithout) begin() error {
	total, err := s.r.storeSize()
	if err != nil {
		return err
	}
	packs, err := s.r.store.Stats()
	if err != nil {
		return err
	}
	s.otherBytes = total - packs.Bytes
	if s.runs, err = s.r.runSizes(); err != nil {
		return err
	}
	s.shares, err = s.r.store.Shares()
	return err
}

// size is what would be used with the records of stay alone.
func (s *sizeWithout) size(stay map[string]bool) (int64, error) {
	seen := map[tree.Hash]bool{}
	total := s.otherBytes
	for id := range stay {
		total += s.runs[id]
	}
	err := s.r.history.Closures(func(id string) bool { return stay[id] }, history.Once(), func(p *history.Part) error {
		s.shares.Each(p.Object, func(part tree.Hash, n int64) {
			if !seen[part] {
				seen[part] = true
				total += n
			}
		})
		return p.Err
	})
	return total, err
}

// least is how many of order have to go, at least, until the rest fits.
func (s *sizeWithout) least(order []string, stay map[string]bool) (n int, fits bool, err error) {
	fit := func(n int) bool {
		if err != nil {
			return true
		}
		rest := maps.Clone(stay)
		for _, id := range order[:n] {
			delete(rest, id)
		}
		var size int64
		size, err = s.size(rest)
		return size <= s.most
	}
	if !fit(len(order)) || err != nil {
		return len(order), false, err
	}
	return sort.Search(len(order), fit), err == nil, err
}

// retain is what runs by itself after a successful record: where a rule is due
// it prunes, and now and then it frees the space. It never fails the record.
func (r *Recorder) retain(ctx context.Context, x *writeSession, reason history.Reason) {
	due, capped, err := r.pruneIsDue(reason)
	due = due && !r.project.InLayer // which goes with all of them: what is made later asks what became of those around it
	if err == nil && (due || capped) {
		err = r.retainNow(ctx, x, capped)
	}
	switch {
	case err != nil && project.StateOf(err) != "":
		r.note("%v; %s", err, project.HintOf(err))
	case err != nil:
		r.note("old records are not removed: %v", err)
	}
}

// pruneIsDue says whether some record may have to be removed now that another one was made.
// Under the limits it decodes nothing.
func (r *Recorder) pruneIsDue(reason history.Reason) (due, capped bool, err error) {
	cfg := &r.project.Config
	if cfg.MaxStore > 0 {
		if capped, err = r.overCap(cfg.MaxStore); err != nil {
			return false, false, err
		}
	}
	oldest, newest, err := r.history.Span()
	if err != nil {
		return false, false, err
	}
	for _, p := range cfg.Retention {
		if p.MaxAge > 0 && newest-oldest > int64(p.MaxAge) {
			return true, capped, nil
		}
	}
	p, known := cfg.Retention[string(reason)]
	if !known || p.All || p.MaxAge > 0 { // none is older than the age, so all stay
		return false, capped, nil
	}
	most := p.Last
	if p.Daily+p.Weekly+p.Monthly > 0 {
		// A number of days says nothing about a number of records. One record is
		// kept by every rule that keeps any.
		most = max(most, 1)
	}
	due, err = r.history.MoreThan(most, reason)
	return due, capped, err
}

// capFile says, after a cap that could not be kept, how large the store was: it
// is tried again when it has grown by a sixteenth. It is a cache.
const capFile = "cap.json"

type capTried struct {
	Version int   `json:"version"`
	Bytes   int64 `json:"bytes"`
}

func (r *Recorder) overCap(most int64) (bool, error) {
	used, err := r.used()
	size := used.Total()
	if err != nil || size <= most {
		return false, err
	}
	var tried capTried
	data, err := project.ReadFile(r.project.Store, capFile, 1<<10)
	if err == nil && json.Unmarshal(data, &tried) == nil && size < tried.Bytes+tried.Bytes/16 && most < tried.Bytes {
		return false, nil
	}
	return true, nil
}

func (r *Recorder) noteCap(size int64) error {
	return project.ReplaceJSON(r.project.Store, capFile, capTried{1, size}, project.PrivateFile, false)
}

func (r *Recorder) retainNow(ctx context.Context, x *writeSession, capped bool) error {
	policies, most := r.policies(PruneOptions{})
	if capped {
		p, err := r.prune(ctx, x, policies, most, nil)
		if err != nil || p.Total() <= most {
			return err
		}
		r.note("the store and .decree/runs have %d bytes, more than max_store: what is always kept does not fit", p.Total())
		return r.noteCap(p.Total())
	}
	list, err := r.verdicts(policies)
	if err != nil {
		return err
	}
	if err := r.remove(&Pruned{Verdicts: list}); err != nil {
		return err
	}
	// What was removed stays in the store until it is worth a pass over all of it.
	gone, live, err := r.history.Removed()
	if err != nil || gone < max(64, live/4) {
		return err
	}
	if _, err = r.collect(ctx, x, collectOptions{}); err != nil {
		return notFreed(gone, false, err)
	}
	return nil
}
