package queue

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/tree"
)

// Routines are the directories in which a project's routines lie: its own first,
// then that of `routine_source`.
type Routines struct {
	p    *project.Site
	Dirs []message.Dir
}

// OpenRoutines opens them. A directory that does not exist has none.
func OpenRoutines(p *project.Site) *Routines {
	r := &Routines{p: p, Dirs: []message.Dir{routineDir{path: filepath.Join(p.Root, ".decree", "routines"), open: func() (disk.Dir, error) {
		return disk.OpenPath(p.Dir, ".decree/routines")
	}}}}
	if source := p.Config.RoutineSource; source != "" {
		if !filepath.IsAbs(source) {
			source = filepath.Join(p.Root, source)
		}
		r.Dirs = append(r.Dirs, routineDir{path: source, open: func() (disk.Dir, error) { return p.Disk.OpenRoot(source) }})
	}
	return r
}

// Known says whether there is a routine of this name; what is wrong with it, its
// finding tells.
func (r *Routines) Known(name string) bool {
	return message.Known(name, r.Dirs...)
}

// lackError is about a message whose routine is not there, but was when this process began: somebody has put
// it away for a moment (`git stash -u`, another branch). It waits, and others are done meanwhile.
type lackError struct {
	routine string
	refusal *project.Error
}

func (e *lackError) Error() string { return e.refusal.Error() }
func (e *lackError) Unwrap() error { return e.refusal }

// noteRoutines notes which routines there are; none where a directory of them cannot be read, which each message will say.
func (q *job) noteRoutines() {
	all, _ := message.List(OpenRoutines(&q.project().Site).Dirs...)
	q.routines, q.toldLack = map[string]bool{}, map[string]bool{}
	for _, f := range all {
		q.routines[f.Name] = true
	}
}

// lacks is the *lackError of a message about a spec, or none. What a router may fall back on is looked for too: it is to be asked once.
func (q *job) lacks(m, spec *message.Message) error {
	routines, name := OpenRoutines(&q.project().Site), m.Routine
	if name == "" && spec != nil {
		name = spec.Routine
	}
	name = cmp.Or(name, q.project().Config.DefaultRoutine)
	if !q.routines[name] || routines.Known(name) {
		delete(q.toldLack, name)
		return nil
	}
	return &lackError{name, &project.Error{Kind: project.Failed, Msg: fmt.Sprintf("%s waits: no routine is called %q, which was there before", tree.Quote(m.Name), name),
		Advice: fmt.Sprintf("put it back, as with 'git stash pop'; or give the message up: '%s'", cancelCommand(m.Name))}}
}

// routineDir is a message.Dir that is opened for each look, so that what a
// command does to it meanwhile is seen.
type routineDir struct {
	path string
	open func() (disk.Dir, error)
}

func (d routineDir) Path() string { return d.path }

func (d routineDir) Names() ([]string, error) {
	dir, err := d.open()
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer dir.Close()
	list, err := dir.List()
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out, err
}

func (d routineDir) Read(name string) ([]byte, error) {
	dir, err := d.open()
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer dir.Close()
	data, err := project.ReadFile(dir, name, message.MaxSize)
	return data, disk.UnlessMissing(err)
}

// readBelow reads a file below the root by handles, following no link.
func readBelow(root disk.Dir, at string, limit int64) (data []byte, err error) {
	err = disk.InDir(root, path.Dir(at), func(dir disk.Dir) error {
		data, err = project.ReadFile(dir, path.Base(at), limit)
		return err
	})
	return data, err
}
