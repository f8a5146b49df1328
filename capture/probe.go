package capture

import (
	"strconv"
	"time"

	"decree/disk"
)

// A threshold is the time that a file's times must lie before to be trusted: the start
// of the reading less the tick of the file system. A change after the start then cannot
// hide behind times that stayed the same (the racy-git rule).
type threshold struct {
	dev       uint64
	near, far int64 // on the file system dev; on others, whose clock and tick are unknown
}

// Ticks. The kernel stamps files with a clock that advances up to 100 times a second. A
// file system that keeps no finer times than that may keep every other second only (FAT);
// two of its ticks count, since it may round up or down.
const (
	fineTick   = 20 * time.Millisecond
	coarseUnit = 10 * time.Millisecond
	coarseTick = 2 * 2 * time.Second
)

func (t *threshold) trusts(in *disk.Info) bool {
	limit := t.far
	if in.Dev == t.dev {
		limit = t.near
	}
	return in.Mtime < limit && in.Ctime < limit
}

// startOf measures the start of a reading with the clock that stamps the files: the time
// of a file just made on the tree's file system. Where none can be made, the system's
// clock serves, less the coarsest tick.
func startOf(req *Request) threshold {
	root, err := req.Root.Self()
	now := time.Now().UnixNano() - int64(coarseTick)
	t := threshold{dev: root.Dev, near: now, far: now}
	if err != nil || req.Writer == nil {
		return t
	}
	dirs := probeDirs(req)
	for _, d := range dirs {
		if d != req.CacheDir {
			defer d.Close()
		}
	}
	for _, d := range dirs {
		if self, err := d.Self(); err != nil || self.Dev != root.Dev {
			continue
		}
		in, err := probe(d)
		if err != nil {
			continue
		}
		t.far = min(t.far, in.Mtime-int64(coarseTick))
		t.near = in.Mtime - int64(tickOf(in.Mtime))
		return t
	}
	return t
}

// tickOf is how much later a file may be stamped with the time of one just made.
func tickOf(mtime int64) time.Duration {
	if mtime%int64(coarseUnit) == 0 {
		return coarseTick
	}
	return fineTick
}

// probeDirs returns where decree may make a file: beside the cache, and its own
// directory in the tree.
func probeDirs(req *Request) (dirs []disk.Dir) {
	if req.CacheDir != nil {
		dirs = append(dirs, req.CacheDir)
	}
	own, err := req.Root.OpenDir(".decree")
	if err != nil {
		return dirs
	}
	if tmp, err := own.OpenDir("tmp"); err == nil {
		own.Close()
		own = tmp
	}
	return append(dirs, own)
}

func probe(d disk.Dir) (disk.Info, error) {
	name := "clock-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := d.Create(name, 0o600)
	if err != nil {
		return disk.Info{}, err
	}
	in, err := f.Stat()
	f.Close()
	if e := d.Remove(name); err == nil {
		err = e
	}
	return in, err
}
