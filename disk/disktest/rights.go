package disktest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Rights is a hook that refuses what the owner's bits of a file or a directory do not allow, as
// the system does for everybody but root.
func Rights(st Step) Action {
	parent := filepath.Dir(st.Path)
	switch st.Op {
	case "Open":
		return refuseUnless(st, allows(st.Path, 0o400), allows(parent, 0o100))
	case "OpenDir":
		return refuseUnless(st, allows(st.Path, 0o500), allows(parent, 0o100))
	case "Create", "Mkdir", "Remove", "Rmdir", "Symlink":
		return refuseUnless(st, allows(parent, 0o300))
	case "Rename", "RenameNew", "Link":
		return refuseUnless(st, allows(parent, 0o300), allows(filepath.Dir(st.To), 0o300))
	}
	return Action{}
}

// allows says whether the owner has these rights on what is at path. It is true where nothing is.
func allows(path string, rights fs.FileMode) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().Type() == fs.ModeSymlink || info.Mode()&rights == rights
}

func refuseUnless(st Step, has ...bool) Action {
	for _, ok := range has {
		if !ok {
			return Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.EACCES}}
		}
	}
	return Action{}
}
