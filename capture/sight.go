package capture

import (
	"context"
	"errors"
	"io/fs"

	"slices"
	"sort"
	"strings"
	"time"

	"decree/disk"
	"decree/tree"
)

// Sightings tell what paths of a tree were at a moment in the past. Look walks the tree after that
// moment. Where the change times say that nothing has changed since the moment, and the tree is as
// the stat cache has it, the cache knows what was there, and Was says it later, even when the path
// has been changed after the look. Of a directory that the cache does not know, as one that a publish
// has made since the last capture, the look notes the names: what is not among them was not there.
//
// Where times are too coarse for that, a capture right before the moment tells: Recall has Was say what its
// cache has. What was changed between the two is not seen.
//
// Look and Was must not be called at the same time. Nothing is written, and no content is read.
type Sightings struct {
	root   disk.Dir
	cache  *cache
	steady bool // a directory's times tell of its names
	moves  bool // its own tell that it was not moved; see disk.FileSystem.MoveTimes
	dev    uint64
	before int64
	dirs   map[tree.Path]sighted
	recall bool
	loaded int // bytes of the cache that were read since its memory was given back
	listed int // about the bytes of memory that the directories take that the cache does not know
}

// mostLoaded is how much of the cache a look has in memory: many runs may work side by side, each
// for hours, and Was is asked for few paths.
const mostLoaded = 1 << 20

// mostListed bounds Sightings.listed: of further directories nothing is known. nameSize is what a
// name takes beside its bytes.
const (
	mostListed = 4 << 20
	nameSize   = 64
)

// nothing is what the cache knows of such a directory.
var nothing = newBlock(0, 0)

// sighted is a directory that was not moved since the moment, and in which no name was made or
// taken away.
type sighted struct {
	mode   uint32
	alien  bool // the cache does not know it: its names alone are known, and it may be ignored
	b      block
	names  []string // sorted; nil: those of b
	missed []int32  // the records of files that are not as the cache has them, ascending
}

// OpenSightings opens the cache in cacheDir as it is now. Where there is none that can be
// used names alone will be known. Call Close at the end.
func OpenSightings(root, cacheDir disk.Dir) (*Sightings, error) {
	c, err := openCache(&Request{Root: root, CacheDir: cacheDir})
	if err != nil {
		return nil, err
	}
	return &Sightings{root: root, cache: c, dirs: map[tree.Path]sighted{}}, nil
}

// Blind says whether the cache knows nothing of the tree, so that a look tells of names alone.
func (s *Sightings) Blind() bool { return s.cache.root.off == 0 }

// Recall says that the cache is of the moment, so that no look is needed.
func (s *Sightings) Recall() { s.recall = true }

// Close releases the cache.
func (s *Sightings) Close() error { return s.cache.close() }

