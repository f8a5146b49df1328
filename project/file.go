package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"decree/disk"
)

const (
	// PrivateDir and PrivateFile are the modes of all that holds a user's bytes.
	PrivateDir  uint32 = 0o700
	PrivateFile uint32 = 0o600
)

// ErrTooLarge is in the chain of ReadFile's error for a file above the limit.
var ErrTooLarge = errors.New("larger than decree reads")

// ReadFile returns a file of at most limit bytes.
func ReadFile(d disk.Dir, name string, limit int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, filepath.Join(d.Path(), name), limit)
}

// readOpen is ReadFile of a file that is open.
func readOpen(f disk.File, path string, limit int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)}
	if st.Size > limit { // before memory is taken for what is not used
		return nil, tooLarge
	}
	buf := bytes.NewBuffer(make([]byte, 0, max(st.Size, 0)+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	data := buf.Bytes()
	if int64(len(data)) > limit { // it has grown since
		return nil, tooLarge
	}
	return data, nil
}

// MakeDir opens the child directory name and makes it first, with exactly perm,
// if it is missing.
func MakeDir(d disk.Dir, name string, perm uint32) (disk.Dir, error) {
	c, err := d.OpenDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if err := d.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	st, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	// A umask may have taken bits away that decree itself needs.
	if st.Kind == disk.Directory && st.Mode&0o777 != perm {
		if err := d.Chmod(name, st, st.Mode&^0o777|perm); err != nil { // with a set-group-ID that it has of d
			return nil, err
		}
	}
	if err := disk.Inherit(d, name, st); err != nil {
		return nil, err
	}
	return d.OpenDir(name)
}

// ReplaceFile is disk.Replace for bytes.
func ReplaceFile(d disk.Dir, name string, data []byte, perm uint32, flush bool) error {
	return disk.Replace(d, name, disk.Replacement{Perm: perm, Flush: flush}, disk.Content(data))
}

// ReplaceJSON is ReplaceFile of a value as a line of JSON.
func ReplaceJSON(d disk.Dir, name string, v any, perm uint32, flush bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return ReplaceFile(d, name, append(data, '\n'), perm, flush)
}

// removeFile removes a file durably, if it is there.
func removeFile(d disk.Dir, name string) error {
	if err := d.Remove(name); err != nil {
		return disk.UnlessMissing(err)
	}
	return d.Sync()
}

// WriteNew makes a file, whole and durable or not at all, and replaces none: fs.ErrExist
// where the name is taken. It is called draft until it is whole; one that a dead process
// left is written over.
func WriteNew(d disk.Dir, name, draft string, data []byte, perm uint32) error {
	how := disk.Replacement{Perm: perm, Flush: true, Temp: draft, Place: d.RenameNew}
	return disk.Replace(d, name, how, disk.Content(data))
}
