package capture

import (
	"context"
	"runtime"
	"slices"

	"sync"
	"sync/atomic"
	"time"

	"decree/disk"
	"decree/tree"
)

// factsWanted says how much of each file a walk finds out.
type factsWanted uint8

const (
	factsAll  factsWanted = iota // hashes
	factsStat                    // what stat says
	factsNone                    // names and kinds
)

// walk is one pass over a tree by several workers. What they have to do stands on one
// stack, newest first: a directory's files before its subdirectories, those before their
// siblings. So what waits is bounded by one path down the tree and a worker's directory.
type walk struct {
	req    *Request
	cache  *cache
	facts  factsWanted
	frozen map[tree.Path]pair // nil: rules come from the tree
	outer  outer
	start  threshold

	mu     sync.Mutex
	wake   *sync.Cond
	stack  []job
	busy   int
	err    error
	errAt  tree.Path
	ended  bool
	failed atomic.Bool

	open  atomic.Int32 // handles held by nodes
	files atomic.Int64
	bytes atomic.Int64

	workers    []*worker
	root       ref
	rootSum    sums
	rootObject Hash
	made       *objects // of a walk without a Writer

	lostGit, lostOther []tree.Path // see Result.Lost
	moreLost           int
}

// job is a piece of work on a node: its visit, a range of its records to be looked at, or
// files to be read.
type job struct {
	node   *node
	lo, hi int     // a range, if hi > 0
	read   []int32 // files to read, if not nil
}

// worker holds what one goroutine needs again and again, and what it found.
type worker struct {
	*walk
	list      listing
	path      []byte
	reads     []int32
	jobs      []job
	buf       []byte
	directory *tree.Writer

	devices map[uint64]disk.FileSystem

	ruleOnly []tree.Path
	rules    []RuleFile
	found    []tree.Path // ignore files seen while the rules are frozen
	special  []tree.Path
	missed   []tree.Path
	outputs  []tree.Path
	unread   []Unread
	large    []Large
	late     []tree.Path

	rewritten    []tree.Path
	repositories []tree.Path // see Result.NewGit
}

func newWalk(req *Request, c *cache) (*walk, error) {
	w := &walk{req: req, cache: c, made: &objects{}}
	w.wake = sync.NewCond(&w.mu)
	if req.Frozen != nil {
		rules, err := frozenRules(req)
		if err != nil {
			return nil, err
		}
		w.frozen = rules
	}
	return w, w.readOuter()
}

// workerCount is large enough for stats and reads to wait for the disk side by side, where
// it is not in memory what they want; where it is, more workers than processors cost
// nothing but a block each in the store.
func (w *walk) workerCount() int {
	if w.req.Workers > 0 {
		return w.req.Workers
	}
	return max(8, 2*runtime.GOMAXPROCS(0))
}

// run walks the tree and waits for the end.
func (w *walk) run(ctx context.Context) error {
	if w.req.start != nil {
		w.start = *w.req.start
	} else {
		w.start = startOf(w.req)
	}
	root := &node{was: w.cache.root, object: w.cache.tree}
	root.pending.Store(1)
	w.stack = append(w.stack, job{node: root})
	stop := context.AfterFunc(ctx, func() { w.fail("", context.Cause(ctx)) })
	defer stop()
	reporting := w.report()
	var group sync.WaitGroup
	for range w.workerCount() {
		k := &worker{walk: w, devices: map[uint64]disk.FileSystem{}}
		w.workers = append(w.workers, k)
		group.Go(k.work)
	}
	group.Wait()
	reporting()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && ctx.Err() != nil {
		return context.Cause(ctx) // it came too late to be noticed
	}
	if w.err != nil {
		w.abandon()
	}
	return w.err
}

// abandon closes what a failed walk left open. The stack holds every node that waits,
// and their ancestors all others.
func (w *walk) abandon() {
	for _, j := range w.stack {
		for n := j.node; n.parent != nil; n = n.parent { // the root's handle is the caller's
			w.closeNode(n)
		}
	}
}

func (w *walk) closeNode(n *node) {
	n.hmu.Lock()
	defer n.hmu.Unlock()
	if n.h != nil {
		n.h.Close()
		n.h = nil
	}
}

// report calls Progress until the returned function is called.
func (w *walk) report() func() {
	if w.req.Progress == nil {
		return func() {}
	}
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.req.Progress(int(w.files.Load()), w.bytes.Load())
			case <-quit:
				w.req.Progress(int(w.files.Load()), w.bytes.Load())
				return
			}
		}
	})
	return func() { close(quit); group.Wait() }
}

// fail ends the walk. Of several errors that about the first path is reported, so that
// the message hangs less on the scheduling.
func (w *walk) fail(path tree.Path, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended && w.err == nil {
		return
	}
	if w.err == nil || err == errDamaged || w.err != errDamaged && path < w.errAt {
		w.err, w.errAt = err, path
	}
	w.ended = true
	w.failed.Store(true)
	w.wake.Broadcast()
}

func (w *walk) push(jobs []job) {
	if len(jobs) == 0 {
		return
	}
	w.mu.Lock()
	w.stack = append(w.stack, jobs...)
	w.mu.Unlock()
	if len(jobs) == 1 {
		w.wake.Signal()
	} else {
		w.wake.Broadcast()
	}
}

