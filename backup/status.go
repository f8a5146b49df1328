package backup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"decree/backup/target"
	"decree/project"
)

// Status is what `backup status --json` shows.
type Status struct {
	Target      string       `json:"target"`
	Name        string       `json:"name"`
	SameDisk    bool         `json:"same_disk"`
	Last        *Listed      `json:"last"`  // nil: there is no backup
	Proof       *ProofStatus `json:"proof"` // nil: nothing was proven yet
	Generations int          `json:"generations"`
	Bytes       int64        `json:"bytes"` // that the target holds of this project
	NextToGo    []string     `json:"next_to_go"`
	Problems    []string     `json:"problems"`
	// Aside are what restores have replaced and .decree/backup has, where that is not the target.
	Aside []string `json:"aside,omitempty"`
	// Lost are older generations of which a part is missing or damaged. No backup can mend them.
	Lost []string `json:"unprovable,omitempty"`
}

// ProofStatus is the newest proof.
type ProofStatus struct {
	At         time.Time `json:"at"`
	Generation string    `json:"generation"`
	Files      int       `json:"files"`
	Of         int       `json:"of"`
	Whole      bool      `json:"whole"`
	OK         bool      `json:"ok"`
	Text       string    `json:"text"` // for people
}

// Status is what stands there and how safe it is. site is the project's.
func (p *Place) Status(ctx context.Context, site *project.Site, now time.Time) (*Status, error) {
	s := &Status{Target: p.Target.String(), Name: p.Name, NextToGo: []string{}, Problems: []string{}, SameDisk: SameDisk(p.Target, site)}
	list, err := p.List(ctx, site.Config.Backup.Retention)
	if err != nil {
		return nil, err
	}
	s.Last = Newest(list)
	for i, l := range list {
		if len(l.KeptBy) == 0 {
			s.NextToGo = append(s.NextToGo, l.Generation)
		}
		if !l.Provable && s.Last != &list[i] {
			s.Lost = append(s.Lost, l.Generation)
		}
	}
	s.Generations = len(list)
	proofs, err := p.proofs(ctx)
	if err != nil {
		return nil, err
	}
	known := p.known(site)
	if n := len(proofs); n > 0 && (known.Proof == nil || proofs[n-1].At.After(known.Proof.At)) {
		known.Proof = &proofs[n-1]
	}
	err = p.Target.List(ctx, p.Name+"/", func(o target.Object) error {
		s.Bytes += o.Size
		return nil
	})
	gone := p.Gone(site)
	if gone != nil { // what stood there is what there is to say of the newest
		s.Last = known.last()
		s.problem("%s: %s", strings.TrimSuffix(gone.Error(), "; "+project.Unchanged), project.HintOf(gone))
	}
	s.judge(known, site, now)
	p.judgeThere(ctx, s, known, site, gone == nil)
	if s.Last != nil && len(s.NextToGo) > 0 {
		if held := p.standstill(known.Proof, site.Config.Backup.Warn, now); held != "" {
			s.problem("nothing is removed: %s", held)
		}
	}
	return s, err
}

// judgeThere adds what is wrong with what stands there; held says that generations do.
func (p *Place) judgeThere(ctx context.Context, s *Status, known Remembered, site *project.Site, held bool) {
	if p.badMarker != nil {
		s.problem("%v; the next backup writes it anew", p.badMarker)
	}
	if p.Damage != "" {
		s.problem("%s; the next backup writes it anew", p.Damage)
	}
	if older := p.Older(site); older != "" {
		s.problem("%s", older)
	}
	if p.Apart != "" {
		s.problem("%s", p.Apart)
	}
	if known.Proof != nil && slices.Contains(known.Proof.Damaged, currentDir) {
		s.problem("%s was changed by somebody, or is an older one; the next backup makes it anew", p.At(currentDir))
	}
	if s.Last != nil && !s.Last.Provable && held {
		s.problem("the newest backup, %s, cannot be restored as it is: a part of it is missing or damaged; 'decree backup' sends it again", s.Last.Generation)
	}
	if why := Unreadable(ctx, p.Target, p.Name); why != nil {
		s.problem("nothing is proven and nothing is removed: %v: %s", why, project.HintOf(why))
	}
	if why := spoiledKey(ctx, p.Target, p.Name); why != nil {
		s.problem("%v; only this machine can read the backups, by its own copy of it, which the next backup or drill puts back", why)
	}
	if InTree(p.Target, site.Root) {
		s.problem("the backups lie inside the tree: 'git clean -xfd' deletes them; name another disk with backup.to in .decree/config.yml")
	}
}

// known is what the store remembers of the target, as far as that is about what stands there now.
func (p *Place) known(site *project.Site) (r Remembered) {
	r = recall(site.Store, p.Target.String())
	if p.Manifest != nil {
		r.Timestamp = p.Manifest.Timestamp
	}
	return r
}

// Unreached is the status of a target that cannot be read now, from what the store remembers of it; why is
// nil where there never was anything.
func Unreached(site *project.Site, target, name string, why error, now time.Time) *Status {
	s := &Status{Target: target, Name: name, NextToGo: []string{}, Problems: []string{}}
	known := recall(site.Store, target)
	s.Last = known.last()
	if why != nil {
		s.problem("%v", why)
	}
	s.judge(known, site, now)
	if why != nil && known.red() {
		s.problem("where this target was given up, %s: until then commands tell of that proof, for as long as one is good", giveUp(site.Store, target))
	}
	return s
}

// last is the newest generation as far as it is remembered; nil where none is.
func (r Remembered) last() *Listed {
	if r.Generation == "" {
		return nil
	}
	return &Listed{Generation: r.Generation, Timestamp: r.Timestamp, KeptBy: []string{}}
}

func (s *Status) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

// judge takes over the newest proof, and lists what is wrong.
func (s *Status) judge(known Remembered, site *project.Site, now time.Time) {
	if p := known.Proof; p != nil {
		s.Proof = &ProofStatus{At: p.At, Generation: p.Generation, Files: p.Files, Of: p.Of, Whole: p.Whole, OK: p.OK, Text: p.Result()}
	}
	if s.Last == nil {
		s.problem("there is no backup yet: 'decree backup' makes the first")
	}
	s.Problems = append(s.Problems, known.problems(site.Config.Backup, now)...)
	if s.SameDisk {
		s.problem("same disk: the backups are on the disk that the store is on, and are lost with it")
	}
}

// SameDisk says whether a target is on the disk that the project's store is on: it goes with it.
func SameDisk(t target.Target, p *project.Site) bool {
	placed, ok := t.(target.Placed)
	if !ok {
		return false
	}
	_, dev, _, err := placed.Place()
	self, serr := p.Store.Self()
	return err == nil && serr == nil && dev == self.Dev
}

// InTree says whether a target is a directory below the root that .decree has: what deletes what
// no record has, such as 'git clean -xfd', deletes it too.
func InTree(t target.Target, root string) bool {
	placed, ok := t.(target.Placed)
	if !ok {
		return false
	}
	at, _, _, err := placed.Place()
	return err == nil && strings.HasPrefix(at+"/", path.Clean(root)+"/")
}
