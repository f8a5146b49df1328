package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"decree/disk"
	"decree/tree"
)

// IntoFile in .decree says that a backup is being restored, tree and all, and is not finished. In a directory that had nothing in it
// it is there before anything else is made; over a project it comes with the records. It is there until the tree is there too.
const IntoFile = "into.json"

// Into is what IntoFile has: which generation comes there, and from where.
type Into struct {
	Version    int       `json:"version"`
	Project    string    `json:"project"`    // whose generation it is, as the backup has it
	Generation string    `json:"generation"` // its name
	From       tree.Text `json:"from"`       // the target as its user writes it, or the path of a zip
	Name       string    `json:"name"`       // of the project's directory in the target; "" for a zip
	// Over says that a project was here: its records are replaced, and its tree, of which nothing is yet, is whole.
	Over bool `json:"over,omitempty"`
}

// onTheWay are what a restore into a directory may have made in .decree before it puts anything of the generation there; nothing of
// it is replaced by what follows, or lost.
var onTheWay = []string{".gitignore", identityFile, IntoFile, RunsDir, TmpDir, asideDir}

// BeginInto writes IntoFile, and makes .decree for it. was is what the restore goes on with; nil: it is a new one, and fs.ErrExist says that
// another one was faster.
func BeginInto(d disk.Disk, root string, in Into, was *Into) error {
	return inDecree(d, root, func(p *Project) error {
		if was != nil {
			return p.writeInto(in, p.replaceInto)
		}
		return p.writeInto(in, func(data []byte) error {
			return WriteNew(p.Decree, IntoFile, disk.Draft(IntoFile), data, PrivateFile)
		})
	})
}

// inDecree makes .decree and does something there that only one process at a time does.
func inDecree(d disk.Disk, root string, do func(p *Project) error) error {
	p := &Project{Site: Site{Disk: d, Root: root}}
	defer p.Close()
	var err error
	if p.Dir, err = d.OpenRoot(root); err != nil {
		return err
	}
	made, err := p.makeDecree()
	if err == nil {
		err = p.openDecree()
	}
	if err != nil {
		return err
	}
	unlock, err := p.Decree.TryLock()
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	if err = do(p); err == nil && made {
		err = p.Dir.Sync()
	}
	return err
}

func (p *Project) writeInto(in Into, write func(data []byte) error) error {
	in.Version = formatNow
	data, err := json.Marshal(in)
	if err == nil {
		err = write(append(data, '\n'))
	}
	return err
}

func (p *Project) replaceInto(data []byte) error {
	return ReplaceFile(p.Decree, IntoFile, data, PrivateFile, true)
}

// treeFollows notes that a swap over a project is to be followed by its tree, or, with nil, that one before it is not any more.
func (p *Project) treeFollows(in *Into) error {
	if in != nil {
		return p.writeInto(*in, p.replaceInto)
	}
	if was, err := readInto(p.Decree, p.Root); err != nil || was == nil || !was.Over {
		return nil //nolint:nilerr // what cannot be read is told by who needs it
	}
	return p.EndInto()
}

// ReadInto is what IntoFile in a root's .decree has; nil where no restore into it is unfinished.
func ReadInto(d disk.Disk, root string) (*Into, error) {
	dir, err := d.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	decree, err := dir.OpenDir(dirName)
	if err != nil {
		return nil, disk.UnlessMissingOrOther(err)
	}
	defer decree.Close()
	return readInto(decree, root)
}

// readInto is ReadInto in an open .decree, or none.
func readInto(decree disk.Dir, root string) (*Into, error) {
	if decree == nil {
		return nil, nil
	}
	data, err := ReadFile(decree, IntoFile, maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	in := &Into{}
	if err == nil {
		err = json.Unmarshal(data, in)
	}
	if err == nil && in.Version != formatNow {
		err = fmt.Errorf("version %d is not known to this decree", in.Version)
	}
	if err != nil {
		return nil, &Error{Kind: Refused, Msg: filepath.Join(root, dirName, IntoFile), Err: err, State: Unchanged,
			Advice: "it is of a restore of a backup into this directory; name another directory, or remove this file if the tree is whole"}
	}
	return in, nil
}

// EndInto removes IntoFile, durably: tree and history are there.
func (p *Project) EndInto() error { return removeFile(p.Decree, IntoFile) }

// Unfinished is the error of what writes where the restore is not finished: what it recorded or kept would be of a tree that is
// not there yet.
func (in *Into) Unfinished(root string) *Error {
	if in.Over {
		return &Error{Kind: Refused, Msg: fmt.Sprintf("a restore of %s from %s is not finished: the records are restored, and the tree is as it was", in.Generation, tree.Quote(in.From)),
			Advice: fmt.Sprintf("'decree backup restore --tree --yes' goes on with the tree; to leave that as it is, remove %s/%s", dirName, IntoFile)}
	}
	return &Error{Kind: Refused, Msg: fmt.Sprintf("a restore of %s from %s into %s is not finished", in.Generation, tree.Quote(in.From), tree.Quote(root)),
		Advice: fmt.Sprintf("'decree backup restore' goes on with it there; to give it up, remove %s/%s, and what is there by now stays", dirName, IntoFile)}
}

// refuseArriving refuses to change a project whose restore into an empty directory is not finished.
func (p *Project) refuseArriving() error {
	in, err := readInto(p.Decree, p.Root)
	if in != nil && err == nil && !in.Over {
		err = in.Unfinished(p.Root)
	}
	return err
}

// BesideInto are the paths below a root of what a restore into it has not made before it put anything of
// the generation there: without any the root counts as empty, and it is so too where such a restore died before
// IntoFile was there. begun says that it is.
func BesideInto(d disk.Disk, root string, begun bool) (paths []string, err error) {
	dir, err := d.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.Name != dirName {
			paths = append(paths, e.Name)
			continue
		}
		decree, err := dir.OpenDir(dirName)
		if err != nil {
			return nil, err
		}
		own, err := decree.List()
		decree.Close()
		if err != nil {
			return nil, err
		}
		for _, e := range own {
			if e.Name != disk.Draft(IntoFile) && !(begun && slices.ContainsFunc(onTheWay, func(name string) bool { return e.Name == name || e.Name == disk.Draft(name) })) {
				paths = append(paths, filepath.Join(dirName, e.Name))
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Forsake removes project.json of a project whose store is about to be removed: what is left of both
// is no project's then.
func (p *Project) Forsake() error {
	err := p.Decree.Remove(identityFile)
	if err == nil {
		err = p.Decree.Sync()
	}
	return err
}
