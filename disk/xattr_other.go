//go:build unix && !linux && !darwin && !freebsd && !netbsd

package disk

import "errors"

func (d *osDir) Xattrs(string) ([]Xattr, error) { return nil, nil }

func (d *osDir) SetXattr(string, Xattr) error { return errors.ErrUnsupported }
