package recorder

import (
	"maps"
	"path"
	"slices"

	"decree/disk"
	"decree/tree"
)

// largeDir is a directory below .decree with so many files, usually the inbox, that a
// look at each of them would cost more than a short run. The system tells which of its
// names have changed; only these are looked at again.
type largeDir struct {
	at    string // below .decree
	self  disk.Info
	watch *disk.Watch
	files map[string]ownFile // by name; directories in it are not among them
	// again are the names that have to be looked at whatever the watch says:
	// directories, files that may not be read, and those that have a second name,
	// through which they can be changed.
	again map[string]bool
	// touched are the names that changed since the last look, all of them unless blind.
	touched map[string]bool
	blind   bool
	// unlogged are the names of files that are not as the log says.
	unlogged map[string]bool
}

// largeFrom is how many names a directory has at least that is watched.
var largeFrom = 1000

// watchLarge begins to watch a directory; nil where the system cannot.
func watchLarge(dir disk.Dir, at string) *largeDir {
	self, err := dir.Self()
	if err != nil {
		return nil
	}
	watch, err := disk.NewWatch(dir, disk.Entries)
	if err != nil {
		return nil
	}
	return &largeDir{at: at, self: self, watch: watch, files: map[string]ownFile{},
		again: map[string]bool{}, touched: map[string]bool{}, unlogged: map[string]bool{}}
}

// see takes up what has changed. It says whether that is all, and dir still the one that
// is watched.
func (d *largeDir) see(dir disk.Dir) bool {
	if !d.watch.Changed(func(name string) { d.touched[name] = true }) {
		d.blind = true
	}
	self, err := dir.Self()
	return !d.blind && err == nil && self.SameFile(d.self)
}

// due are the names to be looked at before a run, and are not known until they are put.
func (d *largeDir) due() (list []disk.Entry) {
	maps.Copy(d.touched, d.again)
	for name := range d.touched {
		list = append(list, disk.Entry{Name: name})
		if _, ok := d.files[name]; ok {
			d.unlogged[name] = true
			delete(d.files, name)
		}
	}
	clear(d.touched)
	clear(d.again)
	return list
}

// put notes a file as it was when it was looked at.
func (d *largeDir) put(f ownFile, info disk.Info) {
	name := path.Base(f.Path)
	d.files[name] = f
	d.unlogged[name] = true
	if info.Nlink > 1 {
		d.again[name] = true
	}
}

// lost has the files looked at again whose contents the store has no more.
func (d *largeDir) lost(has func(tree.Hash) bool) {
	for name, f := range d.files {
		if f.Target == "" && !has(f.Hash) {
			d.touched[name] = true
		}
	}
}

// suspects are the names of files that may not be as they were put: those that changed
// since, or all, where it is not known which. dirs is told how to look for them.
func (d *largeDir) suspects(dirs *ownDirs) []string {
	dir, err := dirs.r.openOwn(d.at)
	if err == nil && d.see(dir) {
		dirs.large[d.at] = dir
		return slices.Sorted(maps.Keys(d.touched))
	}
	if err == nil {
		dir.Close()
	}
	return slices.Sorted(maps.Keys(d.files))
}
