package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/store"
	"decree/tree"
)

// zipGeneration writes the zip of a generation into archives/ and reads it back: its manifest.json, and its
// files that are not large but those of the records, which the packs have.
func (p *Place) zipGeneration(ctx context.Context, m *Manifest, c writer) (g Generation, err error) {
	g = m.generation()
	name := p.At(archivesDir, m.Generation()+".zip")
	u, err := p.Target.Create(ctx, name)
	if err != nil {
		return g, err
	}
	defer u.Abort() //nolint:errcheck // after Commit it does nothing
	sum := sha256.New()
	n := &counter{w: io.MultiWriter(u, sum)}
	z := zip.NewWriter(n)
	if err := writeManifest(z, m); err != nil {
		return g, err
	}
	for _, file := range slices.Sorted(maps.Keys(m.Files)) {
		f := m.Files[file]
		if f.Size > plainSize || strings.HasPrefix(string(file), recordsPart) || strings.HasPrefix(string(file), storePart) {
			continue
		}
		data, err := p.small(ctx, c, string(file), f)
		if err != nil && !lost(err) {
			return g, err
		}
		if err != nil {
			continue // the packs have lost it, and so has that generation
		}
		w, err := createIn(z, m, string(file))
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return g, err
		}
	}
	if err := z.Close(); err != nil {
		return g, err
	}
	g.SHA256 = tree.Hash(sum.Sum(nil))
	if err := u.Commit(ctx, name); errors.Is(err, fs.ErrExist) {
		// A backup that died before it was acknowledged has written it: the same, if it was whole.
		err := verify(ctx, p.Target, name, g.SHA256, n.n)
		if err == nil {
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
	} else if err != nil {
		return g, err
	}
	if err := verify(ctx, p.Target, name, g.SHA256, n.n); err != nil {
		return g, damaged(err, "%s: what was written there is read back otherwise", p.Target)
	}
	return g, nil
}

// errTaken is that another backup, which may be acknowledged by now, has written an archive of that time.
var errTaken = errors.New("another backup has written an archive of that time")

// small is a file's content: from the packs, else from current/, if it is that one there.
func (p *Place) small(ctx context.Context, c writer, name string, f File) ([]byte, error) {
	var b bytes.Buffer
	err := c.Write(ctx, &b, f.SHA256)
	if !lost(err) {
		return b.Bytes(), err
	}
	data, cerr := readAll(ctx, p.Target, p.At(currentDir, name), plainSize)
	if cerr == nil && tree.Sum(data) == f.SHA256 {
		return data, nil
	}
	return nil, err
}

// lost says whether an error is that bytes are missing or not what they were.
func lost(err error) bool {
	return otherBytes(err) || store.IsLost(err)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// writeManifest writes a generation's own manifest, which says nothing of others.
func writeManifest(z *zip.Writer, m *Manifest) error {
	data, err := m.own().Encode()
	if err != nil {
		return err
	}
	w, err := createIn(z, m, ManifestFile)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// createIn begins a file of a zip, which has the generation's time.
func createIn(z *zip.Writer, m *Manifest, name string) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: m.Timestamp}
	h.SetMode(0o600)
	return z.CreateHeader(h)
}
