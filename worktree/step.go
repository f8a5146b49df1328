package worktree

import (
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"

	"decree/disk"
	"decree/tree"
)

// Step takes one path from a state to another; nil means that nothing is there.
type Step struct {
	Path     tree.Path
	From, To *tree.Entry
	// Content gives the bytes of a regular To that differ from From's; where it
	// is nil they come from the store. It is called before anything is moved,
	// perhaps at the same time as other steps' Contents, and once more if a mount
	// inside the tree makes all be staged anew: it gives the same bytes each time.
	Content func() (io.ReadCloser, error)
	// MayStay marks a directory's removal that is left out, and named in
	// Outcome.Stayed, when the directory is not empty or a mount point.
	MayStay bool
}

// Plan is one transaction.
type Plan struct {
	// ID names it: letters, digits, '-' and '.', not beginning with '.'; at most
	// 64 bytes. It must be new; a record's id serves.
	ID    string
	Steps []Step // in any order; those whose From is their To are dropped
	// Packed, if not nil, are the steps in the place of Steps.
	Packed *Packed
	// Open are files that somebody has open for writing, and that go all the same, since whoever asked for it knows that. If
	// there are others when all is moved, all goes back.
	Open map[tree.Path]bool
	// Meta is kept in the journal for whoever recovers the transaction.
	Meta json.RawMessage
	// Commit may be nil. It is called when the tree is new and proven, while the
	// journal is still there and says so: if its error, or death, comes between,
	// Recover finds the transaction finished and calls Journal.Commit.
	Commit func(*Outcome) error
}

// Outcome says what a transaction did. All lists are in byte order of paths.
type Outcome struct {
	Stayed []tree.Path // directories that were to be removed and could not: not empty, or mount points
	Notes  []string    // what could not be kept: an owner, an attribute, a shared hard link
	Left   []Left      // Recover only: paths that are neither old nor new, left alone
}

// kind is what a step does.
type kind uint8

const (
	create    kind = iota // nothing -> file or link
	replace               // file or link -> file or link
	remove                // file or link -> nothing
	mkdir                 // nothing -> directory
	rmdir                 // directory -> nothing
	dirToFile             // directory -> file or link
	fileToDir             // file or link -> directory
	chmodFile             // the same file, another mode
	chmodDir              // the same directory, another mode; From == To: its mode is loosened meanwhile
)

func kindOf(from, to *tree.Entry) kind {
	switch {
	case from == nil && to.IsDir():
		return mkdir
	case from == nil:
		return create
	case to == nil && from.IsDir():
		return rmdir
	case to == nil:
		return remove
	case from.IsDir() && to.IsDir():
		return chmodDir
	case from.IsDir():
		return dirToFile
	case to.IsDir():
		return fileToDir
	case from.Type == tree.Regular && to.Type == tree.Regular && from.SHA256 == to.SHA256 && from.Size == to.Size &&
		!losesList(from, to) && (from.Owner == to.Owner || !from.Owner.Known || !to.Owner.Known):
		return chmodFile
	}
	return replace
}

// losesList says whether a file with an access control list is to be one without: the list
// came since then, and what it allows was not allowed. The file is replaced by another one,
// so that it has its list again when it is taken back.
func losesList(from, to *tree.Entry) bool { return hasList(from) && !hasList(to) }

// unlisted says whether e is known to have had no access control list, since its group may more than others.
func unlisted(e *tree.Entry) bool { return e.GroupOnly() != 0 && !hasList(e) }

// hasList says whether an access control list is known to say what the bits of a file's group mean.
func hasList(e *tree.Entry) bool { return e != nil && e.Owner.Known && e.Owner.GID == disk.NoGroup }

// step is a Step on its way.
type step struct {
	Step
	*facts
}

// facts is what a transaction knows of a step. What few of them have is behind a pointer.
type facts struct {
	was *disk.Info // what was checked; nil where nothing was, and in a recovery
	out *disk.Info // what came out of the tree, as it was then
	// beside is the directory of its slots; nil: they are in the staging directory.
	beside *tree.Path
	// left says why the path is not taken back; foreign, that nothing of ours
	// is there: another changed it before we did.
	left string

	n    int32 // its slots' number
	kind kind
	// under marks what goes away because a file comes in the place of a directory above.
	under bool
	// early marks what goes before another spelling of its path comes.
	early   bool
	seen    seen
	made    uint64 // the inode of its directory, where this process has made that
	torn    bool   // a power loss had torn its old content, which was removed: the store has it
	stayed  bool   // the directory's removal was left out
	foreign bool
}

// hasNew says whether the step's new content comes from a slot.
func (s *facts) hasNew() bool { return s.kind == create || s.kind == replace || s.kind == dirToFile }

// hasOld says whether the step takes a file or link out of the tree.
func (s *facts) hasOld() bool { return s.kind == remove || s.kind == replace || s.kind == fileToDir }

// mayStay says whether the directory's removal can be left out: not where a file
// comes in the place of one above it.
func (s *step) mayStay() bool { return s.MayStay && !s.under }

// ofDir says whether a directory is there before the step or after it.
func (s *facts) ofDir() bool {
	return s.kind == mkdir || s.kind == rmdir || s.kind == dirToFile || s.kind == fileToDir || s.kind == chmodDir
}

// modeOnly says whether the step changes no directory's entries.
func (s *facts) modeOnly() bool { return s.kind == chmodFile || s.kind == chmodDir }

