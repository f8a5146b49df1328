package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"decree/disk"
	"decree/message"
	"decree/project"
)

// identity tells the file of the message under way from another one of its name.
// Each part alone is not enough: a new file may get the inode of one that was
// deleted just before, a file that is written in place keeps its own, and two
// tasks may have the same text.
type identity struct {
	Ino    uint64 `json:"ino"`
	Ctime  int64  `json:"ctime,omitempty"` // ns since 1970
	Mtime  int64  `json:"mtime,omitempty"` // ns since 1970
	SHA256 string `json:"sha256,omitempty"`
}

// identify is the identity of a file that holds data.
func identify(info disk.Info, data []byte) identity {
	return identity{Ino: info.Ino, Ctime: info.Ctime, Mtime: info.Mtime, SHA256: hashOf(data)}
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// match is what is found under a name where the message under way is looked for.
type match uint8

const (
	absent match = iota // nothing, or another message
	copied              // a file of the same content that is not the message's own
	itself
)

// find looks for the message under way as dir/name. A chmod, a link and a move
// change the ctime, and writing changes the mtime too: so one of the two must be
// as it was.
func (i identity) find(dir disk.Dir, name string) (match, error) {
	info, err := dir.Stat(name)
	if isMissing(err) || err == nil && info.Kind != disk.Regular {
		return absent, nil
	}
	if err != nil {
		return absent, err
	}
	own := info.Ino == i.Ino && (info.Ctime == i.Ctime || info.Mtime == i.Mtime)
	if i.SHA256 == "" { // noted by an older decree, which knew the inode alone
		if info.Ino == i.Ino {
			return itself, nil
		}
		return absent, nil
	}
	data, err := project.ReadFile(dir, name, message.MaxSize)
	switch {
	case isMissing(err) || errors.Is(err, project.ErrTooLarge):
		return absent, nil
	case err != nil:
		return absent, err
	case hashOf(data) != i.SHA256:
		return absent, nil
	case own:
		return itself, nil
	}
	return copied, nil
}
