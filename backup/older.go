package backup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/tree"
)

// Older says that what stands in the target is older than what was acknowledged there last, as after somebody has put an
// old copy back; "" where it is not.
func (p *Place) Older(site *project.Site) string {
	if p.Manifest == nil {
		return ""
	}
	known := recall(site.Store, p.Target.String())
	if known.Name != p.Name || !p.Manifest.Timestamp.Before(known.Timestamp) {
		return ""
	}
	return fmt.Sprintf("%s is of %s, but a newer generation, %s, was acknowledged: somebody has put an old state there; 'decree backup' lists again what is there of the newer ones",
		p.At(manifestFile), p.Manifest.Generation(), known.Generation)
}

// takeUp lists again what an older manifest.json, or one that somebody has put there from a zip, does not list and the
// target still has: the generation in current/, and those whose zips are in archives/, each as its own manifest describes
// it. It returns what there is to say of that; "" where manifest.json is the one that was acknowledged, or lists all there
// is. Nothing is written before the next commit.
func (p *Place) takeUp(ctx context.Context, site *project.Site) (string, error) {
	text, _, _ := strings.Cut(p.Older(site), "; ")
	other := p.Manifest != nil && !p.marked()
	if text == "" && !other {
		return "", nil
	}
	known := recall(site.Store, p.Target.String())
	before := p.Generations()
	if p.Damage != "" {
		text, before = p.Damage, p.had
	}
	if m, err := p.currentManifest(ctx); err == nil && m.Project == site.ID && m.Timestamp.After(p.Manifest.Timestamp) && !m.Timestamp.After(known.Timestamp) {
		p.Manifest = m
	} else if err != nil && !unusable(err) {
		return "", err
	}
	there, err := p.listZips(ctx, site.ID, known.Generations, true)
	if err != nil {
		return "", err
	}
	var lost, found []string
	for _, name := range known.Standing() {
		_, zipped := p.Manifest.Others[name]
		switch newest := name == p.Manifest.Generation(); {
		case !newest && (!zipped || !there[name]):
			lost = append(lost, name)
		case !slices.Contains(before, name):
			found = append(found, name)
		}
	}
	for name := range p.Manifest.Others {
		if !there[name] && !slices.Contains(lost, name) { // it was removed since that state
			delete(p.Manifest.Others, name)
		}
	}
	if text == "" && len(found)+len(lost) > 0 {
		text = fmt.Sprintf("%s is not what %s says was written there", p.At(manifestFile), markerFile)
	}
	if len(found) > 0 {
		text += "; found there, and listed again: " + strings.Join(found, ", ")
	}
	if len(lost) > 0 {
		text += "; gone: " + strings.Join(lost, ", ")
	}
	return text, nil
}

// archives are the names of the zips that are there.
func (p *Place) archives(ctx context.Context) (map[string]bool, error) {
	there := map[string]bool{}
	err := p.Target.List(ctx, p.At(archivesDir)+"/", func(o target.Object) error {
		name, ok := strings.CutSuffix(path.Base(o.Name), ".zip")
		if _, dated := timeOf(name); ok && dated {
			there[name] = true
		}
		return nil
	})
	return there, err
}

// listZips lists the archives of the project that are not listed, and returns all that are there. One that cannot be read
// is left where it is; without the key to read it there is no telling what it needs. Where it is remembered what stood there, an
// archive that did not is of a backup that died. sums: with their hashes, which takes to read them whole.
func (p *Place) listZips(ctx context.Context, id string, stood []string, sums bool) (there map[string]bool, err error) {
	if there, err = p.archives(ctx); err != nil {
		return nil, err
	}
	if p.Manifest.Others == nil {
		p.Manifest.Others = map[string]Generation{}
	}
	for name := range there {
		g, listed := p.Manifest.Others[name]
		if listed && (!sums || !g.SHA256.IsZero()) {
			continue
		}
		delete(p.Manifest.Others, name)
		if len(stood) > 0 && !slices.Contains(stood, name) {
			continue
		}
		m, err := p.manifestInZip(ctx, name)
		if err == nil && m.Project == id {
			g := m.generation()
			if sums {
				g.SHA256, err = p.zipSum(ctx, name)
			}
			if err == nil {
				p.Manifest.Others[name] = g
				p.Manifest.keepLengths(m.Packs)
			}
		}
		if err != nil && (target.AboutKey(err) || !unusable(err)) {
			return nil, err
		}
	}
	return there, nil
}

// generation is what the manifest.json of another generation says of m's.
func (m *Manifest) generation() Generation {
	return Generation{Packs: sortedPacks(m), Timestamp: m.Timestamp, Host: m.Host, Records: m.Counts.Records, Bytes: m.Counts.Bytes, NewBytes: m.Counts.NewBytes}
}

// zipSum is the hash of a generation's zip as it is there.
func (p *Place) zipSum(ctx context.Context, name string) (tree.Hash, error) {
	r, _, err := p.Target.Open(ctx, p.archiveName(name), 0, -1)
	if err != nil {
		return tree.Hash{}, err
	}
	defer r.Close()
	return tree.SumOf(&ctxReader{ctx, r})
}

// Gone is the refusal of a target that has had generations of the project and has none now.
func (p *Place) Gone(site *project.Site) error {
	if p.Manifest != nil || p.other != nil {
		return nil
	}
	return Missing(site.Store, p.Target.String())
}

// goneForWriter is Gone for who writes there, to whom a marker that is lost says the same.
func (p *Place) goneForWriter(site *project.Site) error {
	err := Missing(site.Store, p.Target.String())
	switch {
	case p.Marker != nil || p.other != nil:
		return p.Gone(site)
	case err != nil && p.Manifest != nil:
		sum := p.sum
		if own, err := p.Manifest.own().Encode(); sum.IsZero() && err == nil { // manifest.json is lost too: then a copy of it is read
			sum = tree.Sum(own)
		}
		line := strings.TrimSpace(string(Marker{Version: Version, Project: p.Manifest.Project, Manifest: sum}.Encode()))
		return refused(fmt.Sprintf("if these are the backups of this project, make %s again, with this line in it: %s", p.At(markerFile), line),
			"%s/%s has backups, but no %s, which says whose they are", p.Target, p.Name, markerFile)
	}
	return err
}

// Missing is the error of a target that has no generations, if the store remembers that it has had some: its disk is not
// mounted, or somebody has taken them away.
func Missing(store disk.Dir, target string) error {
	memory, err := readMemory(store)
	known := memory.Targets[target]
	if known.Generation == "" {
		return err
	}
	return refused("mount the disk that belongs there; or, if it was emptied on purpose, "+giveUp(store, target),
		"%s held backups of this project, the newest of %s, and has none now: another disk may be missing from its place", target, known.Generation)
}

// giveUp is what to do about a target that is to be remembered no longer. All others are.
func giveUp(store disk.Dir, target string) string {
	return fmt.Sprintf("take %q out of \"targets\" in %s", tree.Quote(target), path.Join(store.Path(), memoryFile))
}
