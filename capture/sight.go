package capture

import (
	"context"
	"errors"
	"io/fs"

	"slices"
	"sort"

	"decree/disk"
	"decree/tree"
)

// Sightings tell what a tree was at a moment in the past, of which somebody who walks it
// afterwards can still be sure: where nothing has changed since that moment, and the tree is
// as the cache has it, the cache says what it was. What changes after the look was seen before.
//
// Look and Was must not be called at once. Nothing is written, and no content is read.
type Sightings struct {
	root   disk.Dir
	cache  *cache
	steady bool // a directory's times tell of its names
	dev    uint64
	before int64
	dirs   map[tree.Path]sighted
	loaded int // bytes of the cache that were read since its memory was given back
}

// mostLoaded is how much of the cache a look has in memory: many runs may work side by side, each
// for hours, and Was is asked for few paths.
const mostLoaded = 1 << 20

// sighted is a directory that stood where it stands, with the same names, since the moment.
type sighted struct {
	mode   uint32
	b      block
	names  []string // sorted; nil: those of b
	missed []int32  // the records of files that are not as the cache has them, ascending
}

// OpenSightings opens the cache in cacheDir as it is now. Where there is none that can be
// used nothing will be known. Call Close at the end.
func OpenSightings(root, cacheDir disk.Dir) (*Sightings, error) {
	c, err := openCache(&Request{Root: root, CacheDir: cacheDir})
	if err != nil {
		return nil, err
	}
	return &Sightings{root: root, cache: c, dirs: map[tree.Path]sighted{}}, nil
}

// Close releases the cache.
func (s *Sightings) Close() error { return s.cache.close() }

// Look walks what the cache has of the tree until ctx ends, which is no error, or all is seen. Another look for the
// same moment adds to what is known. before is the moment, in nanoseconds since 1970 by the
// clock that stamps the tree's files; 0: it is not known, and nothing is. What has vanished or
// may not be looked at is not known; damage of the cache leaves nothing known at all. Other
// errors end the walk.
func (s *Sightings) Look(ctx context.Context, before int64) error {
	self, err := s.root.Self()
	if err != nil || before == 0 || s.cache.root.off == 0 {
		return err
	}
	if s.before != before {
		clear(s.dirs)
	}
	s.before, s.dev = before, self.Dev
	s.steady = s.root.FileSystem().Steady
	err = s.look(ctx, s.root, "", s.cache.root)
	s.cache.unload()
	switch {
	case err == errDamaged:
		clear(s.dirs)
		return nil
	case err == ctx.Err():
		return nil
	}
	return err
}

// unseen is nil for an error that says that one thing cannot be looked at.
func unseen(err error) error {
	if absent(err) || disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// look sees a directory that has stood at dir since the moment, and all below. Its change
// time is asked for behind everything that is seen in it: as long as that is from before the
// moment no name in it was made, taken away or given to something else.
func (s *Sightings) look(ctx context.Context, d disk.Dir, dir tree.Path, at ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := s.cache.block(at)
	if err != nil || b == nil {
		return err
	}
	if s.loaded += len(b); s.loaded > mostLoaded {
		s.loaded = 0
		s.cache.unload()
	}
	self, err := d.Self()
	if err != nil || !s.old(&self) {
		return unseen(err)
	}
	seen := sighted{mode: self.Mode, b: b}
	if !s.steady || b.flags()&flagOld == 0 || !b.sameListing(&self) {
		if seen.names, err = namesOf(d); err != nil {
			return unseen(err)
		}
	}
	if err := s.files(ctx, d, &seen); err != nil {
		return err
	}
	if old, err := s.stillOld(d); !old || err != nil {
		return err
	}
	if _, already := s.dirs[dir]; !already { // what was seen first was seen before more edits
		s.dirs[dir] = seen
	}
	for i := range b.count() {
		if b.kind(i) != kDir {
			continue
		}
		if err := s.child(ctx, d, join(dir, b.name(i)), b.child(i)); err != nil {
			return err
		}
	}
	return nil
}

// child goes into a directory, if it has stood there since the moment.
func (s *Sightings) child(ctx context.Context, d disk.Dir, dir tree.Path, at ref) error {
	c, err := d.OpenDir(dir.Name())
	if err != nil {
		return unseen(err)
	}
	defer c.Close()
	if old, err := s.stillOld(d); !old || err != nil {
		return err
	}
	return s.look(ctx, c, dir, at)
}

// files notes which files are not what the cache has.
func (s *Sightings) files(ctx context.Context, d disk.Dir, seen *sighted) error {
	b := seen.b
	for i := range b.count() {
		kd := b.kind(i)
		if kd != kFile && kd != kLink {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		in, err := d.Stat(string(b.name(i)))
		if unseen(err) != nil {
			return err
		}
		if err != nil || in.Kind != diskKind(kd) || !s.old(&in) || !b.known(i, kd, &in) {
			seen.missed = append(seen.missed, int32(i))
		}
	}
	return nil
}

func (s *Sightings) old(in *disk.Info) bool { return in.Ctime < s.before && in.Dev == s.dev }

func (s *Sightings) stillOld(d disk.Dir) (bool, error) {
	in, err := d.Self()
	return err == nil && s.old(&in), err
}

func namesOf(d disk.Dir) ([]string, error) {
	list, err := d.List()
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names, err
}

// Was returns what p was at the moment: nil, nothing, or nothing that is recorded. known says
// whether that is known.
func (s *Sightings) Was(p tree.Path) (was *tree.Entry, known bool) {
	if at, ok := s.dirs[p]; ok {
		return &tree.Entry{Type: tree.Dir, Mode: at.mode}, true
	}
	dir, name := p.Parent(), p.Name()
	at, ok := s.dirs[dir]
	if !ok {
		if dir == "" {
			return nil, false
		}
		up, known := s.Was(dir) // below what is no directory is nothing
		return nil, known && (up == nil || up.Type != tree.Dir)
	}
	i := at.record(name)
	if at.names != nil && !contains(at.names, name) || at.names == nil && i < 0 {
		return nil, true
	}
	if i < 0 || at.b.kind(i) != kFile && at.b.kind(i) != kLink || contains(at.missed, int32(i)) {
		return nil, false
	}
	e := at.b.entry(i)
	return &e, true
}

// record is the number of the record with a name, -1 for none.
func (s *sighted) record(name string) int {
	for _, isDir := range []bool{false, true} {
		i := sort.Search(s.b.count(), func(i int) bool {
			return compareNames(s.b.name(i), s.b.kind(i).isDir(), name, isDir) >= 0
		})
		if i < s.b.count() && string(s.b.name(i)) == name {
			return i
		}
	}
	return -1
}

func contains[T string | int32](sorted []T, v T) bool {
	_, found := slices.BinarySearch(sorted, v)
	return found
}
