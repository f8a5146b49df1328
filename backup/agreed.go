package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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

var errNoManifest = &formatError{manifestFile, "it is missing"}

// confirm decides which manifest is the true one where manifest.json is not what the marker says was written there,
// or, as why says, cannot be read. Each generation keeps a copy of its own manifest: in current/, or in its zip. The
// copy of the newest generation takes the place of manifest.json, unless the copy is older, or says the same of its
// generation. The next backup commits what was found.
func (p *Place) confirm(ctx context.Context, why error) error {
	if errors.As(why, new(*newerError)) {
		return p.broken(why, "")
	}
	key, _, _ := p.Target.Read(ctx, p.At(keyFile), 1<<20)
	p.sealed = key != nil
	m, from, err := p.newestCopy(ctx)
	switch {
	case err != nil && (why != nil || !target.AboutKey(err)):
		return cmp.Or(p.keyMissing(why, err), p.noCopy(err))
	case m == nil && why != nil:
		in := p.spelled(archivesDir)
		if p.hasCurrent() {
			in = p.At(currentDir) + " or " + p.At(archivesDir)
		}
		return p.broken(why, fmt.Sprintf("no generation there has a copy of it that can be read, in %s: put all of %s back from a copy; who has none begins anew in another target: 'decree backup --to', or backup.to in .decree/config.yml", in, p.spelled()))
	case m == nil || p.Manifest != nil && m.Timestamp.Before(p.Manifest.Timestamp):
		return nil
	case p.Manifest != nil && p.unmarked() && !sameOwn(p.Manifest, m): // no marker says which of the two was changed
		return nil
	}
	if p.Manifest != nil && sameOwn(p.Manifest, m) {
		for name := range p.Manifest.Others { // a zip stays what it was
			if g, ok := m.Others[name]; ok {
				p.Manifest.Others[name] = g
			}
		}
		p.agreed = true
		return nil
	}
	if p.Manifest != nil {
		p.had, why = p.Generations(), &formatError{manifestFile, "it is not what " + markerFile + " says was written there"}
	}
	p.Damage = fmt.Sprintf("%s/%s is damaged: %v; %s of generation %s is read in its place", p.Target, p.Name, why, from, m.Generation())
	if len(p.passed) > 0 {
		p.Damage += ", since there is none that can be read of the newer " + strings.Join(p.passed, ", ")
	}
	p.Manifest, p.sum, p.agreed = m, tree.Hash{}, true
	if p.Marker != nil {
		p.Marker.Project = m.Project
	}
	there, err := p.listZips(ctx, m.Project, nil, false)
	maps.DeleteFunc(m.Others, func(name string, _ Generation) bool { return !there[name] }) // they were rotated since
	return err
}

// unmarked says whether no marker tells what was written in manifest.json.
func (p *Place) unmarked() bool { return p.Marker == nil || p.Marker.Manifest.IsZero() }

// noCopy is the error of a copy of a manifest that could not be read, for other reasons than what it is: an older one may not take its place.
func (p *Place) noCopy(err error) error {
	if errors.Is(err, target.ErrGone) || errors.Is(err, context.Canceled) {
		return err
	}
	return &project.Error{Kind: project.Failed, Msg: fmt.Sprintf("%s/%s is damaged, and a copy of it cannot be read", p.Target, p.At(manifestFile)), Err: err, State: project.Unchanged,
		Advice: fmt.Sprintf("repeat it when the disk or the line is mended; where that cannot be, move what is named there out of %s, and an older generation's copy is read", p.At())}
}

// keyMissing is the error of a manifest.json that cannot be read, and of copies that cannot for want of a key; nil where it is none.
func (p *Place) keyMissing(why, err error) error {
	if why == nil || !target.AboutKey(err) {
		return nil
	}
	return p.broken(fmt.Errorf("%w, and the copies of it cannot be read here: %s", why, err.Error()), project.HintOf(err)+"; then a copy of it is read")
}

