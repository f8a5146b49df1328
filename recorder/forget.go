package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"decree/history"
	"decree/layer"
	"decree/patch"
	"decree/tree"

	"decree/project"
	"decree/store"
)

// ForgetOptions are a forget's.
type ForgetOptions struct {
	Paths   []tree.Path // below the root; "" is refused
	Yes     bool
	Confirm func(*Forgetting) (bool, error)
}

// Forgetting is what a forget does, or would do.
type Forgetting struct {
	Contents []ForgottenContent // in order of their paths
	// Records are those whose diffs hold the contents, and can then not be reverted
	// or applied where that needs one.
	Records []string
	// Also are other paths that had one of the contents.
	Also []tree.Path
	// InTree are paths of the present tree that have one of them: the next record
	// stores it again.
	InTree []tree.Path
	// Layers are those of isolated runs, by record: they are not searched, and a command may
	// work in one again.
	Layers []string
	Freed  int64
	// Damaged are packs that stay because parts of them are damaged: they may hold
	// the contents still.
	Damaged []string
}

// ForgottenContent is a content and the first path that had it.
type ForgottenContent struct {
	Path   tree.Path
	SHA256 tree.Hash
	Size   int64
}

const opForget = "forget"

// Forget takes the contents that files at or below the paths ever had out of the
// store and out of the diffs of all records. Manifests keep the paths and hashes.
// Empty contents stay. The tree is not touched.
//
// First the hashes are written down as pending: a death after that makes the next
// writing command finish. Then the diffs are written anew, with the contents
// left to the store; then every pack that holds one of them.
func (r *Recorder) Forget(ctx context.Context, o ForgetOptions) (*Forgetting, error) {
	x, err := r.enterFor(ctx, opForget, movesFiles)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if id := x.activity.inside; id != "" {
		err := &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "run " + id + " is going on, and its diff, which is not written yet, may hold what is to be forgotten",
			Advice: "repeat it when the run has ended"}
		r.auditFailure(opForget, err)
		return nil, err
	}
	f, hashes, err := r.toForget(o.Paths)
	if err != nil || len(hashes) == 0 {
		return f, err
	}
	if !o.Yes {
		if err := askForget(f, o.Confirm); err != nil {
			return nil, err
		}
	}
	if err := r.nothingUnreadable(); err != nil {
		return nil, err
	}
	list, err := r.forgotten()
	if err != nil {
		return nil, err
	}
	now := r.opt.Clock().UTC()
	for _, c := range f.Contents {
		list.Contents[c.SHA256] = store.Forgetting{Path: tree.Quote(c.Path), Time: now}
	}
	for _, h := range list.Pending { // an interrupted one has left them, and its recovery waits for runs
		hashes[h] = true
	}
	list.Pending = slices.Collect(maps.Keys(hashes))
	if err := store.WriteForgotten(r.project.Store, list); err != nil {
		return nil, err
	}
	if err := r.forget(ctx, x, list, f); err != nil {
		r.auditFailure(opForget, err)
		return nil, &project.Error{Kind: project.KindOf(err), Msg: "not forgotten yet", Err: err, Advice: "remove the cause; then the next command that writes finishes it, or 'decree recover'"}
	}
	err = r.eachLayer(func(_ *layer.Place, name string) error {
		f.Layers = append(f.Layers, name)
		return nil
	})
	slices.Sort(f.Layers)
	return f, err
}

// forgotten is the list of what was forgotten, for who needs it whole: one that makes no sense is not taken for an empty one.
func (r *Reader) forgotten() (*store.Forgotten, error) {
	list, err := store.ReadForgotten(r.project.Store)
	if err == nil || errors.As(err, new(*fs.PathError)) || errors.As(err, new(*store.VersionError)) {
		return list, err
	}
	return nil, &project.Error{Kind: project.Integrity, Msg: "it cannot be told what was forgotten", Err: err, State: project.Unchanged,
		Advice: fmt.Sprintf("bring forgotten.json in %s back; or, if it is lost for good, move it away: what was forgotten then counts as missing", r.project.StorePath)}
}

// WouldForget says what Forget would do with these paths. It takes nothing out.
func (r *Reader) WouldForget(paths []tree.Path) (*Forgetting, error) {
	r.catchUp()
	f, _, err := r.toForget(paths)
	return f, err
}

func askForget(f *Forgetting, confirm func(*Forgetting) (bool, error)) error {
	refused := &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "forgotten contents cannot be brought back", Advice: "--dry-run shows what would be forgotten; --yes forgets it without asking"}
	if confirm == nil {
		return refused
	}
	yes, err := confirm(f)
	if err == nil && !yes {
		return refused
	}
	return err
}

