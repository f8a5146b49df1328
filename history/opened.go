package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/store"
	"decree/tree"
)

const (
	openDir    = "open"
	maxOpen    = 64 << 20
	openSuffix = ".json"
	leaderMark = ".leader"
)

// Rule is an ignore file that a run's walks go by: where it lay and its bytes' hash.
type Rule struct {
	Path   string
	SHA256 tree.Hash
}

// Effects are what the end of a record does to others. They stand in its open
// record, so that a recovery can do them again.
type Effects struct {
	Status []StatusEffect    `json:"status,omitempty"`
	Labels map[string]string `json:"labels,omitempty"` // name -> id; "" deletes
}

// StatusEffect sets another record's status.
type StatusEffect struct {
	ID       string `json:"id"`
	Status   Status `json:"status"`
	UndoneBy string `json:"undone_by,omitempty"` // "" clears it
	// Draft, unless nil, is what becomes of a draft, and the status stays.
	Draft *Draft `json:"draft,omitempty"`
}

// Opened is an open record: what a recovery needs when its process died.
type Opened struct {
	Record      *Record // a draft, status open
	Rules       []Rule
	Transaction string // the worktree transaction that belongs to it, if any
	// Since is where the store ended before it. What was put later stays, as long as the
	// record is open: it may be named yet.
	Since   store.Mark
	Effects Effects
	Extra   map[string]json.RawMessage // the recorder's own
	Log     *OpenLog                   // more of it; nil for none
}

// openedJSON is open/<id>.json.
type openedJSON struct {
	Version     int                        `json:"version"`
	Record      *Record                    `json:"record"`
	Rules       []ruleJSON                 `json:"rules,omitempty"`
	Transaction string                     `json:"transaction,omitempty"`
	Since       store.Mark                 `json:"since,omitzero"`
	Effects     *Effects                   `json:"effects,omitempty"`
	Extra       map[string]json.RawMessage `json:"extra,omitempty"`
	Log         *OpenLog                   `json:"log,omitempty"`
}

type ruleJSON struct {
	Path   string    `json:"path"` // as in the manifest
	SHA256 tree.Hash `json:"sha256"`
}

// Begin writes an open record, durably. Called again it replaces it.
func (h *History) Begin(o *Opened) error {
	if err := o.Record.check(); err != nil {
		return fmt.Errorf("open record: %w", err)
	}
	dir, err := h.makeOpenDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	data, err := o.encode()
	if err != nil {
		return err
	}
	return project.ReplaceFile(dir, o.Record.ID+openSuffix, data, project.PrivateFile, true)
}

func (h *History) makeOpenDir() (disk.Dir, error) {
	dir, err := h.p.Store.OpenDir(openDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if dir, err = project.MakeDir(h.p.Store, openDir, project.PrivateDir); err != nil {
		return nil, err
	}
	return dir, h.p.Store.Sync()
}

func (o *Opened) encode() ([]byte, error) {
	j := openedJSON{Version: Version, Record: o.Record, Transaction: o.Transaction, Since: o.Since, Extra: o.Extra, Log: o.Log}
	for _, r := range o.Rules {
		j.Rules = append(j.Rules, ruleJSON{tree.Quote(r.Path), r.SHA256})
	}
	if len(o.Effects.Status) > 0 || len(o.Effects.Labels) > 0 {
		j.Effects = &o.Effects
	}
	data, err := json.Marshal(j)
	return append(data, '\n'), err
}

func parseOpened(data []byte) (*Opened, error) {
	var j openedJSON
	err := json.Unmarshal(data, &j) // of one of another version too it fills in what it understands
	if j.Version > Version {
		return nil, &NewerError{"open record", j.Version}
	}
	if err != nil {
		return nil, err
	}
	if j.Record == nil {
		return nil, errors.New("no record")
	}
	o := &Opened{Record: j.Record, Transaction: j.Transaction, Since: j.Since, Extra: j.Extra, Log: j.Log}
	for _, r := range j.Rules {
		path, err := tree.Unquote(r.Path)
		if err == nil && !project.IsGitExclude(path) {
			err = tree.Path(path).Check()
		}
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", clip(r.Path), err)
		}
		o.Rules = append(o.Rules, Rule{path, r.SHA256})
	}
	if j.Effects != nil {
		o.Effects = *j.Effects
	}
	return o, o.Effects.check()
}

