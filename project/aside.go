package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
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

// OwnDir opens a directory of decree's own in dir, which lies in .decree, whatever
// a command made of it: it is made if it is missing, something else in its place
// is put aside, and its owner gets the rights back that decree needs.
func (p *Project) OwnDir(dir disk.Dir, name string) (disk.Dir, error) {
	return p.OwnDirAs(dir, name, PrivateDir)
}

// OwnDirAs is OwnDir for one that is made with perm.
func (p *Project) OwnDirAs(dir disk.Dir, name string, perm uint32) (disk.Dir, error) {
	st, err := dir.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return MakeDir(dir, name, perm)
	case err == nil && st.Kind != disk.Directory:
		err = p.PutAside(dir, name)
	case err == nil && st.Mode&0o700 != 0o700:
		err = dir.Chmod(name, st.Mode|0o700)
	}
	if err != nil {
		return nil, err
	}
	return MakeDir(dir, name, perm)
}

// ownTmp makes .decree/tmp one that can be written to. Another user's is exchanged
// for a new one while it is empty: what lies in it may belong to a transaction.
func (p *Project) ownTmp() error {
	const name = "tmp"
	tmp, err := p.OwnDir(p.Decree, name)
	if err == nil {
		defer tmp.Close()
	} else if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	own, oerr := p.Decree.Self()
	st, serr := p.Decree.Stat(name)
	if oerr != nil || serr != nil || st.UID == own.UID {
		return errors.Join(err, oerr, serr)
	}
	if err == nil {
		err = tryWriting(tmp)
	}
	if !errors.Is(err, fs.ErrPermission) || p.Decree.Rmdir(name) != nil {
		return err
	}
	fresh, err := MakeDir(p.Decree, name, PrivateDir)
	if err == nil {
		fresh.Close()
	}
	return err
}

// tryWriting says whether an entry can be made in dir. Its name is that of a probe,
// which the next command removes after a death.
func tryWriting(dir disk.Dir) error {
	const probe = "owner-0"
	f, err := dir.Create(probe, PrivateFile)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		f.Close()
	}
	return dir.Remove(probe)
}

// PutAside moves what stands in decree's way at name in dir, which lies in
// .decree, to .decree/aside, and notes under which name it is there.
func (p *Project) PutAside(dir disk.Dir, name string) error {
	aside, err := p.openAside()
	if err != nil {
		return err
	}
	defer aside.Close()
	from := path.Join(dirName, name)
	if rel, err := filepath.Rel(p.Root, filepath.Join(dir.Path(), name)); err == nil && filepath.IsLocal(rel) {
		from = filepath.ToSlash(rel)
	}
	plain := strings.ReplaceAll(strings.TrimPrefix(from, dirName+"/"), "/", "-")
	return p.moveAside(dir, name, aside, plain, from)
}

