package backup

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
)

// OpenOptions say which target is to be opened.
type OpenOptions struct {
	To     string // as the config or --to has it; "" is the default one
	Root   string // of the project, "" where there is none
	Home   string
	Cwd    string // to which a path of --to is relative
	Disk   disk.Disk
	Create bool // make a directory that is missing
	// Getenv is the environment, for what remote and encrypted targets take from there.
	Getenv    func(string) string
	Config    project.Backup
	Store     disk.Dir // of the project; nil where there is none
	StorePath string
	Bandwidth int64 // bytes a second; 0: no limit
}

// Open opens a target. Where the config has no identity, DECREE_BACKUP_IDENTITY may name its file, as on a
// machine that has no config yet.
func Open(ctx context.Context, o OpenOptions) (target.Target, error) {
	keys := target.Keys{Recipients: o.Config.Encrypt, Identity: o.fromHome(o.Config.Identity)}
	if o.Getenv != nil {
		keys.Passphrase = o.Getenv("DECREE_BACKUP_PASSPHRASE")
		keys.Identity = cmp.Or(keys.Identity, o.fromHome(o.Getenv("DECREE_BACKUP_IDENTITY")))
	}
	if o.Store != nil {
		keys.Memory = keyMemory{o.Store}
	}
	gone := Missing(o.Store, o.Place()) // then what is missing is not made
	t, err := target.Open(ctx, o.Disk, target.Options{To: o.Place(), Create: o.Create && gone == nil, ForOwner: o.inTree(), Keys: keys, Getenv: o.Getenv, Home: o.Home, Scratch: o.StorePath, Bandwidth: o.Bandwidth})
	if gone != nil && errors.Is(err, target.ErrGone) && !strings.Contains(o.To, "://") {
		return nil, gone
	}
	if errors.Is(err, target.ErrNoCredentials) {
		return nil, &project.Error{Kind: project.Refused, Err: err, State: project.Unchanged, Advice: "a daemon and cron need them in their own environment, or in the file"}
	}
	if err != nil && strings.Contains(o.To, "://") && !errors.Is(err, target.ErrGone) {
		err = &project.Error{Kind: project.Usage, Err: err, Advice: "'decree help config' has the forms of backup.to"}
	}
	return t, err
}

// Place is the target's absolute path, or its URL, in one spelling.
func (o OpenOptions) Place() string {
	at := o.fromHome(o.To)
	switch {
	case strings.Contains(at, "://"):
	case at == "" || at == project.DefaultBackupTo:
		at = filepath.Join(o.Root, filepath.FromSlash(project.DefaultBackupTo))
	case !filepath.IsAbs(at):
		at = filepath.Join(o.Cwd, at)
	}
	return target.Clean(at)
}

// inTree says whether the target is the directory in the tree that backups without a configured one go to.
func (o OpenOptions) inTree() bool {
	return o.Root != "" && o.Place() == filepath.Join(o.Root, filepath.FromSlash(project.DefaultBackupTo))
}

func (o OpenOptions) fromHome(at string) string {
	if rest, ok := strings.CutPrefix(at, "~/"); ok && o.Home != "" {
		return filepath.Join(o.Home, rest)
	}
	return at
}
