package queue

import (
	"encoding/json"
	"fmt"
	"path"

	"decree/disk"
	"decree/project"
	"decree/recorder"
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

// Backup is what a backup of a project needs of its queue.
type Backup struct{ *recorder.Recorder }

// DoneSpecs are the specs that are done and that no backup has as done otherwise, in the form of the state file: those that the store
// remembers, and those in a list that is ignored; nil: there are none.
func (b Backup) DoneSpecs() (json.RawMessage, error) {
	s, err := readUndamaged(b.Project().Store)
	if err != nil {
		return nil, err
	}
	q := (&Queue{}).job(b.Recorder, nil)
	listed, err := q.listedNow()
	if err != nil && !ofFile(err) {
		return nil, err
	}
	for _, spec := range listed {
		if !spec.SHA256.IsZero() {
			s.remember(doneSpec{path.Join(q.specDir(), spec.Spec), spec.SHA256})
		}
	}
	if len(s.Unmarked) == 0 {
		return nil, nil
	}
	return json.Marshal(eachSpec(s.Unmarked, tree.Quote))
}

// RestoredState is the state file of a store after a restore of a backup that has specs as done, with those that the store remembers; nil: none is needed.
func (b Backup) RestoredState(specs json.RawMessage) ([]byte, error) {
	s, err := readUndamaged(b.Project().Store)
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
	out.remember(s.Unmarked...)
	if len(out.Unmarked) == 0 {
		return nil, nil
	}
	return out.encode()
}
