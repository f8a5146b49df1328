package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"decree/disk"
	"decree/tree"
)

// Limits bound a tree; zero is no bound.
type Limits struct {
	MaxFiles int
	MaxBytes int64
}

// Large is a file that is named for its size.
type Large struct {
	Path tree.Path
	Size int64
}

// Unread is a file that is larger than Request.MaxFile and was not read.
type Unread struct {
	Large
	Known bool // the tree had an older content of it
}

// Part is a directory or a file of the tree, with what it holds in all.
type Part struct {
	Path  tree.Path
	Files int
	Bytes int64
}

// LimitError is returned when a first capture would take more than Limits, and for
// files that are larger than Request.MaxFile.
type LimitError struct {
	Files int // zero: only TooLarge is too much
	Bytes int64
	Limits
	Biggest  []Part // what holds the most, largest first
	TooLarge []Unread
	MaxFile  int64
}

func (e *LimitError) Error() string {
	var parts []string
	if e.Files > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s, which is more than a first record takes without being asked (%s files, %s)",
			counted(e.Files), bytesText(e.Bytes), humanize.Comma(int64(e.MaxFiles)), bytesText(e.MaxBytes)))
	}
	if len(e.TooLarge) > 0 {
		parts = append(parts, fmt.Sprintf("%s larger than %s (capture.max_file), not recorded without being asked",
			counted(len(e.TooLarge)), bytesText(e.MaxFile)))
	}
	return strings.Join(parts, "; ")
}

// Details are what is large, each as the columns of a line.
func (e *LimitError) Details() (lines [][]string) {
	for _, p := range e.Biggest {
		if slices.ContainsFunc(e.TooLarge, func(l Unread) bool { return l.Path == p.Path }) {
			continue
		}
		lines = append(lines, []string{tree.Quote(p.Path), bytesText(p.Bytes), counted(p.Files)})
	}
	for _, l := range e.TooLarge {
		lines = append(lines, []string{tree.Quote(l.Path), bytesText(l.Size)})
	}
	return lines
}

func counted(files int) string {
	if files == 1 {
		return "1 file"
	}
	return humanize.Comma(int64(files)) + " files"
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// errTooLarge says that a file is larger than Request.MaxFile.
var errTooLarge = errors.New("larger than capture.max_file")

// checkLimits walks without reading files.
func checkLimits(ctx context.Context, req Request) error {
	limits, leaves := req.Limits, req.leavesLarge()
	req.Writer, req.CacheDir, req.Progress = nil, nil, nil
	c := memoryCache()
	w, err := newWalk(&req, c)
	if err != nil {
		return err
	}
	w.facts = factsStat
	if err := w.run(ctx); err != nil {
		return err
	}
	e := &LimitError{Limits: limits, MaxFile: req.MaxFile}
	if !leaves {
		e.TooLarge = w.unreadFiles()
	}
	files, bytes := int(w.rootSum.files), w.rootSum.bytes
	if limits.MaxFiles > 0 && files > limits.MaxFiles || limits.MaxBytes > 0 && bytes > limits.MaxBytes {
		e.Files, e.Bytes = files, bytes
		if e.Biggest, err = c.biggest(w.root, ""); err != nil {
			return err
		}
	}
	if e.Files == 0 && len(e.TooLarge) == 0 {
		return nil
	}
	return e
}

// leavesLarge says that a file above MaxFile is listed and left, not refused.
func (r *Request) leavesLarge() bool { return r.AfterRun || r.SkipUnreadable || r.Writer == nil }

// tooLarge says whether a file is larger than is recorded unasked: one that the cache
// has with such a size was asked for.
func (k *worker) tooLarge(n *node, i int, in *disk.Info) bool {
	if k.req.MaxFile <= 0 || in.Size <= k.req.MaxFile {
		return false
	}
	j := n.oldRecord(i)
	return j < 0 || n.old.kind(j) != kFile || n.old.size(j) <= k.req.MaxFile
}

// leaveLarge lists a file that is too large.
func (k *worker) leaveLarge(n *node, i int, size int64) {
	j := n.oldRecord(i)
	known := j >= 0 && n.old.kind(j).tracked()
	k.unread = append(k.unread, Unread{Large{join(n.path, n.present().name(i)), size}, known})
}

func (w *walk) unreadFiles() []Unread {
	all := gather(w, func(k *worker) []Unread { return k.unread })
	slices.SortFunc(all, func(a, b Unread) int { return a.Path.Compare(b.Path) })
	return all
}

// mostParts is how many parts of a tree are named.
const mostParts = 5

// biggest returns the parts of the directory at r that hold the most bytes. Where one
// directory holds nearly all, its own parts tell more.
func (c *cache) biggest(r ref, path tree.Path) ([]Part, error) {
	for {
		b, err := c.block(r)
		if err != nil || b == nil {
			return nil, err
		}
		parts, most := make([]Part, 0, b.count()), -1
		for i := range b.count() {
			p := Part{Path: join(path, b.name(i)), Files: 1, Bytes: b.size(i)}
			switch kd := b.kind(i); {
			case !kd.tracked():
				continue
			case kd == kDir:
				below, err := c.block(b.child(i))
				if err != nil {
					return nil, err
				}
				if below == nil {
					continue
				}
				p.Files, p.Bytes = int(below.sums().files), below.sums().bytes
				p.Path += "/"
				if all := b.sums(); p.Bytes*10 >= all.bytes*9 && p.Files*10 >= int(all.files)*9 {
					most = i
				}
			}
			parts = append(parts, p)
		}
		if most >= 0 {
			r, path = b.child(most), join(path, b.name(most))
			continue
		}
		slices.SortStableFunc(parts, func(a, b Part) int { return compareParts(b, a) })
		return parts[:min(len(parts), mostParts)], nil
	}
}

func compareParts(a, b Part) int {
	if a.Bytes != b.Bytes {
		if a.Bytes < b.Bytes {
			return -1
		}
		return 1
	}
	return a.Files - b.Files
}
