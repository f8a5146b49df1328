package recorder

import (
	"bytes"
	"context"
	"io"

	"decree/history"
	"decree/manifest"
	"decree/patch"
	"decree/project"
)

// Blamed is one line of a file and what brought it.
type Blamed struct {
	Text []byte // without its '\n'
	// Record brought the line. With Outside nobody did: Record is then the one
	// that found it, nil if it came since the newest.
	Record  *history.Record
	Outside bool
}

// Blame says of each line of a file, as it is now, which record brought it. It goes
// back through the file's past by the facts of the diffs, and through renames that
// are seen by an equal hash. What a revert, apply or restore brought back is the
// work of what had brought it first.
func (r *Recorder) Blame(ctx context.Context, path string) ([]Blamed, error) {
	data, err := r.textNow(path)
	if err != nil {
		return nil, err
	}
	var moments []history.Moment
	warnings, err := r.history.Past(history.PastOptions{Paths: []string{path}, Follow: true}, func(m history.Moment) bool {
		moments = append(moments, m)
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.note("%s", w)
	}
	b := newBlame(r, data)
	return b.out, b.back(ctx, path, moments)
}

// textNow reads the file as it is in the tree.
func (r *Recorder) textNow(path string) ([]byte, error) {
	e, err := r.tree.Look(path)
	switch {
	case err != nil:
		return nil, lookError(err)
	case e == nil:
		return nil, &project.Error{Kind: project.NotFound, Msg: patch.Quote(path) + ": no such file in the tree",
			Advice: "'decree log PATH' lists what changed it; 'decree show REF:PATH' prints it as it was"}
	case e.Type != manifest.Regular:
		return nil, &project.Error{Kind: project.Failed, Msg: patch.Quote(path) + ": a " + e.Type.String() + ", and blame is about lines"}
	}
	rc, err := r.tree.Read(path)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	data, err := io.ReadAll(rc)
	if err == nil && bytes.IndexByte(data, 0) >= 0 {
		err = &project.Error{Kind: project.Failed, Msg: patch.Quote(path) + ": not a text, and blame is about lines",
			Advice: "'decree log PATH' lists what changed it"}
	}
	return data, err
}

// blame is one walk back. cur is the state of the file that it has come to; line i
// of it is line at[i] of the file now, -1 if that has a culprit already.
type blame struct {
	r    *Recorder
	out  []Blamed
	cur  []byte
	hash manifest.Hash
	at   []int
	left int // lines without a culprit
}

func newBlame(r *Recorder, data []byte) *blame {
	b := &blame{r: r, cur: data, hash: patch.Sum(data)}
	for i, line := range bytes.SplitAfter(data, []byte{'\n'}) {
		if len(line) > 0 {
			b.out = append(b.out, Blamed{Text: bytes.TrimSuffix(line, []byte{'\n'})})
			b.at = append(b.at, i)
		}
	}
	b.left = len(b.out)
	return b
}

// back goes through the moments, newest first.
func (b *blame) back(ctx context.Context, path string, moments []history.Moment) error {
	later, first, err := b.sinceNewest(ctx, path)
	if err != nil {
		return err
	}
	for i := 0; i < len(moments) && b.left > 0; i++ {
		m := moments[i]
		if m.Record.Status == history.StatusReverted && !m.Outside {
			later = m.Record
			continue // put back: it left no line
		}
		if m.Record.Status == history.StatusOpen && !m.Outside {
			continue
		}
		old, now := sides(m.Facts, path)
		if !same(now, b.hash) {
			if err := b.to(ctx, now, Blamed{Record: later, Outside: true}); err != nil {
				return err
			}
		}
		if b.left == 0 {
			break
		}
		if m.From != "" {
			path, old = m.From, now
		} else if j, ok := b.earlier(path, moments, i); ok && movedBack(m) {
			i, later = j-1, moments[j-1].Record
			continue
		}
		if err := b.to(ctx, old, Blamed{Record: m.Record, Outside: m.Outside}); err != nil {
			return err
		}
		later = m.Record
	}
	b.blame(func(int) bool { return true }, Blamed{Record: first, Outside: true})
	return nil
}

// sinceNewest goes back to the state that the newest record left: the lines that it
// lacks came since, or are the work of a run that has not ended. It returns the
// newest record, and the oldest: what is older than all was there when it began.
func (b *blame) sinceNewest(ctx context.Context, path string) (newest, first *history.Record, err error) {
	list, err := b.r.history.List(history.ListOptions{})
	if err != nil || len(list.Records) == 0 {
		return nil, nil, err
	}
	by := Blamed{Outside: true}
	for _, rec := range list.Records {
		if rec.Status == history.StatusOpen {
			by = Blamed{Record: rec}
			continue
		}
		newest = rec
		break
	}
	first = list.Records[len(list.Records)-1]
	at := Point{Record: newest, After: true}
	switch {
	case newest == nil:
		at = Point{Record: first} // the only record is open
	case newest.Status == history.StatusReverted:
		at.After = false
	}
	e, err := b.r.entryAt(at, path)
	if err != nil {
		return nil, nil, err
	}
	return newest, first, b.to(ctx, e, by)
}

// movedBack says whether a moment brought what had been there before.
func movedBack(m history.Moment) bool {
	switch m.Record.Reason {
	case history.Revert, history.Apply, history.Restore:
		return !m.Outside
	}
	return false
}

// earlier finds the moment before moments[i] at which the file was what it is at
// the walk's place: j is that of the moment to go on with.
func (b *blame) earlier(path string, moments []history.Moment, i int) (j int, ok bool) {
	for j := i + 1; j < len(moments); j++ {
		old, now := sides(moments[j].Facts, path)
		if same(now, b.hash) {
			return j, true
		}
		if same(old, b.hash) {
			return j + 1, true
		}
		if moments[j].From != "" {
			return 0, false
		}
	}
	return 0, false
}

// sides are a path's states before and after a moment.
func sides(facts []history.Fact, path string) (old, now *manifest.Entry) {
	first := true
	for _, f := range facts {
		if f.Path != path {
			continue
		}
		if first {
			old, first = f.Old, false
		}
		now = f.New // a path that changed its kind has two facts
	}
	return old, now
}

func same(e *manifest.Entry, sum manifest.Hash) bool {
	return e != nil && e.Type == manifest.Regular && e.SHA256 == sum
}

// to goes back to an earlier state: the lines that it lacks are by's.
func (b *blame) to(ctx context.Context, e *manifest.Entry, by Blamed) error {
	if same(e, b.hash) {
		return nil
	}
	data, ok, err := b.content(e)
	if err != nil {
		return err
	}
	if !ok {
		b.blame(func(int) bool { return true }, by)
		return nil
	}
	kept, err := patch.Kept(ctx, data, b.cur)
	if err != nil {
		return err
	}
	b.blame(func(i int) bool { return kept[i] < 0 }, by)
	at := make([]int, patch.Lines(data))
	for i := range at {
		at[i] = -1
	}
	for i, k := range kept {
		if k >= 0 {
			at[k] = b.at[i]
		}
	}
	b.cur, b.hash, b.at = data, e.SHA256, at
	return nil
}

// blame gives those lines of the present state that are meant, and have no culprit
// yet, theirs.
func (b *blame) blame(meant func(i int) bool, by Blamed) {
	for i, at := range b.at {
		if at >= 0 && meant(i) {
			b.out[at].Record, b.out[at].Outside = by.Record, by.Outside
			b.at[i] = -1
			b.left--
		}
	}
}

// content reads a state; ok is false where there were no lines, or where its bytes
// are not in the store any more.
func (b *blame) content(e *manifest.Entry) (data []byte, ok bool, err error) {
	if e == nil || e.Type != manifest.Regular {
		return nil, false, nil
	}
	data, err = b.r.object(e.SHA256)
	if lostContents(err) {
		b.r.note("an earlier state is not in the store any more; what it had counts as brought after it")
		return nil, false, nil
	}
	return data, err == nil, err
}
