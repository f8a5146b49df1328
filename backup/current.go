package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"decree/backup/target"
	"decree/disk"
	"decree/tree"
)

// currentManifest is the manifest in current/.
func (p *Place) currentManifest(ctx context.Context) (*Manifest, error) {
	data, err := readAll(ctx, p.Target, p.At(currentDir, manifestFile), maxManifest)
	if err != nil {
		return nil, err
	}
	return parseManifest(data)
}

// hasCurrent says whether the target has a current/; in another each generation, also the newest, has a zip. What is encrypted has none, also
// where nothing is encrypted anew, as on a machine that only restores.
func (p *Place) hasCurrent() bool {
	_, shelf := p.Target.(target.Shelf)
	return shelf && !p.sealed
}

// plainSize is the length of a file, in bytes, up to which current/ and the zips have it.
const plainSize = 1 << 20

// makeCurrent makes current/ anew. On a target without a lock two backups may remove each other's files: then
// current/ stays as it is until the next backup, and readers take from it what has the right hash.
func (mk *making) makeCurrent(ctx context.Context) error {
	s, ok := mk.o.Target.(target.Shelf)
	if !ok {
		return nil
	}
	err := mk.exchangeCurrent(ctx, s)
	if err == nil {
		return nil
	}
	if _, alone := mk.o.Target.(target.Locker); alone || ctx.Err() != nil || errors.Is(err, target.ErrGone) || disk.Full(err) {
		return mk.notMade(err)
	}
	mk.o.Tell(fmt.Sprintf("%s was not renewed, as when another backup is at work there: %v", mk.place.At(currentDir), err))
	return nil
}

// exchangeCurrent builds current/ beside the old one and exchanges the two. What is the same as in the one before is a hard
// link to it.
func (mk *making) exchangeCurrent(ctx context.Context, s target.Shelf) error {
	fresh, now := mk.place.At(currentDir+newSuffix), mk.place.At(currentDir)
	if err := s.Clear(ctx, fresh); err != nil {
		return err
	}
	from := now
	if !mk.keepsCurrent(ctx) {
		from = ""
	}
	for name, f := range mk.m.Files {
		if f.Size > plainSize {
			continue
		}
		err := mk.putInCurrent(ctx, s, from, path.Join(fresh, string(name)), name, f)
		if nameRefused(err) && isAwkward(name) {
			mk.o.Tell(fmt.Sprintf("%s is in the backup, and not in %s, which cannot hold that name", tree.Quote(string(name)), mk.place.At(currentDir)))
			continue
		}
		if err != nil {
			return err
		}
	}
	data, err := mk.m.Encode()
	if err == nil {
		err = s.Write(ctx, path.Join(fresh, manifestFile), strings.NewReader(string(data)))
	}
	if err == nil {
		err = s.Exchange(ctx, fresh, now)
	}
	return err
}

// keepsCurrent says whether what is in current/ may be taken over: it is the generation's before, and the newest proof has
// not found it changed.
func (mk *making) keepsCurrent(ctx context.Context) bool {
	prev := mk.place.Manifest
	if prev == nil || slices.Contains(mk.unsound, currentDir) {
		return false
	}
	m, err := mk.place.currentManifest(ctx)
	return err == nil && m.Timestamp.Equal(prev.Timestamp) && maps.Equal(m.Files, prev.Files)
}

// putInCurrent writes a file of current/, or links it to the same one in from, the current/ of before, if that is not "".
func (mk *making) putInCurrent(ctx context.Context, s target.Shelf, from, fresh string, name FileName, f File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if prev := mk.place.Manifest; from != "" && prev.Files[name] == f && s.Link(ctx, path.Join(from, string(name)), fresh) == nil {
		return nil
	}
	var data bytes.Buffer // it is small
	err := fromStore{mk.snapshot.Store}.Write(ctx, &data, f.SHA256)
	if isLost(err) { // the target has had it
		data.Reset()
		err = mk.known.Write(ctx, &data, f.SHA256)
	}
	if err != nil {
		return err
	}
	return s.Write(ctx, fresh, &data)
}

// checkCurrent compares current/ with the generation: the whole proof all of its files, a sample all but those of records and logs. It is for people, and no
// restore depends on it: what is wrong there is named, the proof does not fail by it, and the next backup makes current/ anew.
func (d *drill) checkCurrent(ctx context.Context) error {
	if _, ok := d.o.Target.(target.Shelf); !ok {
		return nil
	}
	if key, _, err := d.o.Target.Read(ctx, d.place.At(keyFile), 1<<20); err != nil || key != nil {
		return err // it is encrypted, and has no current/
	}
	wrong, err := d.wrongInCurrent(ctx)
	if err != nil || wrong == "" {
		return err
	}
	d.proof.Damaged = append(d.proof.Damaged, currentDir)
	d.o.Tell(fmt.Sprintf("%s is not what generation %s has: %s; no restore depends on it, and the next backup makes it anew", d.place.At(currentDir), d.m.Generation(), wrong))
	return nil
}

// wrongInCurrent names what is wrong in current/; "" for nothing.
func (d *drill) wrongInCurrent(ctx context.Context) (string, error) {
	m, err := d.place.currentManifest(ctx)
	switch {
	case err != nil && !unusable(err):
		return "", err
	case err != nil:
		return fmt.Sprintf("%s: %v", manifestFile, err), nil
	case !m.Timestamp.Equal(d.m.Timestamp):
		return "it is that of " + m.Generation(), nil
	}
	for _, name := range sortedFiles(d.m) {
		f := d.m.Files[name]
		if f.Size > plainSize || !d.proof.Whole && (strings.HasPrefix(string(name), recordsPart) || strings.HasPrefix(string(name), storePart)) {
			continue
		}
		data, err := readAll(ctx, d.o.Target, d.place.At(currentDir, string(name)), plainSize)
		lost := unusable(err)
		if err != nil && isAwkward(name) && (nameRefused(err) || errors.Is(err, fs.ErrNotExist)) {
			continue
		}
		if err != nil && !lost {
			return "", err
		}
		if lost || tree.Sum(data) != f.SHA256 {
			return tree.Quote(string(name)) + " was changed, or is missing", nil
		}
	}
	return "", nil
}

// isAwkward says whether some file system that plain files are kept on cannot hold a name: FAT, exFAT and NTFS lack
// characters, others take only UTF-8, and what encrypts names has shorter ones.
func isAwkward(name FileName) bool {
	return !utf8.ValidString(string(name)) || strings.ContainsAny(string(name), `"*:<>?|\`) ||
		strings.ContainsFunc(string(name), unicode.IsControl) ||
		slices.ContainsFunc(strings.Split(string(name), "/"), func(part string) bool { return len(part) > 140 })
}
