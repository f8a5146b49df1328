package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/tree"
)

const (
	specEnd       = ".spec.md"
	processedFile = "processed-spec.md"
	maxProcessed  = 16 << 20
)

// specs are the specs that are not processed, in order of name, as paths below
// the root.
func (q *job) specs() ([]string, error) {
	dir, err := q.openSpecs()
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	done, err := processed(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if !strings.HasSuffix(e.Name, specEnd) || e.Name[0] == '.' || slices.Contains(done, e.Name) {
			continue
		}
		spec := path.Join(q.specDir(), e.Name)
		switch info, err := dir.Stat(e.Name); {
		case err != nil:
		case info.Kind == disk.Regular && (!q.serving || hasNoWriter(dir, e.Name, info.Mtime)): // who calls 'process' has written it
			out = append(out, spec)
		case info.Kind == disk.Regular:
			q.writing = append(q.writing, spec)
		case !q.noFile[spec]:
			q.noFile[spec] = true
			q.note("%s is not done: a spec is a regular file, and decree follows no link; put the text itself there", tree.Quote(tree.Path(spec)))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (q *job) specDir() string { return path.Clean(q.project().Config.SpecDir) }

func (q *job) openSpecs() (disk.Dir, error) {
	if q.specDir() == "." {
		return q.project().Disk.OpenRoot(q.project().Root)
	}
	return disk.OpenPath(q.project().Dir, q.specDir())
}

// listDraft begins the name of the list's draft. The directory of specs is the user's, and
// may hold any other name.
const listDraft = "." + processedFile + "-"

var specDrafts = regexp.MustCompile("^(" + regexp.QuoteMeta(listDraft+draftEnd) + "|" + regexp.QuoteMeta(swapDraft) + "[0-9a-f]{32}-[0-9a-f]{32}(" + swapOut + ")?)$")

// cleanSpecs puts right what a dead process has left of writing the list.
func (q *job) cleanSpecs() error {
	dir, err := q.openSpecs()
	if err == nil {
		defer dir.Close()
		err = clean(dir, specDrafts.MatchString, nil)
	}
	return unlessNoFile(err)
}

// processed are the names in processed-spec.md: one a line, with or without a
// list's mark before it, quoted where listed has quoted them.
func processed(dir disk.Dir) ([]string, error) {
	data, err := project.ReadFile(dir, processedFile, maxProcessed)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return namesIn(data), nil
}

func namesIn(data []byte) (out []string) {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		if name := ofList(string(line)); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// ofList is the name in a line of processed-spec.md, "" where there is none.
func ofList(line string) string {
	text := strings.TrimSpace(line)
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "- "), "* "))
	if name, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return name
	}
	return text
}

// listed is a spec's name as a line of processed-spec.md: as it is where it is read
// back so, else between quotes, with the escapes of the manifest's names.
func listed(name string) string {
	line := tree.Quote(name)
	if line == name && ofList(name) != name {
		line = `"` + strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), `"`, `\"`) + `"`
	}
	return line
}

// markSpec appends a spec's name to processed-spec.md, unless it stands there:
// the file is replaced whole, so that a reader sees it with the line or without.
// A spec outside of the directory of specs is not in the list's reach. Where somebody has the
// list open for writing the error is errGone.
func (q *job) markSpec(spec string) error {
	if path.Dir(spec) != q.specDir() {
		return nil
	}
	for {
		dir, err := q.openSpecs()
		if err != nil {
			return err
		}
		err = addToList(dir, path.Base(spec))
		dir.Close()
		if !errors.Is(err, errChanged) && !isExist(err) && !isMissing(err) {
			return err
		}
		// Somebody has just saved it.
	}
}

// addToList adds a name to the list as it is now. It is left alone, and the error is errChanged,
// fs.ErrExist or fs.ErrNotExist, where somebody has saved it, or taken it away, meanwhile.
func addToList(dir disk.Dir, name string) error {
	old, err := dir.Stat(processedFile)
	isNew := isMissing(err)
	var was []byte
	if err == nil {
		was, err = project.ReadFile(dir, processedFile, maxProcessed)
	}
	if err != nil && !isNew || slices.Contains(namesIn(was), name) {
		return err
	}
	data := slices.Clone(was)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	data = append(data, listed(name)+"\n"...)
	if isNew {
		return put(dir, listDraft, processedFile, bytes.NewReader(data), fileMode, dir.RenameNew)
	}
	return put(dir, listDraft, processedFile, bytes.NewReader(data), old.Mode&0o777, swapped(data, old, was))
}