// next takes a job, waiting for one while others are busy.
func (w *walk) next(finished bool) (job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if finished {
		w.busy--
	}
	for {
		if w.ended {
			return job{}, false
		}
		if n := len(w.stack); n > 0 {
			j := w.stack[n-1]
			w.stack[n-1] = job{}
			w.stack = w.stack[:n-1]
			w.busy++
			return j, true
		}
		if w.busy == 0 {
			w.ended = true
			w.wake.Broadcast()
			return job{}, false
		}
		w.wake.Wait()
	}
}

func (k *worker) work() {
	j, ok := k.next(false)
	for ok {
		switch {
		case j.read != nil:
			k.readFiles(j.node, j.read)
		case j.hi > 0:
			k.look(j.node, j.lo, j.hi)
		default:
			k.visit(j.node)
		}
		j, ok = k.next(true)
	}
}

// fullPath returns the path of a name in n, in a buffer of the worker's.
func (k *worker) fullPath(n *node, name string) []byte {
	k.path = append(k.path[:0], n.path...)
	if len(n.path) > 0 {
		k.path = append(k.path, '/')
	}
	k.path = append(k.path, name...)
	return k.path
}

func gather[T any](w *walk, of func(*worker) []T) (all []T) {
	for _, k := range w.workers {
		all = append(all, of(k)...)
	}
	return all
}

// result puts together what the workers found.
func (w *walk) result() (*Result, error) {
	r := &Result{
		Files: int(w.rootSum.files), Dirs: int(w.rootSum.dirs), Bytes: w.rootSum.bytes,
		Read: w.bytes.Load(), Base: w.cache.tree,
		RuleOnly:   gather(w, func(k *worker) []tree.Path { return k.ruleOnly }),
		Special:    gather(w, func(k *worker) []tree.Path { return k.special }),
		Unrecorded: gather(w, func(k *worker) []tree.Path { return k.missed }),
		Outputs:    gather(w, func(k *worker) []tree.Path { return k.outputs }),
		TooLarge:   w.unreadFiles(),
		Large:      gather(w, func(k *worker) []Large { return k.large }),
		Late:       gather(w, func(k *worker) []tree.Path { return k.late }),
		Rewritten:  gather(w, func(k *worker) []tree.Path { return k.rewritten }),
		Rules:      append(gather(w, func(k *worker) []RuleFile { return k.rules }), w.outer.files...),
		MoreLost:   w.moreLost,
		NewGit:     gather(w, func(k *worker) []tree.Path { return k.repositories }),
		Tree:       w.rootObject, cache: w.cache, root: w.root, owner: w.req.Writer != nil, objects: w.made,
	}
	if w.req.Frozen != nil {
		r.Rules = slices.Clone(w.req.Frozen)
	}
	if r.Rules == nil {
		r.Rules = []RuleFile{} // nil would not freeze: see Request.Frozen
	}
	sortRules(r.Rules)
	slices.Sort(r.RuleOnly)
	r.RuleOnly = slices.Compact(r.RuleOnly)
	slices.Sort(r.Special)
	slices.Sort(r.Unrecorded)
	slices.Sort(r.Late)
	slices.Sort(r.Rewritten)
	slices.Sort(w.lostGit)
	slices.Sort(w.lostOther)
	r.Lost = slices.Concat(w.lostGit, w.lostOther)
	slices.Sort(r.NewGit)
	slices.SortFunc(r.Large, func(a, b Large) int { return a.Path.Compare(b.Path) })
	if err := w.cache.flush(); err != nil {
		return nil, err
	}
	if r.Base.IsZero() {
		r.RuleOnly = nil // an earlier version's cache has no tree to start from
	}
	if w.frozen == nil {
		return r, nil
	}
	var err error
	r.Hidden, err = w.hidden(r)
	return r, err
}

// ruleset returns the rules in force in n: frozen ones, or those of its own files, which
// are there if a block's flags say so.
func (k *worker) ruleset(n *node, h disk.Dir, flags uint32) error {
	rules, print := k.outer.rules, k.outer.print
	if n.parent != nil {
		rules, print = n.parent.rules, n.parent.print
	}
	var p pair
	if k.frozen != nil {
		p = k.frozen[n.path]
		for _, f := range ruleNames {
			if flags&f.flag != 0 {
				k.found = append(k.found, n.path.Join(f.name))
			}
		}
	} else if flags&(flagGit|flagDec) != 0 {
		var err error
		if p, err = k.treeRules(n, h, flags); err != nil {
			return err
		}
	}
	n.rules, n.print = p.enter(rules, print, n.path)
	return nil
}

// treeRules reads the ignore files of n and stores them.
func (k *worker) treeRules(n *node, h disk.Dir, flags uint32) (p pair, err error) {
	for _, f := range ruleNames {
		if flags&f.flag == 0 {
			continue
		}
		path := string(n.path.Join(f.name))
		file, data, err := readRules(h, path, f.name)
		if err != nil {
			return p, err
		}
		if file == nil {
			continue
		}
		if k.req.Writer != nil {
			if _, err := k.req.Writer.PutBytes(data); err != nil {
				return p, err
			}
		}
		k.rules = append(k.rules, RuleFile{path, file.hash})
		p.set(f.name, file)
	}
	return p, nil
}
