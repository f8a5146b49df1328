package capture

import (
	"time"

	"decree/disk"
)

// A threshold is the time that a file's times must lie before to be trusted: the start
// of the reading less the tick of the file system. A change after the start then cannot
// hide behind times that stayed the same (the racy-git rule).
type threshold struct {
	dev       uint64
	near, far int64 // on the file system dev; on others, whose clock and tick are unknown
	keeps     bool  // dev was tried, and keeps change times
}

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
	now := time.Now().UnixNano() - int64(disk.CoarseTick)
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
		in, err := disk.Stamp(d)
		if err != nil {
			continue
		}
		t.far = min(t.far, in.Mtime-int64(disk.CoarseTick))
		t.near = in.Mtime - int64(disk.TickOf(in.Mtime))
		if keeps, err := disk.KeepsTimes(d); err == nil {
			t.keeps = keeps
		}
		return t
	}
	return t
}

// worthWaiting is the size of a file from which reading it again costs more than to wait.
const worthWaiting = 64 << 20

// startOf is the start of the reading of one file. That of a large one that was just written begins two ticks
// later, so that its facts vouch for it: else it would be read by each look at the tree until the next capture.
func (k *worker) startOf(in *disk.Info) *threshold {
	if in.Size < worthWaiting || k.req.Writer == nil || k.start.trusts(in) {
		return &k.start
	}
	time.Sleep(2 * disk.FineTick) // the clock that stamps files may be behind by part of a tick
	start := startOf(k.req)
	return &start
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
