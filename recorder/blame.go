package recorder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"decree/history"
	"decree/patch"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// Culprit is what brought a line.
type Culprit struct {
	// Record brought it. With Outside nobody did: Record is then the one that found
	// it, nil if it came since the newest.
	Record  *history.Record
	Outside bool
}

// Blamed is one line of a file and what brought it.
type Blamed struct {
	Text []byte // without its '\n'
	Culprit
}

// BlamedFile is a file with what brought each of its lines.
type BlamedFile struct {
	Lines    int
	Culprits []Culprit // what brought any of them

	by      []int32 // of each line: its culprit; below 0 it has none yet, and ^by is its line in the state that the walk has come to
	content patch.Content
}

// Each calls f for each line, counted from 0, in order. Text is only f's until it
// returns. A file that changed since it was looked at is an error.
func (b *BlamedFile) Each(f func(i int, l Blamed) error) error {
	rc, err := b.content.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	r := bufio.NewReaderSize(rc, 64<<10)
	for i := 0; ; i++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) == 0 && i == b.Lines {
			return nil
		}
		if len(line) == 0 || i == b.Lines {
			return errors.New("the file changed while it was read")
		}
		if err := f(i, Blamed{bytes.TrimSuffix(line, []byte{'\n'}), b.Culprits[b.by[i]]}); err != nil {
			return err
		}
	}
}

