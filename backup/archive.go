package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"decree/backup/target"
	"decree/tree"
)

// archiveName is the name in the target of a generation's zip.
func (p *Place) archiveName(generation string) string {
	return p.At(archivesDir, generation+".zip")
}

// zipGeneration writes the zip of a generation into archives/ and reads it back: its manifest.json, and its
// files that are not large but those of the records, which the packs have.
func (p *Place) zipGeneration(ctx context.Context, m *Manifest, c writer) (g Generation, err error) {
	g = m.generation()
	name := p.archiveName(m.Generation())
	var size int64
	g.SHA256, size, err = writeNew(ctx, p.Target, name, func(w io.Writer) error { return p.writeZip(ctx, w, m, c) })
	if err == nil {
		return g, readBack(p.Target, verify(ctx, p.Target, name, g.SHA256, size))
	}
	if !errors.Is(err, fs.ErrExist) {
		return g, err
	}
	// A backup that died before it was acknowledged has written it: the same, if it was whole.
	if err = verify(ctx, p.Target, name, g.SHA256, size); err == nil {
		return g, nil
	}
	if _, alone := p.Target.(target.Locker); !alone {
		if isDamage(err) {
			err = errTaken
		}
		return g, err
	}
	if err := p.Target.Delete(ctx, name); err != nil {
		return g, err
	}
	return p.zipGeneration(ctx, m, c)
}

// maxZip bounds a zip that is held in memory, in bytes.
var maxZip int64 = 64 << 20

// oldZip is what lies where the zip of a generation is.
type oldZip struct {
	data    []byte         // nothing where it is missing or was damaged
	version target.Version // to replace just that
	large   bool           // too large to be held: nothing is known of it
}

// readZip reads what lies where the zip of a generation is.
func (p *Place) readZip(ctx context.Context, generation string) (old oldZip, err error) {
	old.data, old.version, err = p.Target.Read(ctx, p.archiveName(generation), maxZip)
	switch {
	case errors.Is(err, target.ErrTooLarge):
		return oldZip{large: true}, nil
	case errors.Is(err, target.ErrDamaged):
		return oldZip{version: old.version}, nil
	}
	return old, err
}

// archive reads the zip of a generation.
func (p *Place) archive(ctx context.Context, generation string, size int64) io.ReaderAt {
	return &ahead{from: &ranges{ctx, p.Target, p.archiveName(generation)}, size: size}
}

// isLargeZipOf is isZipOf for one that is not held.
func (p *Place) isLargeZipOf(ctx context.Context, of *Manifest) (bool, error) {
	size, err := sizeOf(ctx, p.Target, p.archiveName(of.Generation()))
	if err != nil {
		return false, err
	}
	return isZipOf(p.archive(ctx, of.Generation(), size), size, of)
}

// zipAnew writes the zip of a generation in the place of old, which is missing or was changed. The replacement is
// conditional: at no moment is there no zip, and what another backup has put there meanwhile stays. A zip that is too
// large to be held in memory cannot be replaced like that on any target, so then the old one is removed first; after
// a death between the two the next backup makes the missing zip anew.
func (p *Place) zipAnew(ctx context.Context, m *Manifest, c writer, old oldZip) (g Generation, err error) {
	g = m.generation()
	name := p.archiveName(m.Generation())
	var data bytes.Buffer
	err = p.writeZip(ctx, &atMost{&data, maxZip}, m, c)
	if old.large || errors.Is(err, errSize) {
		return p.zipAnewInParts(ctx, m, c)
	}
	if err != nil {
		return g, err
	}
	g.SHA256 = tree.Sum(data.Bytes())
	_, err = p.Target.Swap(ctx, name, data.Bytes(), old.version)
	if errors.Is(err, target.ErrConflict) {
		err = faster(p.Target, p.Name)
	}
	if err != nil {
		return g, err
	}
	return g, readBack(p.Target, verify(ctx, p.Target, name, g.SHA256, int64(data.Len())))
}

func (p *Place) zipAnewInParts(ctx context.Context, m *Manifest, c writer) (g Generation, err error) {
	if err := p.Target.Delete(ctx, p.archiveName(m.Generation())); err != nil {
		return g, err
	}
	g, err = p.zipGeneration(ctx, m, c)
	if errors.Is(err, errTaken) {
		err = faster(p.Target, p.Name)
	}
	return g, err
}

