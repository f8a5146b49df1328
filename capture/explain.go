package capture

import (
	"context"
	"strings"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
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
	Path    tree.Path
	Ignored bool
	Reason  Reason
	Decided tree.Path // the path that Reason is about: Path, or a directory above it
	Missing bool      // nothing is there now; a path with a slash at its end counts as a directory

	// Source is the ignore file, Line its line, Rule the line's text; empty if no rule
	// decided.
	Source string
	Line   int
	Rule   string
}

// Explain says for each path, from the root, whether a capture would leave it out and
// why. The answers come in the order of the paths.
func Explain(ctx context.Context, req Request, paths []tree.Path) ([]Answer, error) {
	req.Writer, req.CacheDir = nil, nil
	w, err := newWalk(&req, memoryCache())
	if err != nil {
		return nil, err
	}
	root, err := w.rulesOf(req.Root, "") // once: there may be many paths
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, 0, len(paths))
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, err := w.explain(p, root)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// explain walks down to the path as a capture would, handle by handle.
func (w *walk) explain(path tree.Path, root pair) (Answer, error) {
	a := Answer{Path: tree.Path(strings.TrimSuffix(string(path), "/")), Reason: Recorded}
	if a.Path == "" || a.Path == "." {
		return a, nil
	}
	d := descent{w: w, a: &a, h: w.req.Root, root: root, rules: w.outer.rules}
	defer d.close()
	names := strings.Split(string(a.Path), "/")
	for i, name := range names {
		last := i == len(names)-1
		decided, err := d.decide(name, !last || a.Path != path)
		if err == nil && !decided && !last {
			err = d.enter(name)
		}
		if err != nil || decided {
			return a, err
		}
	}
	return a, nil
}

// descent is the way down to a path that is explained.
type descent struct {
	w      *walk
	a      *Answer
	h      disk.Dir // the directory that it has come to; the last one that is there
	opened disk.Dir // h, unless that is the root
	root   pair
	rules  *ignorefile.Rules
}

func (d *descent) close() {
	if d.opened != nil {
		d.opened.Close()
	}
}

// decide says whether the entry name of the directory, or all below it, is left out; then
// the answer says why. asDir: where nothing has the name, it counts as a directory's.
func (d *descent) decide(name string, asDir bool) (leftOut bool, err error) {
	a, dir := d.a, d.a.Decided
	a.Decided = dir.Join(name)
	var in disk.Info
	if !a.Missing {
		p := d.root
		if dir != "" {
			if p, err = d.w.rulesOf(d.h, dir); err != nil {
				return false, err
			}
		}
		d.rules, _ = p.enter(d.rules, 0, dir)
		in, err = d.h.Stat(name)
		if a.Missing = absent(err); err != nil && !a.Missing {
			return false, &UnreadableError{a.Decided, bare(err)}
		}
	}
	isDir := in.Kind == disk.Directory || a.Missing && asDir
	store := isDir && !a.Missing && (d.w.excluded(&in) || storeAt(d.h, name))
	always, err := isAlways(d.h, name)
	if err != nil {
		return false, &UnreadableError{a.Decided, bare(err)}
	}
	return d.w.decide(a, &in, isDir, always, store, d.rules), nil
}

// enter goes down into the directory name; where there is none, nothing is below it.
func (d *descent) enter(name string) error {
	if d.a.Missing {
		return nil
	}
	next, err := d.h.OpenDir(name)
	switch {
	case err == nil:
		d.close()
		d.h, d.opened = next, next
	case absent(err) || disk.OtherKind(err):
		d.a.Missing = true
	default:
		return &UnreadableError{d.a.Decided, bare(err)}
	}
	return nil
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
		v := rules.Match(string(a.Decided), isDir)
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
func (w *walk) rulesOf(h disk.Dir, dir tree.Path) (p pair, err error) {
	if w.frozen != nil {
		return w.frozen[dir], nil
	}
	for _, f := range ruleNames {
		file, _, err := readRules(h, string(dir.Join(f.name)), f.name)
		if err != nil {
			return p, err
		}
		p.set(f.name, file)
	}
	return p, nil
}
