package recorder

import (
	"archive/tar"
	"bufio"

	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/manifest"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// Exported is what an export wrote.
type Exported struct {
	Files   int // of a tar; of a stream the contents
	States  int // of a stream
	LeftOut []tree.Path
	Plain   []tree.Path // of a tar: files that are without their set-user-ID or set-group-ID
	Closed  []tree.Path // of a tar: what is without the rights that an access control list gave
}

// ExportTar writes the tree at a point as a tar archive: in byte order of the
// paths, owners 0 but for files with set-user-ID or set-group-ID, and the time of
// the state as everything's mtime, to the second, so that one state is one sequence
// of bytes. Of such a file whose owner is not recorded these bits are left out, and where there was an access
// control list, which a tar does not have, what its mask shows as the group's rights. Files whose content was
// forgotten are left out and named.
func (r *Reader) ExportTar(ctx context.Context, w io.Writer, p Point) (*Exported, error) {
	r.catchUp()
	seq, err := r.entries(p)
	if err != nil {
		return nil, err
	}
	elsewhere, err := r.history.Foreign(p.Record.ID)
	if err != nil {
		return nil, err
	}
	if p.draft() && !elsewhere { // the copy in .decree/runs, which was read, says what its last writer wanted
		changes, err := r.history.StoredChanges(p.Record)
		if elsewhere = err != nil; !elsewhere {
			seq = history.OneSide(changesInMemory(changes), newSide)
		}
	}
	items, err := manifest.Collect(seq)
	if err != nil {
		return nil, err
	}
	only, err := r.believed(elsewhere)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(items, func(a, b tree.Item) int { return a.Path.Compare(b.Path) })
	out := &Exported{}
	tw := tar.NewWriter(w)
	for _, it := range items {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		err := r.tarItem(tw, it, stateTime(p), only, out)
		if Forgotten(err) {
			out.LeftOut = append(out.LeftOut, it.Path)
			continue
		}
		if err != nil {
			return out, err
		}
		if it.Entry.Type != tree.Dir {
			out.Files++
		}
	}
	return out, tw.Close()
}

// stateTime is when a point was observed.
func stateTime(p Point) time.Time {
	if p.After && !p.Record.Ended.IsZero() {
		return p.Record.Ended
	}
	return p.Record.Started
}

// Forgotten says that a content was taken out of the store by a forget.
func Forgotten(err error) bool {
	var missing *store.MissingError
	return errors.As(err, &missing) && missing.Forgotten
}

func (r *Reader) tarItem(tw *tar.Writer, it tree.Item, at time.Time, only *tree.Owner, out *Exported) error {
	h := &tar.Header{Name: string(it.Path), Mode: int64(it.Entry.Mode), ModTime: at.UTC().Truncate(time.Second)}
	if owner := it.Entry.Owner; owner.Known && owner.GID == disk.NoGroup && it.Entry.GroupOnly() != 0 {
		h.Mode &^= int64(it.Entry.GroupOnly())
		out.Closed = append(out.Closed, it.Path)
	}
	switch it.Entry.Type {
	case tree.Dir:
		h.Typeflag, h.Name = tar.TypeDir, string(it.Path)+"/"
		return tw.WriteHeader(h)
	case tree.Symlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, it.Entry.Target
		return tw.WriteHeader(h)
	}
	rc, size, err := r.store.Open(it.Entry.SHA256)
	if err != nil {
		return contentOf(it.Path, err)
	}
	defer rc.Close()
	h.Typeflag, h.Size = tar.TypeReg, size
	if owner := it.Entry.Owner; it.Entry.Special() && owner.Known && owner.GID != disk.NoGroup && (only == nil || *only == owner) {
		h.Uid, h.Gid = int(owner.UID), int(owner.GID)
	} else if it.Entry.Special() {
		h.Mode &^= tree.SpecialBits // extracted by root it would be root's
		out.Plain = append(out.Plain, it.Path)
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, rc)
	return contentOf(it.Path, err)
}

// contentOf gives what is wrong with a stored content its path and kind.
func contentOf(path tree.Path, err error) error {
	var missing *store.MissingError
	var damaged *store.DamagedError
	if errors.As(err, &missing) || errors.As(err, &damaged) {
		return &project.Error{Kind: project.Integrity, Msg: tree.Quote(path), Err: err}
	}
	return err
}

// ExportStream writes records as a stream that git fast-import reads: a commit
// for the state that a record found and, where it changed something, one for the
// state that it left; a revert and an apply, who know their own paths only, have
// the latter. Each has the state's time, the actor as its author, the description
// or command as its message, the commit before it as its parent, and a ref
// refs/decree/<time>, with -2, -3 ... where several fall in one second. from and
// to are records; both nil: all. What git does not know is left out: directories
// without files, and modes but for the owner's x bit.
func (r *Reader) ExportStream(ctx context.Context, w io.Writer, from, to *history.Record) (*Exported, error) {
	r.catchUp()
	list, err := r.history.List(history.ListOptions{Keep: func(rec *history.Record) bool {
		return rec.Status != history.StatusOpen && rec.Isolated == "" &&
			(from == nil || history.Compare(rec, from) >= 0) && (to == nil || history.Compare(rec, to) <= 0)
	}})
	if err != nil {
		return nil, err
	}
	s := &stream{r: r, w: bufio.NewWriterSize(w, 1<<20), out: &Exported{}, marks: map[tree.Hash]int{}, refs: map[string]int{}}
	fmt.Fprint(s.w, "feature done\n")
	for i, rec := range slices.Backward(list.Records) {
		r.progress(Progress{Phase: "exporting", Done: int64(len(list.Records) - i), Total: int64(len(list.Records))})
		if err := s.record(ctx, rec); err != nil {
			return s.out, fmt.Errorf("record %s: %w", rec.ID, err)
		}
	}
	fmt.Fprint(s.w, "done\n")
	slices.Sort(s.out.LeftOut)
	s.out.LeftOut = slices.Compact(s.out.LeftOut)
	return s.out, s.w.Flush()
}

// stream is an export in work.
type stream struct {
	r     *Reader
	w     *bufio.Writer
	out   *Exported
	mark  int               // the last one given out
	last  int               // of the last commit, 0: none
	marks map[tree.Hash]int // of contents
	refs  map[string]int    // how many have a second's name
	tree  tree.Hash         // that of the last commit; zero: none
}

func (s *stream) record(ctx context.Context, rec *history.Record) error {
	what := rec.Description
	if what == "" && len(rec.Command) > 0 {
		what = tree.ShellWords(rec.Command)
	}
	if what == "" {
		what = string(rec.Reason)
	}
	if !observedWhole(rec) {
		if s.last == 0 {
			if err := s.to(ctx, rec.Before, rec, rec.Started, "Before: "+what); err != nil {
				return err
			}
		}
		return s.to(ctx, rec.After, rec, rec.Ended, what)
	}
	changed := treeAfter(rec) != rec.Before
	subject := what
	if changed {
		subject = "Before: " + what
	}
	if err := s.to(ctx, rec.Before, rec, rec.Started, subject); err != nil || !changed {
		return err
	}
	return s.to(ctx, treeAfter(rec), rec, rec.Ended, what)
}

// to writes the commit whose tree is next.
func (s *stream) to(ctx context.Context, next tree.Hash, rec *history.Record, at time.Time, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	changes, err := s.r.history.Compare(s.tree, next)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !c.New.IsFile() {
			continue
		}
		if err := s.blob(c.Path, c.New); err != nil {
			return err
		}
	}
	s.commit(rec, at, subject)
	for _, c := range changes {
		if c.Old != nil && c.Old.Type != tree.Dir {
			fmt.Fprintf(s.w, "D %s\n", streamPath(c.Path))
		}
	}
	for _, c := range changes {
		s.put(c)
	}
	fmt.Fprint(s.w, "\n")
	s.tree = next
	s.out.States++
	return nil
}

