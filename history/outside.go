package history

import (
	"encoding/json"
	"slices"

	"decree/tree"
)

// OutsideFile is the name, in a record's run directory, of the difference between
// the state that was known last and the one that the record found: what changed
// between records. Its format is that of changes.diff.
const OutsideFile = "outside.diff"

// The two fields of run.json that tell of it. They are absent where nothing was.
const (
	outsideCounts = "outside"
	outsideHash   = "outside_sha256"
)

// Outside is what run.json says of a record's outside.diff.
type Outside struct {
	SHA256  tree.Hash
	Changes Changes
}

// outsideJSON is the counts as run.json has them.
type outsideJSON struct {
	Created      int `json:"created"`
	Modified     int `json:"modified"`
	Deleted      int `json:"deleted"`
	AddedLines   int `json:"added_lines"`
	RemovedLines int `json:"removed_lines"`
}

// SetOutside writes down that the record found the tree changed, once.
func (r *Record) SetOutside(o Outside) error {
	counts, err := json.Marshal(outsideJSON(o.Changes))
	if err != nil {
		return err
	}
	sum, err := json.Marshal(o.SHA256)
	r.Extra = slices.DeleteFunc(r.Extra, func(f Field) bool { return f.Name == outsideCounts || f.Name == outsideHash })
	r.Extra = append(r.Extra, Field{outsideCounts, counts}, Field{outsideHash, sum})
	return err
}

// setOutsideSum says that outside.diff was written anew.
func (r *Record) setOutsideSum(sum tree.Hash) error {
	o, ok := r.Outside()
	if !ok {
		return nil
	}
	o.SHA256 = sum
	return r.SetOutside(o)
}

// Outside returns what SetOutside wrote; ok is false if nothing changed before
// the record, or nothing is known of it.
func (r *Record) Outside() (o Outside, ok bool) {
	for _, f := range r.Extra {
		switch f.Name {
		case outsideCounts:
			var j outsideJSON
			if json.Unmarshal(f.Raw, &j) == nil {
				o.Changes = Changes(j)
			}
		case outsideHash:
			ok = json.Unmarshal(f.Raw, &o.SHA256) == nil && !o.SHA256.IsZero()
		}
	}
	return o, ok
}
