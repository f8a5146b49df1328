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
	// ruled tells whether the ignore files of this directory are what they were when the run
	// began, as far as that is known. Nil: it has no say, as no rules were read in it.
	ruled func() (bool, error)
}

// A base tells what of the root is still what it was when the run began.
type base struct {
	before int64  // change times from this on are too young; 0: all are
	dev    uint64 // the root's: of other file systems the clock is not known
	moves  bool   // see disk.FileSystem.MoveTimes
	// setBack is asked behind the look: see Layer.setBack.
	setBack func() bool
}

// holds looks whether name in s is still seen (nil: nothing), and has been since before the
// run began, under the ignore rules of then.
func (b base) holds(s *sight, name string, seen *disk.Info) (bool, error) {
	ok, err := b.stands(s, name, seen)
	if !ok || err != nil {
		return false, err
	}
	return s.sameRules()
}

// sameRules says whether the ignore rules in s are those that the run began with.
func (s *sight) sameRules() (ok bool, err error) {
	for ok = true; ok && err == nil && s != nil; s = s.up {
		if s.ruled != nil {
			ok, err = s.ruled()
		}
	}
	return ok && err == nil, err
}

// stands is holds, whatever the rules.
//
// What is there has a change time before that, so its content and mode are what they were.
// It, and each directory above it up to the root, must also have stood where it stands now.
// A directory's change time before the run says so of all that is in it: no name was made,
// taken away or given to something else. Where the file system changes the change time of
// what is renamed, linked or exchanged, a thing's own says it too, and the directory that it
// is in may have got other names since. A directory of which neither is true may have been
// put in the place of another, with all that is old in it.
//
// That nothing is there is told by the nearest directory that is: its names are those of
// then.
func (b base) stands(s *sight, name string, seen *disk.Info) (bool, error) {
	if b.before == 0 {
		return false, nil
	}
	stood, ok, err := b.untouched(s.dir, name, seen)
	for ; ok && err == nil && s != nil; s = s.up {
		if s.dir == nil {
			stood, ok, err = b.absentDir(s)
			continue
		}
		var self disk.Info
		self, err = s.dir.Self()
		old := b.old(&self)
		ok, stood = old || stood && self.Dev == b.dev, old && b.moves
	}
	return ok && err == nil && !b.setBack(), err
}

func (b base) old(in *disk.Info) bool { return in.Ctime < b.before && in.Dev == b.dev }

// untouched looks whether name is there as it was seen, and old; stood says that it has not
// been moved since either.
func (b base) untouched(dir disk.Dir, name string, seen *disk.Info) (stood, ok bool, err error) {
	in, err := look(dir, name)
	if err != nil || in == nil || seen == nil {
		return false, in == nil && seen == nil, err
	}
	return b.moves, *in == *seen && b.old(in), nil
}

// absentDir looks at what stands where s, which has no directory, would be: nothing, or what
// is none, for as long.
func (b base) absentDir(s *sight) (stood, ok bool, err error) {
	if s.up == nil {
		return false, false, nil
	}
	in, err := look(s.up.dir, s.name)
	if err != nil || in == nil {
		return false, err == nil, err
	}
	return b.moves, in.Kind != disk.Directory && b.old(in), nil
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