// blob writes a content that the stream does not have yet.
func (s *stream) blob(path tree.Path, e *tree.Entry) error {
	if s.marks[e.SHA256] != 0 {
		return nil
	}
	rc, size, err := s.r.store.Open(e.SHA256)
	if Forgotten(err) {
		s.out.LeftOut = append(s.out.LeftOut, path)
		return nil
	}
	if err != nil {
		return contentOf(path, err)
	}
	defer rc.Close()
	s.mark++
	fmt.Fprintf(s.w, "blob\nmark :%d\ndata %d\n", s.mark, size)
	if _, err := io.Copy(s.w, rc); err != nil {
		return contentOf(path, err)
	}
	fmt.Fprint(s.w, "\n")
	s.marks[e.SHA256] = s.mark
	s.out.Files++
	return nil
}

func (s *stream) commit(rec *history.Record, at time.Time, subject string) {
	s.mark++
	who := fmt.Sprintf("%s <%s@%s> %d +0000", streamName(rec.Actor.User), streamName(rec.Actor.User), streamName(rec.Actor.Host), at.Unix())
	message := fmt.Sprintf("%s\n\nrecord %s, %s, %s\n", strings.Join(strings.Fields(subject), " "), rec.ID, rec.Reason, rec.Status)
	fmt.Fprintf(s.w, "commit %s\nmark :%d\nauthor %s\ncommitter %s\ndata %d\n%s\n", s.ref(at), s.mark, who, who, len(message), message)
	if s.last != 0 {
		fmt.Fprintf(s.w, "from :%d\n", s.last)
	}
	s.last = s.mark
}

// ref is a name for a state that no clone and no push takes along.
func (s *stream) ref(at time.Time) string {
	name := "refs/decree/" + at.UTC().Format("2006-01-02T15-04-05Z")
	s.refs[name]++
	if n := s.refs[name]; n > 1 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

func (s *stream) put(c tree.Change) {
	switch e := c.New; {
	case e == nil || e.Type == tree.Dir:
	case e.Type == tree.Symlink:
		fmt.Fprintf(s.w, "M 120000 inline %s\ndata %d\n%s\n", streamPath(c.Path), len(e.Target), e.Target)
	case s.marks[e.SHA256] == 0: // forgotten
	default:
		mode := "100644"
		if e.Mode&0o100 != 0 {
			mode = "100755"
		}
		fmt.Fprintf(s.w, "M %s :%d %s\n", mode, s.marks[e.SHA256], streamPath(c.Path))
	}
}

// streamPath quotes a path where the stream needs it.
func streamPath(path tree.Path) string {
	text := string(path)
	if strings.HasPrefix(text, `"`) || strings.Contains(text, "\n") {
		return tree.Quote(text)
	}
	return text
}

// streamName takes out what would end a name.
func streamName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == '<' || c == '>' {
			return -1
		}
		return c
	}, name)
	if name = strings.TrimSpace(name); name == "" {
		return "unknown"
	}
	return name
}
