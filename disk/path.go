package disk

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Has says whether there is anything of that name in dir.
func Has(dir Dir, name string) (bool, error) {
	_, err := dir.Stat(name)
	return err == nil, UnlessMissing(err)
}

// UnlessMissing is nil for the error of opening what does not exist, and err else.
func UnlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// UnlessMissingOrOther is nil also where something of another kind is there: see OtherKind.
func UnlessMissingOrOther(err error) error {
	if OtherKind(err) {
		return nil
	}
	return UnlessMissing(err)
}

// OpenWritable opens the directory name in dir, after its owner got the rights to look into it
// and to change it.
func OpenWritable(dir Dir, name string) (Dir, error) {
	if err := GiveRights(dir, name, Directory, 0o700); err != nil {
		return nil, err
	}
	return dir.OpenDir(name)
}

// GiveRights gives the owner of a file or directory, whichever kind says, rights back that a
// command may have taken away. What is of another kind stays as it is, and a file with another name, which may lie anywhere.
func GiveRights(dir Dir, name string, kind Kind, rights uint32) error {
	st, err := dir.Stat(name)
	if err != nil || st.Kind != kind || st.Mode&rights == rights || kind == Regular && st.Nlink > 1 {
		return err
	}
	return dir.Chmod(name, st, st.Mode|rights)
}

// OpenPath opens the directory at a path below root, component by component, following no
// link. The path is not empty; root stays open.
func OpenPath(root Dir, at string) (Dir, error) { return openPath(root, at, Dir.OpenDir) }

// OpenPathWritable is OpenPath by OpenWritable.
func OpenPathWritable(root Dir, at string) (Dir, error) {
	return openPath(root, at, OpenWritable)
}

// InDir calls do with the directory at a path below root; "" and "." are root itself.
func InDir(root Dir, at string, do func(Dir) error) error {
	if at == "" || at == "." {
		return do(root)
	}
	dir, err := OpenPath(root, at)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(dir)
}

// StatPath is Stat of a path below root.
func StatPath(root Dir, at string) (info Info, err error) {
	err = InDir(root, path.Dir(at), func(dir Dir) error {
		info, err = dir.Stat(path.Base(at))
		return err
	})
	return info, err
}

func openPath(root Dir, at string, open func(Dir, string) (Dir, error)) (Dir, error) {
	dir := root
	for name := range strings.SplitSeq(at, "/") {
		next, err := open(dir, name)
		if dir != root {
			dir.Close()
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}