// readSpec is the spec that a message is about, nil if there is none. An error is the message's own.
func (q *job) readSpec(m *message.Message) (spec *message.Message, err error) {
	if !strings.HasSuffix(m.InputFile, specEnd) {
		return nil, nil
	}
	data, err := readBelow(q.project().Dir, m.InputFile, message.MaxSize)
	if err != nil {
		return nil, &message.Error{Name: m.Name, Reason: fmt.Sprintf("input_file %s: %v", tree.Quote(m.InputFile), err)}
	}
	return message.Parse(tree.Quote(path.Base(m.InputFile)), data)
}

// specsInReach are the specs that are not processed. Where the directory or the
// list of those processed cannot be read, there are none, and this is told once.
func (q *job) specsInReach() ([]string, error) {
	if err := q.markAgain(); err != nil {
		return nil, err
	}
	specs, err := q.specs()
	if !ofFile(err) {
		return slices.DeleteFunc(specs, q.s.remembers), err
	}
	if dir := q.specDir(); q.passed[dir] == 0 {
		q.passed[dir] = 1
		q.note("no spec of %s is done: %v", dir, err)
	}
	return nil, nil
}

// mark marks a spec as processed, which was done as it is in was; nil: that is not known. Where the list cannot be written, the store
// remembers it, so that the spec is not done again, and the list has it later. Where the routine has put its directory away, what comes
// there later under its name may be another spec.
func (q *job) mark(spec string, was *tree.Entry) error {
	err := q.markSpec(spec)
	if !cannotMark(err) {
		return err
	}
	if !q.s.remembers(spec) {
		q.note("%s is done, and not yet marked in %s: %v; decree remembers it", spec, processedFile, err)
	}
	if isMissing(err) && was.IsFile() {
		q.s.setAway(spec, was.SHA256)
	} else if !q.s.remembers(spec) {
		q.s.Unmarked = append(q.s.Unmarked, spec)
	}
	return q.saveState()
}

// tellEditedSpec says that a spec has another text than was, with which its message began: by the routine itself, as of a list that it
// ticks off, or by a person, whose text nobody has done.
func (q *job) tellEditedSpec(spec string, was *tree.Entry) {
	if was == nil {
		return // not known, as of a spec that is ignored
	}
	data, err := readBelow(q.project().Dir, spec, message.MaxSize)
	if err != nil || tree.Sum(data) == was.SHA256 {
		return
	}
	q.note("%s was edited while it was done, and counts as processed; to have it done as it is now, take its line out of %s while no message is done in place", tree.Quote(spec), tree.Quote(path.Join(q.specDir(), processedFile)))
}

// keepMarks marks again what the list named before a message's run, where since then it is gone or is an older list, as decree only adds
// to its end: after a routine that takes the tree back to what git has (`git stash -u`, `git clean`, another branch), all specs would be
// done once more. A list from whose midst something was taken is as somebody wants it.
func (q *job) keepMarks(rec *history.Record) error {
	list := tree.Path(path.Join(q.specDir(), processedFile))
	before, err := q.namedBefore(rec, list)
	if err != nil {
		q.note("%s: what its run has changed in %s cannot be read: %v; specs that it does not name any more are done again", tree.Quote(q.u.Name), list, err)
	}
	if len(before) == 0 {
		return nil
	}
	dir, err := q.openSpecs()
	if isMissing(err) {
		return q.keepAway(rec, before)
	}
	if err != nil {
		return err
	}
	now, err := processed(dir)
	dir.Close()
	if err != nil && !ofFile(err) {
		return err
	}
	if len(now) >= len(before) || !slices.Equal(now, before[:len(now)]) {
		return nil
	}
	var lost []string
	for _, name := range before {
		if !strings.HasSuffix(name, specEnd) || slices.Contains(now, name) {
			continue
		}
		lost = append(lost, tree.Quote(name))
		if err := q.mark(path.Join(q.specDir(), name), nil); err != nil {
			return err
		}
	}
	if len(lost) > 0 {
		q.note("%s: while its run worked, its routine or somebody else took these out of %s, and they are marked as processed again: %s; to have one done once more, take its line out while no message is done in place", tree.Quote(q.u.Name), list, strings.Join(lost, ", "))
	}
	return nil
}

