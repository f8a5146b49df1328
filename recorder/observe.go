package recorder

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/dustin/go-humanize"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// captureOptions say how the tree is captured.
type captureOptions struct {
	phase          string
	frozen         []history.Rule // nil: today's rules
	afterRun       bool
	outputs        []disk.Info // as in capture.Request
	ended          int64       // when the command did
	full           bool
	skipUnreadable bool
	unlimited      bool        // a tree of any size
	anyFile        bool        // files of any size: the user said yes
	apart          []disk.Info // directories that are no part of the tree
}

// errTwoCaptures is a fault of this program: kept, the earlier capture would have the later one's blocks in the stat cache.
var errTwoCaptures = errors.New("the tree is captured while an earlier capture is neither kept nor closed")

// observe captures the tree into the store. The caller closes the result, and keeps it or closes it before
// anything captures again.
func (r *Recorder) observe(ctx context.Context, x *writeSession, l captureOptions) (*capture.Result, error) {
	if x.latest != nil && x.latest.Pending() {
		return nil, errTwoCaptures
	}
	req, err := r.request(l)
	if err != nil {
		return nil, err
	}
	// The cache is believed only about contents that the store still has: a pack
	// may have been lost since.
	req.Writer, req.CacheDir, req.CheckStore = x.w, r.project.Store, true
	res, err := capture.Capture(ctx, req)
	x.latest = res
	if err == nil {
		r.progress(Progress{Phase: l.phase, Done: int64(res.Files), Total: int64(res.Files), Bytes: res.Bytes})
	}
	return res, r.captureError(err)
}

// stagedManifest is the name in .decree/tmp under which manifest.json is written before
// its run directory is made.
func (r *Recorder) stagedManifest() string { return r.project.TmpName("manifest.json") }

// manifestFile is the manifest.json of a tree, as write writes it, for a run directory, and its hash.
// Where the newest record has the same one, that is linked to.
func (r *Recorder) manifestFile(id tree.Hash, write func(io.Writer) error) (f history.RunFile, sum tree.Hash, err error) {
	f = history.RunFile{Name: "manifest.json", Write: write}
	if f.LinkFrom, sum = r.recordOfSameTree(id); f.LinkFrom != "" {
		return f, sum, nil
	}
	f.Tmp = r.stagedManifest()
	sum, err = r.stageManifest(write)
	return f, sum, err
}

// stageManifest writes the manifest into .decree/tmp and returns its hash.
func (r *Recorder) stageManifest(write func(io.Writer) error) (sum tree.Hash, err error) {
	tmp, err := r.project.Decree.OpenDir("tmp")
	if err != nil {
		return sum, err
	}
	defer tmp.Close()
	if err := tmp.Remove(r.stagedManifest()); err != nil && !isMissing(err) {
		return sum, err
	}
	f, err := disk.CreateFile(tmp, r.stagedManifest(), project.PrivateFile)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	r.manifestStaged.Store(true)
	b, hash := bufio.NewWriterSize(f, 256<<10), sha256.New()
	if err := cmp.Or(write(io.MultiWriter(b, hash)), b.Flush()); err != nil {
		return sum, err
	}
	f.StartSync() // its directory will wait for it
	return tree.Hash(hash.Sum(nil)), nil
}

// dropStaged removes a manifest.json that came into no run directory, as of what was refused. Once
// the lock is given back nobody knows that it is decree's own.
func (r *Recorder) dropStaged() {
	if !r.manifestStaged.Swap(false) {
		return
	}
	if tmp, err := r.project.Decree.OpenDir("tmp"); err == nil {
		_ = tmp.Remove(r.stagedManifest()) // mostly it has been moved
		tmp.Close()
	}
}

// captureToCompare captures the tree for reading only: nothing is written anywhere.
func (r *Reader) captureToCompare(ctx context.Context) (*capture.Result, error) {
	req, err := r.request(captureOptions{phase: "comparing", afterRun: true, unlimited: true})
	if err != nil {
		return nil, err
	}
	res, err := r.captureNow(ctx, req)
	if err == nil {
		r.noteUnrecorded(res)
	}
	return res, err
}

// captureNow captures without writing anything; the caller closes the result.
func (r *Reader) captureNow(ctx context.Context, req capture.Request) (*capture.Result, error) {
	req.CacheDir = r.project.Store
	res, err := capture.Capture(ctx, req)
	return res, r.captureError(err)
}

