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
// the layer has in the place of the directory has no files. Where times tell nothing, all files of a clone count. No process may work
// in the layer.
func (l *Layer) Written(path string, visit func(dir disk.Dir, in disk.Entry) error) error {
	dir, err := disk.OpenPathWritable(l.dir, l.top()+"/"+path)
	if notThere(err) {
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
		if in.Kind != disk.Regular || l.facts.Mechanism == Clone && in.Ctime <= l.facts.Cloned && !l.setBack() {
			continue
		}
		if err := visit(dir, e); err != nil {
			return err
		}
	}
	return nil
}

// Deleted are the names that the run deleted in the directory at path, below the root, which is live there and which the layer has
// too. Where the layer has no mark of a deletion, since it is a clone or the run made the directory anew, they are of what live
// has now, and a clone does not have what is as it was when that was made. No process may work in the layer.
func (l *Layer) Deleted(path string, live disk.Dir) (names []string, err error) {
	dir, err := disk.OpenPathWritable(l.dir, l.top()+"/"+path)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	anew, err := l.hidden(path)
	if err != nil {
		return nil, err
	}
	from := dir
	if anew {
		from = live
	}
	list, err := from.List()
	for _, e := range list {
		in, serr := dir.Stat(e.Name)
		gone := serr == nil && in.Whiteout
		if anew && errors.Is(serr, fs.ErrNotExist) {
			in, serr = live.Stat(e.Name)
			gone = serr == nil && (l.facts.Mechanism != Clone || in.Ctime <= l.facts.Cloned)
		}
		if gone {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// hidden says whether the layer shows nothing of the root's directory at path but what it has itself.
func (l *Layer) hidden(path string) (bool, error) {
	if l.facts.Mechanism == Clone {
		return true, nil
	}
	dir, err := l.Top()
	if err != nil {
		return false, err
	}
	defer func() { dir.Close() }()
	for part := range strings.SplitSeq(path, "/") {
		hides, err := opaque(dir, part)
		if hides || err != nil {
			return hides, err
		}
		next, err := dir.OpenDir(part)
		if err != nil {
			return false, err
		}
		dir.Close()
		dir = next
	}
	return false, nil
}

func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
