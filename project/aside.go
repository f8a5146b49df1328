package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"decree/disk"
)

const (
	asideDir = "aside" // in .decree: what stood in decree's way there
	// newDecree is a new .decree on its way to its name. A death leaves it, and
	// the next EnsureDecree goes on with it.
	newDecree = ".decree.new"
	mostAside = 10000 // tries for a name in aside
	// longestAside bounds a name there, which is longer than the one that it had, in bytes.
	longestAside = 200
)

// PutAside moves what stands in decree's way at name in dir, which lies in
// .decree, to .decree/aside, and notes under which name it is there.
func (p *Project) PutAside(dir disk.Dir, name string) error {
	from := path.Join(dirName, name)
	if rel, err := filepath.Rel(p.Root, filepath.Join(dir.Path(), name)); err == nil && filepath.IsLocal(rel) {
		from = filepath.ToSlash(rel)
	}
	to, err := p.toAside(dir, name, strings.TrimPrefix(from, dirName+"/"))
	if err == nil {
		p.noteAside(from, to)
	}
	return err
}

// KeepAside moves name in dir, which lies in .decree, to .decree/aside, and returns where it is then, from
// the root on: who calls it tells of it.
func (p *Project) KeepAside(dir disk.Dir, name string) (string, error) {
	to, err := p.toAside(dir, name, name)
	return path.Join(dirName, asideDir, to), err
}

// toAside moves name in dir, which was at a path below .decree, to .decree/aside, and returns what it is called there.
func (p *Project) toAside(dir disk.Dir, name, was string) (to string, err error) {
	aside, err := p.openAside()
	if err != nil {
		return "", err
	}
	defer aside.Close()
	return moveAside(dir, name, aside, strings.ReplaceAll(was, "/", "-"))
}

// PutPathAside is PutAside of what is at .decree or at a path below it, as .decree is
// now. EnsureDecree has to follow.
func (p *Project) PutPathAside(at string) error {
	if at == dirName {
		return p.replaceDecree()
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	return disk.InDir(p.Dir, path.Dir(at), func(dir disk.Dir) error { return p.PutAside(dir, path.Base(at)) })
}

// moveAside moves name to the first free name in aside that begins with plain.
func moveAside(dir disk.Dir, name string, aside disk.Dir, plain string) (to string, err error) {
	st, err := dir.Stat(name)
	if err == nil && st.Kind == disk.Directory && st.Mode&0o700 != 0o700 {
		err = dir.Chmod(name, st, st.Mode|0o700) // one that may not be written cannot be moved either
	}
	if err != nil {
		return "", err
	}
	plain = plain[:min(len(plain), longestAside)]
	for n := 1; ; n++ {
		to = plain
		if n > 1 {
			to = fmt.Sprintf("%s-%d", plain, n)
		}
		err := dir.RenameNew(name, aside, to)
		if errors.Is(err, fs.ErrExist) && n < mostAside {
			continue
		}
		if err == nil {
			err = errors.Join(aside.Sync(), dir.Sync())
		}
		return to, err
	}
}

func (p *Project) noteAside(from, to string) {
	p.note("%s was in the place of decree's own files and is now %s/%s/%s", from, dirName, asideDir, to)
}

// openAside opens .decree/aside. Something else of that name goes into it.
func (p *Project) openAside() (disk.Dir, error) {
	st, err := p.Decree.Stat(asideDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind == disk.Directory {
		return MakeDir(p.Decree, asideDir, PrivateDir)
	}
	if err != nil {
		return nil, err
	}
	const moved = "aside.old"
	if err := p.Decree.RenameNew(asideDir, p.Decree, moved); err != nil {
		return nil, err
	}
	aside, err := MakeDir(p.Decree, asideDir, PrivateDir)
	if err == nil {
		var to string
		if to, err = moveAside(p.Decree, moved, aside, asideDir); err == nil {
			p.noteAside(path.Join(dirName, asideDir), to)
		}
	}
	if err != nil && aside != nil {
		aside.Close()
		return nil, err
	}
	return aside, err
}

// replaceDecree puts what stands in the place of .decree into a new one. After an
// error it is where it was.
func (p *Project) replaceDecree() (err error) {
	next, err := MakeDir(p.Dir, newDecree, 0o755)
	if err != nil {
		_ = p.Dir.Rmdir(newDecree)
		return err
	}
	defer next.Close()
	defer func() {
		if err != nil {
			_ = next.Rmdir(asideDir)
			_ = p.Dir.Rmdir(newDecree)
		}
	}()
	aside, err := MakeDir(next, asideDir, PrivateDir)
	if err != nil {
		return err
	}
	defer aside.Close()
	const name = "decree"
	if err := p.Dir.RenameNew(dirName, aside, name); err != nil {
		return err
	}
	if err = errors.Join(aside.Sync(), next.Sync()); err == nil {
		err = p.Dir.RenameNew(newDecree, p.Dir, dirName)
	}
	if err != nil {
		return errors.Join(err, aside.RenameNew(name, p.Dir, dirName))
	}
	p.noteAside(dirName, name)
	return nil
}
