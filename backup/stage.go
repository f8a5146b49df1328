package backup

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/store"
	"decree/tree"
)

// Source is where a generation is read from: a target, or a zip that needs nothing else.
type Source struct {
	Manifest *Manifest
	// fill puts the generation's contents into a store's directory, each proven as what it is.
	fill func(ctx context.Context, dir disk.Dir, progress func(done, total int64)) error
	// scratch: what is made of it is looked at and removed, and need not be durable.
	scratch bool
	place   *Place // that it is in; nil for a zip
}

// Generation opens one of the place's generations: its manifest is the acknowledged one, or that of its zip,
// whose hash the acknowledged one has.
func (p *Place) Generation(ctx context.Context, name string) (*Source, error) {
	m := p.Manifest
	if m == nil || name != m.Generation() {
		var err error
		if m, err = p.provenManifest(ctx, name); err != nil {
			return nil, err
		}
	} else if !p.agreed {
		return nil, p.disagreed()
	}
	return p.source(m, false), nil
}

func (p *Place) source(m *Manifest, scratch bool) *Source {
	return &Source{m, func(ctx context.Context, dir disk.Dir, progress func(int64, int64)) error {
		return p.fetch(ctx, m, dir, !scratch, progress)
	}, scratch, p}
}

// provenManifest is the manifest of a generation that has a zip, which is compared with its hash.
func (p *Place) provenManifest(ctx context.Context, name string) (*Manifest, error) {
	at := p.archiveName(name)
	size, err := p.checkZip(ctx, name)
	if err != nil {
		return nil, unread(err, name)
	}
	z, err := openZip(p.archive(ctx, name, size), size)
	if err != nil {
		return nil, unread(err, name)
	}
	m, err := z.manifest()
	if err == nil && (m.Project != p.project() || name != m.Generation() && !IsPreRestore(name)) {
		err = &FormatError{at, "it is another generation's"}
	}
	if err != nil {
		return nil, unread(err, name)
	}
	return m, nil
}

// unread is the error of a generation whose zip is damaged, or cannot be read now.
func unread(err error, name string) error {
	if unusable(err) {
		return damaged(err, "generation %s is damaged", name)
	}
	return &project.Error{Kind: project.Failed, Msg: fmt.Sprintf("generation %s cannot be read", name), Err: err, State: project.Unchanged,
		Advice: "repeat it when the disk or the line is mended"}
}

// checkZip compares a generation's zip with its hash, where that is known, and returns its length.
func (p *Place) checkZip(ctx context.Context, name string) (int64, error) {
	at, g := p.archiveName(name), p.zips()[name]
	if g.Damaged {
		return 0, errManifest
	}
	size, err := sizeOf(ctx, p.Target, at)
	if err == nil && !g.SHA256.IsZero() {
		err = verify(ctx, p.Target, at, g.SHA256, size)
	}
	return size, err
}

var errManifest = fmt.Errorf("its zip was made of a damaged %s: %w", ManifestFile, errHash)

// project is the id of the project that the place is of.
func (p *Place) project() string {
	if p.Manifest == nil {
		return p.Marker.Project
	}
	return p.Manifest.Project
}

// fetch copies a generation's packs into a store's directory.
func (p *Place) fetch(ctx context.Context, m *Manifest, dir disk.Dir, flush bool, progress func(done, total int64)) error {
	if len(m.Packs) == 0 && m.Counts.Contents > 0 { // what a restore has replaced
		return p.fetchZip(ctx, m, dir)
	}
	total, done := int64(0), int64(0)
	for _, size := range m.Packs {
		total += size
	}
	n := 0
	for _, h := range sortedPacks(m) {
		n++
		in, name := store.PackFile(n)
		packs, err := project.MakeDir(dir, in, project.PrivateDir)
		if err != nil {
			return err
		}
		err = disk.Replace(packs, name, disk.Replacement{Perm: project.PrivateFile, Flush: flush}, func(f disk.File) error {
			err := copyVerified(ctx, p.Target, f, p.packName(h), h, m.Packs[h])
			return damagedUnlessDisk(err, "generation %s is damaged", m.Generation())
		})
		packs.Close()
		if err != nil {
			return err
		}
		done += m.Packs[h]
		progress(done, total)
	}
	return nil
}

