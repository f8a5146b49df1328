package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"decree/patch"
	"decree/tree"
)

// Merging says what is done about text files that were edited since.
type Merging uint8

const (
	Off    Merging = iota
	Refuse         // merge; a conflict is one of the plan's
	Skip           // merge; a file with a conflict is left alone
	Mark           // merge; conflicts are marked in the file
)

// maxMerge and maxMergeLines bound each side of a merge: all of them, the result and
// the comparisons are in memory.
const (
	maxMerge      = 16 << 20
	maxMergeLines = 1 << 20
)

// merge is the three-way merge of a text file: base is what the record left, theirs
// what is to come back, ours the present. It returns nil where none can be made.
func (t *transition) merge(ctx context.Context, d Direction, cur state) (merged *state, conflicts int, err error) {
	sec := t.bearer(d)
	want, goal := t.ends(d)
	if len(t.sections) != 1 || sec.op != patch.OpModify || sec.binary || sec.Old.Type != tree.Regular ||
		!cur.entry.IsFile() {
		return nil, 0, nil
	}
	if max(cur.entry.Size, want.Size, goal.Size) > maxMerge {
		return nil, 0, fmt.Errorf("edited since, and is too large to be merged (above %d MiB)", maxMerge>>20)
	}
	ours, err := readAll(cur.content, sec.op)
	if err != nil {
		return nil, 0, err
	}
	if tree.Sum(ours) != cur.entry.SHA256 {
		return nil, 0, errors.New("edited since, and is being written now")
	}
	if bytes.IndexByte(ours, 0) >= 0 {
		return nil, 0, errors.New("edited since, and is a binary file now")
	}
	base, theirs, err := t.sides(sec, d)
	if err != nil {
		return nil, 0, err
	}
	for _, side := range [...][]byte{base, ours, theirs} {
		if bytes.Count(side, []byte{'\n'}) > maxMergeLines {
			return nil, 0, fmt.Errorf("edited since, and has too many lines to be merged (above %d)", maxMergeLines)
		}
	}
	m, err := patch.Merge(ctx, base, ours, theirs, patch.Sides{Ours: "now", Theirs: t.name(d)})
	if err != nil {
		return nil, 0, err
	}
	e := *cur.entry
	e.SHA256, e.Size = tree.Sum(m.Data), int64(len(m.Data))
	// The mode changes as the record changed it, unless it was set by hand since.
	if cur.entry.Mode == want.Mode {
		e.Mode, e.Owner = goal.Mode, goal.Owner
	}
	if m.Conflicts > 0 {
		err = errors.New(conflictWords(m.Conflicts))
	}
	return &state{&e, contentOf(m.Data)}, m.Conflicts, err
}

func conflictWords(n int) string {
	if n == 1 {
		return "edited since in the same place"
	}
	return fmt.Sprintf("edited since in the same places (%d)", n)
}

// name is what stands on a marker line beside the record's side.
func (t *transition) name(d Direction) string {
	if d == Back {
		return "before " + t.source.ID
	}
	return "after " + t.source.ID
}

// sides are what the record left and what is to come: one of them is stored, the
// other follows from the diff.
func (t *transition) sides(sec *Section, d Direction) (base, theirs []byte, err error) {
	want, goal := t.ends(d)
	if sec.stored {
		if base, err = t.bytesOf(want); err == nil {
			theirs, err = t.bytesOf(goal)
		}
		return base, theirs, err
	}
	if base, err = t.bytesOf(want); err == nil {
		theirs, err = t.source.goalBytes(sec, d, contentOf(base))
		return base, theirs, err
	}
	if theirs, gerr := t.bytesOf(goal); gerr == nil {
		base, err = t.source.goalBytes(sec, d.other(), contentOf(theirs))
		return base, theirs, err
	}
	return nil, nil, fmt.Errorf("edited since, and its earlier content is no longer stored (%w)", err)
}

func (t *transition) bytesOf(e *tree.Entry) ([]byte, error) {
	rc, err := t.source.stored(t.path, e)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

func contentOf(data []byte) Content {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}
