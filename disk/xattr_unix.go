//go:build unix

package disk

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"
)

// ownXattr is an attribute that macOS gives each file by itself and lets nobody set.
const ownXattr = "com.apple.provenance"

// readXattrs reads all attributes of a file, given the system's calls for it.
func readXattrs(list func([]byte) (int, error), get func(name string, value []byte) (int, error)) ([]Xattr, error) {
	n, err := list(nil)
	if err != nil || n == 0 {
		return nil, ignoreUnsupported(err)
	}
	names := make([]byte, n)
	if n, err = list(names); err != nil {
		return nil, err
	}
	var out []Xattr
	for _, name := range bytes.Split(bytes.TrimRight(names[:n], "\x00"), []byte{0}) {
		if string(name) == ownXattr {
			continue
		}
		size, err := get(string(name), nil)
		if err != nil {
			continue // gone or not ours to read
		}
		value := make([]byte, size)
		if size > 0 {
			if size, err = get(string(name), value); err != nil {
				continue
			}
		}
		out = append(out, Xattr{Name: string(name), Value: value[:size]})
	}
	return out, nil
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
