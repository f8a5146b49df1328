package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
		case info.Kind == disk.Regular:
			out = append(out, spec)
		case q.passed[spec] == 0:
			q.passed[spec] = info.Ino
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

// markSpecs appends the names of specs to processed-spec.md, unless they stand there:
// the file is replaced whole, so that a reader sees it with the lines or without.
// A spec outside of the directory of specs is not in the list's reach. Where somebody has the
// list open for writing the error is errGone. added are the names that it did not have.
func (q *job) markSpecs(specs ...doneSpec) (added []string, _ error) {
	var names []string
	for _, s := range specs {
		if path.Dir(s.Spec) == q.specDir() {
			names = append(names, path.Base(s.Spec))
		}
	}
	for len(names) > 0 {
		dir, err := q.openSpecs()
		if err != nil {
			return nil, err
		}
		added, err = addToList(dir, names)
		dir.Close()
		if !errors.Is(err, errChanged) && !isExist(err) && !isMissing(err) {
			return added, err
		}
		// Somebody has just saved it.
	}
	return nil, nil
}

// addToList adds names to the list as it is now. It is left alone, and the error is errChanged,
// fs.ErrExist or fs.ErrNotExist, where somebody has saved it, or taken it away, meanwhile.
func addToList(dir disk.Dir, names []string) (added []string, _ error) {
	old, err := dir.Stat(processedFile)
	isNew := isMissing(err)
	var was []byte
	if err == nil {
		was, err = project.ReadFile(dir, processedFile, maxProcessed)
	}
	if err != nil && !isNew {
		return nil, err
	}
	has := map[string]bool{}
	for _, name := range namesIn(was) {
		has[name] = true
	}
	data := slices.Clone(was)
	for _, name := range names {
		if has[name] {
			continue
		}
		if has[name] = true; len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		data, added = append(data, listed(name)+"\n"...), append(added, name)
	}
	if len(added) == 0 {
		return nil, nil
	}
	if isNew {
		return added, put(dir, listDraft, processedFile, bytes.NewReader(data), fileMode, dir.RenameNew)
	}
	return added, put(dir, listDraft, processedFile, bytes.NewReader(data), old.Mode&0o777, swapped(data, old, was))
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
	unmarked, err := q.markAgain()
	if err != nil {
		return nil, err
	}
	specs, err := q.specs()
	if !ofFile(err) {
		return slices.DeleteFunc(specs, func(spec string) bool { return unmarked[spec] }), err
	}
	if dir := q.specDir(); q.passed[dir] == 0 {
		q.passed[dir] = 1
		q.note("no spec of %s is done: %v", dir, err)
	}
	return nil, nil
}

// tellEditedSpec says that the spec has another text than when its message began: by the routine itself, as of a list that it
// ticks off, or by a person, whose text nobody has done.
func (q *job) tellEditedSpec() {
	spec, was := q.u.Spec, q.u.SpecSHA256
	data, err := readBelow(q.project().Dir, spec, message.MaxSize)
	if err != nil || was.IsZero() || tree.Sum(data) == was {
		return
	}
	q.note("%s was edited while it was done, and counts as processed; to have it done as it is now, take its line out of %s while no message is done in place", tree.Quote(spec), tree.Quote(path.Join(q.specDir(), processedFile)))
}

// listedNow are the names that the list has now, with the texts of those that are there, where the list is ignored; none where it cannot be read.
func (q *job) listedNow() (specs []doneSpec, err error) {
	dir, err := q.openSpecs()
	if err != nil {
		return nil, unlessNoFile(err)
	}
	defer dir.Close()
	names, err := processed(dir)
	if len(names) == 0 || err != nil {
		return nil, unlessNoFile(err)
	}
	answers, err := q.rec.Ignored(context.Background(), []tree.Path{q.listPath()})
	if err != nil || !answers[0].Ignored {
		return nil, err
	}
	for _, name := range names {
		spec := doneSpec{Spec: name}
		if strings.HasSuffix(name, specEnd) {
			if text, err := project.ReadFile(dir, name, message.MaxSize); err == nil {
				spec.SHA256 = tree.Sum(text)
			}
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// listPath is the path of the list of specs that are done.
func (q *job) listPath() tree.Path { return tree.Path(path.Join(q.specDir(), processedFile)) }

// namedBefore are the names that a list of specs had before a record, where it is not the same by now. Of one that is ignored
// the queue has noted them itself.
func (q *job) namedBefore(rec *history.Record, list tree.Path) ([]string, error) {
	was, err := q.entryBefore(rec, list)
	if was == nil && err == nil {
		return specNames(q.u.Listed), nil
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

func specNames(specs []doneSpec) (names []string) {
	for _, spec := range specs {
		names = append(names, spec.Spec)
	}
	return names
}

// entryBefore is what a path was before a record; nil: nothing.
func (q *job) entryBefore(rec *history.Record, path tree.Path) (*tree.Entry, error) {
	was, err := q.entriesBefore(rec, path)
	return was[path], err
}

// entriesBefore are what paths were before a record. An isolated run's record has no tree: of it, only what it changed is known.
func (q *job) entriesBefore(rec *history.Record, paths ...tree.Path) (was map[tree.Path]*tree.Entry, err error) {
	was = map[tree.Path]*tree.Entry{}
	if rec.Isolated == "" {
		for _, path := range paths {
			if was[path], err = q.rec.History().FindEntry(rec.Before, path); err != nil {
				return nil, err
			}
		}
		return was, nil
	}
	slices.Sort(paths)
	for c, err := range q.rec.History().DiffEach(rec) {
		if err != nil {
			return nil, err
		}
		if _, asked := slices.BinarySearch(paths, c.Path); asked {
			was[c.Path] = c.Old
		}
		if len(was) == len(paths) {
			break
		}
	}
	return was, nil
}
