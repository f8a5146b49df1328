package queue

import (
	"errors"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/tree"
)

// maxUnmarked bounds the names of specs that the store remembers, in bytes; the oldest are forgotten first.
const maxUnmarked = maxState / 2

// doneSpec is a spec that is done. The store remembers those that the list in their directory cannot name yet, as where
// a routine has put the directory away.
type doneSpec struct {
	Spec string `json:"spec"` // its path
	// SHA256 is of the text that was done, where nothing was under the spec's name when that was to be marked: what comes there
	// later may be another spec. Zero: what is there is the one that was done.
	SHA256 tree.Hash `json:"sha256,omitzero"`
}

// remember notes specs that are done and that the list does not name.
func (s *state) remember(specs ...doneSpec) {
	s.forget(specs)
	s.Unmarked = append(s.Unmarked, specs...)
	size, first := 0, len(s.Unmarked)
	for first > 0 && size <= maxUnmarked {
		first--
		size += len(tree.Quote(s.Unmarked[first].Spec)) + 2*len(tree.Hash{}) + 32
	}
	if size > maxUnmarked {
		s.Unmarked = slices.Clone(s.Unmarked[first+1:])
	}
}

// forget is for specs that the list names now.
func (s *state) forget(specs []doneSpec) {
	gone := map[doneSpec]bool{}
	for _, spec := range specs {
		gone[spec] = true
	}
	s.Unmarked = slices.DeleteFunc(s.Unmarked, func(spec doneSpec) bool { return gone[spec] })
}

// mark marks specs as processed, which were done with the texts that are given, where those are known. Where the list
// cannot be written, the store remembers them, so that they are not done again, and the list has them later.
func (q *job) mark(specs ...doneSpec) error {
	_, err := q.markSpecs(specs...)
	if !cannotMark(err) {
		return err
	}
	for i, spec := range specs {
		if _, gone := readBelow(q.project().Dir, spec.Spec, message.MaxSize); gone == nil {
			specs[i].SHA256 = tree.Hash{} // it may be edited by its own routine
		}
		if !slices.Contains(q.s.Unmarked, specs[i]) {
			q.note("%s is done, and not yet marked in %s: %v; decree remembers it", spec.Spec, processedFile, err)
		}
	}
	q.s.remember(specs...)
	return q.saveState()
}

// cannotMark says whether an error is about the list, or its directory, which a routine may have put away: it is to be tried again later.
func cannotMark(err error) bool { return ofFile(err) || errors.Is(err, errGone) || isMissing(err) }

// markAgain marks what could not be marked before. unmarked are the specs that are there and done, and that the list does not name even so.
func (q *job) markAgain() (unmarked map[string]bool, err error) {
	var back []doneSpec
	unmarked = map[string]bool{}
	for _, spec := range q.s.Unmarked {
		is, err := q.isBack(spec)
		if err != nil && !cannotMark(err) {
			return nil, err
		}
		if is || err != nil {
			unmarked[spec.Spec] = true
		}
		if is && err == nil {
			back = append(back, spec)
		}
	}
	added, err := q.markSpecs(back...)
	if cannotMark(err) || err == nil && len(back) == 0 {
		return unmarked, nil
	}
	if err != nil {
		return nil, err
	}
	for _, spec := range back {
		delete(unmarked, spec.Spec)
		if path.Dir(spec.Spec) == q.specDir() && slices.Contains(added, path.Base(spec.Spec)) {
			q.note("%s was done before, and is marked as processed now; to have it done again, take its line out of %s", tree.Quote(spec.Spec), tree.Quote(path.Join(q.specDir(), processedFile)))
		}
	}
	q.s.forget(back)
	return unmarked, q.saveState()
}

// isBack says whether a spec that is done is there, and not another one of its name. The error is fs.ErrNotExist where none is there, and
// errGone where it is being written.
func (q *job) isBack(spec doneSpec) (is bool, err error) {
	if spec.SHA256.IsZero() {
		return true, nil
	}
	err = disk.InDir(q.project().Dir, path.Dir(spec.Spec), func(dir disk.Dir) error {
		info, err := dir.Stat(path.Base(spec.Spec))
		if err != nil {
			return err
		}
		if !hasNoWriter(dir, path.Base(spec.Spec), info.Mtime) {
			return errGone
		}
		data, err := project.ReadFile(dir, path.Base(spec.Spec), message.MaxSize)
		is = tree.Sum(data) == spec.SHA256
		return err
	})
	return is, err
}

// keepMarks marks again what the list named before a message's run, where since then it is gone or is an older list, as decree only adds
// to its end: after a routine that takes the tree back to what git has (`git stash -u`, `git clean`, another branch), all specs would be
// done once more. A list from whose midst something was taken is as somebody wants it.
func (q *job) keepMarks(rec *history.Record) error {
	list := q.listPath()
	before, err := q.namedBefore(rec, list)
	if err != nil {
		q.note("%s: what its run has changed in %s cannot be read: %v; specs that it does not name any more are done again", tree.Quote(q.u.Name), list, err)
	}
	if len(before) == 0 {
		return nil
	}
	dir, err := q.openSpecs()
	if cannotMark(err) {
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
	var specs []doneSpec
	for _, name := range before {
		if strings.HasSuffix(name, specEnd) && !slices.Contains(now, name) {
			lost, specs = append(lost, tree.Quote(name)), append(specs, doneSpec{Spec: path.Join(q.specDir(), name)})
		}
	}
	if err := q.mark(specs...); err != nil {
		return err
	}
	if len(lost) > 0 {
		q.note("%s: while its run worked, its routine or somebody else took these out of %s, and they are marked as processed again: %s; to have one done once more, take its line out while no message is done in place", tree.Quote(q.u.Name), list, strings.Join(lost, ", "))
	}
	return nil
}

// keepAway remembers of the specs that the list named before a message's run, and that were there, that they are done: their directory
// is away since then, and what brings it back, as `git switch main`, may bring an older list.
func (q *job) keepAway(rec *history.Record, before []string) error {
	var paths []tree.Path
	for _, name := range before {
		if strings.HasSuffix(name, specEnd) {
			paths = append(paths, tree.Path(path.Join(q.specDir(), name)))
		}
	}
	was, err := q.entriesBefore(rec, paths...)
	if err != nil {
		q.note("%s: what its run has changed in %s cannot be read: %v; specs of it that come back may be done again", tree.Quote(q.u.Name), tree.Quote(q.specDir()), err)
	}
	texts := map[tree.Path]tree.Hash{}
	for _, spec := range q.u.Listed {
		texts[tree.Path(path.Join(q.specDir(), spec.Spec))] = spec.SHA256
	}
	for spec, was := range was {
		if was.IsFile() {
			texts[spec] = was.SHA256
		}
	}
	var kept []string
	var specs []doneSpec
	for _, spec := range paths {
		if text := texts[spec]; !text.IsZero() {
			kept, specs = append(kept, tree.Quote(spec.Name())), append(specs, doneSpec{Spec: string(spec), SHA256: text})
		}
	}
	if len(kept) == 0 {
		return nil
	}
	q.s.remember(specs...)
	q.note("%s: while its run worked, its routine or somebody else put %s away; decree remembers that these are processed: %s", tree.Quote(q.u.Name), tree.Quote(q.specDir()), strings.Join(kept, ", "))
	return q.saveState()
}