// Blame says of each line of a file, as it is now, which record brought it. It goes
// back through the file's past by the facts of the diffs, and through renames that
// are seen by an equal hash. What a revert, apply or restore brought back is the
// work of what had brought it first.
func (r *Reader) Blame(ctx context.Context, path tree.Path) (*BlamedFile, error) {
	r.catchUp()
	b, err := r.textNow(ctx, path)
	if err != nil {
		return nil, err
	}
	var moments []history.Moment
	warnings, err := r.history.Past(history.PastOptions{Paths: []tree.Path{path}, Follow: true}, func(m history.Moment) bool {
		moments = append(moments, m)
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.note("%s", w)
	}
	return &b.out, b.back(ctx, path, moments)
}

// textNow looks at the file as it is in the tree.
func (r *Reader) textNow(ctx context.Context, path tree.Path) (*blame, error) {
	// Look reads the whole of a file, so one that is no text is refused by its beginning.
	if err := refuseBinary(liveFile{r.tree, path}, path); err != nil {
		return nil, err
	}
	e, err := r.tree.Look(path)
	switch {
	case err != nil:
		return nil, lookError(err)
	case e == nil:
		return nil, &project.Error{Kind: project.NotFound, Msg: tree.Quote(path) + ": no such file in the tree",
			Advice: "'decree log PATH' lists what changed it; 'decree show REF:PATH' prints it as it was"}
	case e.Type != tree.Regular:
		return nil, &project.Error{Kind: project.Failed, Msg: tree.Quote(path) + ": a " + e.Type.String() + ", which has no lines"}
	}
	b := &blame{r: r, cur: e, content: liveFile{r.tree, path}}
	if e.Size <= maxCached {
		data, err := readAll(b.content)
		if err != nil {
			return nil, err
		}
		// Somebody may have written to it since it was looked at.
		now := *e
		now.Size, now.SHA256 = int64(len(data)), tree.Sum(data)
		b.cur, b.content = &now, patch.Bytes(data)
	}
	return b, b.begin(ctx, path)
}

// liveFile is a patch.Content whose bytes are in the tree.
type liveFile struct {
	tree *worktree.Tree
	path tree.Path
}

// Open opens the file as it is now.
func (c liveFile) Open() (io.ReadCloser, error) { return c.tree.Read(c.path) }

// blameBuffer is how much of a file is looked at together.
const blameBuffer = 256 << 10

// refuseBinary looks at the beginning of a file; what cannot be read is left to who reads all of it.
func refuseBinary(c patch.Content, path tree.Path) error {
	rc, err := c.Open()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	defer rc.Close()
	begins := make([]byte, blameBuffer)
	n, _ := io.ReadFull(rc, begins)
	if bytes.IndexByte(begins[:n], 0) >= 0 {
		return notText(path)
	}
	return nil
}

func notText(path tree.Path) error {
	return &project.Error{Kind: project.Failed, Msg: tree.Quote(path) + ": not a text file, so it has no lines",
		Advice: "'decree log PATH' lists what changed it"}
}

func readAll(c patch.Content) ([]byte, error) {
	rc, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

// blame is one walk back. cur is the state of the file that it has come to.
type blame struct {
	r       *Reader
	out     BlamedFile
	cur     *tree.Entry
	content patch.Content
	open    int // lines without a culprit
}

// begin counts the lines, none of which has a culprit yet.
func (b *blame) begin(ctx context.Context, path tree.Path) error {
	rc, err := b.content.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	buf, ended := make([]byte, blameBuffer), true
	for {
		n, err := rc.Read(buf)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			return notText(path)
		}
		b.out.Lines += bytes.Count(buf[:n], []byte{'\n'})
		if n > 0 {
			ended = buf[n-1] == '\n'
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	if !ended {
		b.out.Lines++
	}
	b.out.content, b.out.by, b.open = b.content, make([]int32, b.out.Lines), b.out.Lines
	for i := range b.out.by {
		b.out.by[i] = ^int32(i)
	}
	return nil
}

// back goes through the moments, newest first.
func (b *blame) back(ctx context.Context, path tree.Path, moments []history.Moment) error {
	later, first, err := b.sinceNewest(ctx, path)
	if err != nil {
		return err
	}
	for i := 0; i < len(moments) && b.open > 0; i++ {
		m := moments[i]
		if m.Record.Status == history.StatusReverted && !m.Outside {
			later = m.Record
			continue // put back: it left no line
		}
		if (m.Record.Status == history.StatusOpen || m.Record.Isolated != "") && !m.Outside {
			continue
		}
		old, now := sides(m.Facts, path)
		if !isContent(now, b.cur.SHA256) {
			if err := b.to(ctx, now, Culprit{Record: later, Outside: true}); err != nil {
				return err
			}
		}
		if b.open == 0 {
			break
		}
		if m.From != "" {
			path, old = m.From, now
		} else if j, ok := b.earlier(path, moments, i); ok && movedBack(m) {
			i, later = j-1, moments[j-1].Record
			continue
		}
		if err := b.to(ctx, old, Culprit{Record: m.Record, Outside: m.Outside}); err != nil {
			return err
		}
		later = m.Record
	}
	b.rest(Culprit{Record: first, Outside: true})
	return nil
}

// sinceNewest goes back to the state that the newest record left: the lines that it
// lacks came since, or are the work of a run that has not ended. It returns the
// newest record, and the oldest: what is older than all was there when it began.
func (b *blame) sinceNewest(ctx context.Context, path tree.Path) (newest, first *history.Record, err error) {
	list, err := b.r.history.List(history.ListOptions{Keep: func(rec *history.Record) bool { return rec.Isolated == "" }})
	if err != nil || len(list.Records) == 0 {
		return nil, nil, err
	}
	by := Culprit{Outside: true}
	for _, rec := range list.Records {
		if rec.Status == history.StatusOpen {
			by = Culprit{Record: rec}
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
func (b *blame) earlier(path tree.Path, moments []history.Moment, i int) (j int, ok bool) {
	for j := i + 1; j < len(moments); j++ {
		old, now := sides(moments[j].Facts, path)
		if isContent(now, b.cur.SHA256) {
			return j, true
		}
		if isContent(old, b.cur.SHA256) {
			return j + 1, true
		}
		if moments[j].From != "" {
			return 0, false
		}
	}
	return 0, false
}

// sides are a path's states before and after a moment.
func sides(facts []*patch.Section, path tree.Path) (old, now *tree.Entry) {
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

func isContent(e *tree.Entry, sum tree.Hash) bool {
	return e.IsFile() && e.SHA256 == sum
}

// to goes back to an earlier state: the lines that it lacks are by's.
func (b *blame) to(ctx context.Context, e *tree.Entry, by Culprit) error {
	if isContent(e, b.cur.SHA256) {
		return nil
	}
	if !e.IsFile() {
		b.rest(by)
		return nil
	}
	old := stored{b.r.store, e.SHA256}
	w := walk{b: b, by: by}
	err := patch.Stays(ctx, patch.Change{Old: e, New: b.cur, OldContent: old, NewContent: b.content}, w.stays)
	if lostContents(err) {
		b.r.note("an earlier state is no longer in the store; its lines count as newer than they are")
		w.next, err = 0, nil
	}
	if err != nil {
		return err
	}
	w.until(math.MaxInt)
	b.cur, b.content = e, old
	return nil
}

// walk is one step back. next is the line of the file now with which it goes on: what stays does so in order.
type walk struct {
	b    *blame
	by   Culprit
	next int
}

// stays takes n lines from line at of the state on, which are lines of the older one; what lies before them is by's.
func (w *walk) stays(old, at, n int) error {
	w.until(at)
	for by := w.b.out.by; w.next < len(by) && (by[w.next] >= 0 || int(^by[w.next]) < at+n); w.next++ {
		if by[w.next] < 0 {
			by[w.next] -= int32(old - at)
		}
	}
	return nil
}

// until gives the open lines before line at of the state their culprit.
func (w *walk) until(at int) {
	who := int32(-1)
	for by := w.b.out.by; w.next < len(by) && (by[w.next] >= 0 || int(^by[w.next]) < at); w.next++ {
		if by[w.next] >= 0 {
			continue
		}
		if who < 0 {
			who = w.b.culprit(w.by)
		}
		by[w.next] = who
		w.b.open--
	}
}

// rest gives all open lines their culprit.
func (b *blame) rest(by Culprit) { (&walk{b: b, by: by}).until(math.MaxInt) }

// culprit is the number of one that has brought a line.
func (b *blame) culprit(by Culprit) int32 {
	at := slices.Index(b.out.Culprits, by)
	if at < 0 {
		at = len(b.out.Culprits)
		b.out.Culprits = append(b.out.Culprits, by)
	}
	return int32(at)
}
