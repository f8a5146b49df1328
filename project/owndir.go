package project

import (
	"cmp"
	"errors"
	"io/fs"

	"decree/disk"
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
		if err := p.PutAside(dir, name); err != nil {
			return nil, err
		}
		return MakeDir(dir, name, perm)
	}
	return disk.OpenWritable(dir, name)
}

// ownTmp makes .decree/tmp one that can be written to. Another user's is exchanged
// for a new one while it is empty: what lies in it may belong to a transaction.
func (p *Project) ownTmp() error {
	tmp, err := p.OwnDir(p.Decree, TmpDir)
	if err == nil {
		defer tmp.Close()
	} else if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	own, oerr := p.Decree.Self()
	st, serr := p.Decree.Stat(TmpDir)
	if oerr != nil || serr != nil || st.UID == own.UID {
		return cmp.Or(err, oerr, serr)
	}
	if err == nil {
		err = tryWriting(tmp)
	}
	if !errors.Is(err, fs.ErrPermission) || p.Decree.Rmdir(TmpDir) != nil {
		return err
	}
	made, err := MakeDir(p.Decree, TmpDir, PrivateDir)
	if err == nil {
		made.Close()
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
