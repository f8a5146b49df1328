package backup

import (
	"context"
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
	// Getenv is the environment, for what remote targets take from there.
	Getenv func(string) string
}

// Open opens a target.
func Open(_ context.Context, o OpenOptions) (target.Target, error) {
	if scheme, _, remote := strings.Cut(o.To, "://"); remote {
		return nil, &project.Error{Kind: project.Usage, Msg: o.To + ": there is no target of the kind " + scheme + "://", Advice: "name a directory"}
	}
	at := o.To
	if rest, ok := strings.CutPrefix(at, "~/"); ok && o.Home != "" {
		at = filepath.Join(o.Home, rest)
	}
	switch {
	case at == "" || at == project.DefaultBackupTo:
		at = filepath.Join(o.Root, filepath.FromSlash(project.DefaultBackupTo))
	case !filepath.IsAbs(at):
		at = filepath.Join(o.Cwd, at)
	}
	return target.OpenDirectory(o.Disk, at, o.Create)
}
