package recorder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"decree/disk"
	"decree/history"
	"decree/manifest"
	"decree/store"
	"decree/tree"
)

// VerifyOptions say what to verify: one record, all of them, or the tree
// against the last record.
type VerifyOptions struct {
	Record    *history.Record
	All, Tree bool
}

// Problem is one thing whose hash is not what was recorded.
type Problem struct {
	Record string // its id; "" for what belongs to no record
	Path   string // of a file in the tree, or of the record; "" for the record as a whole
	Reason string

	gone bool // the file is not there
}

// Deleted says whether all that is wrong is that the file is not in .decree/runs, where it is a copy.
func (p Problem) Deleted() bool { return p.gone }

// Verify hashes what was recorded again. It finds problems, it mends nothing.
func (r *Reader) Verify(ctx context.Context, o VerifyOptions) ([]Problem, error) {
	r.catchUp()
	if o.Tree {
		return r.verifyTree(ctx)
	}
	if !o.All {
		logged, err := r.history.Recorded(o.Record.ID)
		if err == nil && !logged { // it is in .decree/runs alone, or gone by now
			_, err = r.history.Get(o.Record.ID)
		}
		if err != nil {
			return nil, err
		}
		v, err := r.newVerifier()
		if err != nil {
			return v.found, err
		}
		defer v.noteMissing()
		v.logged = map[string]bool{o.Record.ID: logged}
		gone, err := v.unlessGone(o.Record.ID, func() error { return v.record(ctx, o.Record) })
		if gone {
			_, err = r.history.Get(o.Record.ID)
		}
		return v.found, err
	}
	v, err := r.verifyAll(ctx)
	defer v.noteMissing()
	if err != nil {
		return v.found, err
	}
	broken, err := r.store.Check(ctx)
	if err != nil {
		return v.found, err
	}
	for _, p := range broken {
		if v.concernsRecord(p) {
			v.add("", p.Pack, p.Err)
		}
	}
	return v.found, nil
}

func (r *Reader) newVerifier() (*verifier, error) {
	v := &verifier{r: r, seen: map[tree.Hash]error{}, told: map[[2]string]bool{}, sound: map[tree.Hash]bool{}}
	return v, v.newest()
}

// verifyAll checks every record. The verifier has what was found when there is
// an error too.
func (r *Reader) verifyAll(ctx context.Context) (*verifier, error) {
	v, err := r.newVerifier()
	if err != nil {
		return v, err
	}
	list, err := r.history.List(history.ListOptions{})
	if err != nil {
		return v, err
	}
	for _, d := range list.Damaged {
		v.add(d.ID, "run.json", d.Err)
	}
	broken, err := r.history.Broken()
	if err != nil {
		return v, err
	}
	if broken != nil {
		v.add("", "", broken)
	}
	if err := v.noteRecords(list.Records); err != nil {
		return v, err
	}
	for i, rec := range list.Records {
		r.progress(Progress{Phase: "checking", Done: int64(i), Total: int64(len(list.Records))})
		if rec.Status == history.StatusOpen {
			continue
		}
		if _, err := v.unlessGone(rec.ID, func() error { return v.record(ctx, rec) }); err != nil {
			return v, err
		}
	}
	return v, nil
}

// noteRecords notes which records the log has.
func (v *verifier) noteRecords(list []*history.Record) error {
	v.logged = map[string]bool{}
	for _, rec := range list {
		is, err := v.r.history.Recorded(rec.ID)
		if err != nil {
			return err
		}
		v.logged[rec.ID] = is
	}
	return nil
}

// unlessGone checks a record, and says whether another process removed it in the
// meantime: then what was found or failed is no damage, and nothing is left of it. Neither is what
// another process has yet to put in place.
func (v *verifier) unlessGone(id string, check func() error) (gone bool, err error) {
	found, lost := len(v.found), len(v.lost)
	err = check()
	if err == nil && len(v.found) == found || !v.logged[id] {
		return false, err
	}
	gone, goneErr := v.r.history.Gone(id)
	if goneErr != nil {
		return false, err
	}
	if !gone {
		// A new record's files come right after its line in the log.
		if v.r.history.Built()(id) {
			v.found = append(v.found[:found], slices.DeleteFunc(v.found[found:], Problem.Deleted)...)
			return false, err
		}
		if !v.r.history.HasRun(id) || !slices.ContainsFunc(v.found[found:], Problem.Deleted) {
			return false, err
		}
	}
	v.found, v.lost = v.found[:found], v.lost[:lost]
	maps.DeleteFunc(v.seen, func(_ tree.Hash, err error) bool { return err != nil })
	if gone {
		return true, nil
	}
	maps.DeleteFunc(v.told, func(what [2]string, _ bool) bool { return what[0] == id })
	return false, check()
}

