package backup

import (
	"encoding/json"
	"time"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// memoryFile is what the store remembers of its backups, so that nobody has to ask a target for it:
// also that a target that lacks them now has had some.
const memoryFile = "backup.json"

// Memory is what a project remembers of its backups, by target.
type Memory struct {
	Version int                   `json:"version"`
	Targets map[string]Remembered `json:"targets"`
}

// Remembered is what is known of one target.
type Remembered struct {
	Name       string    `json:"name"`
	Generation string    `json:"generation"` // the newest that was acknowledged
	Timestamp  time.Time `json:"timestamp"`
	Manifest   tree.Hash `json:"manifest"`
	Proof      *Proof    `json:"proof,omitempty"` // the newest
	Whole      time.Time `json:"whole,omitzero"`  // when the whole was proven, or found damaged, last
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

// ReadMemory reads it; a missing one, or one that cannot be read, is empty.
func ReadMemory(store disk.Dir) Memory {
	m := Memory{Version: Version}
	data, err := project.ReadFile(store, memoryFile, 1<<20)
	if err != nil || json.Unmarshal(data, &m) != nil || m.Targets == nil {
		m = Memory{Version: Version, Targets: map[string]Remembered{}}
	}
	return m
}

// Remember changes what is remembered of one target.
func Remember(store disk.Dir, target string, change func(*Remembered)) error {
	m := ReadMemory(store)
	r := m.Targets[target]
	change(&r)
	m.Targets[target] = r
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return project.ReplaceFile(store, memoryFile, append(data, '\n'), project.PrivateFile, true)
}
