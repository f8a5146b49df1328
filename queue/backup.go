package queue

import (
	"encoding/json"
	"fmt"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// readUndamaged is readState, with nothing in a state that is damaged: neither a backup nor a restore waits for that.
func readUndamaged(store disk.Dir) (*state, error) {
	s, err := readState(store)
	if project.KindOf(err) == project.Integrity {
		return &state{}, nil
	}
	return s, err
}

// Backup is what a backup needs of the queue.
type Backup struct{}

// DoneSpecs are the specs that a store remembers as done, in the form of the state file; nil: there are none.
func (Backup) DoneSpecs(store disk.Dir) (json.RawMessage, error) {
	s, err := readUndamaged(store)
	if err != nil || len(s.Unmarked) == 0 {
		return nil, err
	}
	return json.Marshal(eachSpec(s.Unmarked, tree.Quote))
}

// RestoredState is the state file of a store after a restore of a backup that has specs as done: with those that the store remembers, or alone; nil: none is needed.
func (Backup) RestoredState(store disk.Dir, specs json.RawMessage, alone bool) ([]byte, error) {
	s, err := readUndamaged(store)
	if err != nil {
		return nil, err
	}
	out := &state{Version: stateVersion}
	if len(specs) > 0 {
		var done []doneSpec
		if err := json.Unmarshal(specs, &done); err != nil {
			return nil, fmt.Errorf("done_specs of the backup: %w", err)
		}
		out.remember(eachSpec(done, tree.Unquoted)...)
	}
	if !alone {
		out.remember(s.Unmarked...)
	}
	if len(out.Unmarked) == 0 {
		return nil, nil
	}
	return out.encode()
}
