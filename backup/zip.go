package backup

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/store"
	"decree/tree"
)

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
	return &formatError{what, err.Error()}
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
			return nil, &formatError{"the archive", "its files overlap: it says that it holds more bytes than it has"}
		}
		left -= f.CompressedSize64
		if err := out.take(f); err != nil {
			return nil, &formatError{"the archive", err.Error()}
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
	f := z.files[manifestFile]
	if f == nil {
		return nil, &formatError{"the archive", "no " + manifestFile + " in it"}
	}
	if f.UncompressedSize64 > maxManifest {
		return nil, &formatError{manifestFile, fmt.Sprintf("larger than %d MiB", maxManifest>>20)}
	}
	r, err := f.Open()
	if err != nil {
		return nil, z.from.malformed(manifestFile, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, z.from.malformed(manifestFile, err)
	}
	return parseManifest(data)
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
		if name == manifestFile {
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
		if name != manifestFile {
			known = known && f.UncompressedSize64 <= 1<<60 && held.add(int64(f.UncompressedSize64))
		}
	}
	switch {
	case !known:
		return &formatError{"the archive", "it or its manifest says that it holds more bytes than any disk has"}
	case held > limit:
		return &formatError{"the archive", fmt.Sprintf("it holds %d bytes, and its manifest knows of %d", held, limit)}
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
			return &formatError{"the archive", fmt.Sprintf("%q is not named by a hash", name)}
		}
	default:
		return &formatError{"the archive", fmt.Sprintf("%q is not listed in its manifest", name)}
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
	if errors.As(err, new(*formatError)) && beginsAsZip(f) {
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

// zipWriter writes a zip of a generation, all of whose files have the generation's time. It takes no name that a reader refuses.
type zipWriter struct {
	*zip.Writer
	m   *Manifest
	has map[string]bool
}

func newZip(w io.Writer, m *Manifest) *zipWriter {
	return &zipWriter{zip.NewWriter(w), m, map[string]bool{}}
}

// manifest writes the generation's own manifest, which says nothing of others.
func (z *zipWriter) manifest() error {
	data, err := z.m.own().Encode()
	if err != nil {
		return err
	}
	w, err := z.create(manifestFile)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// create begins a file.
func (z *zipWriter) create(name string) (io.Writer, error) {
	if err := checkZipName(name, z.has[name]); err != nil {
		return nil, &formatError{"the archive", err.Error()}
	}
	z.has[name] = true
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: z.m.Timestamp}
	h.SetMode(0o600)
	return z.CreateHeader(h)
}

// checkZipName refuses the name of a file in a zip, which may have one of that name already.
func checkZipName(name string, has bool) error {
	switch {
	case strings.Contains(name, `\`):
		return fmt.Errorf("%q: a backslash", name)
	case has:
		return fmt.Errorf("%q comes twice", name)
	}
	return checkFile(name)
}

// plainName says whether a name can stand in a zip as it is: what is called otherwise is taken by its hash.
func plainName(name string) bool {
	return tree.Quote(name) == name && checkZipName(name, false) == nil
}

// zippable says whether a generation's file can stand in its zip under its name, which there may be that of something
// else: an earlier decree has written generations with such names.
func zippable(name FileName) bool {
	top, _, _ := strings.Cut(string(name), "/")
	return plainName(string(name)) && !slices.Contains([]string{manifestFile, "tree", "contents"}, top)
}