// toForget finds the contents that files within paths had, in any tree or diff.
func (r *Reader) toForget(paths []tree.Path) (*Forgetting, map[tree.Hash]bool, error) {
	if slices.Contains(paths, "") {
		return nil, nil, &project.Error{Kind: project.Usage, Msg: "the root is not a PATH to forget", Advice: "name the files or directories"}
	}
	if newer, err := r.history.Newer(); err != nil {
		return nil, nil, err
	} else if len(newer) > 0 {
		return nil, nil, &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("a newer decree wrote %s, which this one cannot search", some(slices.Sorted(maps.Keys(newer)))),
			Advice: "use the newer decree to forget"}
	}
	first, known, err := r.everHeld(paths)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range paths {
		if !known[p] {
			return nil, nil, &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: tree.Quote(p) + ": no record has such a path",
				Advice: "what a backup or a command that died has stored of it, and no record needs, goes with 'decree gc'"}
		}
	}
	f, hashes := &Forgetting{}, map[tree.Hash]bool{}
	for h, c := range first {
		hashes[h] = true
		f.Contents = append(f.Contents, c)
	}
	slices.SortFunc(f.Contents, func(a, b ForgottenContent) int {
		if d := a.Path.Compare(b.Path); d != 0 {
			return d
		}
		return bytes.Compare(a.SHA256[:], b.SHA256[:])
	})
	if err := r.notTheHistorys(first); err != nil {
		return nil, nil, err
	}
	return f, hashes, r.alsoHave(f, hashes, paths)
}

// notTheHistorys refuses contents that records consist of: a copy of a diff in the tree is one
// object with it, and without a diff or a tree nobody knows what else its record needs.
func (r *Reader) notTheHistorys(contents map[tree.Hash]ForgottenContent) error {
	if len(contents) == 0 {
		return nil
	}
	return r.history.Closures(nil, history.Once(), func(p *history.Part) error {
		c, asked := contents[p.Object]
		what := tree.Quote(string(p.Path))
		switch {
		case !asked:
			return nil
		case p.Kind == history.Directory:
			what = "a directory"
		case p.Kind != history.File || !history.OwnDiff(string(p.Path)):
			return nil
		}
		return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s has the same bytes as %s of record %s, which needs them", tree.Quote(c.Path), what, p.Record),
			Advice: "forget the paths of the secrets in it, which takes them out of every diff, or name other paths; when that record is pruned it can be forgotten"}
	})
}

// everHeld finds the contents that files within paths had and that are not gone already,
// with the first path of each, and which of paths any record knows.
func (r *Reader) everHeld(paths []tree.Path) (first map[tree.Hash]ForgottenContent, known map[tree.Path]bool, err error) {
	first, known = map[tree.Hash]ForgottenContent{}, map[tree.Path]bool{}
	note := func(path tree.Path, e tree.Entry) {
		for _, p := range paths {
			known[p] = known[p] || path.Within(p)
		}
		if e.Type != tree.Regular || e.Size == 0 || !path.Within(paths...) {
			return
		}
		if c, seen := first[e.SHA256]; !seen || path < c.Path {
			first[e.SHA256] = ForgottenContent{path, e.SHA256, e.Size}
		}
	}
	inDiff := map[tree.Hash]bool{} // whether the store has them or not
	if err = r.history.EachEntry(note); err == nil {
		err = r.everyDiff(func(_ string, _ history.RecordFile, f *patch.Section) {
			for _, e := range []*tree.Entry{f.Old, f.New} {
				if e != nil {
					note(f.Path, *e)
					inDiff[e.SHA256] = inDiff[e.SHA256] || !f.Stored
				}
			}
		})
	}
	maps.DeleteFunc(first, func(h tree.Hash, _ ForgottenContent) bool { return !r.store.Has(h) && !inDiff[h] })
	return first, known, err
}

// everyDiff goes through the facts of all records' diffs, as the store has them.
func (r *Reader) everyDiff(each func(id string, file history.RecordFile, f *patch.Section)) error {
	logged, err := r.history.Logged()
	if err != nil {
		return err
	}
	for _, rec := range logged {
		files, err := r.history.Diffs(rec.ID)
		if err != nil {
			return err
		}
		for _, file := range files {
			rc, _, err := r.store.Open(file.SHA256)
			if err == nil {
				err = history.Facts(rc, func(f *patch.Section) bool { each(rec.ID, file, f); return true })
				rc.Close()
			}
			if err != nil && !errors.As(err, new(*patch.SyntaxError)) { // what an attempt made of an earlier one's is no diff
				return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s of %s", file.Name, rec.ID), Err: err}
			}
		}
	}
	return nil
}

// alsoHave fills in what else is concerned.
func (r *Reader) alsoHave(f *Forgetting, hashes map[tree.Hash]bool, paths []tree.Path) error {
	also, records := map[tree.Path]bool{}, map[string]bool{}
	err := r.history.EachEntry(func(path tree.Path, e tree.Entry) {
		if hashes[e.SHA256] && e.Type == tree.Regular && !path.Within(paths...) {
			also[path] = true
		}
	})
	if err == nil {
		err = r.everyDiff(func(id string, _ history.RecordFile, fact *patch.Section) {
			for _, e := range []*tree.Entry{fact.Old, fact.New} {
				if e != nil && hashes[e.SHA256] {
					records[id] = true
				}
			}
		})
	}
	if err != nil {
		return err
	}
	f.Also, f.Records = slices.Sorted(maps.Keys(also)), slices.Sorted(maps.Keys(records))
	for _, path := range slices.Concat(pathsOfContents(f.Contents), f.Also) {
		e, err := r.tree.Look(path)
		if err == nil && e != nil && hashes[e.SHA256] {
			f.InTree = append(f.InTree, path)
		}
	}
	return nil
}

