package history

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"decree/patch"
	"decree/tree"
)

// Moment is what one record did to a path, or found done to it.
type Moment struct {
	Record *Record
	// Outside: the record did not do it but found it, in its outside.diff.
	Outside bool
	Facts   []*patch.Section // at or below the path, in byte order of the paths; one at least
	// From is the path's name before this moment, when it was renamed then and
	// PastOptions.Follow is set; else "".
	From tree.Path
}

// PastOptions say whose past is wanted.
type PastOptions struct {
	Paths  []tree.Path // from the root; "" is all
	Follow bool        // of one path, through renames that are seen by an equal hash
	Keep   func(*Record) bool
}

// Past calls each for what changed at or below paths, newest first, until it
// returns false. It goes by the facts of changes.diff and outside.diff; warnings
// say, a line each, which records could not be looked at. A record that does not
// pass Keep is not looked at, unless a rename must be followed.
func (h *History) Past(o PastOptions, each func(Moment) bool) (warnings []string, err error) {
	list, err := h.List(ListOptions{})
	if err != nil {
		return nil, err
	}
	p := &past{h: h, o: o}
	warnings = list.Warnings()
	for _, r := range list.Records {
		kept := o.Keep == nil || o.Keep(r)
		if !kept && !o.Follow {
			continue
		}
		moments, err := p.of(r)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("record %s is left out: what it changed cannot be read (%v)", r.ID, err))
		}
		for _, m := range moments {
			if kept && !each(m) {
				return warnings, nil
			}
		}
	}
	return warnings, nil
}

// past is one walk back.
type past struct {
	h *History
	o PastOptions
}

// of returns a record's moments, newest first: what it did, what it found.
func (p *past) of(r *Record) (out []Moment, err error) {
	found, hasFound := r.Outside()
	for _, d := range []struct {
		name    string
		sum     tree.Hash
		there   bool
		outside bool
	}{
		{"changes.diff", r.DiffSHA256, !r.DiffSHA256.IsZero(), false},
		{OutsideFile, found.SHA256, hasFound, true},
	} {
		if !d.there || d.sum == emptyHash {
			continue
		}
		m := Moment{Record: r, Outside: d.outside}
		m.Facts, m.From, err = p.facts(r.ID, d.name)
		if err != nil {
			return out, err
		}
		if len(m.Facts) > 0 {
			out = append(out, m)
		}
		if m.From != "" && (d.outside || r.Status != StatusReverted) {
			p.o.Paths = []tree.Path{m.From}
		}
	}
	return out, nil
}

// emptyHash is that of a diff of nothing.
var emptyHash = tree.Sum(nil)

// facts are those of a diff that are wanted.
func (p *past) facts(id, name string) (facts []*patch.Section, from tree.Path, err error) {
	err = p.each(id, name, func(f *patch.Section) bool {
		if f.Path.Within(p.o.Paths...) {
			facts = append(facts, f)
		}
		return true
	})
	if err != nil || !p.o.Follow {
		return facts, "", err
	}
	i := slices.IndexFunc(facts, func(f *patch.Section) bool {
		return f.Path == p.o.Paths[0] && f.Old == nil && f.New != nil && f.New.Type == tree.Regular && f.New.Size > 0
	})
	if i < 0 {
		return facts, "", nil
	}
	made := *facts[i].New
	err = p.each(id, name, func(f *patch.Section) bool {
		if f.New == nil && f.Old != nil && f.Old.Type == tree.Regular && f.Old.SHA256 == made.SHA256 && f.Path != facts[i].Path {
			from = f.Path
		}
		return from == ""
	})
	return facts, from, err
}

func (p *past) each(id, name string, each func(*patch.Section) bool) error {
	f, err := p.h.OpenFile(id, name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing", name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return Facts(f, each)
}
