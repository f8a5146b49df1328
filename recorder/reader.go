package recorder

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// ReaderOptions open a Reader. Disk, Where and Clock are needed, the rest may be zero.
type ReaderOptions struct {
	Disk  disk.Disk
	Where project.Where
	// Bare is for what looks at the tree alone: without a project it does with the root.
	Bare     bool
	Clock    func() time.Time
	Location *time.Location
	// Events takes what happens meanwhile; several goroutines may call it at once.
	Events func(Event)
	// Note takes one-line notes for people: a moved project, special files. Several
	// goroutines of a Reader may call it at once.
	Note func(string)
}

func (o ReaderOptions) complete() ReaderOptions {
	if o.Location == nil {
		o.Location = time.Local
	}
	o.Where.Layered = func(root string) string { return layer.Inside(o.Disk, root) }
	o.Where.Died = runDied
	clock := o.Clock
	o.Clock = func() time.Time { return history.Recordable(clock()) }
	return o
}

// runDied says whether a run in place died and is not recorded.
func runDied(p *project.Project) (bool, error) {
	r := &Reader{project: p, history: history.Open(p, history.Options{})}
	open, _, err := r.unfinished(nil)
	return slices.ContainsFunc(open, func(o *history.Opened) bool {
		_, isolated := o.Extra[extraLayer]
		return o.Record.Reason == history.Run && !isolated
	}), err
}

// Reader looks at one project: its records, the states of its tree, what changed
// between them, who brought a line. It takes no lock and writes nothing but the
// index of the records, which is a cache.
//
// A Reader is safe for concurrent use. It opens the project and its store once; each
// call sees what any process had recorded when the call began. A call that goes on
// while records are removed may say that one is gone. The config is what it was when
// the Reader was opened.
type Reader struct {
	opt     ReaderOptions
	project *project.Project
	history *history.History
	store   *store.Store
	tree    *worktree.Tree

	machine machine

	mu     sync.Mutex
	barred string // what was told to be left out of the sizes
}

// OpenReader opens the project that the options name. A project that does not exist
// is an error with project.ErrNoProject in its chain.
func OpenReader(opt ReaderOptions) (*Reader, error) {
	opt = opt.complete()
	p, err := project.Open(opt.Disk, opt.Where, false)
	if opt.Bare && errors.Is(err, project.ErrNoProject) {
		p, err = rootAlone(opt)
	}
	if err != nil {
		return nil, err
	}
	p.FollowDecree()
	r, err := newReader(p, opt)
	if err == nil && p.Store != nil {
		err = r.tellStandIns()
	}
	if err != nil {
		return nil, err
	}
	if p.Store != nil && p.Outdated() {
		_ = r.Close()
		return convertedReader(opt)
	}
	return r, err
}

// tellStandIns names what is in the place of the store's own files.
func (r *Reader) tellStandIns() error {
	found, err := r.project.StandIns()
	for _, f := range found {
		r.note("%s; %s", f, standInAdvice(f))
	}
	return err
}

func standInAdvice(f project.StandIn) string {
	if f.Lost != "" {
		return "put back what was there, if there is a copy of it, or see 'decree doctor'"
	}
	return "the next command that writes moves it away"
}

// rootAlone is a project without a store.
func rootAlone(opt ReaderOptions) (*project.Project, error) {
	root, err := project.FindRoot(opt.Disk, opt.Where)
	if err != nil {
		return nil, err
	}
	dir, err := opt.Disk.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &project.Project{Site: project.Site{Disk: opt.Disk, Root: root, Dir: dir, Config: project.DefaultConfig()}}, nil
}

// newReader takes p, and closes it if it fails.
func newReader(p *project.Project, opt ReaderOptions) (*Reader, error) {
	r := &Reader{opt: opt, project: p, machine: thisMachine{}}
	if p.Store == nil {
		return r, nil
	}
	for _, n := range p.Notes {
		r.note("%s", n)
	}
	p.Tell = func(n string) { r.note("%s", n) }
	var err error
	if r.store, err = store.Open(p.Store, store.Options{}); err != nil {
		p.Close()
		return nil, err
	}
	r.history = history.Open(p, history.Options{Objects: r.store, Now: opt.Clock, Note: func(text string) { r.note("%s", text) }})
	r.tree = worktree.Open(p.Dir, worktree.Options{Store: r.store})
	return r, nil
}

// Close releases the handles. No call may be under way.
func (r *Reader) Close() error {
	var err error
	if r.store != nil {
		err = r.store.Close()
	}
	r.project.Close()
	return err
}

// Project says where the project is.
func (r *Reader) Project() *project.Site { return &r.project.Site }

// HasProject says whether there is a project, and not the root alone.
func (r *Reader) HasProject() bool { return r.history != nil }

// Now is the clock's time, in the zone in which people are shown times.
func (r *Reader) Now() time.Time { return r.opt.Clock().In(r.opt.Location) }

// History is the project's records as they are now.
func (r *Reader) History() history.Reader {
	r.catchUp()
	return r.history.Reader()
}

// catchUp makes what follows see the records and contents of other processes. Where the
// store cannot be looked at, who asks it for something is told so.
func (r *Reader) catchUp() {
	if r.history != nil {
		r.history.CatchUp()
		_ = r.store.CatchUp()
	}
}

// OpenContent returns the bytes of a stored content, checked against the hash at their
// end.
func (r *Reader) OpenContent(sum tree.Hash) (io.ReadCloser, error) {
	return stored{r.store, sum}.Open()
}

func (r *Reader) note(format string, args ...any) {
	if r.opt.Note != nil {
		r.opt.Note(fmt.Sprintf(format, args...))
	}
}

// IsThere says whether the tree has a path now, without reading what it is.
func (r *Reader) IsThere(at tree.Path) bool {
	_, err := disk.StatPath(r.project.Dir, string(at))
	return err == nil
}
