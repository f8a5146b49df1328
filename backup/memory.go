package backup

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"time"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/tree"
)

// memoryFile is what the store remembers of its backups, so that nobody has to ask a target for it:
// also that a target that lacks them now has had some.
const memoryFile = project.BackupsFile

// memoryLock is a directory that is locked while the file is changed, or the one of the keys.
const memoryLock = "backup"

// Memory is what a project remembers of its backups, by target.
type Memory struct {
	Version int     `json:"version"`
	Targets Targets `json:"targets"`
}

// Targets are what is known of each. Their names need not be valid UTF-8: in JSON they are as [tree.Quote] writes them.
type Targets map[string]Remembered

// MarshalJSON writes them.
func (t Targets) MarshalJSON() ([]byte, error) {
	out := make(map[string]Remembered, len(t))
	for at, r := range t {
		out[tree.Quote(at)] = r
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads them.
func (t *Targets) UnmarshalJSON(data []byte) error {
	var in map[tree.Text]Remembered
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*t = make(Targets, len(in))
	for at, r := range in {
		(*t)[string(at)] = r
	}
	return nil
}

// Remembered is what is known of one target.
type Remembered struct {
	Name       string `json:"name"`
	Generation string `json:"generation"` // the newest that was acknowledged
	// Generations are all that stood there when this machine looked last, oldest first, what restores have
	// replaced too.
	Generations []string  `json:"generations,omitempty"`
	Timestamp   time.Time `json:"timestamp"`
	Manifest    tree.Hash `json:"manifest"`
	// Written are the hashes of the last manifest.json's that were written, or were about to be, when a death came.
	Written []tree.Hash `json:"written,omitempty"`
	Proof   *Proof      `json:"proof,omitempty"` // the newest
	Whole   time.Time   `json:"whole,omitzero"`  // when the whole was proven, or found damaged, last
	// Problems are what went wrong in the last backup although it was made: plugins, the ping.
	Problems []string `json:"problems,omitempty"`
	// Failed is why no backup was made when that was tried last, since the newest one; nil: it was.
	Failed *Failure `json:"failed,omitempty"`
}

// Failure is a backup that was not made.
type Failure struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// ReadMemory reads it; a missing one, or one that cannot be read, is empty, and so is that of a nil store.
func ReadMemory(store disk.Dir) Memory {
	m, _ := readMemory(store)
	return m
}

// recall is what a store remembers of one target.
func recall(store disk.Dir, target string) Remembered { return ReadMemory(store).Targets[target] }

// readMemory is ReadMemory for a caller that writes, or relies on what is remembered: an error says that more may be
// remembered than could be read. A file that is no memory at all has nothing to keep, and is begun anew.
func readMemory(store disk.Dir) (Memory, error) {
	m := Memory{Version: Version}
	if store == nil {
		return m, nil
	}
	data, err := project.ReadFile(store, memoryFile, maxManifest)
	if isMissing(err) {
		err = nil
	}
	if err != nil {
		err = &project.Error{Kind: project.Failed, Msg: "what the store remembers of the backups cannot be read", Err: err, State: project.Unchanged,
			Advice: "mend that; or, if it is lost for good, remove " + path.Join(store.Path(), memoryFile)}
	}
	if json.Unmarshal(data, &m) != nil || m.Targets == nil {
		m = Memory{Version: Version, Targets: Targets{}}
	}
	m.fold()
	return m, err
}

// fold puts together what an earlier decree has remembered of one target by several spellings.
func (m *Memory) fold() {
	for _, at := range slices.Sorted(maps.Keys(m.Targets)) {
		if clean := target.Clean(at); clean != at {
			r := m.Targets[at]
			delete(m.Targets, at)
			if other, ok := m.Targets[clean]; ok {
				r = r.and(other)
			}
			m.Targets[clean] = r
		}
	}
}

// and is what is known of a target of which two things are remembered: what is newer, and all that was written there.
func (r Remembered) and(other Remembered) Remembered {
	if r.Timestamp.Before(other.Timestamp) {
		r, other = other, r
	}
	if other.Proof != nil && (r.Proof == nil || other.Proof.At.After(r.Proof.At)) {
		r.Proof = other.Proof
	}
	if other.Whole.After(r.Whole) {
		r.Whole = other.Whole
	}
	r.Written = slices.Concat(other.Written, []tree.Hash{other.Manifest}, r.Written)
	return r
}

// Standing are the generations that a target has as far as the store remembers it.
func (r Remembered) Standing() []string {
	if len(r.Generations) == 0 && r.Generation != "" { // an earlier decree has written it
		return []string{r.Generation}
	}
	return r.Generations
}

// Remember changes what is remembered of one target.
// Several commands may do so at once.
func Remember(store disk.Dir, at string, change func(*Remembered)) error {
	return underMemoryLock(store, func() error {
		m, err := readMemory(store)
		if err != nil {
			return err
		}
		r := m.Targets[at]
		change(&r)
		m.Targets[at] = r
		data, err := json.MarshalIndent(m, "", " ")
		if err != nil {
			return err
		}
		return project.ReplaceFile(store, memoryFile, append(data, '\n'), project.PrivateFile, true)
	})
}

// underMemoryLock changes a file of what the store remembers of backups while nobody else does.
func underMemoryLock(store disk.Dir, change func() error) error {
	dir, err := project.MakeDir(store, memoryLock, project.PrivateDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	unlock, err := disk.LockWithin(context.Background(), dir, time.Millisecond, disk.NoLimit) // it is held for moments alone
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	return change()
}
