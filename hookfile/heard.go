package hookfile

import (
	"encoding/json"
	"time"

	"decree/disk"
	"decree/project"
)

// What is known of an agent beyond its files: that its hooks have called at all, which only
// they can show, and that they were proved to work. It lies beside the stores, for all trees:
//
//	<base>/agents/<agent>.json   {"event": {…}, "proof": {…}}
//
// It is for 'decree agents' to show, and nothing goes by it: a file that is missing,
// broken, or older than what was heard last, says less.

// heardDir is the directory of these files in the base of the stores.
const heardDir = "agents"

// Heard is the newest that is known of an agent.
type Heard struct {
	Event *HeardEvent `json:"event,omitempty"`
	Proof *Proof      `json:"proof,omitempty"`
}

// HeardEvent is the last event that one of its hooks has called with.
type HeardEvent struct {
	Name string    `json:"name"` // as the agent calls it
	Kind string    `json:"kind"` // what it means to decree
	At   time.Time `json:"at"`
	Root string    `json:"root,omitempty"` // the tree it was in; "" where nothing is recorded
}

// Proof is the last trial of its hooks, and whether that was recorded.
type Proof struct {
	At       time.Time `json:"at"`
	Recorded bool      `json:"recorded"`
}

// ReadHeard returns what is known of an agent; base is where stores are made.
func ReadHeard(d disk.Disk, base, agent string) (h Heard) {
	dir, err := d.OpenRoot(base)
	if err != nil {
		return h
	}
	defer dir.Close()
	in, err := dir.OpenDir(heardDir)
	if err != nil {
		return h
	}
	defer in.Close()
	return readHeard(in, agent)
}

func readHeard(in disk.Dir, agent string) (h Heard) {
	if data, err := project.ReadFile(in, agent+".json", maxSize); err != nil || json.Unmarshal(data, &h) != nil {
		return Heard{}
	}
	return h
}

// NoteHeard changes what is known of an agent. It makes the base only if build is set.
func NoteHeard(d disk.Disk, base, agent string, build bool, change func(*Heard)) error {
	dir, err := d.OpenRoot(base)
	if err != nil && build {
		dir, err = d.MkdirAll(base, project.PrivateDir)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	in, err := dir.OpenDir(heardDir)
	if err != nil {
		_ = dir.Mkdir(heardDir, project.PrivateDir) // another decree may be faster
		if in, err = dir.OpenDir(heardDir); err != nil {
			return err
		}
	}
	defer in.Close()
	h := readHeard(in, agent)
	change(&h)
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return disk.Replace(in, agent+".json", disk.Replacement{Perm: project.PrivateFile}, disk.Content(append(text, '\n')))
}