// opened says whether the step stands only for a directory whose mode is
// loosened while its entries are changed.
func (s *step) opened() bool { return s.kind == chmodDir && s.From.Mode == s.To.Mode }

// checkID refuses a transaction's id that is no plain name.
func checkID(id string) error {
	ok := id != "" && len(id) <= 64 && id[0] != '.'
	for i := range len(id) {
		c := id[i]
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.')
	}
	if !ok {
		return badStep(tree.Path(id), "not a transaction's id")
	}
	return nil
}

// Packed are steps in the form in which a transaction has them: of very many they take a
// fraction of the room. A Plan with them may be moved again.
type Packed struct{ steps *stepList }

// Pack returns the steps, packed, or the error that Move would give for them.
func Pack(steps []Step) (*Packed, error) {
	list, err := prepare(steps)
	return &Packed{list}, err
}

// Len is how many steps there are.
func (p *Packed) Len() int { return p.steps.n }

// Take gives the steps in byte order of their paths, without their Contents, and lets go of
// them: Packed is of no use any more.
func (p *Packed) Take() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		p.steps.content = nil
		for b := range p.steps.blocks {
			r := p.steps.read(b)
			for range min(blockSteps, p.steps.n-r.n) {
				if r.next(); !yield(r.step().Step) {
					return
				}
			}
			p.steps.blocks[b] = nil
		}
	}
}

// Len is how many steps the plan has.
func (p *Plan) Len() int {
	if p.Packed != nil {
		return p.Packed.Len()
	}
	return len(p.Steps)
}

// steps are the plan's, of which nothing is known yet.
func (p *Plan) steps() (*stepList, error) {
	if p.Packed == nil {
		return prepare(p.Steps)
	}
	list := p.Packed.steps
	for s := range list.all() {
		*s.facts = facts{n: s.n, kind: s.kind}
	}
	return list, checkTree(list)
}

// prepare sorts a plan's steps and refuses those that no tree can take. Those that
// change nothing are dropped.
func prepare(in []Step) (*stepList, error) {
	byPath := func(a, b Step) int { return a.Path.Compare(b.Path) }
	if !slices.IsSortedFunc(in, byPath) {
		in = slices.Clone(in)
		slices.SortFunc(in, byPath)
	}
	out := &stepList{}
	for _, s := range in {
		if err := checkStep(&s, false); err != nil {
			return nil, err
		}
		if !tree.SameEntry(s.From, s.To) {
			out.add(&s)
		}
	}
	return out, checkTree(out)
}

func checkStep(s *Step, journal bool) error {
	if err := s.Path.Check(); err != nil {
		return err
	}
	for _, e := range [...]**tree.Entry{&s.From, &s.To} {
		fixed, reason := plainEntry(*e)
		if reason != "" {
			return badStep(s.Path, reason)
		}
		*e = fixed
	}
	switch {
	case s.From == nil && s.To == nil && !journal:
		return nil // dropped below: absent stays absent
	case s.From == nil && s.To == nil:
		return badStep(s.Path, "neither old nor new state")
	case s.MayStay && (!s.From.IsDir() || s.To != nil):
		return badStep(s.Path, "may stay, but is not the removal of a directory")
	}
	return nil
}

// plainEntry returns e with nothing in it that its type does not have; mostly e itself.
func plainEntry(e *tree.Entry) (*tree.Entry, string) {
	if e == nil {
		return nil, ""
	}
	plain, reason := withoutOthers(e)
	if reason != "" {
		return nil, reason
	}
	if plain != *e {
		e = &tree.Entry{}
		*e = plain
	}
	return e, ""
}

func withoutOthers(e *tree.Entry) (plain tree.Entry, reason string) {
	if e.Mode&^0o7777 != 0 || e.Size < 0 {
		return plain, "impossible mode or size"
	}
	switch e.Type {
	case tree.Regular:
		plain = tree.Entry{SHA256: e.SHA256, Size: e.Size, Mode: e.Mode}
		if plain.MayOwn() {
			plain.Owner = e.Owner
		}
		return plain, ""
	case tree.Dir:
		plain = tree.Entry{Type: tree.Dir, Mode: e.Mode}
		if plain.MayOwn() {
			plain.Owner = e.Owner
		}
		return plain, ""
	case tree.Symlink:
		link := linkEntry(e.Target)
		if e.Target == "" || strings.IndexByte(e.Target, 0) >= 0 || link.SHA256 != e.SHA256 || link.Size != e.Size {
			return plain, "symbolic link whose target does not match its hash"
		}
		return *link, ""
	}
	return plain, "unknown type"
}

// checkTree refuses sorted steps that name a path twice, or have something at a
// path while what is above it is no directory.
func checkTree(steps *stepList) error {
	var chain []*step // those whose path is a byte prefix of the present one
	for s := range steps.all() {
		for len(chain) > 0 && !strings.HasPrefix(string(s.Path), string(chain[len(chain)-1].Path)) {
			chain = chain[:len(chain)-1]
		}
		if len(chain) > 0 && chain[len(chain)-1].Path == s.Path {
			return badStep(s.Path, "named twice")
		}
		for _, above := range slices.Backward(chain) {
			if s.Path[len(above.Path)] != '/' {
				continue
			}
			if s.From != nil && !above.From.IsDir() || s.To != nil && !above.To.IsDir() {
				return badStep(s.Path, tree.Quote(above.Path)+" above it is not a directory")
			}
			s.under = above.under || above.kind == dirToFile
			break // what stands above that one was looked at with it
		}
		chain = append(chain, s)
	}
	return nil
}
