package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"decree/capture"
	"decree/project"
	"decree/recorder"
)

// Place says where a project is.
type Place struct {
	Root  string `json:"root"`
	Store string `json:"store"`
	ID    string `json:"id"`
}

// PlaceOf is a project's Place.
func PlaceOf(p *project.Site) Place { return Place{p.Root, p.StorePath, p.ID} }

// Status is where a project stands.
type Status struct {
	Place
	StoreBytes int64             `json:"store_bytes"`
	RunsBytes  int64             `json:"runs_bytes"` // of the copies in .decree/runs
	Restores   int               `json:"restores"`
	Reverts    int               `json:"reverts"`
	Applies    int               `json:"applies"`
	Failures   int               `json:"failures"` // failed runs among them
	FailedRuns int               `json:"failed_runs"`
	Last       json.RawMessage   `json:"last"`
	Open       []json.RawMessage `json:"open"`
	Drafts     []string          `json:"drafts"`  // ids of those that wait, newest first
	Changed    []Changed         `json:"changed"` // null: cannot be told
	Since      string            `json:"since"`   // the record that changed is counted from
	Inbox      Inbox             `json:"inbox"`
	Daemon     *Daemon           `json:"daemon"` // null: there is none
	RuleOnly   int               `json:"rule_only"`
	Hooks      []string          `json:"hooks,omitempty"` // what hooks of agents could not record since the newest turn
}

// Changed is a path that differs from the newest record.
type Changed struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Change string `json:"change"`
}

// Inbox is how many messages wait, and how many were put aside.
type Inbox struct {
	Waiting int      `json:"waiting"`
	Dead    int      `json:"dead"`
	Running []string `json:"running,omitempty"`       // those of Waiting that are being done
	Jobs    []string `json:"unusable_jobs,omitempty"` // the cron jobs that cannot fire, and why
	// Unpublished are those of Waiting that cannot be gone on with yet, and why.
	Unpublished []string `json:"unpublished,omitempty"`
}

// Daemon is the process that works on the inbox.
type Daemon struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
}

// DaemonOf is the Daemon whose process is h; nil where that is none.
func DaemonOf(h project.Holder) *Daemon {
	if h.PID == 0 {
		return nil
	}
	return &Daemon{h.PID, h.Host, h.Start}
}

// StatusOf is the Status of a project with that inbox and daemon.
func StatusOf(p *project.Site, st *recorder.Status, labels Labels, inbox Inbox, daemon *Daemon) Status {
	out := Status{
		Place:      Place{st.Root, st.StorePath, p.ID},
		StoreBytes: st.Used.Store, RunsBytes: st.Used.Runs, Restores: st.Restores, RuleOnly: st.RuleOnly, Hooks: st.Hooks,
		Reverts: st.Reverts, Applies: st.Applies, Failures: st.Failures, FailedRuns: st.FailedRuns,
		Open: []json.RawMessage{}, Drafts: []string{}, Changed: []Changed{}, Inbox: inbox, Daemon: daemon,
	}
	if since := cmp.Or(st.Since, st.Last); since != nil {
		out.Since = since.ID
	}
	if st.Last != nil {
		out.Last = Record(st.Last, labels)
	}
	for _, o := range st.Open {
		out.Open = append(out.Open, Record(o, labels))
	}
	for _, d := range st.Drafts {
		out.Drafts = append(out.Drafts, d.ID)
	}
	if st.Lost != nil {
		out.Changed = nil
	}
	for _, c := range st.Changed {
		word := ChangeWord(c.Old, c.New)
		out.Changed = append(out.Changed, Changed{Path(c.Path), word, word})
	}
	return out
}

// Usage says what takes the space of a project's records.
type Usage struct {
	Place
	StoreBytes    int64         `json:"store_bytes"`
	LayersBytes   int64         `json:"layers_bytes"` // of isolated runs, beside them
	PacksBytes    int64         `json:"packs_bytes"`  // of the store
	RunsBytes     int64         `json:"runs_bytes"`
	UnneededBytes int64         `json:"unneeded_bytes"` // of the packs, about
	Reasons       []ReasonUsage `json:"reasons"`        // the largest first
	Records       []RecordUsage `json:"records"`        // the largest first
	Paths         []PathUsage   `json:"paths"`          // the 20 largest
	Prune         PruneUsage    `json:"prune"`
	Orphans       []Orphan      `json:"orphans,omitempty"`
}

// RecordUsage is the space of a record.
type RecordUsage struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"` // "": not in the log of this store
	StoreBytes int64  `json:"store_bytes"`
	RunsBytes  int64  `json:"runs_bytes"`
	OwnBytes   int64  `json:"own_bytes"` // of both
}