// concernsRecord says whether a damaged place of the store takes something away: a
// content that a record names and that is not stored elsewhere too. Where it is
// not known what was there, something must be missing.
func (v *verifier) concernsRecord(p store.Problem) bool {
	if p.Torn {
		return false
	}
	if p.Hash.IsZero() {
		return len(v.lost) > 0
	}
	return v.seen[p.Hash] != nil
}

// plainError says that a file is gone as verify says it.
func plainError(err error) error {
	if isMissing(err) {
		return errGone
	}
	return err
}

// verifier remembers which objects were read: records share most of them.
type verifier struct {
	r      *Reader
	seen   map[tree.Hash]error
	plain  map[string]bool // the records that have all their plain files; nil: nobody asked
	logged map[string]bool // the records that the log had when they were listed
	found  []Problem
	lost   []string           // those of them that the store does not have: "f of 2026112107015900-0"
	told   map[[2]string]bool // what lost holds: record and path
	sound  map[tree.Hash]bool // directories' objects below which all is sound

	forgotten []tree.Path // paths of contents that were taken out on purpose
}

// noteMissing says what is missing and no damage.
func (v *verifier) noteMissing() {
	if n := len(v.forgotten); n > 0 {
		slices.Sort(v.forgotten)
		v.r.note("forgotten on purpose, and so not compared: %s", some(slices.Compact(v.forgotten)))
	}
}

func (v *verifier) add(record, path string, err error) {
	v.found = append(v.found, Problem{record, path, err.Error(), errors.Is(err, errGone)})
}

// addMissing adds a content that the store does not have sound: once for a record and
// path, whichever of its trees has it.
func (v *verifier) addMissing(record, path string, err error) {
	if v.told[[2]string{record, path}] {
		return
	}
	v.told[[2]string{record, path}] = true
	v.add(record, path, err)
	v.lost = append(v.lost, path+" of "+record)
}

// record checks the plain files of a record, and all that it needs of the store.
func (v *verifier) record(ctx context.Context, rec *history.Record) error {
	files, err := v.r.history.RecordFiles(rec.ID)
	if err != nil {
		return err
	}
	if f, ok := v.manifestFile(rec); ok {
		files = append(files, f)
	}
	if _, err := v.r.history.ReadRun(rec.ID); err != nil {
		v.add(rec.ID, "run.json", plainError(err))
	}
	for _, f := range files {
		err := v.file(ctx, rec.ID, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.add(rec.ID, f.Name, err)
		}
	}
	return v.closure(ctx, rec.ID)
}

// file compares a plain file of the run directory with its recorded hash.
func (v *verifier) file(ctx context.Context, id string, f history.RecordFile) error {
	rc, err := v.r.history.OpenPlain(id, f.Name)
	if isMissing(err) {
		if v.plain[id] { // unless others have recorded meanwhile
			v.r.catchUp()
			if err := v.newest(); err != nil {
				return err
			}
		}
		if v.thinned(id, f) || Forgotten(v.r.store.Verify(f.SHA256)) { // a restored project has no log that was nothing else
			return nil
		}
		return errGone
	}
	if err != nil {
		return err
	}
	defer rc.Close()
	sum, err := sumOf(ctx, rc)
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		if err := v.newer(id, f); err != nil {
			return err
		}
		if v.fromTrees(id, f, sum) {
			return nil
		}
		return fmt.Errorf("its hash is %s, recorded was %s", sum, f.SHA256)
	}
	return nil
}

// fromTrees says whether sum is that of the manifest.json that the record's trees give. Its
// recorded hash is of one that was made of the plan; a recovery and a repair make it of the trees, which the store proves.
func (v *verifier) fromTrees(id string, f history.RecordFile, sum tree.Hash) bool {
	if f.Name != "manifest.json" {
		return false
	}
	rec, err := v.r.history.Get(id)
	if err != nil {
		return false
	}
	made := sha256.New()
	return v.r.history.WriteManifest(rec, made) == nil && tree.Hash(made.Sum(nil)) == sum
}

// thinned says whether the file is one of an older record that the store alone has.
func (v *verifier) thinned(id string, f history.RecordFile) bool {
	if v.plain == nil || v.plain[id] {
		return false
	}
	size, ok := v.r.store.Size(f.SHA256)
	return f.Name == "manifest.json" || ok && history.Thinned(f.Name, size)
}

// newerFile is a file that a newer decree wrote; it is never written again.
type newerFile struct{ version int64 }

func (e *newerFile) Error() string {
	return fmt.Sprintf("format version %d is newer than the newest that this decree can read (%d)", e.version, manifest.Version)
}

