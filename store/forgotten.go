package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"decree/disk"
)

// forgottenName is the list of contents that were taken out of the store on
// purpose: {"version":1,"contents":{"<hash>":{"path":"<quoted>","time":"..."}},"pending":["<hash>",...]}.
// Who misses one of them is told so. pending are those whose removal has begun
// and not ended: it can be repeated.
const (
	forgottenName = "forgotten.json"
	maxForgotten  = 64 << 20
)

// Forgotten is that list.
type Forgotten struct {
	Version  int                 `json:"version"`
	Contents map[Hash]Forgetting `json:"contents"`
	Pending  []Hash              `json:"pending,omitempty"`
}

// Forgetting says of which path a content was forgotten, and when.
type Forgetting struct {
	Path string    `json:"path"` // quoted as in the manifest
	Time time.Time `json:"time"`
}

// ReadForgotten reads the list of a store; a missing one is empty.
func ReadForgotten(dir disk.Dir) (*Forgotten, error) {
	out := &Forgotten{Version: 1, Contents: map[Hash]Forgetting{}}
	f, err := dir.Open(forgottenName)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size > maxForgotten+1 { // before memory is taken for it; WriteForgotten ends it with a line feed
		return nil, fmt.Errorf("%s: damaged: it is larger than %d MiB, which no decree writes", forgottenName, maxForgotten>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxForgotten+1))
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if out.Version > 1 { // also where the rest has another form
		return nil, &VersionError{forgottenName, fmt.Sprint(out.Version)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", forgottenName, err)
	}
	if out.Contents == nil {
		out.Contents = map[Hash]Forgetting{}
	}
	return out, nil
}

// WriteForgotten replaces the list, durably. One that could not be read again is refused.
func WriteForgotten(dir disk.Dir, l *Forgotten) error {
	slices.SortFunc(l.Pending, func(a, b Hash) int { return strings.Compare(a.String(), b.String()) })
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if len(data) > maxForgotten {
		return fmt.Errorf("%s: with these %d contents it would be larger than %d MiB and could not be read again: forget fewer at once, or shorter paths", forgottenName, len(l.Contents), maxForgotten>>20)
	}
	return disk.Replace(dir, forgottenName, disk.Replacement{Perm: 0o600, Flush: true}, disk.Content(append(data, '\n')))
}

// missing is the error for a content that is not there. Where the list cannot be
// read it is just missing.
func (s *Store) missing(h Hash) error {
	e := &MissingError{Hash: h}
	if l, err := ReadForgotten(s.dir); err == nil {
		_, e.Forgotten = l.Contents[h]
	}
	return e
}

// Paths are the paths that contents were forgotten of, sorted.
func (l *Forgotten) Paths() []string {
	paths := map[string]bool{}
	for _, f := range l.Contents {
		paths[f.Path] = true
	}
	return slices.Sorted(maps.Keys(paths))
}
