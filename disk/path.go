package disk

import "strings"

// OpenPath opens the directory at path below root, component by component, following no
// link. path is not empty; root stays open.
func OpenPath(root Dir, path string) (Dir, error) {
	dir := root
	for name := range strings.SplitSeq(path, "/") {
		next, err := dir.OpenDir(name)
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