// newer returns a *newerFile if f is a manifest.json of a later version.
func (v *verifier) newer(id string, f history.RecordFile) error {
	if f.Name != "manifest.json" {
		return nil
	}
	rc, err := v.r.history.OpenPlain(id, f.Name)
	if err != nil {
		return err
	}
	defer rc.Close()
	var version *manifest.VersionError
	_, _, err = manifest.NewDecoder(rc).Next()
	if errors.As(err, &version) && version.Version > manifest.Version {
		return &newerFile{version.Version}
	}
	return nil
}

// errGone is what a verifier says of a file that was deleted.
var errGone = errors.New("missing from .decree/runs")

// manifestFile is the plain manifest.json as a file of its record, when the
// record is one of those that have it.
func (v *verifier) manifestFile(rec *history.Record) (history.RecordFile, bool) {
	if rec.ManifestSHA256.IsZero() {
		return history.RecordFile{}, false
	}
	if !v.plain[rec.ID] {
		rc, err := v.r.history.OpenPlain(rec.ID, "manifest.json")
		if err != nil {
			return history.RecordFile{}, false
		}
		rc.Close()
	}
	return history.RecordFile{Name: "manifest.json", SHA256: rec.ManifestSHA256}, true
}

// newest notes which records have a plain manifest.json.
func (v *verifier) newest() error {
	list, err := v.r.history.List(history.ListOptions{Limit: history.PlainManifests})
	if err != nil {
		return err
	}
	v.plain = map[string]bool{}
	for _, rec := range list.Records {
		v.plain[rec.ID] = true
	}
	return nil
}

// closure reads all that the store should have of a record. Directories below which all
// was sound are not gone into again.
func (v *verifier) closure(ctx context.Context, id string) error {
	read, whole := map[tree.Hash]bool{}, true
	enter := func(_ []byte, object tree.Hash) bool {
		was := v.sound[object] || read[object]
		read[object] = true
		return !was
	}
	err := v.r.history.Closure(id, enter, func(p *history.Part) error {
		switch p.Kind {
		case history.File, history.InTree, history.InDiff:
			whole = v.object(id, p) && whole
		}
		if p.Err != nil {
			whole = false
			v.addMissing(id, cmp.Or(string(p.Path), "manifest.json"), p.Err)
		}
		return ctx.Err()
	})
	if err == nil && whole {
		maps.Copy(v.sound, read)
	}
	return err
}

// object says whether the store has an object of a record sound, as far as it should.
func (v *verifier) object(id string, p *history.Part) bool {
	if p.Object.IsZero() {
		return true
	}
	err, known := v.seen[p.Object]
	if !known {
		err = v.r.store.Verify(p.Object)
		v.seen[p.Object] = err
	}
	switch {
	case Forgotten(err):
		if !known {
			v.forgotten = append(v.forgotten, tree.Path(p.Path))
		}
	case err != nil:
		v.addMissing(id, string(p.Path), err)
		return false
	}
	return true
}

// sumOf hashes what rd gives. A signal, which cancels ctx, ends it at the next block.
func sumOf(ctx context.Context, rd io.Reader) (sum tree.Hash, err error) {
	return tree.SumOf(disk.Until{Context: ctx, Reader: rd})
}

// verifyTree reads every file again and compares the tree with what the last
// record left.
func (r *Reader) verifyTree(ctx context.Context) ([]Problem, error) {
	list, err := r.history.List(history.ListOptions{Limit: 1, Keep: func(rec *history.Record) bool { return rec.Status != history.StatusOpen }})
	if err != nil || len(list.Records) == 0 {
		return nil, err
	}
	last := list.Records[0]
	req, err := r.request(captureOptions{phase: "checking", afterRun: true, unlimited: true, full: true})
	if err != nil {
		return nil, err
	}
	res, err := r.captureNow(ctx, req)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	s, err := r.sinceLast(ctx, res)
	if err != nil {
		return nil, err
	}
	var out []Problem
	for c, err := range s.changes {
		if err != nil {
			return nil, err
		}
		out = append(out, Problem{Record: last.ID, Path: string(c.Path), Reason: change(c)})
	}
	for _, p := range unreadable(res) {
		out = append(out, Problem{Record: last.ID, Path: string(p), Reason: "cannot be read"})
	}
	for _, p := range largePaths(res) {
		if was, err := r.history.FindEntry(s.base, p); err != nil || was != nil {
			out = append(out, Problem{Record: last.ID, Path: string(p), Reason: "larger than capture.max_file by now"})
		}
	}
	r.noteUnrecorded(res)
	return out, nil
}
