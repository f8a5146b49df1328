package project

import (
	"fmt"
	"sync/atomic"

	"decree/disk"
)

// Site is where an open project lies, for those who look at it and change nothing. It
// does not change as long as the project is open, and is safe for concurrent use.
type Site struct {
	Disk      disk.Disk
	Root      string   // real path
	Dir       disk.Dir // of the root
	Store     disk.Dir // <base>/<id>
	StorePath string
	ID        string
	Config    Config
	InLayer   bool   // see Where.Layered
	Layer     string // its name, the id of its run; "" where the project lies in none
}

// Project is an open project. Its handles stay valid whatever a command does
// to the paths. It is safe for concurrent use but for EnsureDecree and Close.
type Project struct {
	Site
	Decree disk.Dir // .decree; nil when it is absent and the project was opened for reading
	// Notes are what the user should be told of: moved, copied, adopted, the store's
	// odd place. Once Tell is set, it takes those that come later.
	Notes []string
	Tell  func(string)
	// Begun is the note on the making of this project which a restore of a backup tells when it has succeeded: one that fails takes the
	// project back. "": there is none.
	Begun string
	// Made: nobody has used the store before. This process has made it, or one that died before a restore had filled it.
	Made bool
	// Repair, if set, has a command with the lock move away all stand-ins in the store, and
	// takes what was moved. Without it such a command is refused where something is lost.
	Repair func(StandIn)

	form     form           // of the store
	base     string         // as project.json has it
	marks    []string       // of what lies in .decree/tmp, this process's own first
	roots    []func() error // release the root's lock, and those on directories that became the root since
	hasLock  bool           // this process has the lock
	hasLease bool           // this process has a lease
	heldUp   atomic.Bool    // an act went on for longer than this process has waited for it last
	noConfig bool           // there was no config when it was opened
}

// Open finds the root and opens its project.
//
// With create it writes what is missing: the store and its memory, .decree with
// its .gitignore, project.json. Without, it writes nothing, and a root that no
// store remembers is an error with ErrNoProject in its chain.
func Open(d disk.Disk, w Where, create bool) (*Project, error) {
	root, err := FindRoot(d, w)
	if err != nil {
		return nil, err
	}
	p := &Project{Site: Site{Disk: d, Root: root}}
	err = p.open(w, create)
	if err == nil {
		err = disk.ForItsOwner(p.Store)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// ConfigOf is the config of the tree at root, also where no project has begun.
func ConfigOf(d disk.Disk, root string) (Config, error) {
	p := &Project{Site: Site{Disk: d, Root: root, Config: DefaultConfig()}}
	defer p.Close()
	var err error
	if p.Dir, err = d.OpenRoot(root); err == nil {
		err = p.openDecree()
	}
	if err == nil {
		err = p.readConfig(false)
	}
	return p.Config, err
}

func (p *Project) open(w Where, create bool) (err error) {
	if p.Dir, err = p.Disk.OpenRoot(p.Root); err != nil {
		return err
	}
	self, err := p.Dir.Self()
	if err != nil {
		return err
	}
	w = w.forStore(p.Disk, self.UID)
	if w.Layered != nil {
		p.Layer = w.Layered(p.Root)
	}
	w.inLayer = p.Layer != ""
	p.InLayer = w.inLayer
	if create {
		if st, err := p.Dir.Stat(dirName); err == nil {
			_ = p.giveBackDecree(st) // what it cannot do is told by the first step that needs it
		}
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	if err := p.refuseStranger(w); err != nil {
		return err
	}
	if create && !w.Arriving {
		if err := p.refuseArriving(); err != nil {
			return err
		}
	}
	p.Config = DefaultConfig()
	if !w.NoConfig {
		if err := p.readConfig(create); err != nil {
			return err
		}
	}
	if create {
		if err := p.claim(w); err != nil {
			return err
		}
		p.linkStore(w)
		return nil
	}
	f, err := p.examineToRead(w)
	if err != nil {
		return err
	}
	if err := p.refuseLink(w, f.store); err != nil {
		f.close()
		return err
	}
	switch f.bond {
	case strangers:
		return &Error{Kind: NotFound, Msg: p.Root, Err: ErrNoProject, Advice: f.hint("begin one with 'decree init' or 'decree run'")}
	case copied:
		f.store.Close()
		return &Error{Kind: NotFound, Msg: fmt.Sprintf("%s is a copy of %s", p.Root, f.mem.Root), Err: ErrNoProject,
			Advice: "'decree checkpoint' begins a history of its own here; after that a record of the original can be named by its whole id"}
	}
	p.useFinding(f)
	return nil
}

// Close releases the handles. The lock is not touched.
func (p *Project) Close() {
	for _, d := range []disk.Dir{p.Store, p.Decree, p.Dir} {
		if d != nil {
			d.Close()
		}
	}
	p.Store, p.Decree, p.Dir = nil, nil, nil
}

func (p *Project) note(format string, args ...any) {
	if p.Tell != nil {
		p.Tell(fmt.Sprintf(format, args...))
		return
	}
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}