// PathUsage is the space of all that was ever recorded of a path.
type PathUsage struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Contents int    `json:"contents"`
}

// PruneUsage is what a prune would do now.
type PruneUsage struct {
	Removed    int   `json:"removed"`
	FreedBytes int64 `json:"freed_bytes"`
}

// Orphan is a store whose root is gone.
type Orphan struct {
	Store string `json:"store"`
	Root  string `json:"root"`
	Bytes int64  `json:"bytes"`
}

// ReasonUsage is the sum over the records of a reason.
type ReasonUsage struct {
	Reason  string `json:"reason"`
	Records int    `json:"records"`
	Store   int64  `json:"store_bytes"`
	Runs    int64  `json:"runs_bytes"`
}

// ByReason sums up, the largest first.
func ByReason(u *recorder.Usage) []ReasonUsage {
	list := []ReasonUsage{}
	for _, r := range u.Records {
		reason := reasonOf(r)
		i := slices.IndexFunc(list, func(x ReasonUsage) bool { return x.Reason == reason })
		if i < 0 {
			i = len(list)
			list = append(list, ReasonUsage{Reason: reason})
		}
		list[i].Records++
		list[i].Store += r.Store
		list[i].Runs += r.Runs
	}
	slices.SortStableFunc(list, func(a, b ReasonUsage) int { return cmp.Compare(b.Store+b.Runs, a.Store+a.Runs) })
	return list
}

// reasonOf is "" for what lies in .decree/runs without the store knowing it.
func reasonOf(r recorder.RecordUsage) string {
	if r.Record == nil {
		return ""
	}
	return string(r.Record.Reason)
}

// UsageOf is the Usage of a project; orphans are of `du --all` alone.
func UsageOf(p *project.Site, u *recorder.Usage, orphans []recorder.OrphanUsage) Usage {
	out := Usage{
		Place: PlaceOf(p), StoreBytes: u.Store, LayersBytes: u.Layers, PacksBytes: u.Packs, RunsBytes: u.Runs, UnneededBytes: u.Unneeded,
		Reasons: ByReason(u), Records: []RecordUsage{}, Paths: []PathUsage{},
		Prune: PruneUsage{len(u.Prune.Gone()), u.Prune.Freed},
	}
	for _, r := range u.Records {
		out.Records = append(out.Records, RecordUsage{r.ID, reasonOf(r), r.Store, r.Runs, r.Own})
	}
	for _, p := range u.Paths {
		out.Paths = append(out.Paths, PathUsage{Path(p.Path), p.Bytes, p.Contents})
	}
	for _, o := range orphans {
		out.Orphans = append(out.Orphans, Orphan{o.Path, o.Root, o.Bytes})
	}
	return out
}

// Check is a small check of doctor's.
type Check struct {
	Level string `json:"level"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
	Fixed bool   `json:"fixed,omitempty"`
	// Profile is what a file of the system's should hold.
	Profile string `json:"profile,omitempty"`
}

// Checks are doctor's.
func Checks(list []recorder.Check) []Check {
	out := make([]Check, len(list))
	for i, c := range list {
		out[i] = Check{string(c.Level), c.Name, c.Text, c.Hint, c.Fixed, c.Profile}
	}
	return out
}

// Problem is something that does not match.
type Problem struct {
	Record string `json:"record"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Problems are what a verify found.
func Problems(list []recorder.Problem) []Problem {
	out := make([]Problem, len(list))
	for i, p := range list {
		out[i] = Problem{p.Record, Path(p.Path), p.Reason}
	}
	return out
}

// Ignored is what becomes of a path, and why.
type Ignored struct {
	Path    string `json:"path"`
	Ignored bool   `json:"ignored"`
	Reason  string `json:"reason"` // recorded, rule, always, store or special
	Decided string `json:"decided"`
	Missing bool   `json:"missing,omitempty"`
	Source  string `json:"source,omitempty"`
	Line    int    `json:"line,omitempty"`
	Rule    string `json:"rule,omitempty"`
}

// IgnoredOf are a capture's answers.
func IgnoredOf(answers []capture.Answer) []Ignored {
	out := make([]Ignored, len(answers))
	for i, a := range answers {
		out[i] = Ignored{
			Path: Path(a.Path), Ignored: a.Ignored, Reason: string(a.Reason), Decided: Path(a.Decided),
			Missing: a.Missing, Source: Path(a.Source), Line: a.Line, Rule: OneLine(a.Rule),
		}
	}
	return out
}