func (r *Reader) request(l captureOptions) (capture.Request, error) {
	exclude, err := r.project.Stores(r.opt.Where)
	if err != nil {
		return capture.Request{}, err
	}
	req := capture.Request{
		Root: r.project.Dir, Store: r.store, Exclude: append(exclude, l.apart...),
		Full: l.full, SkipUnreadable: l.skipUnreadable, AfterRun: l.afterRun, Outputs: l.outputs, Ended: l.ended, RuleData: r.object,
		Progress: func(files int, bytes int64) {
			r.progress(Progress{Phase: l.phase, Done: int64(files), Bytes: bytes})
		},
	}
	if !l.unlimited {
		req.Limits = capture.Limits{MaxFiles: int(r.project.Config.MaxFiles), MaxBytes: r.project.Config.MaxBytes}
	}
	if !l.anyFile {
		req.MaxFile = r.project.Config.MaxFile
	}
	if l.frozen == nil {
		outer, err := r.project.GitExcludes(r.opt.Where)
		if err != nil {
			return capture.Request{}, err
		}
		for _, f := range outer {
			req.Outer = append(req.Outer, capture.OuterRules(f))
		}
	} else {
		req.Frozen = make([]capture.RuleFile, 0, len(l.frozen))
		for _, f := range l.frozen {
			req.Frozen = append(req.Frozen, capture.RuleFile{Path: f.Path, SHA256: f.SHA256})
		}
	}
	return req, nil
}

// object reads a small object whole.
func (r *Reader) object(h tree.Hash) ([]byte, error) {
	rc, _, err := r.store.Open(h)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

// captureError gives a capture's refusals their kind and next step.
func (r *Reader) captureError(err error) error {
	var limit *capture.LimitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limit):
		return &project.Error{Kind: project.Refused, Asks: true, Msg: r.project.Root, Err: err,
			Advice: "ignore what need not be recorded in .decreeignore ('decree files' lists what is), or say --yes"}
	case errors.Is(err, fs.ErrPermission):
		return &project.Error{Kind: project.Failed, Err: err, Advice: project.HintOf(err)}
	}
	return err
}

// rules are the ignore files that a capture has read, to be frozen.
func rules(res *capture.Result) []history.Rule {
	out := make([]history.Rule, 0, len(res.Rules))
	for _, f := range res.Rules {
		out = append(out, history.Rule{Path: f.Path, SHA256: f.SHA256})
	}
	return out
}

// introduce says with a project's first record what it is the project of.
func (r *Recorder) introduce(res *capture.Result) error {
	first := true
	err := r.history.Newest(func(*history.Record) bool { first = false; return false })
	if err != nil || !first {
		return err
	}
	around := ""
	if up := r.project.Around(r.opt.Where); up != "" {
		around = "; it lies inside the project at " + tree.Quote(up)
	}
	files := "files"
	if res.Files == 1 {
		files = "file"
	}
	r.note("new project at %s: %s %s, %s; store %s%s", tree.Quote(r.project.Root), humanize.Comma(int64(res.Files)), files,
		humanize.IBytes(uint64(res.Bytes)), tree.Quote(r.project.StorePath), around)
	if at := disk.Unflushed(); at != "" {
		r.note("the file system of %s cannot flush directories: what was renamed there just before a power failure may be as it was before", tree.Quote(at))
	}
	return nil
}

// noteCapture names what a capture found that people should know.
func (r *Recorder) noteCapture(res *capture.Result) {
	if n := len(res.Special); n > 0 {
		r.note("not recorded, neither file, directory nor link: %s", some(res.Special))
	}
	for _, l := range res.Large {
		r.note("%s is %d MiB and is stored; ignore it in .decreeignore if it need not be", tree.Quote(l.Path), l.Size>>20)
	}
	r.noteUnrecorded(res)
}

// noteUnrecorded names what a capture has left out of which it cannot be known whether it changed.
func (r *Reader) noteUnrecorded(res *capture.Result) {
	if unread := unreadable(res); len(unread) > 0 {
		r.note("not readable, and not recorded: %s", some(unread))
	}
	if len(res.TooLarge) > 0 {
		r.note("larger than capture.max_file, and not recorded: %s", some(largePaths(res)))
	}
}

// unreadable are the paths that could not be read, whatever their size.
func unreadable(res *capture.Result) []tree.Path {
	large := largePaths(res)
	return slices.DeleteFunc(slices.Clone(res.Unrecorded), func(p tree.Path) bool { return slices.Contains(large, p) })
}

func largePaths(res *capture.Result) (paths []tree.Path) {
	for _, l := range res.TooLarge {
		paths = append(paths, l.Path)
	}
	return paths
}

// some lists the first paths of many.
func some[T ~string](paths []T) string {
	const most = 5
	out := ""
	for i, p := range paths {
		if i == most {
			return out + fmt.Sprintf(" and %d more", len(paths)-most)
		}
		if i > 0 {
			out += ", "
		}
		out += tree.Quote(p)
	}
	return out
}

// since is the difference from the tree with id from to the captured one.
func (r *Reader) since(from tree.Hash, res *capture.Result) ([]tree.Change, error) {
	return r.history.CompareIn(res.Objects(r.history.Directories()), from, res.Tree)
}

// each is since of changes that may be too many to be held.
func (r *Reader) each(from tree.Hash, res *capture.Result) (changeSeq, error) {
	return r.history.ChangesIn(res.Objects(r.history.Directories()), from, res.Tree)
}
