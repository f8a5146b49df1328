package disk

import (
	"errors"
	"syscall"
)

// Replacement says how Replace puts a file in its place.
type Replacement struct {
	Perm uint32 // the new file's mode, whatever the umask
	// Flush makes the content durable before the file gets its name, and the name before
	// Replace returns. Without it a power failure may leave the old file, the new one, or
	// one without content.
	Flush bool
	// Temp is the file's name until it is whole; "": Draft of its name.
	Temp string
	// Place gives the whole file its name; nil: Dir.Rename, over what has the name.
	Place func(temp string, to Dir, name string) error
}

// Draft is the name of a file that Replace has not given its own yet. A death leaves it.
func Draft(name string) string { return name + ".new" }

// Content writes data, for Replace.
func Content(data []byte) func(File) error {
	return func(f File) error {
		_, err := f.Write(data)
		return err
	}
}

// Replace writes a file beside the place of name and then puts it there, so that who
// reads finds the old content or the new, and never a part. What a dead process left of
// an earlier try is removed first. After an error the old file stands, and nothing is
// left beside it where that can be removed; but where only the last step failed, the
// flush of the directory, the new one stands and may not outlive a power failure.
func Replace(d Dir, name string, how Replacement, write func(File) error) error {
	temp, place := how.Temp, how.Place
	if temp == "" {
		temp = Draft(name)
	}
	if place == nil {
		place = d.Rename
	}
	if err := UnlessMissing(d.Remove(temp)); err != nil {
		return err
	}
	f, err := CreateFile(d, temp, how.Perm)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil && how.Flush {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = place(temp, d, name)
	}
	if err != nil {
		_ = d.Remove(temp)
		return err
	}
	if how.Flush {
		return d.Sync()
	}
	return nil
}

// CreateFile makes a new file with exactly perm, owned like its directory when
// decree runs with more rights than the directory's owner.
func CreateFile(d Dir, name string, perm uint32) (File, error) {
	f, err := d.Create(name, perm)
	if err != nil {
		return nil, err
	}
	if err := setRights(d, f, perm); err != nil {
		f.Close()
		_ = d.Remove(name)
		return nil, err
	}
	return f, nil
}

// setRights gives a new file its mode, and under sudo its owner.
func setRights(d Dir, f File, perm uint32) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Mode != perm {
		if err := f.Chmod(perm); err != nil {
			return err
		}
	}
	to, err := heirOf(d, st)
	if to == nil {
		return err
	}
	return f.Chown(to.UID, to.GID)
}

// heirOf is the owner of d, where root has made in a user's directory what st is of: a command
// under sudo must not leave files there that its owner cannot read. Else it is nil.
func heirOf(d Dir, st Info) (*Info, error) {
	if st.UID != 0 {
		return nil, nil
	}
	self, err := d.Self()
	if err != nil || self.UID == 0 {
		return nil, err
	}
	return &self, nil
}

// Inherit gives a link or a directory that root made in a user's directory to that user. st
// is of what was made. A directory that holds something by now was not.
func Inherit(d Dir, name string, st Info) error {
	to, err := heirOf(d, st)
	if to == nil {
		return err
	}
	if err = d.Chown(name, st, to.UID, to.GID); errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return err
}
