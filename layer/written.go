package layer

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
)

// Written calls visit for each regular file that the run wrote in the directory at path,
// below the root, in byte order of the names; not for those in directories below it. What
// the layer has in the place of the directory has no files. No process may work in the layer.
func (l *Layer) Written(path string, visit func(dir disk.Dir, in disk.Entry) error) error {
	name := upperName
	if l.facts.Mechanism == Clone {
		name = treeName
	}
	dir, err := disk.OpenPathWritable(l.dir, name+"/"+path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		in, err := dir.Stat(e.Name)
		if err != nil {
			return err
		}
		if in.Kind != disk.Regular || l.facts.Mechanism == Clone && in.Ctime <= l.facts.Cloned {
			continue
		}
		if err := visit(dir, e); err != nil {
			return err
		}
	}
	return nil
}
