package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/view"
)

// Page is a part of the timeline.
type Page struct {
	Rows  []Row
	Next  string   // the cursor of what is older; "" where nothing is
	Notes []string // what is wrong with records that are no rows, a line each; of the first page alone
}

// item is what a row is made of.
type item struct {
	record  *history.Record
	outside bool
	damage  *history.Damage
}

// List returns at most limit rows that are older than the cursor, newest first; "" is the
// beginning, and limit 0 gives all. What belongs together is never parted by a page's end.
func List(ctx context.Context, rec *recorder.Reader, f Filter, cursor string, limit int) (*Page, error) {
	h := rec.History()
	labels, err := h.LabelsOf()
	if err != nil {
		return nil, err
	}
	l := &lister{h: h, f: f, m: maker{now: f.Now, loc: cmp.Or(f.Location, time.UTC), labels: labels, get: h.Get}}
	if l.older, err = olderThan(h, cursor); err != nil {
		return nil, err
	}
	l.cursor = cursor
	// What is folded is not known before it was read, so more is asked for until there is enough.
	for n := 2*limit + 1; ; {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		items, whole, notes, err := l.items(n, limit == 0)
		if err != nil {
			return nil, err
		}
		rows, ends := l.m.rows(items)
		page := &Page{Rows: rows}
		if cursor == "" {
			page.Notes = notes
		}
		if end := pageEnd(rows, ends, limit); end < len(rows) {
			page.Rows, page.Next = rows[:end], ends[end-1]
			return page, nil
		}
		if whole {
			return page, nil
		}
		n = max(n+limit+1, n*(limit+1)*5/4/max(len(rows), 1)) // a quarter more than it seems to take
	}
}

// pageEnd is where a page ends: a record and what it found are on one page.
func pageEnd(rows []Row, ends []string, limit int) int {
	if limit == 0 {
		return len(rows)
	}
	end := limit
	for end < len(rows) && rows[end].Kind == Outside && rows[end].ID == ends[end-1] {
		end++
	}
	return min(end, len(rows))
}

// olderThan says of records whether they come after the one of the cursor.
func olderThan(h history.Reader, cursor string) (func(*history.Record) bool, error) {
	if cursor == "" {
		return func(*history.Record) bool { return true }, nil
	}
	if !history.IsID(cursor) {
		return nil, &project.Error{Kind: project.Usage, Msg: "the cursor is none that a page gave", Advice: "begin without one"}
	}
	last, err := h.Get(cursor)
	if err != nil { // it was removed meanwhile, or is damaged; its id says about where it stood
		return func(r *history.Record) bool { return compareIDs(r.ID, cursor) < 0 }, nil //nolint:nilerr // see above
	}
	return func(r *history.Record) bool { return history.Compare(r, last) < 0 }, nil
}

func compareIDs(a, b string) int {
	ca, na, _ := history.ParseID(a)
	cb, nb, _ := history.ParseID(b)
	return cmp.Or(strings.Compare(ca, cb), cmp.Compare(na, nb))
}

type lister struct {
	h      history.Reader
	f      Filter
	m      maker
	cursor string
	older  func(*history.Record) bool
}

// items are those of at least n records, or of all that are left, which whole says.
func (l *lister) items(n int, all bool) (items []item, whole bool, notes []string, err error) {
	if len(l.f.Paths) > 0 {
		return l.ofPaths(n, all)
	}
	o := history.ListOptions{Limit: n, Known: l.cursor != "" || !l.f.empty(), Keep: func(r *history.Record) bool {
		return l.older(r) && (l.f.wantsRecord(r, l.m.labels[r.ID]) || l.f.wantsOutside(r))
	}}
	if all {
		o.Limit = 0
	}
	list, err := l.h.List(o)
	if err != nil {
		return nil, false, nil, err
	}
	for _, r := range list.Records {
		if l.f.wantsRecord(r, l.m.labels[r.ID]) {
			items = append(items, item{record: r})
		}
		if l.f.wantsOutside(r) {
			items = append(items, item{record: r, outside: true})
		}
	}
	whole = all || len(list.Records) < n
	items = l.withDamaged(items, append(list.Damaged, list.Newer...), whole)
	list.Damaged, list.Newer = nil, nil // they are rows
	notes = list.Warnings()
	if k := len(list.Foreign); k > 0 {
		notes = append(notes, fmt.Sprintf("%s in .decree/runs that this store has never seen: 'decree log' lists them", view.Count(k, "record")))
	}
	return items, whole, notes, nil
}

// withDamaged puts records that cannot be read where their ids say that they belong.
func (l *lister) withDamaged(items []item, damaged []history.Damage, whole bool) []item {
	if len(l.f.Reasons) > 0 || !l.f.Since.IsZero() || !l.f.Until.IsZero() {
		return items
	}
	for _, d := range damaged {
		if l.cursor != "" && compareIDs(d.ID, l.cursor) >= 0 || !l.f.speaks(func() []string { return []string{"damaged", d.ID} }) {
			continue
		}
		at := slices.IndexFunc(items, func(it item) bool { return it.damage == nil && compareIDs(it.record.ID, d.ID) < 0 })
		if at < 0 {
			if !whole {
				continue // it belongs to a later page
			}
			at = len(items)
		}
		items = slices.Insert(items, at, item{damage: &d})
	}
	return items
}

// ofPaths are the items that changed something at or below the filter's paths.
func (l *lister) ofPaths(n int, all bool) (items []item, whole bool, notes []string, err error) {
	whole = true
	keep := func(r *history.Record) bool {
		return l.older(r) && (l.f.wantsRecord(r, l.m.labels[r.ID]) || l.f.wantsOutside(r))
	}
	notes, err = l.h.Past(history.PastOptions{Paths: l.f.Paths, Keep: keep}, func(m history.Moment) bool {
		if m.Outside && l.f.wantsOutside(m.Record) || !m.Outside && l.f.wantsRecord(m.Record, l.m.labels[m.Record.ID]) {
			items = append(items, item{record: m.Record, outside: m.Outside})
		}
		if !all && len(items) > n {
			whole = false
		}
		return whole
	})
	return items, whole, notes, err
}
