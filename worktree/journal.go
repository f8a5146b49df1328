package worktree

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/tree"
)

// A journal's file is
//
//	"decree txn 1\n"  body  sha256 of what stands before it (32 bytes)
//
// and its body, all numbers being unsigned varints,
//
//	len id, len meta, number of steps, then each step in byte order of the paths:
//	len path, flags, from?, to?, length of the beside directory?
//
// flags: 1 from, 2 to, 4 may stay, 8 beside. An entry is its type (0 file,
// 1 symlink, 2 directory) and: mode, size, 32 bytes of hash; or len target; or
// mode. With bit 010000 beside a file's mode its owner and group follow. The slots of step n lie in .decree/tmp/txn-<id>, or, with flag 8, in the
// directory that so many bytes of the path are. There is one spelling of a
// journal: a reader encodes what it read and compares.
const (
	journalMagic = "decree txn 1\n"
	journalAny   = "decree txn "
	// maxJournal and maxSteps bound what is read into memory, and so what is
	// written: half a million long paths, four million short ones.
	maxJournal = 256 << 20
	maxSteps   = 4 << 20

	extJournal = ".journal" // moves may have begun
	extBack    = ".back"    // they are being taken back
	extDone    = ".done"    // finished: only staging is to be cleaned
	extUndone  = ".undone"  // taken back: likewise
	extNew     = ".new"     // being written
	extDamaged = ".damaged" // set aside

	flagFrom, flagTo, flagStay, flagBeside = 1, 2, 4, 8
)

// newerJournal is why a journal of a newer version is not read.
const newerJournal = "written by a newer decree"

// Journal is a transaction that a process has left.
type Journal struct {
	ID   string
	Meta json.RawMessage
	// Settled: it was finished or taken back, only its owner has to be told.
	Settled bool
	// Commit may be set before Recover, which calls it with the result while the
	// journal is still there: if its error, or death, comes between, the next
	// Recover has the same result and calls it again.
	Commit func(Result, *Outcome) error
	// Err says why the journal cannot be acted on; Recover then sets it aside.
	Err *JournalError

	dir   disk.Dir
	ext   string
	steps *stepList
}

// Steps are without Content, in byte order of their paths. From equal to To is a directory
// that was made writable meanwhile.
func (j *Journal) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		if j.steps == nil {
			return
		}
		for s := range j.steps.all() {
			if !yield(s.Step) {
				return
			}
		}
	}
}

// Stage is the name of the transaction's staging directory in .decree/tmp.
func (j *Journal) Stage() string { return stagePrefix + j.ID }

func splitExt(name string) (id, ext string) {
	i := max(strings.LastIndexByte(name, '.'), 0)
	return name[:i], name[i:]
}

func isJournal(ext string) bool {
	return ext == extJournal || ext == extBack || ext == extDone || ext == extUndone
}

