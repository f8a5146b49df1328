package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"decree/history"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// resolve finds the record, and the side of it, that a REF names.
func (s *session) resolve(rec *recorder.Reader, ref string) (recorder.Point, error) {
	found, err := rec.History().Resolve(ref, s.env.Location)
	if err != nil {
		return recorder.Point{}, err
	}
	s.echoTime(ref, found)
	record, err := rec.History().Get(found.ID)
	if err != nil {
		return recorder.Point{}, err
	}
	// A draft stands for what its run left: it has no other state.
	return recorder.Point{Record: record, After: found.Side == history.After || record.Isolated != ""}, nil
}

// echoTime says once which time an @TIME was understood as, and what it found.
func (s *session) echoTime(ref string, found history.Ref) {
	if found.Time.IsZero() || s.echoed[ref] {
		return
	}
	if s.echoed == nil {
		s.echoed = map[string]bool{}
	}
	s.echoed[ref] = true
	s.say("decree: %s: the state %s %s", s.clock(found.Time), found.Side, found.ID)
}

// labelsOf are the labels of a record, sorted.
func (s *session) labelsOf(id string) ([]string, error) {
	labels, err := s.allLabels()
	return labels[id], err
}

// allLabels are the labels by record. They are read once a call.
func (s *session) allLabels() (view.Labels, error) {
	if s.labels == nil {
		labels, err := s.rec.History().LabelsOf()
		if err != nil {
			return nil, err
		}
		s.labels = labels
	}
	return s.labels, nil
}

// shortID is an id as lists show it: on a terminal the shortest end that names no
// other record, elsewhere whole, for programs.
func (s *session) shortID(id string) string {
	if !isTerminal(s.env.Stdout) {
		return id
	}
	if s.short == nil {
		short, err := s.rec.History().Ends()
		if err != nil {
			return id
		}
		s.short = short
	}
	return s.short(id)
}

// oneRecord is the record that words name: the newest if there are none.
func (s *session) oneRecord(rec *recorder.Reader, words []string) (*history.Record, error) {
	ref := "last"
	if len(words) > 0 {
		ref = words[0]
	}
	point, err := s.resolve(rec, ref)
	return point.Record, err
}

// isRef says whether a word names a record, a range of them or a chain. A word
// that is an ambiguous REF, or a TIME that cannot be read, is an error and not a path.
func (s *session) isRef(rec *recorder.Reader, word string) (bool, error) {
	ends := []string{word}
	if from, to, ok := strings.Cut(word, ".."); ok && from != "" && to != "" && to[0] != '/' {
		ends = []string{from, to}
	}
	for _, end := range ends {
		refs, err := rec.History().ResolveAll(end, s.env.Location)
		switch {
		case err == nil && len(ends) == 1 && refs[0].Part && s.isPath(rec, word):
			return false, usagef("%s is a path, and part of the id %s", quoteWord(word), refs[0].ID).Hintf("write the whole id, or './%s'", word)
		case err == nil:
		case !errors.Is(err, history.ErrNoRecord), errors.As(err, new(*history.AmbiguousError)),
			strings.HasPrefix(end, "@"), strings.HasPrefix(end, "last~"):
			return false, err
		default:
			return false, nil
		}
	}
	return true, nil
}

// isPath says whether there is something at the PATH that word would be.
func (s *session) isPath(rec *recorder.Reader, word string) bool {
	paths, err := s.inTree(rec.Project().Root, []string{word})
	return err == nil && exists(rec.Project().Root, paths[0])
}

// mustBeKnown refuses PATHs that are not in the tree and that no record knows: what
// would be shown of them is nothing, and a mistyped REF among them would not be noticed.
// words are as they were given, paths the same below the root; here says whether what
// is to be shown has something at or below a path.
func (s *session) mustBeKnown(rec *recorder.Reader, words []string, paths []tree.Path, here func(path tree.Path) (bool, error)) error {
	for i, path := range paths {
		if path == "" || exists(rec.Project().Root, path) {
			continue
		}
		found := false
		_, err := rec.History().Past(history.PastOptions{Paths: []tree.Path{path}}, func(history.Moment) bool {
			found = true
			return false
		})
		if err == nil && !found {
			found, err = here(path)
		}
		if err != nil {
			return err
		}
		if found {
			continue
		}
		if is, err := s.isRef(rec, words[i]); err == nil && is {
			return notFoundf("%s: no such path, neither in the tree nor in any record", quoteWord(words[i])).
				Hintf("it names a record, but a PATH is needed here: 'decree show %s' shows the record", words[i])
		}
		if s.line.verb == "log" { // it takes no REF
			return notFoundf("%s: no such path, neither in the tree nor in any record", quoteWord(words[i])).
				Hintf("'decree find NAME' looks for a name in all directories, 'decree log --grep TEXT' for words in descriptions, commands and labels")
		}
		return notFoundf("%s: not a record, a label or a path", quoteWord(words[i])).
			Hintf("'decree log' lists the records, 'decree label' the labels")
	}
	return nil
}

// splitRefs takes the words of revert and apply apart: REFs, of which there is
// at least one, then PATHs as paths below the root. foreign: the REFs are those
// of another tree, so words cannot be looked up here and PATHs stand behind "--".
func (s *session) splitRefs(rec *recorder.Reader, foreign bool) (refs []string, paths []tree.Path, err error) {
	words := s.line.words
	n := len(words)
	if !foreign && !s.line.dashed {
		n = 1
		for n < len(words) {
			ref, err := s.isRef(rec, words[n])
			if err != nil {
				return nil, nil, err
			}
			if !ref {
				break
			}
			n++
		}
	}
	paths, err = s.inTree(rec.Project().Root, slices.Concat(words[n:], s.line.paths))
	return words[:n], paths, err
}

// exists says whether there is something at a path below the root.
func exists(root string, path tree.Path) bool {
	_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(string(path))))
	return err == nil
}
