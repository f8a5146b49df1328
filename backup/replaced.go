package backup

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/tree"
)

// readReplaced finds what restores have replaced, in a place that has no manifest.json: the first backup
// has not been made there yet.
func (p *Place) readReplaced(ctx context.Context) error {
	if p.Marker == nil {
		return nil
	}
	sizes := map[string]int64{}
	err := p.Target.List(ctx, p.At(archivesDir)+"/", func(o target.Object) error {
		name, ok := strings.CutSuffix(path.Base(o.Name), ".zip")
		if _, dated := timeOf(name); ok && dated && IsPreRestore(name) {
			sizes[name] = o.Size
		}
		return nil
	})
	p.replaced = map[string]Generation{}
	for name, size := range sizes {
		m, err := p.manifestInZip(ctx, name)
		switch {
		case err == nil && m.Project == p.Marker.Project:
			p.replaced[name] = Generation{Packs: []tree.Hash{}, Timestamp: m.Timestamp, Host: m.Host, Records: m.Counts.Records, Bytes: m.Counts.Bytes, NewBytes: size}
		case err != nil && !unusable(err):
			return err
		}
	}
	return err
}

// zips are the generations that have one.
func (p *Place) zips() map[string]Generation {
	if p.Manifest == nil {
		return p.replaced
	}
	return p.Manifest.Others
}

// adopt takes over what restores have replaced before there was a backup. What cannot be read is left
// where it is.
func (mk *making) adopt(ctx context.Context) error {
	for name, g := range mk.place.replaced {
		sum, err := mk.place.zipSum(ctx, name)
		switch {
		case err == nil:
			g.SHA256 = sum
			mk.m.Others[name] = g
		case !unusable(err):
			return err
		default:
			mk.o.Tell(fmt.Sprintf("%s: %s is damaged, and is not listed any more: %v", mk.o.Target, name, err))
		}
	}
	return nil
}

// drop leaves out what restores have replaced and somebody has removed since, which needs nothing of what is there.
func (mk *making) drop(ctx context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(mk.m.Others)), IsPreRestore) {
		return nil
	}
	there, err := mk.place.archives(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(mk.m.Others)) {
		if IsPreRestore(name) && len(mk.m.Others[name].Packs) == 0 && !there[name] {
			delete(mk.m.Others, name)
			mk.o.Tell(fmt.Sprintf("%s/%s was removed, and is not listed any more", mk.o.Target, mk.place.archiveName(name)))
		}
	}
	return nil
}
