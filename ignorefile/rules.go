package ignorefile

import "strings"

// Rules are the rules in force in one directory: those of its own ignore files
// and of all directories above. They are immutable and shared by concurrent
// walkers. A nil *Rules has no rules.
type Rules struct {
	parent *Rules
	skip   int     // the length of what precedes a path from this directory
	files  []*File // in rising precedence, none empty
}

// Enter returns the rules in force in directory dir (from the root, "" for the
// root itself; raw bytes, separated by slashes), given r, those of its parent, and
// the directory's own files in rising precedence: .gitignore, then .decreeignore.
// Nil files are passed over. It returns r itself if files add no rule.
func (r *Rules) Enter(dir string, files ...*File) *Rules {
	var own []*File
	for _, f := range files {
		if f != nil && f.Len() > 0 {
			own = append(own, f)
		}
	}
	if own == nil {
		return r
	}
	n := &Rules{parent: r, files: own}
	if dir != "" {
		n.skip = len(dir) + 1
	}
	return n
}

// Verdict is what the rules say of a path.
type Verdict struct {
	Ignored bool
	Rule    *Rule // the deciding rule, a negation too; nil if none matched
}

// Match says what the rules say of path: from the root, without a slash at either
// end, in or below the directory that r was made for. Its parent directories must
// not be ignored: nothing below an ignored directory comes back. Match allocates nothing.
func (r *Rules) Match(path string, isDir bool) Verdict {
	if r == nil || path == "" {
		return Verdict{}
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	if base == "" {
		return Verdict{}
	}
	for ; r != nil; r = r.parent {
		if len(path) <= r.skip {
			continue
		}
		rel := path[r.skip:]
		for i := len(r.files) - 1; i >= 0; i-- {
			if rule := r.files[i].match(rel, base, isDir); rule != nil {
				return Verdict{Ignored: !rule.negated, Rule: rule}
			}
		}
	}
	return Verdict{}
}
