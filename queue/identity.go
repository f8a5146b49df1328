package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"decree/disk"
	"decree/message"
	"decree/project"
)

// identity tells the file of the message under way from another one of its name: by its
// bytes, whoever has written them. A completed message holds its own id, so that no other
// has the same, and a routine may touch, copy and write back whatever lies in the inbox.
type identity struct {
	SHA256 string `json:"sha256,omitempty"`
	Ino    uint64 `json:"ino,omitempty"` // of a message that an older decree noted, without SHA256
}

func identify(data []byte) identity { return identity{SHA256: hashOf(data)} }

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isAt says whether dir/name is the message.
func (i identity) isAt(dir disk.Dir, name string) (bool, error) {
	info, err := dir.Stat(name)
	switch {
	case isMissing(err) || err == nil && info.Kind != disk.Regular:
		return false, nil
	case err != nil:
		return false, err
	case i.SHA256 == "":
		return info.Ino == i.Ino, nil
	}
	data, err := project.ReadFile(dir, name, message.MaxSize)
	if errors.Is(err, fs.ErrPermission) {
		if disk.GiveRights(dir, name, disk.Regular, project.PrivateFile) != nil {
			return false, nil //nolint:nilerr // another user's, and not the message
		}
		data, err = project.ReadFile(dir, name, message.MaxSize)
		if errors.Is(err, fs.ErrPermission) {
			return false, nil //nolint:nilerr // the same
		}
	}
	if isMissing(err) || errors.Is(err, project.ErrTooLarge) {
		return false, nil
	}
	return err == nil && hashOf(data) == i.SHA256, err
}