func pathsOfContents(list []ForgottenContent) (paths []tree.Path) {
	for _, c := range list {
		paths = append(paths, c.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// forget does what the list has pending. It can be repeated.
func (r *Recorder) forget(ctx context.Context, x *writeSession, list *store.Forgotten, f *Forgetting) error {
	hashes := map[tree.Hash]bool{}
	for _, h := range list.Pending {
		hashes[h] = true
	}
	if err := r.withholdAll(ctx, x, hashes); err != nil {
		return err
	}
	c, err := r.collect(ctx, x, collectOptions{force: true, except: hashes})
	if err != nil {
		return err
	}
	f.Freed, f.Damaged = c.Freed, c.Damaged
	if len(c.Damaged) > 0 {
		return &project.Error{Kind: project.Integrity, Msg: "packs that are damaged in part stay, and may still hold it: " + strings.Join(c.Damaged, ", "),
			Advice: "'decree doctor' says what is damaged"}
	}
	op := r.audit(opForget, "done")
	for h := range hashes {
		op.Detail = list.Contents[h].Path
		if len(hashes) > 1 {
			op.Detail = fmt.Sprintf("%d contents, of %s and others", len(hashes), op.Detail)
		}
		break
	}
	if err := r.history.Audit(op); err != nil {
		return err
	}
	list.Pending = nil
	return store.WriteForgotten(r.project.Store, list)
}

// forget does again what a death has left of a forget. What goes wrong is said
// and tried again by the next command: nobody's work has to wait for it.
func (c *recovery) forget(ctx context.Context) error {
	r, x := c.r, c.x
	if len(x.activity.leases) > 0 {
		return nil // what a run is about to write may hold it
	}
	list, err := store.ReadForgotten(r.project.Store)
	if err != nil && !errors.As(err, new(*fs.PathError)) && !errors.As(err, new(*store.VersionError)) {
		r.note("whether a forget was interrupted is not known: %v; 'decree doctor' says what to do", err)
		return nil
	}
	if err != nil || len(list.Pending) == 0 {
		return err
	}
	if err := r.forget(ctx, x, list, &Forgetting{}); err != nil {
		r.note("contents that should have been forgotten are still there: %v", err)
	} else {
		c.add(nil, "an interrupted forget of %s was finished", some(list.Paths()))
	}
	return r.openWriter(ctx, x)
}

// withholdAll writes anew every diff that holds one of the contents.
func (r *Recorder) withholdAll(ctx context.Context, x *writeSession, hashes map[tree.Hash]bool) error {
	concerned := map[string]map[string]history.RecordFile{}
	err := r.everyDiff(func(id string, file history.RecordFile, f *patch.Section) {
		for _, e := range []*tree.Entry{f.Old, f.New} {
			if e == nil || !hashes[e.SHA256] {
				continue
			}
			if concerned[id] == nil {
				concerned[id] = map[string]history.RecordFile{}
			}
			concerned[id][file.Name] = file
		}
	})
	if err != nil {
		return err
	}
	rewritten := map[string]map[string]tree.Hash{}
	for id, files := range concerned {
		rewritten[id] = map[string]tree.Hash{}
		for name, file := range files {
			rewritten[id][name], err = r.withhold(ctx, x, file, hashes)
			if errors.As(err, new(*patch.SyntaxError)) && name != diffFile && name != history.OutsideFile {
				// An attempt made this of an earlier one's diff: what of it is a secret nobody can say.
				r.note("%s of %s is no diff any more and names what is to be forgotten: it was emptied", name, id)
				rewritten[id][name], err = x.w.PutBytes([]byte(patch.VersionLine + "\n"))
			}
			if err != nil {
				return &project.Error{Kind: project.KindOf(err), Msg: fmt.Sprintf("%s of %s", name, id), Err: err}
			}
		}
	}
	if err := x.w.Flush(); err != nil {
		return err
	}
	return r.history.Rewrite(rewritten)
}

// withhold puts a diff into the store whose sections of the contents have none.
func (r *Recorder) withhold(ctx context.Context, x *writeSession, file history.RecordFile, hashes map[tree.Hash]bool) (tree.Hash, error) {
	rc, _, err := r.store.Open(file.SHA256)
	if err != nil {
		return tree.Hash{}, err
	}
	defer rc.Close()
	sum, err := store.PutWritten(x.w, func(to io.Writer) error { return withholdFrom(ctx, to, rc, hashes) })
	return sum, err
}

func withholdFrom(ctx context.Context, w io.Writer, diff io.Reader, hashes map[tree.Hash]bool) error {
	in, begun := patch.NewReader(diff), false
	for {
		s, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !begun {
			begun = true
			if _, err := io.WriteString(w, patch.VersionLine+"\n"); err != nil {
				return err
			}
		}
		raw := s.Raw
		for _, e := range []*tree.Entry{s.Old, s.New} {
			if e != nil && hashes[e.SHA256] {
				raw = s.Withheld()
			}
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
}
