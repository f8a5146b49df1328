package backup

import (
	"context"
	"errors"
	"fmt"

	"decree/disk"
	"decree/project"
	"decree/store"
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
		err = &formatError{at, "it is another generation's"}
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

var errManifest = fmt.Errorf("its zip was made of a damaged %s: %w", manifestFile, errHash)

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
