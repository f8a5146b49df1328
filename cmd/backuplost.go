package cmd

import (
	"context"
	"path/filepath"

	"decree/disk"
	"decree/project"
)

// restoreLost makes the store of a project, which is missing, anew from a backup that was made of this very tree. What is
// here besides, such as a config, is kept first as by any restore.
func (s *session) restoreLost(ctx context.Context, o backupOptions, word string, lost *project.StoreMissing) error {
	root, err := s.rootOf()
	if err != nil {
		return err
	}
	config, err := project.ConfigOf(disk.OS, root)
	if err != nil {
		return err
	}
	s.note(lost.Error())
	r := &restore{session: s, o: o, root: root, anew: true}
	if r.src, err = s.source(ctx, o, &project.Site{Disk: disk.OS, Root: root, ID: lost.ID, Config: config}, word); err != nil {
		return err
	}
	defer r.src.close()
	if o.dryRun {
		return s.tryRestore(ctx, r.src)
	}
	if m := r.src.source.Manifest; m.Project != lost.ID || !m.MadeFrom(s.env.Host, root) {
		return refusedf("%s is of project %s at %s:%s, and not of this tree, whose store is missing; nothing was changed", r.src.name, m.Project, m.Host, m.Root).
			Hintf("restore it as another project's: remove %s, and repeat the restore with --name %s", quoteWord(filepath.Join(root, ".decree", "project.json")), r.src.place)
	}
	if err := s.mayRead(r.src); err != nil {
		return err
	}
	if err := s.mayReplace(r.src); err != nil {
		return err
	}
	s.anew = true
	return r.all(ctx)
}
