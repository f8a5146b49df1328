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
	data, err := io.ReadAll(io.LimitReader(f, maxForgotten))
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", forgottenName, err)
	}
	if out.Version > 1 {
		return nil, &VersionError{forgottenName, fmt.Sprint(out.Version)}
	}
	if out.Contents == nil {
		out.Contents = map[Hash]Forgetting{}
	}
	return out, nil
}

// WriteForgotten replaces the list, durably.
func WriteForgotten(dir disk.Dir, l *Forgotten) (err error) {
	slices.SortFunc(l.Pending, func(a, b Hash) int { return strings.Compare(a.String(), b.String()) })
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	const tmp = forgottenName + ".new"
	if err := removeIfThere(dir, tmp); err != nil {
		return err
	}
	f, err := create(dir, tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(tmp, dir, forgottenName)
	}
	if err != nil {
		_ = removeIfThere(dir, tmp)
		return err
	}
	return dir.Sync()
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