func (e *Effects) check() error {
	for _, s := range e.Status {
		if !IsID(s.ID) {
			return fmt.Errorf("effect on %q, which is not a record id", clip(s.ID))
		}
	}
	for name, id := range e.Labels {
		if id != "" && !IsID(id) {
			return fmt.Errorf("label %q on %q, which is not a record id", clip(name), clip(id))
		}
	}
	return nil
}

// Opened reads one open record; fs.ErrNotExist when there is none of that id.
func (h *History) Opened(id string) (*Opened, error) {
	dir, err := h.p.Store.OpenDir(openDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	data, err := project.ReadFile(dir, id+openSuffix, maxOpen)
	if err != nil && !disk.OtherKind(err) {
		return nil, err
	}
	var o *Opened
	if err == nil {
		o, err = parseOpened(data)
	}
	if err == nil && o.Record.ID != id {
		err = fmt.Errorf("it belongs to record %s", o.Record.ID)
	}
	if err != nil {
		return nil, &damagedOpen{fmt.Errorf("%s/%s%s: %w", openDir, id, openSuffix, err)}
	}
	return o, nil
}

// damagedOpen is an open record that was read and makes no sense. One that
// could not be read may be whole: it must not be set aside.
type damagedOpen struct{ error }

func (e *damagedOpen) Unwrap() error { return e.error }

// openNames are the ids that have an open record, readable or not.
func (h *History) openNames() (ids []string, err error) {
	err = h.inStore(openDir, func(dir disk.Dir) error {
		list, err := dir.List()
		if err != nil {
			return err
		}
		for _, e := range list {
			if id, ok := strings.CutSuffix(e.Name, openSuffix); ok && IsID(id) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// ListOpen returns the open records, oldest first, and the damaged ones. One that
// cannot be read is an error.
func (h *History) ListOpen() (open []*Opened, damaged []Damage, err error) {
	ids, err := h.openNames()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		o, err := h.Opened(id)
		var bad *damagedOpen
		switch {
		case errors.Is(err, fs.ErrNotExist): // ended meanwhile
		case errors.As(err, &bad):
			damaged = append(damaged, Damage{id, err})
		case err != nil:
			return nil, nil, err
		default:
			open = append(open, o)
		}
	}
	slices.SortFunc(open, func(a, b *Opened) int { return Compare(a.Record, b.Record) })
	return open, damaged, nil
}

// OpenSince is the oldest Since of the open records, zero for none.
func (h *History) OpenSince() (since store.Mark, err error) {
	open, _, err := h.ListOpen()
	for _, o := range open {
		if o.Since != (store.Mark{}) && (since == store.Mark{} || o.Since.Before(since)) {
			since = o.Since
		}
	}
	return since, err
}

// SetLeader writes v, which tells a recovery whether the record's command still
// lives, beside its open record. The command is executed only when this has
// returned nil, so without it none was. Unless it is flushed that says nothing after
// a power loss, which no command survives.
func (h *History) SetLeader(id string, v any, flush bool) error {
	dir, err := h.makeOpenDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	return project.ReplaceJSON(dir, id+leaderMark, v, project.PrivateFile, flush)
}

// HasLeader says whether SetLeader was called for the record, also where a power loss has made
// what cannot be read of it.
func (h *History) HasLeader(id string) (bool, error) {
	return h.hasBesideOpen(id + leaderMark)
}

// Leader reads what SetLeader wrote into v; false when there is nothing, or
// what a power loss made of it. An error leaves open whether there is.
func (h *History) Leader(id string, v any) (bool, error) {
	var data []byte
	is, err := h.inOpen(func(dir disk.Dir) (err error) {
		data, err = project.ReadFile(dir, id+leaderMark, maxRunJSON)
		return err
	})
	return is && json.Unmarshal(data, v) == nil, err
}

// hasBesideOpen says whether there is a file of that name beside the open records.
func (h *History) hasBesideOpen(name string) (bool, error) {
	return h.inOpen(func(dir disk.Dir) error {
		_, err := dir.Stat(name)
		return err
	})
}

// inOpen has look look at a file beside the open records; false when there is none.
func (h *History) inOpen(look func(dir disk.Dir) error) (found bool, err error) {
	err = h.inStore(openDir, func(dir disk.Dir) error {
		err := look(dir)
		if found = err == nil; errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return found, err
}

// inStore calls do with a directory of the store, unless there is none.
func (h *History) inStore(name string, do func(dir disk.Dir) error) error {
	dir, err := h.p.Store.OpenDir(name)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	return do(dir)
}

// Tidy removes what a death has left in the store and in .decree: drafts of
// files that are replaced, probes of the clock, and leaders whose record is
// closed; and a file that earlier versions kept. Every writer of these holds the project's lock, as the caller must.
// Drafts of what is written without the lock stay, and are removed by who writes there next.
func (h *History) Tidy() error {
	if err := tidy(h.p.Store, func(name string) bool {
		draft, ok := strings.CutSuffix(name, draftSuffix)
		return ok && !slices.Contains(unlocked, draft) || disk.IsProbe(name) || name == oldIndex
	}); err != nil {
		return err
	}
	if h.p.Decree != nil { // where a person's own files lie too
		own := []string{disk.Draft("project.json"), disk.Draft(".gitignore")}
		if err := tidy(h.p.Decree, func(name string) bool { return slices.Contains(own, name) }); err != nil {
			return err
		}
	}
	open, err := h.openNames()
	if err != nil {
		return err
	}
	return h.inStore(openDir, func(dir disk.Dir) error {
		return tidy(dir, func(name string) bool {
			id, leader := strings.CutSuffix(name, leaderMark)
			return leader && !slices.Contains(open, id) || strings.HasSuffix(name, draftSuffix)
		})
	})
}

// TidyProbes removes the probes of the clock that a death has left beside the layers.
func (h *History) TidyProbes() error {
	return h.inStore("layers", func(dir disk.Dir) error { return tidy(dir, disk.IsProbe) })
}

// unlocked are what is written without the project's lock: by the daemon, and by backups, which take long.
var unlocked = []string{"cron.json", project.BackupsFile, project.BackupKeysFile}

// oldIndex is where earlier versions kept the places of the log's lines.
const oldIndex = "records.idx"

// draftSuffix is what the temporary files of disk.Replace end with.
var draftSuffix = disk.Draft("")

// tidy removes the files of d that pick names.
func tidy(d disk.Dir, pick func(name string) bool) error {
	list, err := d.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		if !pick(e.Name) {
			continue
		}
		if st, err := d.Stat(e.Name); err != nil || st.Kind != disk.Regular {
			continue
		}
		if err := d.Remove(e.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Abandon removes an open record without a trace of it in the log, and its run
// directory, as when the command was never started.
func (h *History) Abandon(id string) error {
	runs, err := h.runs()
	if err == nil {
		err = disk.RemoveTree(runs, id)
		runs.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return h.removeOpen(id)
}

func (h *History) removeOpen(id string) error {
	return h.inStore(openDir, func(dir disk.Dir) error {
		// The leader goes last: without it a recovery would take a live command for dead.
		for _, name := range []string{id + openSuffix, id + leaderMark} {
			if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return dir.Sync()
	})
}

// damagedSuffix is that of open records that were set aside.
const damagedSuffix = ".damaged"

// WasSetAside says whether SetAside was called for the record.
func (h *History) WasSetAside(id string) (bool, error) {
	return h.hasBesideOpen(id + damagedSuffix)
}

// SetAside renames an open record that cannot be read, so that it is kept but
// waits no more.
func (h *History) SetAside(id string) error {
	dir, err := h.p.Store.OpenDir(openDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Rename(id+openSuffix, dir, id+damagedSuffix); err != nil {
		return err
	}
	return dir.Sync()
}
