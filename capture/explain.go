package capture

import (
	"context"
	"strings"

	"decree/disk"
	"decree/ignorefile"
)

// Reason says why a path is left out, or that it is not.
type Reason string

// The reasons. A path that a rule takes back with ! is Recorded, and has the rule.
const (
	Recorded Reason = "recorded"
	ByRule   Reason = "rule"
	Always   Reason = "always"  // .git, .decree
	Excluded Reason = "store"   // one of Request.Exclude, or another store
	NoRecord Reason = "special" // a socket, pipe or device
)

// Answer says what becomes of one path.
type Answer struct {
	Path    string
	Ignored bool
	Reason  Reason
	Decided string // the path that Reason is about: Path, or a directory above it
	Missing bool   // nothing is there now; a path with a slash at its end counts as a directory

	// Source is the ignore file, Line its line, Rule the line's text; empty if no rule
	// decided.
	Source string
	Line   int
	Rule   string
}

// Explain says for each path, from the root, whether a capture would leave it out and
// why. The answers come in the order of the paths.
func Explain(ctx context.Context, req Request, paths []string) ([]Answer, error) {
	req.Writer, req.CacheDir = nil, nil
	w, err := newWalk(&req, memoryCache())
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, 0, len(paths))
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, err := w.explain(p)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// explain walks down to the path as a capture would, handle by handle.
func (w *walk) explain(path string) (Answer, error) {
	a := Answer{Path: strings.TrimSuffix(path, "/"), Reason: Recorded}
	wantDir := a.Path != path
	path = a.Path
	if path == "" || path == "." {
		return a, nil
	}
	h, done := w.req.Root, func() {}
	defer func() { done() }()
	rules := w.outer.rules
	for at := 0; ; {
		dir := path[:max(at-1, 0)]
		if !a.Missing {
			p, err := w.rulesOf(h, dir)
			if err != nil {
				return a, err
			}
			rules, _ = p.enter(rules, 0, dir)
		}
		end := strings.IndexByte(path[at:], '/')
		last := end < 0
		if last {
			end = len(path) - at
		}
		name := path[at : at+end]
		a.Decided = path[:at+end]
		var in disk.Info
		if !a.Missing {
			var err error
			in, err = h.Stat(name)
			a.Missing = absent(err)
			if err != nil && !a.Missing {
				return a, &UnreadableError{a.Decided, bare(err)}
			}
		}
		isDir := in.Kind == disk.Directory || a.Missing && (!last || wantDir)
		store := isDir && !a.Missing && (w.excluded(&in) || storeAt(h, name))
		always, err := isAlways(h, name)
		if err != nil {
			return a, &UnreadableError{a.Decided, bare(err)}
		}
		if w.decide(&a, &in, isDir, always, store, rules) || last {
			return a, nil
		}
		if !a.Missing {
			next, err := h.OpenDir(name)
			if err == nil {
				done()
				h, done = next, func() { next.Close() }
			} else if absent(err) || otherKind(err) {
				a.Missing = true
			} else {
				return a, &UnreadableError{a.Decided, bare(err)}
			}
		}
		at += end + 1
	}
}

// storeAt says whether the directory name in h is a store.
func storeAt(h disk.Dir, name string) bool {
	if !likeID(name) {
		return false
	}
	dir, err := h.OpenDir(name)
	if err != nil {
		return false
	}
	defer dir.Close()
	return isStore(name, dir)
}

// decide says whether the path a.Decided is left out.
func (w *walk) decide(a *Answer, in *disk.Info, isDir, always, store bool, rules *ignorefile.Rules) bool {
	a.Source, a.Line, a.Rule = "", 0, ""
	switch {
	case always:
		a.Reason = Always
	case store:
		a.Reason = Excluded
	default:
		v := rules.Match(a.Decided, isDir)
		if v.Rule != nil {
			a.Source, a.Line, a.Rule = v.Rule.Source(), v.Rule.Line(), v.Rule.Text()
		}
		switch {
		case v.Ignored:
			a.Reason = ByRule
		case in.Kind == disk.Special:
			a.Reason = NoRecord
		default:
			return false
		}
	}
	a.Ignored = true
	return true
}

// rulesOf returns the ignore files that count in dir, which h is.
func (w *walk) rulesOf(h disk.Dir, dir string) (p pair, err error) {
	if w.frozen != nil {
		return w.frozen[dir], nil
	}
	for _, name := range []string{gitName, decName} {
		file, _, err := readRules(h, join(dir, name), name)
		if err != nil {
			return p, err
		}
		p.set(name, file)
	}
	return p, nil
}
