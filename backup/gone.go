package backup

import (
	"fmt"
	"path"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

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
	if store == nil {
		return nil
	}
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