// PutPathAside does it with what is at .decree or at a path below it, as .decree is
// now. EnsureDecree has to follow.
func (p *Project) PutPathAside(at string) error {
	if at == dirName {
		return p.replaceDecree()
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	dir, err := p.Dir.OpenDir(dirName)
	for _, name := range strings.Split(path.Dir(at), "/")[1:] {
		if err != nil {
			return err
		}
		next, err1 := dir.OpenDir(name)
		dir.Close()
		dir, err = next, err1
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return p.PutAside(dir, path.Base(at))
}

// moveAside moves name to the first free name in aside that begins with plain.
func (p *Project) moveAside(dir disk.Dir, name string, aside disk.Dir, plain, from string) error {
	st, err := dir.Stat(name)
	if err == nil && st.Kind == disk.Directory && st.Mode&0o700 != 0o700 {
		err = dir.Chmod(name, st.Mode|0o700) // one that may not be written cannot be moved either
	}
	if err != nil {
		return err
	}
	plain = plain[:min(len(plain), longestAside)]
	for n := 1; ; n++ {
		to := plain
		if n > 1 {
			to = fmt.Sprintf("%s-%d", plain, n)
		}
		err := dir.RenameNew(name, aside, to)
		if errors.Is(err, fs.ErrExist) && n < mostAside {
			continue
		}
		if err == nil {
			err = errors.Join(aside.Sync(), dir.Sync())
			p.noteAside(from, to)
		}
		return err
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
		err = p.moveAside(p.Decree, moved, aside, asideDir, path.Join(dirName, asideDir))
	}
	if err != nil && aside != nil {
		aside.Close()
		return nil, err
	}
	return aside, err
}

// makeDecree makes .decree where it is missing, puts aside what a command made in
// its place, and gives decree's directory to its owner whatever the umask or a
// command took.
func (p *Project) makeDecree() (made bool, err error) {
	st, err := p.Dir.Stat(dirName)
	if err == nil && st.Kind != disk.Directory {
		if err = p.replaceDecree(); err == nil {
			st, err = p.Dir.Stat(dirName)
		}
		made = true
	}
	if errors.Is(err, fs.ErrNotExist) {
		made = true
		if st, err = p.newDecree(); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	if err = p.loosen(st); err == nil && made {
		err = disk.Inherit(p.Dir, dirName, st)
	}
	return made, err
}

// loosen gives .decree, of which st is, to its owner again.
func (p *Project) loosen(st disk.Info) error {
	if st.Kind != disk.Directory || st.Mode&0o700 == 0o700 {
		return nil
	}
	return p.Dir.Chmod(dirName, st.Mode|0o700)
}

// newDecree makes .decree, or takes the one that a death left on its way.
func (p *Project) newDecree() (disk.Info, error) {
	st, err := p.Dir.Stat(newDecree)
	switch {
	case err == nil && st.Kind == disk.Directory:
		err = p.Dir.RenameNew(newDecree, p.Dir, dirName)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = p.Dir.Mkdir(dirName, 0o777)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return st, err
	}
	return p.Dir.Stat(dirName)
}

// replaceDecree puts what stands in the place of .decree into a new one. After an
// error it is where it was.
func (p *Project) replaceDecree() (err error) {
	fresh, err := MakeDir(p.Dir, newDecree, 0o755)
	if err != nil {
		_ = p.Dir.Rmdir(newDecree)
		return err
	}
	defer fresh.Close()
	defer func() {
		if err != nil {
			_ = fresh.Rmdir(asideDir)
			_ = p.Dir.Rmdir(newDecree)
		}
	}()
	aside, err := MakeDir(fresh, asideDir, PrivateDir)
	if err != nil {
		return err
	}
	defer aside.Close()
	const name = "decree"
	if err := p.Dir.RenameNew(dirName, aside, name); err != nil {
		return err
	}
	if err = errors.Join(aside.Sync(), fresh.Sync()); err == nil {
		err = p.Dir.RenameNew(newDecree, p.Dir, dirName)
	}
	if err != nil {
		return errors.Join(err, aside.RenameNew(name, p.Dir, dirName))
	}
	p.noteAside(dirName, name)
	return nil
}

// Respell gives .decree its name again where the file system folds case and a command
// has spelled it otherwise.
func (p *Project) Respell() error {
	st, err := p.Dir.Stat(dirName)
	if err != nil {
		return err
	}
	list, err := p.Dir.List()
	if err != nil || slices.ContainsFunc(list, func(e disk.Entry) bool { return e.Name == dirName }) {
		return err
	}
	for _, e := range list {
		if !strings.EqualFold(e.Name, dirName) {
			continue
		}
		if now, err := p.Dir.Stat(e.Name); err != nil || !now.SameFile(st) {
			return err
		}
		if err := p.Dir.RenameNew(e.Name, p.Dir, newDecree); err != nil {
			return err
		}
		if err := p.Dir.RenameNew(newDecree, p.Dir, dirName); err != nil {
			return err
		}
		return p.Dir.Sync()
	}
	return nil
}

// RightsAdvice says what gives .decree back to its user where err is that something in
// it may not be written, as an immutable file; "" for other errors.
func RightsAdvice(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(pe.Err, fs.ErrPermission) {
		return ""
	}
	before, _, inside := strings.Cut(pe.Path, "/"+dirName+"/")
	if !inside {
		return ""
	}
	return fmt.Sprintf("make %s your own again ('sudo chown -R', 'sudo chattr -R -i')", before+"/"+dirName)
}