// Look walks what the cache has of the tree, and some directories that it lacks, until it has seen all of it or ctx ends, which is no
// error. before is the moment, in nanoseconds since 1970 by the clock that stamps the tree's files;
// 0 says that the moment is not known, and then nothing is. A second look for the same moment
// adds to what is known. Of paths that have vanished, or may not be looked at, nothing is known;
// where the cache is damaged nothing is known of any path. Other errors end the walk.
func (s *Sightings) Look(ctx context.Context, before int64) error {
	self, err := s.root.Self()
	if err != nil || before == 0 || s.recall {
		return err
	}
	if s.before != before {
		clear(s.dirs)
	}
	s.before, s.dev = before, self.Dev
	fs := s.root.FileSystem()
	s.steady, s.moves = fs.Steady, fs.MoveTimes
	if disk.Reading(s.cache.data, func() { err = s.look(ctx, s.root, "", s.cache.root) }) != nil {
		err = errDamaged
	}
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

// unseen is nil for an error that concerns one path alone, which cannot be looked at, and else
// the error.
func unseen(err error) error {
	if absent(err) || disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// look looks at the directory d, which has stood at the path dir since the moment, and at all
// below. The directory's change time is read after everything in it was looked at: if it is from
// before the moment even then, no name in it was made, taken away or given to something else.
func (s *Sightings) look(ctx context.Context, d disk.Dir, dir tree.Path, at ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := s.cache.mapped(at)
	if err != nil {
		return err
	}
	alien := b == nil
	if alien {
		b = nothing
	}
	if s.loaded += len(b); s.loaded > mostLoaded {
		s.loaded = 0
		s.cache.unload()
	}
	self, err := d.Self()
	if err == nil && !s.old(&self) && s.fixed(dir) {
		return s.below(ctx, d, dir, b)
	}
	if err != nil || !s.old(&self) {
		return unseen(err)
	}
	seen := sighted{mode: self.Mode, alien: alien, b: b}
	var others []string
	if !s.steady || b.flags()&flagOld == 0 || !b.sameListing(&self) {
		if others, err = s.list(d, &seen); err != nil {
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
	for _, name := range others {
		if s.listed > mostListed {
			break
		}
		if err := s.child(ctx, d, dir.Join(name), ref{}); err != nil {
			return err
		}
	}
	return s.below(ctx, d, dir, b)
}

// fixed says whether what is in the directory dir is known to have stood there since the moment by its own change time alone, as in the
// root, which no name leads to, and in which another program may make files and remove them all the time.
func (s *Sightings) fixed(dir tree.Path) bool { return dir == "" && s.moves }

// below looks at the directories that the cache has in the directory d.
func (s *Sightings) below(ctx context.Context, d disk.Dir, dir tree.Path, b block) error {
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

// child looks at a directory in d, unless d has changed since the moment, so that another
// directory may stand there now.
func (s *Sightings) child(ctx context.Context, d disk.Dir, dir tree.Path, at ref) error {
	c, err := d.OpenDir(dir.Name())
	if err != nil {
		return unseen(err)
	}
	defer c.Close()
	if old, err := s.stillOld(d); !old && !s.fixed(dir.Parent()) || err != nil {
		return err
	}
	return s.look(ctx, c, dir, at)
}

// files notes the files that have changed since the moment, or that the cache does not know as
// they are.
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

// list notes the names in a directory, and returns those of the directories there that the cache
// does not know.
func (s *Sightings) list(d disk.Dir, seen *sighted) (others []string, err error) {
	list, err := d.List()
	seen.names = make([]string, 0, len(list))
	for _, e := range list {
		seen.names = append(seen.names, e.Name)
		if seen.alien {
			s.listed += nameSize + len(e.Name)
		}
		if (e.Kind == disk.Directory || e.Kind == disk.Unknown) && e.Name != ".git" && e.Name != ".decree" && !seen.knowsDir(e.Name) {
			others = append(others, e.Name)
		}
	}
	slices.Sort(seen.names)
	return others, err
}

// Was returns what was at the path p at the moment; nil where nothing was there, or nothing that
// a capture records. known is false where neither the cache nor the look can tell.
func (s *Sightings) Was(p tree.Path) (was *tree.Entry, known bool) {
	if disk.Reading(s.cache.data, func() { was, known = s.was(p) }) != nil {
		return nil, false
	}
	return was, known
}

func (s *Sightings) was(p tree.Path) (was *tree.Entry, known bool) {
	if s.recall {
		was, known = s.recalled(p)
		s.cache.unload()
		return was, known
	}
	at, ok := s.dirs[p]
	switch {
	case ok && at.alien:
		return nil, false
	case ok:
		return &tree.Entry{Type: tree.Dir, Mode: at.mode}, true
	}
	dir, name := p.Parent(), p.Name()
	if at, ok = s.dirs[dir]; !ok {
		if dir == "" {
			return nil, false
		}
		up, known := s.was(dir) // below what is no directory is nothing
		return nil, known && !up.IsDir()
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

// Stands says whether what is at the path p now is what was there at the moment before, as the tree is as the cache has it
// at a time that lies in the future of before. A clock that was ahead has left such times; whatever is changed since gets
// another one. Directories from before the moment need not be as the cache has them.
func (s *Sightings) Stands(p tree.Path, before int64) (stands bool) {
	self, err := s.root.Self()
	if err != nil || before == 0 || s.recall {
		return false
	}
	s.before, s.dev = before, self.Dev
	if disk.Reading(s.cache.data, func() { stands = s.stands(s.root, s.cache.root, p) }) != nil {
		return false
	}
	s.cache.unload()
	return stands
}

// stands is Stands for what p is in the directory d. The names of d are asked for after what is below: a change
// meanwhile is seen.
func (s *Sightings) stands(d disk.Dir, at ref, p tree.Path) bool {
	b, err := s.cache.mapped(at)
	if err != nil {
		return false
	}
	if b == nil {
		b = nothing
	}
	name, rest, deeper := strings.Cut(string(p), "/")
	i := (&sighted{b: b}).record(name)
	in, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false
	case deeper && in.Kind == disk.Directory:
		var sub ref
		if i >= 0 && b.kind(i) == kDir {
			sub = b.child(i)
		}
		c, err := d.OpenDir(name)
		if err != nil {
			return false
		}
		defer c.Close()
		if !s.stands(c, sub, tree.Path(rest)) {
			return false
		}
	case deeper, s.old(&in): // nothing is below what is no directory
	default:
		if i < 0 || !s.ahead(&in) || !s.isAs(b, i, &in) {
			return false
		}
	}
	self, err := d.Self()
	return err == nil && (s.old(&self) || s.ahead(&self) && b.sameListing(&self))
}

// isAs says whether in has the facts of the cache's record i.
func (s *Sightings) isAs(b block, i int, in *disk.Info) bool {
	switch kd := b.kind(i); kd {
	case kFile, kLink:
		return in.Kind == diskKind(kd) && b.sameFacts(i, kd, in)
	case kDir:
		c, err := s.cache.mapped(b.child(i))
		return err == nil && c != nil && in.Kind == disk.Directory && c.sameListing(in) && b.mode(i) == in.Mode
	}
	return false
}

// ahead says whether the time of a file lies so far in the future of the moment that no file system's clock was there: the cache, which is older,
// has seen it there, and whatever was changed since has a time of its own.
func (s *Sightings) ahead(in *disk.Info) bool {
	off := time.Minute
	if in.Dev == s.dev { // the moment is of that clock
		off = disk.FineTick
	}
	return in.Ctime > s.before+int64(off)
}

// recalled is what the cache has of p.
func (s *Sightings) recalled(p tree.Path) (was *tree.Entry, known bool) {
	at, isDir := s.cache.root, true
	for name := range p.Components() {
		if !isDir {
			return nil, true // below what is no directory is nothing
		}
		b, err := s.cache.mapped(at)
		if b == nil || err != nil {
			return nil, false
		}
		i := (&sighted{b: b}).record(name)
		if i < 0 {
			return nil, true
		}
		if !b.kind(i).tracked() {
			return nil, false
		}
		e := b.entry(i)
		was, at, isDir = &e, b.child(i), b.kind(i) == kDir
	}
	return was, true
}

// record is the number of the cache's record of a name in the directory, -1 if it has none.
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

// knowsDir says whether the cache has a directory of that name in this one, if only as ignored.
func (s *sighted) knowsDir(name string) bool {
	i := s.record(name)
	return i >= 0 && s.b.kind(i).isDir()
}

func contains[T string | int32](sorted []T, v T) bool {
	_, found := slices.BinarySearch(sorted, v)
	return found
}
