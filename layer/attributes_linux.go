package layer

import (
	"bytes"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// copyAttributes gives to the extended attributes of from, a directory: by its default ACL
// all that is made in it gets its mode. What only the system may set is passed over.
func copyAttributes(from, to disk.Dir) error {
	src, ok1 := disk.FD(from)
	dst, ok2 := disk.FD(to)
	if !ok1 || !ok2 {
		return nil
	}
	n, err := unix.Flistxattr(src, nil)
	if errors.Is(err, unix.EOPNOTSUPP) || err == nil && n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	names := make([]byte, n)
	if n, err = unix.Flistxattr(src, names); err != nil {
		return err
	}
	for _, b := range bytes.Split(bytes.TrimRight(names[:n], "\x00"), []byte{0}) {
		name := string(b)
		if strings.HasPrefix(name, "user.overlay.") { // it would be the layer's own word
			continue
		}
		size, err := unix.Fgetxattr(src, name, nil)
		if err != nil {
			continue // gone, or not ours to read
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(src, name, value); err == nil {
			_ = unix.Fsetxattr(dst, name, value[:size], 0)
		}
	}
	return nil
}
