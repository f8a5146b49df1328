package queue

import (
	"path"
	"path/filepath"
	"strings"

	"decree/disk"
	"decree/message"
	"decree/project"
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

// routineDir is a message.Dir that is opened for each look, so that what a
// command does to it meanwhile is seen.
type routineDir struct {
	path string
	open func() (disk.Dir, error)
}

func (d routineDir) Path() string { return d.path }

func (d routineDir) Names() ([]string, error) {
	dir, err := d.open()
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
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
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	data, err := project.ReadFile(dir, name, message.MaxSize)
	if isMissing(err) {
		return nil, nil
	}
	return data, err
}

// readBelow reads a file below the root by handles, following no link.
func readBelow(root disk.Dir, at string, limit int64) ([]byte, error) {
	dir, name := path.Split(at)
	if dir == "" {
		return project.ReadFile(root, name, limit)
	}
	in, err := disk.OpenPath(root, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return project.ReadFile(in, name, limit)
}
