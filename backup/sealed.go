package backup

import (
	"context"
	"encoding/json"
	"path"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
)

// keysFile is what the store remembers of the keys of encrypted backups: what writing on needs, and
// nothing that opens what was written before.
const keysFile = project.BackupKeysFile

// maxKeys bounds it, in bytes.
const maxKeys = 64 << 20

// keyMemory is a target.Memory in the store.
type keyMemory struct{ store disk.Dir }

func (k keyMemory) Load() ([]byte, error) {
	data, err := project.ReadFile(k.store, keysFile, maxKeys)
	if isMissing(err) {
		return nil, nil
	}
	if err == nil && len(data) > 0 && !json.Valid(data) {
		return nil, &project.Error{Kind: project.Failed, Msg: path.Join(k.store.Path(), keysFile) + ", what the store remembers of the keys of encrypted backups, is damaged", State: project.Unchanged,
			Advice: "remove it: with backup.identity, or DECREE_BACKUP_PASSPHRASE, the next backup writes it anew; without what opens the backups, backups need a new backup.name"}
	}
	return data, err
}

// Change takes the lock of all that the store remembers of backups, since several of them may be under way.
func (k keyMemory) Change(change func([]byte) ([]byte, error)) error {
	return underMemoryLock(k.store, func() error {
		was, err := k.Load()
		if err != nil {
			return err
		}
		now, err := change(was)
		if err != nil || now == nil {
			return err
		}
		return project.ReplaceFile(k.store, keysFile, now, project.PrivateFile, true)
	})
}

// Unreadable says why the backups called name cannot be read here, as encrypted ones without what opens
// them; nil: they can. Then there is no proof of them and no rotation.
func Unreadable(ctx context.Context, t target.Target, name string) error {
	s, ok := t.(target.Sealed)
	if !ok {
		return nil
	}
	return s.Readable(ctx, name)
}

// spoiledKey says what is wrong with the key.age of the backups called name, without which only this machine reads them; nil: nothing is.
func spoiledKey(ctx context.Context, t target.Target, name string) error {
	if s, ok := t.(target.Sealed); ok {
		return s.Spoiled(ctx, name)
	}
	return nil
}