// writeZip writes what the zip of a generation has.
func (p *Place) writeZip(ctx context.Context, to io.Writer, m *Manifest, c writer) error {
	z := newZip(to, m)
	if err := z.manifest(); err != nil {
		return err
	}
	for _, file := range sortedFiles(m) {
		f := m.Files[file]
		if f.Size > plainSize || !zippable(file) || strings.HasPrefix(string(file), recordsPart) || strings.HasPrefix(string(file), storePart) {
			continue
		}
		data, err := p.small(ctx, c, string(file), f)
		if err != nil && !isLost(err) {
			return err
		}
		if err != nil {
			continue // the packs have lost it, and so has that generation
		}
		w, err := z.create(string(file))
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// isZipOf says whether this is a sound zip of a generation. An error is that it could not be read.
func isZipOf(r io.ReaderAt, size int64, of *Manifest) (bool, error) {
	from := &noting{ReaderAt: r}
	z, err := openZip(from, size)
	if err != nil {
		return false, from.err
	}
	if m, err := z.manifest(); err != nil || !sameOwn(m, of) {
		return false, from.err
	}
	for _, f := range z.File {
		if f.Name == manifestFile {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return false, from.err
		}
		sum, err := tree.SumOf(r)
		r.Close()
		if err != nil || sum != of.Files[FileName(f.Name)].SHA256 {
			return false, from.err
		}
	}
	return true, nil
}

// errTaken is that another backup, which may be acknowledged by now, has written an archive of that time.
var errTaken = errors.New("another backup has written an archive of that time")

// small is a file's content: from the packs, else from current/, if it is that one there.
func (p *Place) small(ctx context.Context, c writer, name string, f File) ([]byte, error) {
	var b bytes.Buffer
	err := c.Write(ctx, &atMost{&b, f.Size}, f.SHA256)
	if !isLost(err) {
		return b.Bytes(), err
	}
	data, cerr := readAll(ctx, p.Target, p.At(currentDir, name), plainSize)
	if cerr == nil && tree.Sum(data) == f.SHA256 {
		return data, nil
	}
	return nil, err
}

// archive keeps the generation that was the newest until now as a zip, and on a target without a
// current/ the new one at once.
func (mk *making) archive(ctx context.Context) error {
	prev := mk.place.Manifest
	_, shelf := mk.o.Target.(target.Shelf)
	if prev != nil {
		var g Generation
		done, old, err := mk.keepsZip(ctx, prev.Generation())
		_, made := mk.m.Others[prev.Generation()]
		switch {
		case err != nil || done:
		case made:
			g, err = mk.place.zipAnew(ctx, prev, mk.known, old)
		default:
			g, err = mk.place.zipGeneration(ctx, prev, mk.known)
			if errors.Is(err, errTaken) {
				g, err = mk.zipLeft(ctx, prev)
			}
		}
		if err != nil {
			return mk.notMade(err)
		}
		if !done {
			g.Damaged = !mk.place.agreed
			mk.m.Others[prev.Generation()] = g
		}
	}
	if shelf {
		return nil
	}
	for {
		g, err := mk.place.zipGeneration(ctx, mk.m, fromStore{mk.snapshot.Store})
		switch {
		case err == nil:
			mk.m.Others[mk.m.Generation()] = g
			return nil
		case !errors.Is(err, errTaken):
			return mk.notMade(err)
		}
		mk.m.Timestamp = mk.m.Timestamp.Add(time.Second)
	}
}

// keepsZip says whether the zip that a generation has already may stay. One that was changed or lost is made anew,
// and old is what was read in its place. Without the key to read a zip no damage of it is known, and it stays.
func (mk *making) keepsZip(ctx context.Context, generation string) (keep bool, old oldZip, err error) {
	g, made := mk.m.Others[generation]
	if !made {
		return false, old, nil
	}
	sum, err := mk.place.zipSum(ctx, generation)
	if g.SHA256.IsZero() || target.AboutKey(err) || err == nil && sum == g.SHA256 {
		return true, old, nil
	}
	if err != nil && !isMissing(err) && !errors.Is(err, target.ErrDamaged) { // as a line that is cut
		return false, old, err
	}
	old, err = mk.place.readZip(ctx, generation)
	if err != nil {
		return false, old, err
	}
	if !old.large && tree.Sum(old.data) == g.SHA256 { // another backup has mended it
		return true, old, nil
	}
	mk.o.Tell(fmt.Sprintf("%s/%s was changed, or is missing, and is made anew", mk.o.Target, mk.place.archiveName(generation)))
	return false, old, nil
}

// zipLeft takes over the zip that a backup which was not acknowledged has left under the generation's name. Its bytes
// may be others than this backup would write, as when another version of decree wrote it, or when contents were lost
// then that are back now. A sound zip stays, anything else is replaced.
func (mk *making) zipLeft(ctx context.Context, m *Manifest) (g Generation, err error) {
	old, err := mk.place.readZip(ctx, m.Generation())
	if err != nil {
		return g, err
	}
	g = m.generation()
	var sound bool
	if old.large {
		sound, err = mk.place.isLargeZipOf(ctx, m)
		if err == nil && sound {
			g.SHA256, err = mk.place.zipSum(ctx, m.Generation())
		}
	} else {
		g.SHA256 = tree.Sum(old.data)
		sound, err = isZipOf(bytes.NewReader(old.data), int64(len(old.data)), m)
	}
	if err != nil || sound {
		return g, err
	}
	return mk.place.zipAnew(ctx, m, mk.known, old)
}
