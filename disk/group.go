package disk

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// NoGroup stands for a file's group where its group bits are the mask of an access
// control list: they say what named users may, and no group has them.
const NoGroup = 1<<32 - 1

// ACL is the attribute that holds a file's access control list on Linux.
const ACL = "system.posix_acl_access"

// defaultACL holds the list that what is made in a directory gets.
const defaultACL = "system.posix_acl_default"

// Capability is the attribute that gives a program rights of root's on Linux. The system takes it
// away when the file is written to.
const Capability = "security.capability"

// GroupBits are the rights of a file's group among the bits of its mode; others' stand
// three bits below.
const GroupBits = 0o070

// GroupOf returns the group whose members have the group's rights to the file name in d,
// [NoGroup] if nobody has them as a member of one. usual says that there is nothing to
// remember about it: others have these rights too, or it is the group that a new file
// of ours there would get.
func GroupOf(d Dir, name string, in Info) (gid uint32, usual bool, err error) {
	if in.Mode&GroupBits&^(in.Mode<<3) == 0 {
		return in.GID, true, nil
	}
	if listed, err := HasACL(d, name); listed || err != nil {
		return NoGroup, false, err
	}
	group, err := UsualGroup(d)
	return in.GID, in.GID == group, err
}

// UsualGroup is the group that a new file of ours in d would get, if d had no set-group-ID.
func UsualGroup(d Dir) (gid uint32, err error) {
	if !AsRoot() {
		return uint32(os.Getegid()), nil //nolint:gosec // the number of a group
	}
	self, err := d.Self() // what root makes gets the owner of its directory
	return self.GID, err
}

// AsRoot says whether we are the user to whom nothing is forbidden.
func AsRoot() bool { return os.Geteuid() == 0 }

// HasACL says whether the file name in d has an access control list that its mode does
// not tell. Where that cannot be asked there is none.
func HasACL(d Dir, name string) (bool, error) {
	list, err := d.Xattrs(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	for _, x := range list {
		if x.Name == ACL {
			return true, nil
		}
	}
	return false, err
}

// DropACLs takes from the directory that is, a child, first the list that what is made in it would get, and then its access control list, as
// DropACL does.
func DropACLs(d Dir, name string, is Info, mode uint32) error {
	list, err := d.Xattrs(name)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	has := func(name string) bool { return slices.ContainsFunc(list, func(x Xattr) bool { return x.Name == name }) }
	if has(defaultACL) {
		if err := d.SetXattr(name, is, Xattr{Name: defaultACL, Value: binary.LittleEndian.AppendUint32(nil, 2)}); err != nil { // a version and no entry
			return err
		}
	}
	if has(ACL) {
		_, err = DropACL(d, name, is, mode)
		return err
	}
	return nil
}

// DropACL takes the access control list, if there is one, from the child that is, which gets
// the permissions of mode at the same moment. It says whether there was one.
func DropACL(d Dir, name string, is Info, mode uint32) (bool, error) {
	listed, err := HasACL(d, name)
	if !listed || err != nil {
		return false, err
	}
	// A list that says no more than a mode does is no list to the system.
	list := binary.LittleEndian.AppendUint32(nil, 2) // its version
	for _, e := range [...]struct {
		tag  uint16 // the owner, the group, others
		bits uint32
	}{{1, mode >> 6}, {4, mode >> 3}, {32, mode}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, uint16(e.bits&7))
		list = binary.LittleEndian.AppendUint32(list, 1<<32-1)
	}
	return true, d.SetXattr(name, is, Xattr{Name: ACL, Value: list})
}
