package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"decree/backup"
	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/recorder"
)

// backupSource is where a restore or an export reads from.
type backupSource struct {
	source *backup.Source
	name   string // for messages
	close  func()
}

// source finds a generation: word is its name, a part of it or the path of a FILE.zip.
func (s *session) source(ctx context.Context, o backupOptions, p *project.Site, word string) (*backupSource, error) {
	if strings.HasSuffix(word, ".zip") {
		if src, err := s.zipSource(word); src != nil || err != nil {
			return src, err
		}
	}
	t, err := s.openTarget(ctx, cmp.Or(o.from, o.to), p, false)
	if err != nil {
		return nil, err
	}
	out, err := s.inTarget(ctx, o, p, t, word)
	if err != nil {
		t.Close()
	}
	return out, err
}

// zipSource opens a FILE.zip; nil where there is none of that name.
func (s *session) zipSource(word string) (*backupSource, error) {
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	var src *backup.Source
	if err == nil {
		src, err = backup.FromZip(f, st.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &backupSource{src, word, func() { f.Close() }}, nil
}

func (s *session) inTarget(ctx context.Context, o backupOptions, p *project.Site, t target.Target, word string) (*backupSource, error) {
	var place *backup.Place
	var err error
	if o.name == "" && p != nil && p.ID != "" {
		if place, err = backup.Find(ctx, t, p.BackupName(s.where()), p.ID); err != nil {
			return nil, err
		}
	}
	if place == nil || place.Manifest == nil {
		if place, err = backup.One(ctx, t, o.name); err != nil {
			return nil, err
		}
	}
	name, err := place.Resolve(word)
	if err != nil {
		return nil, err
	}
	src, err := place.Generation(ctx, name)
	if err != nil {
		return nil, err
	}
	return &backupSource{src, name, func() { t.Close() }}, nil
}

// siteIfAny is the project that is here, nil if there is none.
func (s *session) siteIfAny() (*project.Site, error) {
	rec, err := s.forReading()
	if errors.Is(err, project.ErrNoProject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return rec.Project(), nil
}

func (s *session) restoreBackup(ctx context.Context, o backupOptions, words []string) error {
	word := ""
	if len(words) > 0 {
		word = words[0]
	}
	if o.into != "" {
		made, err := s.emptyRoot(o.into)
		if err != nil {
			return err
		}
		done := false
		defer func() {
			if !done && made {
				_ = os.Remove(s.global.root) // it is still empty
			}
		}()
		err = s.restoreHere(ctx, o, word)
		done = err == nil
		return err
	}
	return s.restoreHere(ctx, o, word)
}

// emptyRoot makes DIR of --into, which must be empty, the root.
func (s *session) emptyRoot(into string) (made bool, err error) {
	if s.global.root != "" {
		return false, usagef("--into and --root cannot be used together").Hintf("choose one")
	}
	path := into
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	list, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made, err = true, os.MkdirAll(path, 0o755)
	case err == nil && len(list) > 0:
		err = refusedf("%s is not empty; nothing was changed", quoteWord(into)).Hintf("name a new directory, or go there and leave --into out")
	}
	s.global.root = path
	return made, err
}

func (s *session) restoreHere(ctx context.Context, o backupOptions, word string) error {
	site, err := s.siteIfAny()
	if err != nil {
		return err
	}
	src, err := s.source(ctx, o, site, word)
	if err != nil {
		return err
	}
	defer src.close()
	if o.dryRun {
		return s.tryRestore(ctx, src)
	}
	if site != nil && !s.global.yes {
		if !s.canAsk() {
			return refusedf("a restore replaces the records, config, routines and messages of this project; nothing was changed").Hintf("say --yes; what is here is kept as an archive first, and 'decree backup restore --dry-run' only reads and proves")
		}
		if s.ask(fmt.Sprintf("replace the records, config, routines and messages of this project by those of %s? [y/N]", src.name), 'n') != 'y' {
			return refusedf("not confirmed; nothing was changed")
		}
	}
	empty := site == nil && s.emptyTree()
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	live := rec.Project().Config.Backup.Plugins
	out, err := s.restoreInto(ctx, o, rec, src, site == nil)
	if err != nil {
		if site == nil {
			s.undoProject(rec, empty)
		}
		return err
	}
	s.tellRestored(src, out)
	if o.tree || empty {
		if err := s.restoreTree(ctx, rec, src, out); err != nil {
			return err
		}
	}
	return s.restorePlugins(ctx, o, rec, live, site == nil, out.Manifest)
}

// restoreTree makes the tree that of the generation.
func (s *session) restoreTree(ctx context.Context, rec *recorder.Recorder, src *backupSource, out *backup.Restored) error {
	moved, err := rec.RestoreState(ctx, out.Manifest.Tree, "the backup of "+src.name)
	if err != nil {
		return err
	}
	if moved.Record != nil {
		s.say("decree: the tree is that of the backup: record %s; 'decree revert last' takes that back", moved.Record.ID)
	}
	return nil
}

// emptyTree says whether the root has nothing in it.
func (s *session) emptyTree() bool {
	root, _, err := project.FindRoot(disk.OS, s.where())
	if err != nil {
		return false
	}
	list, err := os.ReadDir(root)
	return err == nil && len(list) == 0
}

// undoProject removes the project that was made for a restore which failed.
func (s *session) undoProject(rec *recorder.Recorder, empty bool) {
	p := rec.Project()
	if p.Swapping() {
		return // it was decided on, and the next command finishes it
	}
	_ = os.RemoveAll(p.StorePath)
	if empty {
		_ = os.RemoveAll(filepath.Join(p.Root, ".decree"))
	}
}

func (s *session) restoreInto(ctx context.Context, o backupOptions, rec *recorder.Recorder, src *backupSource, fresh bool) (*backup.Restored, error) {
	aside := func() (target.Target, error) {
		return s.openTarget(ctx, project.DefaultBackupTo, &rec.Project().Site, true)
	}
	var t target.Target
	if !fresh {
		var err error
		if t, err = s.openTarget(ctx, o.to, &rec.Project().Site, true); err != nil {
			s.note(fmt.Sprintf("the target for what is here now cannot be used: %v; it is kept in %s", err, project.DefaultBackupTo))
			if t, err = aside(); err != nil {
				return nil, err
			}
		}
		defer t.Close()
	}
	return backup.Restore(ctx, s.backupOf(rec, t), backup.RestoreOptions{Source: src.source, Fresh: fresh, Aside: aside})
}

func (s *session) tellRestored(src *backupSource, out *backup.Restored) {
	s.meter.stop()
	c := out.Manifest.Counts
	s.say("decree: restored %s: %s, %s of contents, each proven by its hash", src.name, count(c.Records, "record"), size(c.Bytes))
	if out.Before != "" {
		s.say("decree: what was here before is kept in %s", quoteWord(out.Before))
	}
	for _, name := range out.Skipped {
		s.note("message " + name + " is not queued again: it is done or dead here")
	}
	if out.Foreign {
		s.note(fmt.Sprintf("it is from %s:%s; its messages, cron jobs and schedules wait until 'decree daemon --resume'", out.Manifest.Host, out.Manifest.Root))
	}
}

// tryRestore reads and proves a generation, and changes nothing.
func (s *session) tryRestore(ctx context.Context, src *backupSource) error {
	return s.inScratch(ctx, src, func(staged *backup.Staged) error {
		s.meter.stop()
		c := staged.Manifest.Counts
		if s.global.json {
			return s.printJSON(staged.Manifest.Counts)
		}
		s.tell("%s can be restored: %s, %s, %s of contents, each proven by its hash; nothing was changed", src.name, count(c.Records, "record"), count(len(staged.Manifest.Files), "file"), size(c.Bytes))
		return nil
	})
}

// inScratch stages a generation in a temporary directory.
func (s *session) inScratch(ctx context.Context, src *backupSource, do func(*backup.Staged) error) error {
	path, err := os.MkdirTemp(s.env.get("TMPDIR"), "decree-backup-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(path) }()
	dir, err := disk.OS.OpenRoot(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	staged, err := backup.Stage(ctx, src.source, dir, project.Site{Disk: disk.OS, Root: path, Dir: dir, StorePath: path, ID: src.source.Manifest.Project},
		func(done, total int64) { s.meter.update(recorder.Progress{Phase: "reading", Done: done, Total: total}) })
	if err != nil {
		return project.Unmoved(err)
	}
	defer staged.Close()
	return do(staged)
}

func (s *session) exportBackup(ctx context.Context, o backupOptions, words []string) error {
	if len(words) < 2 {
		return usagef("export needs a GENERATION and a FILE.zip").Hintf("for example 'decree backup export current tool.zip'")
	}
	site, err := s.siteIfAny()
	if err != nil {
		return err
	}
	src, err := s.source(ctx, o, site, words[0])
	if err != nil {
		return err
	}
	defer src.close()
	path := words[1]
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	return s.inScratch(ctx, src, func(staged *backup.Staged) error {
		dir, err := disk.OS.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		var n int64
		err = disk.Replace(dir, filepath.Base(path), disk.Replacement{Perm: project.PrivateFile, Flush: true, Place: dir.RenameNew}, func(f disk.File) error {
			if err := staged.WriteZip(ctx, f); err != nil {
				return err
			}
			n, err = f.Seek(0, io.SeekCurrent)
			return err
		})
		if errors.Is(err, fs.ErrExist) {
			return refusedf("%s is there already; nothing was changed", quoteWord(words[1])).Hintf("name another file, or move that one away")
		}
		if err != nil {
			return err
		}
		s.meter.stop()
		s.tell("exported %s to %s, %s", src.name, quoteWord(words[1]), size(n))
		return nil
	})
}
