package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// marked says whether manifest.json is what was written there: the marker, which is written after it,
// names its hash, or where a death came between the two that of the one before.
func (p *Place) marked() bool {
	var marked tree.Hash
	if p.Marker != nil {
		marked = p.Marker.Manifest
	}
	return marked == p.sum || p.Manifest.Previous != nil && *p.Manifest.Previous == marked
}

// agreed says whether what manifest.json says of its generation is what was written there: it is marked, or
// where the marker is lost the generation's own manifest, in current/ or in its zip, says the same.
func (p *Place) agreed(ctx context.Context) (bool, error) {
	if p.marked() {
		return true, nil
	}
	want, err := p.Manifest.own().Encode()
	if err != nil {
		return false, err
	}
	for _, read := range []func(context.Context) (*Manifest, error){p.shown, p.zipped} {
		m, err := read(ctx)
		if err != nil && !unusable(err) {
			return false, err
		}
		if err != nil {
			continue
		}
		if has, err := m.own().Encode(); err == nil && bytes.Equal(has, want) {
			return true, nil
		}
	}
	return false, nil
}

// unusable says whether an error is that a copy of a manifest is not there, or of no use here.
func unusable(err error) bool {
	return isDamage(err) || errors.As(err, new(*FormatError)) || target.AboutKey(err)
}

// own is m without what it knows of other generations.
func (m *Manifest) own() *Manifest {
	own := *m
	own.Previous = nil
	own.Others, own.Condemned = map[string]Generation{}, map[tree.Hash]string{}
	return &own
}

// shown is the manifest in current/.
func (p *Place) shown(ctx context.Context) (*Manifest, error) {
	data, err := readAll(ctx, p.Target, p.At(currentDir, ManifestFile), MaxManifest)
	if err != nil {
		return nil, err
	}
	return ParseManifest(data)
}

// zipped is the manifest in the newest generation's zip.
func (p *Place) zipped(ctx context.Context) (*Manifest, error) {
	return p.inZip(ctx, p.Manifest.Generation())
}

// inZip is the manifest in a generation's zip, whose own checksums alone are looked at.
func (p *Place) inZip(ctx context.Context, generation string) (*Manifest, error) {
	at := p.archiveName(generation)
	r, size, err := p.Target.Open(ctx, at, 0, 0)
	if err != nil {
		return nil, err
	}
	r.Close()
	z, err := openZip(&ranges{ctx, p.Target, at}, size)
	if err != nil {
		return nil, err
	}
	return z.manifest()
}

// disagreed is the error of a manifest.json that is not agreed.
func (p *Place) disagreed() error {
	return &project.Error{Kind: project.Integrity, State: project.Unchanged,
		Msg: fmt.Sprintf("%s/%s is damaged: it is not what %s says was written there, and no other copy says the same of generation %s",
			p.Target, p.At(ManifestFile), MarkerFile, p.Manifest.Generation()),
		Advice: fmt.Sprintf("'decree backup' in the project itself writes it anew; without the project name an older generation, or put a copy of %s in its place, if that is sound",
			p.At(currentDir, ManifestFile))}
}

// others are the other generations as the next manifest.json is to name them. Where this one is not what
// was written there, packs that a generation's zip names count too: nothing that it needs may be condemned
// because of a flipped bit.
func (p *Place) others(ctx context.Context) (map[string]Generation, error) {
	out := map[string]Generation{}
	for name, g := range p.Manifest.Others {
		if !p.marked() {
			m, err := p.inZip(ctx, name)
			if err != nil && !unusable(err) {
				return nil, err
			}
			if err == nil {
				g.Packs = slices.Compact(slices.SortedFunc(slices.Values(append(sortedPacks(m), g.Packs...)), compareHash))
			}
		}
		out[name] = g
	}
	return out, nil
}
