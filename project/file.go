package project

import (
	"bytes"
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
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(make([]byte, 0, min(max(st.Size, 0), limit)+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	data := buf.Bytes()
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: filepath.Join(d.Path(), name), Err: fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)}
	}
	return data, nil
}

// CreateFile makes a new file with exactly perm, owned like its directory when
// decree runs with more rights than the directory's owner.
func CreateFile(d disk.Dir, name string, perm uint32) (disk.File, error) {
	f, err := d.Create(name, perm)
	if err != nil {
		return nil, err
	}
	if err := setRights(d, name, f, perm); err != nil {
		f.Close()
		_ = d.Remove(name)
		return nil, err
	}
	return f, nil
}

// setRights gives a new file its mode, and under sudo its owner.
func setRights(d disk.Dir, name string, f disk.File, perm uint32) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Mode != perm {
		if err := f.Chmod(perm); err != nil {
			return err
		}
	}
	return inherit(d, name, st)
}

// inherit gives what root made in a user's directory to that user: a command
// under sudo must not leave files there that its owner cannot read.
func inherit(d disk.Dir, name string, st disk.Info) error {
	if st.UID != 0 {
		return nil
	}
	self, err := d.Self()
	if err != nil || self.UID == 0 {
		return err
	}
	return d.Chown(name, self.UID, self.GID)
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
		if err := d.Chmod(name, perm); err != nil {
			return nil, err
		}
	}
	if err := inherit(d, name, st); err != nil {
		return nil, err
	}
	return d.OpenDir(name)
}

// Draft is the name of the temporary file of ReplaceFile. A death leaves it.
func Draft(name string) string { return name + ".new" }

// ReplaceFile puts data in the place of the file name by a temporary file in
// the same directory, so that a reader sees the old content or the new. With
// flush both the content and the directory are durable when it returns.
func ReplaceFile(d disk.Dir, name string, data []byte, perm uint32, flush bool) error {
	tmp := Draft(name)
	if err := d.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := CreateFile(d, tmp, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && flush {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.Rename(tmp, d, name)
	}
	if err != nil {
		_ = d.Remove(tmp)
		return err
	}
	if flush {
		return d.Sync()
	}
	return nil
}