// newestCopy is the copy that the newest generation there has of its own manifest, and where that lies; nil where there is none.
func (p *Place) newestCopy(ctx context.Context) (m *Manifest, from string, err error) {
	m, err = p.currentManifest(ctx)
	if err != nil && !unusable(err) {
		return nil, "", err
	}
	if err != nil || !p.mayBe(m) {
		m = nil
	}
	there, err := p.archives(ctx)
	if err != nil {
		return nil, "", err
	}
	p.passed = nil
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(there)), IsPreRestore)
	slices.Reverse(names)
	for _, name := range names {
		if m != nil && name <= m.Generation() {
			break
		}
		z, err := p.manifestInZip(ctx, name)
		if err == nil && p.mayBe(z) && z.Generation() == name {
			return z, "that in " + p.archiveName(name), nil
		}
		if err != nil && (target.AboutKey(err) || !unusable(err)) {
			return nil, "", err
		}
		if err != nil {
			p.passed = append(p.passed, name)
		}
	}
	return m, p.At(currentDir, manifestFile), nil
}

// mayBe says whether a manifest may be one of the place: it is of the project that the place is of, if that is known.
func (p *Place) mayBe(m *Manifest) bool {
	return p.Marker == nil || p.Marker.Project == "" || m.Project == p.Marker.Project
}

// sameOwn says whether two manifests say the same of their own generations.
func sameOwn(a, b *Manifest) bool {
	has, err := a.own().Encode()
	if err != nil {
		return false
	}
	want, err := b.own().Encode()
	return err == nil && bytes.Equal(has, want)
}

// own is m without what it knows of other generations.
func (m *Manifest) own() *Manifest {
	own := *m
	own.Previous, own.Going, own.Lengths = nil, nil, nil
	own.Others, own.Condemned = map[string]Generation{}, map[tree.Hash]string{}
	return &own
}

// manifestInZip is the manifest in a generation's zip, whose own checksums alone are looked at.
func (p *Place) manifestInZip(ctx context.Context, generation string) (*Manifest, error) {
	at := p.archiveName(generation)
	size, err := sizeOf(ctx, p.Target, at)
	if err != nil {
		return nil, err
	}
	z, err := openZip(&ranges{ctx, p.Target, at}, size)
	if err != nil {
		return nil, err
	}
	return z.manifest()
}

// disagreed is the error of a manifest.json that is not agreed.
func (p *Place) disagreed() error {
	at, generation := p.spelled(manifestFile), p.Manifest.Generation()
	mine := manifestFile + " in " + p.spelled(archivesDir, generation+".zip")
	if p.hasCurrent() {
		mine = p.spelled(currentDir, manifestFile)
	}
	if p.unmarked() {
		return &project.Error{Kind: project.Integrity, State: project.Unchanged,
			Msg:    fmt.Sprintf("%s: there is no %s that says what was written, and %s says something else of generation %s", at, markerFile, mine, generation),
			Advice: "compare the two, and put the sound one in the place of " + at + "; or name an older generation"}
	}
	return &project.Error{Kind: project.Integrity, State: project.Unchanged,
		Msg:    fmt.Sprintf("%s is damaged: it is not what %s says was written there, and no copy of it says the same of generation %s", at, markerFile, generation),
		Advice: fmt.Sprintf("'decree backup' in the project itself writes it anew; without the project name an older generation, or put a copy of %s in its place, if that is sound", mine)}
}

// others are the other generations as the next manifest.json is to name them. Where this one is not what
// was written there, packs that a generation's zip names count too: nothing that it needs may be condemned
// because of a flipped bit.
func (p *Place) others(ctx context.Context) (map[string]Generation, error) {
	out := map[string]Generation{}
	for name, g := range p.Manifest.Others {
		if !p.marked() {
			m, err := p.manifestInZip(ctx, name)
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