// keepAway remembers of the specs that the list named before a message's run, and that were there, that they are done: their directory
// is away since then, and what brings it back, as `git switch main`, may bring an older list.
func (q *job) keepAway(rec *history.Record, before []string) error {
	var kept []string
	for _, name := range before {
		spec := path.Join(q.specDir(), name)
		if was, err := q.entryBefore(rec, tree.Path(spec)); err == nil && was.IsFile() && strings.HasSuffix(name, specEnd) {
			q.s.setAway(spec, was.SHA256)
			kept = append(kept, tree.Quote(name))
		}
	}
	if len(kept) == 0 {
		return nil
	}
	q.note("%s: while its run worked, its routine or somebody else put %s away; decree remembers that these are processed: %s", tree.Quote(q.u.Name), tree.Quote(q.specDir()), strings.Join(kept, ", "))
	return q.saveState()
}

// listedNow are the names that the list has now; none where it cannot be read.
func (q *job) listedNow() (names []string, err error) {
	dir, err := q.openSpecs()
	if err == nil {
		defer dir.Close()
		names, err = processed(dir)
	}
	if err != nil {
		return nil, unlessNoFile(err)
	}
	return names, nil
}

// namedBefore are the names that a list of specs had before a record, where it is not the same by now. Of one that is ignored
// the queue has noted them itself.
func (q *job) namedBefore(rec *history.Record, list tree.Path) ([]string, error) {
	was, err := q.entryBefore(rec, list)
	if was == nil && err == nil {
		return q.u.Listed, nil
	}
	if err != nil || !was.IsFile() || was.Size > maxProcessed {
		return nil, err
	}
	if data, err := readBelow(q.project().Dir, string(list), maxProcessed); err == nil && tree.Sum(data) == was.SHA256 {
		return nil, nil
	}
	f, err := q.rec.OpenContent(was.SHA256)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return namesIn(data), err
}

// entryBefore is what a path was before a record; nil: nothing. An isolated run's record has no tree: of it, only what it changed is known.
func (q *job) entryBefore(rec *history.Record, path tree.Path) (*tree.Entry, error) {
	if rec.Isolated == "" {
		return q.rec.History().FindEntry(rec.Before, path)
	}
	for c, err := range q.rec.History().DiffEach(rec) {
		if err != nil || c.Path == path {
			return c.Old, err
		}
	}
	return nil, nil
}

// cannotMark says whether an error is about the list, or its directory, which a routine may have put away: it is to be tried again later.
func cannotMark(err error) bool { return ofFile(err) || errors.Is(err, errGone) || isMissing(err) }

// markAgain marks what could not be marked before. What has come under the name of a spec that was put away, and has another text, is not
// that one.
func (q *job) markAgain() error {
	had := len(q.s.Unmarked) + len(q.s.Away)
	for _, spec := range slices.Concat(q.s.Unmarked, slices.Sorted(maps.Keys(q.s.Away))) {
		is, err := q.isBack(spec)
		if is && err == nil {
			err = q.markSpec(spec)
		}
		if cannotMark(err) {
			continue
		}
		if err != nil {
			return err
		}
		q.s.forget(spec)
	}
	if len(q.s.Unmarked)+len(q.s.Away) == had {
		return nil
	}
	return q.saveState()
}

// isBack says whether a spec that was put away after it was done is there again, and not another one of its name. The error is
// fs.ErrNotExist where none is there, and errGone where it is being written.
func (q *job) isBack(spec string) (is bool, err error) {
	sum, away := q.s.Away[spec]
	if !away {
		return true, nil
	}
	err = disk.InDir(q.project().Dir, path.Dir(spec), func(dir disk.Dir) error {
		info, err := dir.Stat(path.Base(spec))
		if err != nil {
			return err
		}
		if !hasNoWriter(dir, path.Base(spec), info.Mtime) {
			return errGone
		}
		data, err := project.ReadFile(dir, path.Base(spec), message.MaxSize)
		is = tree.Sum(data) == sum
		return err
	})
	return is, err
}
