package layer

import (
	"errors"
	"io/fs"

	"decree/disk"
)

// A sight is a directory of the root, or a path where it has none, as the walk has it.
type sight struct {
	up   *sight // nil: this is the root
	name string // in up
	dir  disk.Dir
	// doubted: an ignore file of this directory was not what it was when the run began.
	doubted bool
}

// A base tells what of the root is still what it was when the run began.
type base struct {
	before int64  // change times from this on are too young; 0: all are
	dev    uint64 // the root's: of other file systems the clock is not known
}

// holds looks whether name in s is still seen (nil: nothing), and has been since before the
// run began: it and every directory above it, up to the root, have a change time before
// that. For a name that is absent it is the nearest directory that is there and all above.
func (b base) holds(s *sight, name string, seen *disk.Info) (bool, error) {
	if b.before == 0 {
		return false, nil
	}
	if ok, err := b.stands(s.dir, name, seen); !ok || err != nil {
		return false, err
	}
	for ; s != nil; s = s.up {
		if s.doubted {
			return false, nil
		}
		if s.dir == nil {
			// Nothing, or no directory, is there: what is must be as old.
			if ok, err := b.absentDir(s); !ok || err != nil {
				return false, err
			}
			continue
		}
		self, err := s.dir.Self()
		if err != nil || !b.old(self) {
			return false, err
		}
	}
	return true, nil
}

func (b base) old(in disk.Info) bool { return in.Ctime < b.before && in.Dev == b.dev }

// stands looks whether name is there as it was seen, and old.
func (b base) stands(dir disk.Dir, name string, seen *disk.Info) (bool, error) {
	in, err := look(dir, name)
	if err != nil || in == nil || seen == nil {
		return in == nil && seen == nil, err
	}
	return *in == *seen && b.old(*in), nil
}

// absentDir looks at what stands where s, which has no directory, would be.
func (b base) absentDir(s *sight) (bool, error) {
	if s.up == nil {
		return false, nil
	}
	in, err := look(s.up.dir, s.name)
	return err == nil && (in == nil || in.Kind != disk.Directory && b.old(*in)), err
}

// look is Stat, with nil for what is not there; in no directory is nothing.
func look(dir disk.Dir, name string) (*disk.Info, error) {
	if dir == nil {
		return nil, nil
	}
	in, err := dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &in, nil
}
