package backup

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/store"
	"decree/tree"
)

// Staged is a generation in a directory of its own, as the store that a restore makes of it: proven whole.
type Staged struct {
	Manifest *Manifest
	Store    *store.Store
	History  *history.History
	Needs    *store.Numbers
	dir      disk.Dir
}

// Close lets go of it; its files stay.
func (s *Staged) Close() error { return s.Store.Close() }

// Stage reads a generation into an empty directory and proves it: every pack or content by its
// hash, every file that the manifest lists by hash and size, every content that its records and its tree
// consist of by being there. The error is of kind Integrity for what is damaged.
func Stage(ctx context.Context, src *Source, dir disk.Dir, site project.Site, progress func(done, total int64)) (*Staged, error) {
	if err := src.fill(ctx, dir, progress); err != nil {
		return nil, err
	}
	objects, err := store.Open(dir, store.Options{})
	if err != nil {
		return nil, err
	}
	site.Store = dir
	s := &Staged{Manifest: src.Manifest, Store: objects, History: history.Open(&project.Project{Site: site}, history.Options{Objects: objects}), dir: dir}
	if err := s.build(ctx, !src.scratch); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// build makes a store of what was read, and proves it.
func (s *Staged) build(ctx context.Context, durable bool) error {
	if durable {
		if err := s.index(ctx); err != nil {
			return err
		}
	}
	if err := s.files(ctx); err != nil {
		return err
	}
	if err := s.logs(durable); err != nil {
		return err
	}
	if durable {
		if err := s.forget(ctx); err != nil {
			return err
		}
	}
	return s.prove()
}

// index makes the store's index of its packs, durably.
func (s *Staged) index(ctx context.Context) error {
	w, err := s.Store.Writer(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Flush()
}

// forget takes out what had been forgotten when the generation was made and packs of earlier ones, which it shares, have yet.
func (s *Staged) forget(ctx context.Context) error {
	if !slices.ContainsFunc(s.Manifest.Forgotten, s.Store.Has) {
		return nil
	}
	gone := setOf(s.Manifest.Forgotten)
	_, err := s.Store.Compact(ctx, func(h tree.Hash) bool { return !gone[h] }, store.CompactOptions{Force: true})
	return err
}

// files compares the files with their hashes.
func (s *Staged) files(ctx context.Context) error {
	names := map[tree.Hash][]FileName{}
	for name, f := range s.Manifest.Files {
		names[f.SHA256] = append(names[f.SHA256], name)
	}
	list, err := s.Store.InOrder(maps.Keys(names))
	if err != nil {
		return err
	}
	for _, h := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if at, err := s.compare(ctx, h, names[h]); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return damaged(err, "generation %s is damaged: %s", s.Manifest.Generation(), tree.Quote(string(at)))
		}
	}
	return nil
}

// compare reads a content to its end; not a byte of one that is not as long as the files that have it should be. at is one of these.
func (s *Staged) compare(ctx context.Context, h tree.Hash, names []FileName) (at FileName, err error) {
	at = names[0]
	r, size, err := s.Store.Open(h)
	if err != nil {
		return at, err
	}
	defer r.Close()
	for _, at = range names {
		if size != s.Manifest.Files[at].Size {
			return at, errSize
		}
	}
	_, err = io.Copy(io.Discard, &ctxReader{ctx, r})
	return at, err
}

// logs writes the store's own files.
func (s *Staged) logs(flush bool) error {
	for _, l := range []struct{ name, part string }{{"records.jsonl", logPart}, {"audit.jsonl", auditPart}, {"labels.json", storePart + "labels.json"}, {"forgotten.json", storePart + "forgotten.json"}} {
		var parts []string
		for name := range s.Manifest.Files {
			if rest, ok := strings.CutPrefix(string(name), l.part); ok && !strings.Contains(rest, "/") {
				parts = append(parts, string(name))
			}
		}
		if len(parts) == 0 {
			continue
		}
		slices.Sort(parts)
		err := disk.Replace(s.dir, l.name, disk.Replacement{Perm: project.PrivateFile, Flush: flush}, func(f disk.File) error {
			for _, name := range parts {
				if err := s.write(f, FileName(name)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes a file's content.
func (s *Staged) write(w io.Writer, name FileName) error {
	return copyContent(w, s.Store, s.Manifest.Files[name].SHA256)
}

// prove sees that all is there that the records and the tree name.
func (s *Staged) prove() error {
	s.Needs = s.Store.Numbers()
	if err := recorder.ClosureOf(s.History, s.Manifest.Tree, s.Needs, func(tree.Hash, error) {}); err != nil {
		return damaged(err, "generation %s is damaged", s.Manifest.Generation())
	}
	list, err := store.ReadForgotten(s.dir)
	if err != nil {
		return err
	}
	without := setOf(s.Manifest.Missing)
	for _, h := range s.Manifest.Forgotten {
		s.Needs.Set(h, 0)
	}
	lost := 0
	for h := range s.Needs.All() {
		if s.Store.Has(h) {
			continue
		}
		s.Needs.Set(h, 0)
		if _, ok := list.Contents[h]; !ok && !without[h] {
			lost++
		}
	}
	if lost > 0 {
		return damaged(fmt.Errorf("of %d contents %d are missing", s.Manifest.Counts.Contents, lost), "generation %s is damaged", s.Manifest.Generation())
	}
	return nil
}

// TreeFiles is how many files and links the generation's tree has, as far as it is there.
func (s *Staged) TreeFiles() (n int, err error) {
	r := tree.Reader{From: s.History.Directories(), Skip: func(*tree.DamagedError) bool { return true }}
	for it, err := range r.Entries(s.Manifest.Tree) {
		if err != nil {
			return 0, err
		}
		if it.Entry.Type != tree.Dir {
			n++
		}
	}
	return n, nil
}

// WriteZip writes the generation as one zip that needs nothing else.
func (s *Staged) WriteZip(ctx context.Context, w io.Writer) error {
	return writeWhole(ctx, w, s.Manifest, s.Store, s.Needs)
}
