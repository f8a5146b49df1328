package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// A whole home that is copied to another machine has the same projects there, with their ids. Then two go on with one
// id, and what tells them apart is what the store of each remembers: the manifest.json's that were written from there. Where the
// newest generation in a directory is of none of these, another copy of the project goes on in it, and the backups from
// here get a directory of their own. So neither removes generations of the other.

// maxWritten is how many manifest.json's a store remembers for a target: more than commands are under way at once.
const maxWritten = 16

// wrote says whether the newest generation of a place, which has the id of this project, was made with this store, or stood
// there before this store made the newest that it remembers. Of a target of which it remembers none, host and root say so.
func (m Memory) wrote(p *Place, host, root string) bool {
	if p.Manifest == nil || !p.marked() {
		return true
	}
	for _, r := range m.Targets {
		if r.Manifest == p.sum || slices.Contains(r.Written, p.sum) {
			return true
		}
	}
	if r := m.Targets[p.Target.String()]; r.Name == p.Name && r.Generation != "" {
		return !p.Manifest.Timestamp.After(r.Timestamp)
	}
	return p.Manifest.MadeFrom(host, root)
}

// noteWrites has each manifest.json that is about to be written to the place remembered first, since a death may
// come just after it was written.
func (p *Place) noteWrites(site *project.Site) {
	p.note = func(sum tree.Hash) error {
		return Remember(site.Store, p.Target.String(), func(r *Remembered) {
			r.Written = append(r.Written[max(0, len(r.Written)-maxWritten+1):], sum)
		})
	}
}

// in is what is remembered of a target whose directory for this project is called name: nothing but what was written,
// where it was another one before.
func (r Remembered) in(name string) Remembered {
	if r.Name != name {
		return Remembered{Name: name, Written: r.Written}
	}
	return r
}

// standing is what is remembered of the place's target, r until now, once what its manifest says was seen to stand there.
func (p *Place) standing(r Remembered) Remembered {
	r = r.in(p.Name)
	r.Generation, r.Timestamp, r.Manifest, r.Generations = p.Manifest.Generation(), p.Manifest.Timestamp, p.sum, p.Generations()
	return r
}

// FindOwn finds a project's directory: where this machine has written before, although the tree has another
// name by now, unless the config gives one; else as find does. A directory in which another copy of the project
// goes on is passed over.
func FindOwn(ctx context.Context, t target.Target, p *project.Site, w project.Where, host string) (*Place, error) {
	var other *Place
	own := func(place *Place) bool {
		if place.whose() != p.ID {
			return false
		}
		// It is read after the place: what another command of this project has just written there is noted before.
		mine := ReadMemory(p.Store).wrote(place, host, p.Root)
		if !mine {
			other = place
		}
		return mine
	}
	name := p.BackupName(w)
	if last := recall(p.Store, t.String()).Name; project.IsBackupName(last) && (p.Config.Backup.Name == "" || numbered(last, name)) {
		place, err := readPlace(ctx, t, last)
		if err != nil {
			return nil, err
		}
		if place.Marker != nil && own(place) {
			return place, nil
		}
	}
	place, err := find(ctx, t, name, own)
	if err == nil && other != nil {
		other.Apart = fmt.Sprintf("%s/%s: its newest generation, %s of %s:%s, was not made from here: another copy of this project goes on there, so the backups from here go to %s",
			t, other.Name, other.Manifest.Generation(), other.Manifest.Host, other.Manifest.Root, place.Name)
		place.Apart, place.other = other.Apart, other
	}
	return place, err
}

// numbered says whether a directory is called as the name says with a number, since others had that name.
func numbered(last, name string) bool {
	number, ok := strings.CutPrefix(last, name+"-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// ToRead is where the generations of this project are: in its own directory or, until that has some, in the one that it
// had before another copy of the project went on there.
func (p *Place) ToRead() *Place {
	if p.other != nil && len(p.Generations()) == 0 {
		return p.other
	}
	return p
}

// whose is the id of the project that has the directory; "" where it is free.
func (p *Place) whose() string {
	switch {
	case p.Marker != nil:
		return p.Marker.Project
	case p.Manifest != nil:
		return p.Manifest.Project
	}
	return ""
}