func (p *Place) fetchZip(ctx context.Context, m *Manifest, dir disk.Dir) error {
	for _, name := range []string{preRestore + m.Generation(), m.Generation()} {
		if _, ok := p.zips()[name]; !ok {
			continue
		}
		size, err := p.checkZip(ctx, name)
		if err != nil {
			return damagedUnlessDisk(err, "generation %s is damaged", name)
		}
		z, err := openZip(p.archive(ctx, name, size), size)
		if err != nil {
			return err
		}
		return z.fill(ctx, m, dir)
	}
	return damaged(errors.New("its zip is missing"), "generation %s", m.Generation())
}

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
func Stage(ctx context.Context, src *Source, dir disk.Dir, site project.Site, progress func(done, total int64)) (s *Staged, err error) {
	if err := src.fill(ctx, dir, progress); err != nil {
		return nil, err
	}
	s = &Staged{Manifest: src.Manifest, dir: dir}
	if s.Store, err = store.Open(dir, store.Options{}); err != nil {
		return nil, err
	}
	objects := s.Store
	defer func() {
		if err != nil {
			objects.Close()
		}
	}()
	if !src.scratch {
		if err = s.index(ctx); err != nil {
			return nil, err
		}
	}
	if err = s.files(ctx); err != nil {
		return nil, err
	}
	if err = s.logs(!src.scratch); err != nil {
		return nil, err
	}
	if !src.scratch {
		if err = s.forget(ctx); err != nil {
			return nil, err
		}
	}
	site.Store = dir
	s.History = history.Open(&project.Project{Site: site}, history.Options{Objects: s.Store})
	return s, s.prove()
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

// zipped is a zip whose list of names was looked through.
type zipped struct {
	*zip.Reader
	files map[string]*zip.File
	from  *noting
}

// noting reads, and remembers the error because of which what is read is not known: package zip tells some of them as a malformed archive.
type noting struct {
	io.ReaderAt
	err error
}

func (n *noting) ReadAt(b []byte, off int64) (int, error) {
	done, err := n.ReaderAt.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return done, err
}

// malformed is the error of what is wrong in a zip, unless it could not be read.
func (n *noting) malformed(what string, err error) error {
	if n.err != nil {
		return fmt.Errorf("%s: %w", what, n.err)
	}
	return &FormatError{what, err.Error()}
}

// openZip refuses what no writer of ours has written: names that leave the directory, twice the same, links
// and other things that are no files, more bytes than the archive can hold.
func openZip(r io.ReaderAt, size int64) (*zipped, error) {
	from := &noting{ReaderAt: r}
	z, err := zip.NewReader(from, size)
	if err != nil {
		return nil, from.malformed("the archive", err)
	}
	out := &zipped{z, map[string]*zip.File{}, from}
	left := uint64(size)
	for _, f := range z.File {
		if f.CompressedSize64 > left { // a sum of them could wrap
			return nil, &FormatError{"the archive", "its files overlap: it says that it holds more bytes than it has"}
		}
		left -= f.CompressedSize64
		if err := out.take(f); err != nil {
			return nil, &FormatError{"the archive", err.Error()}
		}
	}
	return out, nil
}

func (z *zipped) take(f *zip.File) error {
	switch {
	case strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0:
		return checkFile(strings.TrimSuffix(f.Name, "/"))
	case !f.Mode().IsRegular():
		return fmt.Errorf("%q is no regular file", f.Name)
	case f.Method != zip.Deflate && f.Method != zip.Store:
		return fmt.Errorf("%q: unknown compression %d", f.Name, f.Method)
	case f.UncompressedSize64 > 1100*f.CompressedSize64+1<<16:
		return fmt.Errorf("%q: no compression makes so little of so much", f.Name)
	}
	_, has := z.files[f.Name]
	z.files[f.Name] = f
	return checkZipName(f.Name, has)
}

// manifest reads the manifest of the zip's generation.
func (z *zipped) manifest() (*Manifest, error) {
	f := z.files[ManifestFile]
	if f == nil {
		return nil, &FormatError{"the archive", "no " + ManifestFile + " in it"}
	}
	if f.UncompressedSize64 > MaxManifest {
		return nil, &FormatError{ManifestFile, fmt.Sprintf("larger than %d MiB", MaxManifest>>20)}
	}
	r, err := f.Open()
	if err != nil {
		return nil, z.from.malformed(ManifestFile, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, MaxManifest+1))
	if err != nil {
		return nil, z.from.malformed(ManifestFile, err)
	}
	return ParseManifest(data)
}

// The parts of a zip that needs nothing else.
const (
	treePart     = "tree/"
	contentsPart = "contents/"
)

// fill puts all contents of a zip that needs nothing else into a store.
func (z *zipped) fill(ctx context.Context, m *Manifest, dir disk.Dir) error {
	if err := z.withinManifest(m); err != nil {
		return err
	}
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := s.Writer(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, f := range z.File { // in the order in which they lie there
		name := f.Name
		if name == ManifestFile {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := z.putFile(w, m, name, f); err != nil {
			return err
		}
	}
	return w.Flush()
}

// withinManifest refuses a zip that says it holds more than its manifest knows of.
func (z *zipped) withinManifest(m *Manifest) error {
	var limit, held total
	known := limit.add(m.Counts.Bytes) && limit.add(m.Counts.TreeBytes) && limit.add(1<<20)
	for _, f := range m.Files {
		known = known && limit.add(f.Size)
	}
	for name, f := range z.files {
		if name != ManifestFile {
			known = known && f.UncompressedSize64 <= 1<<60 && held.add(int64(f.UncompressedSize64))
		}
	}
	switch {
	case !known:
		return &FormatError{"the archive", "it or its manifest says that it holds more bytes than any disk has"}
	case held > limit:
		return &FormatError{"the archive", fmt.Sprintf("it holds %d bytes, and its manifest knows of %d", held, limit)}
	}
	return nil
}

func (z *zipped) putFile(w *store.Writer, m *Manifest, name string, f *zip.File) error {
	var want tree.Hash
	file, listed := m.Files[FileName(name)]
	switch hex, named := strings.CutPrefix(name, contentsPart); {
	case strings.HasPrefix(name, treePart):
	case listed:
		want = file.SHA256
	case named:
		var err error
		if want, err = tree.ParseHash(hex); err != nil || want.IsZero() {
			return &FormatError{"the archive", fmt.Sprintf("%q is not named by a hash", name)}
		}
	default:
		return &FormatError{"the archive", fmt.Sprintf("%q is not listed in its manifest", name)}
	}
	r, err := f.Open()
	if err != nil {
		return z.from.malformed("the archive", fmt.Errorf("%s: %w", name, err))
	}
	defer r.Close()
	got, n, err := w.Put(io.LimitReader(r, int64(f.UncompressedSize64)+1), int64(f.UncompressedSize64))
	if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(err, "the archive: %s", tree.Quote(name))
	}
	if err == nil && (!want.IsZero() && got != want || n != int64(f.UncompressedSize64)) {
		return damaged(errHash, "the archive: %s", tree.Quote(name))
	}
	return err
}

// beginsAsZip says whether a file begins as zips do, so that one which cannot be read as one was damaged.
func beginsAsZip(f io.ReaderAt) bool {
	var start [4]byte
	_, err := f.ReadAt(start[:], 0)
	return err == nil && string(start[:]) == "PK\x03\x04"
}

// FromZip opens a zip that needs nothing else.
func FromZip(f io.ReaderAt, size int64) (*Source, error) {
	z, err := openZip(f, size)
	if errors.As(err, new(*FormatError)) && beginsAsZip(f) {
		return nil, &project.Error{Kind: project.Integrity, Err: err, State: project.Unchanged, Advice: "it was cut off or changed: take another copy of it"}
	}
	if err != nil {
		return nil, err
	}
	m, err := z.manifest()
	if err != nil {
		return nil, err
	}
	if len(m.Packs) > 0 {
		return nil, &project.Error{Kind: project.Failed, State: project.Unchanged, Msg: "the archive needs the packs of its target",
			Advice: "restore it by its name, with --from its target; 'decree backup export' makes one that needs nothing else"}
	}
	return &Source{Manifest: m, fill: func(ctx context.Context, dir disk.Dir, _ func(int64, int64)) error { return z.fill(ctx, m, dir) }}, nil
}

// whole is what writes a zip that needs nothing else.
type whole struct {
	z     *zipWriter
	store *store.Store
	done  map[tree.Hash]bool
}

// writeWhole writes a generation as one zip that needs nothing else: manifest.json, its files, the files of the tree
// below tree/, and below contents/ what else its records consist of, each named by its hash. Links are in
// the directories' objects alone.
func writeWhole(ctx context.Context, out io.Writer, m *Manifest, s *store.Store, needs *store.Numbers) error {
	own := m.own()
	own.Packs = map[tree.Hash]int64{}
	w := &whole{newZip(out, own), s, map[tree.Hash]bool{}}
	if err := w.z.manifest(); err != nil {
		return err
	}
	for _, name := range sortedFiles(m) {
		if !zippable(name) {
			continue
		}
		if err := w.add(ctx, string(name), m.Files[name].SHA256); err != nil {
			return err
		}
	}
	missing := setOf(m.Missing, m.Forgotten)
	r := tree.Reader{From: objects{ctx, fromStore{s}}, Skip: func(e *tree.DamagedError) bool { return missing[e.Hash] }}
	for it, err := range r.Entries(m.Tree) {
		if err != nil {
			return err
		}
		name := path.Join(treePart, string(it.Path))
		if it.Entry.Type != tree.Regular || missing[it.Entry.SHA256] || !plainName(name) {
			continue
		}
		if err := w.add(ctx, name, it.Entry.SHA256); err != nil {
			return err
		}
	}
	rest := needs.Clone()
	for _, f := range m.Files {
		rest.Set(f.SHA256, 1)
	}
	for h := range rest.All() {
		if w.done[h] {
			continue
		}
		if err := w.add(ctx, contentsPart+h.String(), h); err != nil {
			return err
		}
	}
	return w.z.Close()
}

func (w *whole) add(ctx context.Context, name string, h tree.Hash) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to, err := w.z.create(name)
	if err == nil {
		err = copyContent(to, w.store, h)
	}
	w.done[h] = true
	return err
}

// WriteZip writes the generation as one zip that needs nothing else.
func (s *Staged) WriteZip(ctx context.Context, w io.Writer) error {
	return writeWhole(ctx, w, s.Manifest, s.Store, s.Needs)
}
