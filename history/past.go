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
// say, a line each, which records could not be looked at, as far as it came. A record that does not
// pass Keep is not looked at, unless a rename must be followed.
func (h *History) Past(o PastOptions, each func(Moment) bool) (warnings []string, err error) {
	p := &past{h: h, o: o}
	// The history is listed part by part: who has enough of it need not wait for the whole.
	list, amiss := ListOptions{Limit: pastPart}, &Listing{}
	var unread []string
	for goesOn := true; goesOn; {
		part, err := h.List(list)
		if err != nil {
			return nil, err
		}
		amiss.alsoOlder(part)
		for _, r := range part.Records {
			more, err := p.record(r, each)
			if err != nil {
				unread = append(unread, fmt.Sprintf("record %s is left out: what it changed cannot be read (%v)", r.ID, err))
			}
			if !more {
				return append(amiss.Warnings(), unread...), nil
			}
			list.Before = r
		}
		goesOn = len(part.Records) == list.Limit
		list.Limit, list.Known = 2*list.Limit, true
	}
	return append(amiss.Warnings(), unread...), nil
}

// pastPart is how many records the first part of a listed history has.
const pastPart = 128

// record calls each for the moments of a record. It says whether the walk goes on, and, also where it does, why some
// of what the record changed cannot be read.
func (p *past) record(r *Record, each func(Moment) bool) (more bool, err error) {
	kept := p.o.Keep == nil || p.o.Keep(r)
	if !kept && !p.o.Follow {
		return true, nil
	}
	moments, err := p.of(r)
	for _, m := range moments {
		if kept && !each(m) {
			return false, err
		}
	}
	return true, err
}

// alsoOlder adds what is amiss with older records to what is with newer ones.
func (l *Listing) alsoOlder(o *Listing) {
	l.Damaged, l.Newer = append(withoutThese(o.Damaged, l.Damaged), l.Damaged...), append(withoutThese(o.Newer, l.Newer), l.Newer...)
	l.Missing, l.Edited = append(o.Missing, l.Missing...), append(o.Edited, l.Edited...)
	l.Unknown = o.Unknown
}

// withoutThese leaves out what was told before: an open record that cannot be read is amiss in every part.
func withoutThese(list, told []Damage) []Damage {
	return slices.DeleteFunc(list, func(d Damage) bool {
		return slices.ContainsFunc(told, func(o Damage) bool { return o.ID == d.ID })
	})
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
		{ChangesFile, r.DiffSHA256, !r.DiffSHA256.IsZero(), false},
		{OutsideFile, found.SHA256, hasFound, true},
	} {
		if !d.there || d.sum == tree.EmptySum {
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
		return f.Path == p.o.Paths[0] && f.Old == nil && f.New.IsFile() && f.New.Size > 0
	})
	if i < 0 {
		return facts, "", nil
	}
	made := *facts[i].New
	err = p.each(id, name, func(f *patch.Section) bool {
		if f.New == nil && f.Old.IsFile() && f.Old.SHA256 == made.SHA256 && f.Path != facts[i].Path {
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
