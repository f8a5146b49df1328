package layer

import (
	"decree/disk"
)

// A sight is the place in the root that the walk of a layer compares with: a directory, or a
// path at which the root has no directory.
type sight struct {
	up   *sight // nil: this is the root
	name string // in up
	dir  disk.Dir
	// ruled says whether the ignore files of this directory are known to be what they were when
	// the run began. Nil: no rules were read in this directory.
	ruled func() (bool, error)
}

// A base tells what of the root is still what it was when the run began.
type base struct {
	moment
	dev   uint64     // the root's device; of its file system alone the clock is known
	fs    string     // the root's disk.FileSystem.ID: subvolumes below have other devices
	moves bool       // what is moved gets a new change time; see disk.FileSystem.MoveTimes
	names *nameWatch // of the root; nil: nobody has watched
	// setBack is asked after everything else was looked at; see Layer.setBack.
	setBack func() bool
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

// stands looks whether name in s is still as the walk has seen it (nil: nothing was there), and
// says whether it has been so since before the run began.
//
// Where something is, two things are asked. Its change time must be from before the run: then
// its content and its mode are what they were. And it must stand where it stood then, which
// means that neither it nor a directory above it, up to the root, was moved here since. Of the names in the root
// itself the system tells who made the layer (nameWatch); else two kinds of change times tell it:
//
//   - that of the directory that it is in: if it is from before the run, no name in that directory
//     was made, taken away or given to something else since;
//   - its own, on file systems that give a new one to whatever is renamed, linked or exchanged: then
//     the directory that it is in may have got other names since, as long as the same is known
//     of that directory.
//
// A directory of which neither is known may have been put in the place of another one, together
// with old files in it, so nothing in it has a base.
//
// That nothing is there is told by the nearest directory that is there: if its change time is
// from before the run, its names are those of then.
func (b base) stands(s *sight, name string, seen *disk.Info) (bool, error) {
	if b.Settled == 0 {
		return false, nil
	}
	stood, ok, err := b.untouched(s, name, seen)
	for ; ok && err == nil && s != nil; name, s = s.name, s.up {
		if s.dir == nil {
			stood, ok, err = b.absentDir(s)
			continue
		}
		var self disk.Info
		self, err = s.dir.Self()
		old := b.old(s.dir, "", &self)
		stood = stood || s.up == nil && b.names.untouched(name)
		ok, stood = old || stood && b.shares(s.dir, "", &self), old && b.tells(s.up, &self)
	}
	return ok && err == nil && !b.setBack(), err
}

// old says whether in, which is name in dir, or dir itself where that is "", is from before the run.
func (b base) old(dir disk.Dir, name string, in *disk.Info) bool {
	return in.Ctime < b.Settled && b.shares(dir, name, in)
}

// aged says whether in, as old has it, is not known to have been changed since the run began.
func (b base) aged(dir disk.Dir, name string, in *disk.Info) bool {
	return b.old(dir, name, in) || b.moment == timeless || in.Ctime <= b.Last && b.shares(dir, name, in)
}

// shares says whether in, as old has it, is on the root's file system.
func (b base) shares(dir disk.Dir, name string, in *disk.Info) bool {
	if in.Dev == b.dev || b.fs == "" {
		return in.Dev == b.dev
	}
	self, err := dir.Self()
	if err == nil && self.Dev != in.Dev && name != "" && in.Kind == disk.Directory { // the top of a subvolume
		if dir, err = dir.OpenDir(name); err == nil {
			defer dir.Close()
			self, err = dir.Self()
		}
	}
	return err == nil && self.Dev == in.Dev && dir.FileSystem().ID == b.fs
}

// tells says whether the change time of in, which is in up, also tells that it was not moved. That
// of a subvolume's top does not: a snapshot has the one of what it is of.
func (b base) tells(up *sight, in *disk.Info) bool {
	if !b.moves || in.Dev == b.dev {
		return b.moves
	}
	self, err := up.dir.Self()
	return err == nil && self.Dev == in.Dev
}

// untouched looks whether name is still there as it was seen, with a change time from before the
// run. stood says that this change time also tells that it was not moved since.
func (b base) untouched(s *sight, name string, seen *disk.Info) (stood, ok bool, err error) {
	in, err := look(s.dir, name)
	if err != nil || in == nil || seen == nil {
		return false, in == nil && seen == nil, err
	}
	return b.tells(s, in), *in == *seen && b.old(s.dir, name, in), nil
}

// absentDir looks at the place of s, where the root has no directory. There must be nothing, or
// something else that has stood there since before the run.
func (b base) absentDir(s *sight) (stood, ok bool, err error) {
	if s.up == nil {
		return false, false, nil
	}
	in, err := look(s.up.dir, s.name)
	if err != nil || in == nil {
		return false, err == nil, err
	}
	return b.moves, in.Kind != disk.Directory && b.old(s.up.dir, s.name, in), nil
}

// look is Stat, with nil for what is not there. A nil dir has nothing in it.
func look(dir disk.Dir, name string) (*disk.Info, error) {
	if dir == nil {
		return nil, nil
	}
	in, err := dir.Stat(name)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	return &in, nil
}