// Pending returns the journals that wait, by id. It changes nothing. A damaged
// one is in the list, with its Err.
func Pending(journals disk.Dir) ([]Journal, error) {
	list, err := journals.List()
	if err != nil {
		return nil, err
	}
	var out []Journal
	for _, e := range list {
		id, ext := splitExt(e.Name)
		if !isJournal(ext) {
			continue
		}
		j, err := readJournal(journals, e.Name, id)
		if err != nil {
			return nil, err
		}
		j.Settled, j.dir, j.ext = ext == extDone || ext == extUndone, journals, ext
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Journal) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func readJournal(dir disk.Dir, name, id string) (Journal, error) {
	f, err := dir.Open(name)
	if disk.OtherKind(err) {
		return Journal{ID: id, Err: &JournalError{ID: id, Reason: disk.ErrNotRegular.Error()}}, nil
	}
	if err != nil {
		return Journal{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Journal{}, err
	}
	j, reason, err := decodeJournal(f, st.Size)
	if err != nil {
		return Journal{}, err
	}
	if reason == "" && j.ID != id {
		reason = "it belongs to transaction " + tree.Quote(j.ID)
	}
	if reason != "" {
		return Journal{ID: id, Err: &JournalError{ID: id, Reason: reason, Newer: reason == newerJournal}}, nil
	}
	return *j, nil
}

// draftJournal writes the journal, to be flushed with all that it needs.
func (x *txn) draftJournal(context.Context) error {
	if x.steps.n > maxSteps {
		return errTooMany(x.steps.n)
	}
	f, err := x.journals.Create(x.id+extNew, 0o600)
	if err != nil {
		return err
	}
	x.ext = extNew
	if err := writeJournal(f, x.id, x.meta, x.steps); err != nil {
		f.Close()
		return err
	}
	x.unflushed = append(x.unflushed, func(on bool) error { return errors.Join(when(on, f.Sync), f.Close()) })
	return nil
}

// nameJournal makes the flushed draft the journal, durably: from here on the
// transaction is one.
func (x *txn) nameJournal() error {
	if err := x.journals.RenameNew(x.id+extNew, x.journals, x.id+extJournal); err != nil {
		return err
	}
	x.ext = extJournal
	return x.journals.Sync()
}

// dropJournal takes back what draftJournal and nameJournal did, before anything was moved.
func (x *txn) dropJournal() error {
	if x.ext == "" {
		return nil
	}
	if err := x.journals.Remove(x.id + x.ext); err != nil {
		return err
	}
	return x.journals.Sync()
}

// mark renames the journal to what its transaction has come to, durably.
func (x *txn) mark(ext string) error {
	err := x.journals.Rename(x.id+x.ext, x.journals, x.id+ext)
	if err != nil {
		return err
	}
	x.ext = ext
	return x.journals.Sync()
}

func errTooMany(steps int) error {
	return fmt.Errorf("%d paths are more than one transaction can hold", steps)
}

// writeJournal writes a journal to w, piece by piece: that of many steps is never
// whole in memory.
func writeJournal(w io.Writer, id string, meta []byte, steps *stepList) error {
	out := bufio.NewWriterSize(w, 64<<10)
	sum := sha256.New()
	if err := writeBody(io.MultiWriter(sum, out), id, meta, steps); err != nil {
		return err
	}
	if _, err := out.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return out.Flush()
}

// writeBody writes a journal but for its checksum.
func writeBody(w io.Writer, id string, meta []byte, steps *stepList) error {
	left := maxJournal - sha256.Size
	part := []byte(journalMagic)
	part = appendBytes(part, id)
	part = appendBytes(part, string(meta))
	part = binary.AppendUvarint(part, uint64(steps.n))
	write := func() error {
		if left -= len(part); left < 0 {
			return errTooMany(steps.n)
		}
		_, err := w.Write(part)
		return err
	}
	if err := write(); err != nil {
		return err
	}
	for s := range steps.all() {
		part = appendStep(part[:0], s)
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStep(b []byte, s *step) []byte {
	b = appendBytes(b, string(s.Path))
	b = appendStates(b, &s.Step, s.beside != nil)
	if s.beside != nil {
		b = binary.AppendUvarint(b, uint64(len(*s.beside)))
	}
	return b
}

func appendStates(b []byte, s *Step, beside bool) []byte {
	var flags byte
	for i, on := range [...]bool{s.From != nil, s.To != nil, s.MayStay, beside} {
		if on {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	for _, e := range [...]*tree.Entry{s.From, s.To} {
		if e != nil {
			b = appendEntry(b, e)
		}
	}
	return b
}

func appendEntry(b []byte, e *tree.Entry) []byte {
	b = append(b, byte(e.Type))
	switch e.Type {
	case tree.Symlink:
		return appendBytes(b, e.Target)
	}
	if e.Owner.Known {
		b = binary.AppendUvarint(b, uint64(e.Mode|ownedMode))
		b = binary.AppendUvarint(b, uint64(e.Owner.UID))
		b = binary.AppendUvarint(b, uint64(e.Owner.GID))
	} else {
		b = binary.AppendUvarint(b, uint64(e.Mode))
	}
	if e.Type == tree.Dir {
		return b
	}
	b = binary.AppendUvarint(b, uint64(e.Size))
	return append(b, e.SHA256[:]...)
}

// decodeJournal returns the journal in f, or why there is none; an error is the disk's.
// It reads f twice, once for its checksum, and holds of it what a stepList does. Memory is
// bounded by size and maxSteps: counts are believed only as far as bytes follow them, and
// paths that do not rise end the reading.
func decodeJournal(f io.ReaderAt, size int64) (j *Journal, reason string, err error) {
	if size > maxJournal {
		return nil, "too long", nil
	}
	body := size - sha256.Size
	magic := make([]byte, len(journalMagic))
	if body < int64(len(magic)) {
		return nil, "not a journal", nil
	}
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, body), magic); err != nil {
		return nil, "", err
	}
	switch {
	case !bytes.HasPrefix(magic, []byte(journalAny)):
		return nil, "not a journal", nil
	case string(magic) != journalMagic:
		return nil, newerJournal, nil
	}
	var want, have tree.Hash
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, body)); err != nil {
		return nil, "", err
	}
	sum.Sum(have[:0])
	if _, err := io.ReadFull(io.NewSectionReader(f, body, sha256.Size), want[:]); err != nil {
		return nil, "", err
	}
	if want != have {
		return nil, "damaged: its checksum is wrong", nil
	}
	from := int64(len(magic))
	r := &journalReader{src: io.NewSectionReader(f, from, body-from), left: body - from}
	j = r.journal()
	switch {
	case r.err != nil:
		return nil, "", r.err
	case r.fault == "":
		r.fault = j.accept(want)
	}
	if r.fault != "" {
		return nil, "damaged: " + r.fault, nil
	}
	return j, "", nil
}

// journal reads a journal to the end.
func (r *journalReader) journal() *Journal {
	j := &Journal{ID: r.text(), Meta: json.RawMessage(r.text()), steps: &stepList{}}
	if len(j.Meta) == 0 {
		j.Meta = nil
	}
	count := r.number()
	if count > maxSteps {
		r.bad("more steps than a transaction can have")
	}
	besides := map[tree.Path]*tree.Path{}
	for ; count > 0 && r.fault == ""; count-- {
		s, beside := r.step()
		if r.fault == "" && j.steps.n > 0 && s.Path <= j.steps.last {
			r.bad("its paths are out of order, or one is named twice")
		}
		if r.fault == "" {
			r.check(checkStep(&s, true))
		}
		if r.fault == "" && tree.SameEntry(s.From, s.To) && !s.From.IsDir() {
			r.bad("a step that changes nothing")
		}
		if r.fault != "" {
			break
		}
		f := j.steps.add(&s)
		if beside == nil {
			continue
		}
		if besides[*beside] == nil {
			besides[*beside] = beside
		}
		f.beside = besides[*beside]
	}
	if r.fault == "" && (len(r.data) > 0 || r.left > 0) {
		r.fault = "bytes after its last step"
	}
	return j
}

func (r *journalReader) check(err error) {
	if err != nil {
		r.bad(err.Error())
	}
}

// accept checks what the bytes say: a journal is data, not trusted. sum is its checksum.
func (j *Journal) accept(sum tree.Hash) string {
	if err := checkID(j.ID); err != nil {
		return err.Error()
	}
	if j.Meta != nil && !json.Valid(j.Meta) {
		return "its metadata is not JSON"
	}
	if err := checkTree(j.steps); err != nil {
		return err.Error()
	}
	again := sha256.New()
	if err := writeBody(again, j.ID, j.Meta, j.steps); err != nil || tree.Hash(again.Sum(nil)) != sum {
		return "not in canonical form"
	}
	return ""
}

// journalReader reads the parts of a body; after the first fault all are empty.
type journalReader struct {
	data  []byte    // what was read of src and not taken yet; without a src it is all
	src   io.Reader // what is left there is read when it is needed
	left  int64     // so much
	fault string
	err   error // the disk's, which is a fault too
}

// need reads on until there are n bytes, or all that are left.
func (r *journalReader) need(n uint64) {
	if uint64(len(r.data)) >= n || r.left == 0 || n > uint64(len(r.data))+uint64(r.left) {
		return
	}
	more := make([]byte, max(int64(n)-int64(len(r.data)), min(r.left, 64<<10)))
	if _, err := io.ReadFull(r.src, more); err != nil {
		r.err = err
		r.bad(err.Error())
		return
	}
	r.data, r.left = append(slices.Clip(r.data), more...), r.left-int64(len(more))
}

func (r *journalReader) number() uint64 {
	r.need(min(binary.MaxVarintLen64, uint64(len(r.data))+uint64(r.left)))
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.bad("a number is truncated")
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *journalReader) bytes(n uint64) []byte {
	r.need(n)
	if n > uint64(len(r.data)) {
		r.bad("it ends too early")
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *journalReader) text() string { return string(r.bytes(r.number())) }

func (r *journalReader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *journalReader) bad(why string) {
	if r.fault == "" {
		r.fault = why
	}
	r.data, r.left = nil, 0
}

func (r *journalReader) step() (s Step, beside *tree.Path) {
	s.Path = tree.Path(r.text())
	flags := r.states(&s)
	if flags&flagBeside == 0 {
		return s, nil
	}
	n := r.number()
	if n >= uint64(len(s.Path)) || n > 0 && s.Path[n] != '/' {
		r.bad("slots that are not in a directory above the path")
		return s, nil
	}
	dir := s.Path[:n]
	return s, &dir
}

// states reads what the step goes from and to.
func (r *journalReader) states(s *Step) (flags byte) {
	flags = r.byte()
	if flags&^(flagFrom|flagTo|flagStay|flagBeside) != 0 {
		r.bad("unknown flags")
	}
	if flags&flagFrom != 0 {
		s.From = r.entry()
	}
	if flags&flagTo != 0 {
		s.To = r.entry()
	}
	s.MayStay = flags&flagStay != 0
	return flags
}

func (r *journalReader) entry() *tree.Entry {
	switch t := tree.Type(r.byte()); t {
	case tree.Symlink:
		return linkEntry(r.text())
	case tree.Dir:
		return r.ownedMode(tree.Dir)
	case tree.Regular:
		e := r.ownedMode(tree.Regular)
		size := r.number()
		if int64(size) < 0 {
			r.bad("impossible size")
		}
		e.Size = int64(size)
		copy(e.SHA256[:], r.bytes(sha256.Size))
		return e
	}
	r.bad("impossible kind")
	return nil
}

// ownedMode is beside the bits of a mode where the owner follows.
const ownedMode = 0o10000

func (r *journalReader) ownedMode(t tree.Type) *tree.Entry {
	m := r.number()
	e := &tree.Entry{Type: t, Mode: uint32(m &^ ownedMode)}
	if m&ownedMode != 0 {
		e.Owner = tree.Owner{UID: uint32(r.number()), GID: uint32(r.number()), Known: true}
	}
	if m > ownedMode|0o7777 || e.Owner.Known && !e.MayOwn() {
		r.bad("impossible mode")
	}
	return e
}

// Kept is what lies in .decree/tmp of a transaction that may have moved something, and has no journal.
type Kept struct {
	ID, Stage string      // the transaction, and its staging directory in .decree/tmp
	Beside    []tree.Path // what lay beside the targets, and has these names now
}

// Tidy removes what a process left that died before its journal was written:
// nothing was moved then. What belongs to a journal, also a damaged one, stays. So does, and is
// returned, what holds contents of a transaction whose journal is lost or in another store,
// as moves may have begun and either unsettled says that nobody has told of their end, or the
// store lacks one of the contents: it may be the only copy.
func (t *Tree) Tidy(journals disk.Dir, unsettled func(id string) bool) ([]Kept, error) {
	list, err := journals.List()
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	var drafts []string
	for _, e := range list {
		switch id, ext := splitExt(e.Name); ext {
		case extNew:
			drafts = append(drafts, e.Name)
		case extJournal, extBack, extDone, extUndone, extDamaged:
			owned[id] = true
		}
	}
	kept, err := t.tidyStages(journals, owned, unsettled)
	if err != nil {
		return kept, err
	}
	for _, name := range drafts {
		if err := journals.Remove(name); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// tidyStages removes the staging directories of transactions that nobody owns, or returns them.
func (t *Tree) tidyStages(journals disk.Dir, owned map[string]bool, unsettled func(string) bool) (kept []Kept, err error) {
	staging, err := t.opt.Tmp.List()
	if err != nil {
		return nil, err
	}
	own, err := t.opt.Tmp.Self()
	if err != nil {
		return nil, err
	}
	for _, e := range staging {
		id, ok := strings.CutPrefix(e.Name, stagePrefix)
		if !ok || owned[id] || checkID(id) != nil {
			continue
		}
		st, err := t.opt.Tmp.Stat(e.Name)
		if err != nil || st.Kind != disk.Directory {
			continue // not ours: whoever empties the directory removes it
		}
		k, err := t.tidyStage(journals, id, unsettled(id))
		foreign := errors.Is(err, syscall.ENOTEMPTY) || disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) && st.UID != own.UID
		if err != nil && !foreign { // what else somebody put there is not ours
			return kept, err
		}
		if err != nil {
			_ = t.opt.Tmp.Rmdir(e.Name) // root's decree may have died before it gave it away: then nothing is in it
		}
		if k != nil {
			kept = append(kept, *k)
		}
	}
	return kept, nil
}

// tidyStage removes the staging directory of one transaction, or returns it.
func (t *Tree) tidyStage(journals disk.Dir, id string, unsettled bool) (*Kept, error) {
	if err := disk.GiveRights(t.opt.Tmp, stagePrefix+id, disk.Directory, 0o700); err != nil {
		return nil, err
	}
	x := &txn{t: t, id: id, steps: &stepList{}, journals: journals, h: newHandles(t.root)}
	defer x.close()
	k, err := x.keepMoved(unsettled)
	if err == nil && k == nil {
		err = x.sweep()
	}
	return k, err
}

// keepMoved returns what the staging directory holds, nil where nothing of it has to be kept. What
// lies beside the targets gets names there that are not passed over as a transaction's own.
func (x *txn) keepMoved(unsettled bool) (*Kept, error) {
	d, err := x.t.opt.Tmp.OpenDir(stagePrefix + x.id)
	if err != nil {
		return nil, err
	}
	x.stage = d
	list, err := d.List()
	if err != nil || !slices.ContainsFunc(list, func(e disk.Entry) bool { return e.Name == movesNote }) {
		return nil, err
	}
	k := &Kept{ID: x.id, Stage: stagePrefix + x.id}
	dirs, err := x.notedBesides()
	if disk.OtherKind(err) {
		return k, nil // it cannot be told what else belongs to it
	}
	if err != nil {
		return nil, err
	}
	keep, err := x.lacking(d, "", unsettled)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := x.keepBeside(dir, k, unsettled || keep); err != nil {
			return nil, err
		}
	}
	if !keep && len(k.Beside) == 0 {
		return nil, nil
	}
	return k, nil
}

// lacking says whether one of the slots in d, whose names begin with prefix, holds what the store lacks, or with any
// holds something. What cannot be read is taken for that.
func (x *txn) lacking(d disk.Dir, prefix string, any bool) (bool, error) {
	list, err := d.List()
	if err != nil {
		return false, err
	}
	for _, e := range list {
		slot, ok := strings.CutPrefix(e.Name, prefix)
		if !ok || !isSlot(slot) {
			continue
		}
		have, err := entryAt(d, e.Name, true)
		if any || err != nil || have.entry.IsFile() && (x.t.opt.Store == nil || !x.t.opt.Store.Has(have.entry.SHA256)) {
			return true, nil //nolint:nilerr // what cannot be read may be the only copy
		}
	}
	return false, nil
}

// keepBeside renames the slots in dir where they have to be kept.
func (x *txn) keepBeside(dir tree.Path, k *Kept, any bool) error {
	d, err := x.h.dir(dir)
	if notOurs(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.release()
	keep, err := x.lacking(d.Dir, besidePrefix+x.id+"-", any)
	if err != nil || !keep {
		return err
	}
	list, err := d.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		slot, ok := strings.CutPrefix(e.Name, besidePrefix+x.id+"-")
		if !ok || !isSlot(slot) {
			continue
		}
		name := keptPrefix + x.id + "-" + slot
		if err := d.RenameNew(e.Name, d.Dir, name); err != nil {
			return err
		}
		k.Beside = append(k.Beside, dir.Join(name))
	}
	return d.Sync()
}
