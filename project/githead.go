package project

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// GitHead is where the HEAD of the root's repository is; zero where there is none. An open record holds it.
type GitHead struct {
	Branch string              `json:"branch"` // "" when it is detached; what is not UTF-8 in it is replaced, as JSON has none
	Commit string              `json:"commit"` // its hash, "" of a branch without one
	Log    int                 `json:"log"`    // length of HEAD's log, in bytes
	Begun  [len(gitSteps)]bool `json:"begun"`
}

// gitSteps are what git can be in the midst of: the file below the git directory that says so, and how to end it.
var gitSteps = [...]struct{ file, name, end string }{
	{"rebase-merge/head-name", "a rebase", "git rebase --abort"},
	{"rebase-apply/rebasing", "a rebase", "git rebase --abort"},
	{"rebase-apply/applying", "git am", "git am --abort"},
	{"MERGE_HEAD", "a merge", "git merge --abort"},
	{"CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"},
	{"REVERT_HEAD", "a revert", "git revert --abort"},
	{"BISECT_LOG", "a bisect", "git bisect reset"},
}

// GitHead reads git's files as plain files, packed-refs and those of worktrees too.
func (p *Project) GitHead(w Where) (GitHead, error) {
	h, _, err := gitFiles{disk: p.Disk, w: w}.head(p.Root)
	return h, err
}

// GitMoved says in words how HEAD moved since it was at the given place, and what git is in the midst of since; "" for neither.
func (p *Project) GitMoved(w Where, from GitHead) (string, error) {
	to, log, err := gitFiles{disk: p.Disk, w: w}.head(p.Root)
	if err != nil || to == (GitHead{}) || from == (GitHead{}) {
		return "", err
	}
	var said []string
	if to.Branch != from.Branch || to.Commit != from.Commit {
		said = append(said, from.moved(to, log))
	}
	for i, step := range gitSteps {
		if to.Begun[i] && !from.Begun[i] {
			said = append(said, fmt.Sprintf("%s is under way, which '%s' ends", step.name, step.end))
		}
	}
	if len(said) == 0 {
		return "", nil
	}
	return strings.Join(append(said, ".git is not taken back"), "; "), nil
}

// moved says in words how HEAD moved to another place, whose log is given.
func (from GitHead) moved(to GitHead, log []byte) string {
	way := "on " + to.Branch
	if to.Branch != from.Branch || to.Branch == "" {
		way = from.name() + " -> " + to.name()
	}
	made := ""
	switch n := commits(log[min(from.Log, len(log)):]); n {
	case 0:
	case 1:
		made = ", 1 commit"
	default:
		made = fmt.Sprintf(", %d commits", n)
	}
	return "HEAD moved " + way + made
}

func (h GitHead) name() string {
	if h.Branch == "" {
		return h.Commit[:min(7, len(h.Commit))]
	}
	return h.Branch
}

// head returns the log too.
func (g gitFiles) head(root string) (h GitHead, log []byte, err error) {
	own, common, err := g.repository(root)
	if err != nil || own == "" {
		return h, nil, err
	}
	data, err := g.read(filepath.Join(own, "HEAD"), maxIdentity)
	if err != nil || data == nil {
		return h, nil, err
	}
	text := strings.TrimRight(string(data), " \t\r\n")
	ref, isRef := strings.CutPrefix(text, "ref: ")
	if !isRef {
		h.Commit = text
	} else if h.Branch = strings.ToValidUTF8(strings.TrimPrefix(ref, "refs/heads/"), "?"); strings.HasPrefix(ref, "refs/") && filepath.IsLocal(ref) {
		if h.Commit, err = g.ref(common, ref); err != nil {
			return GitHead{}, nil, err
		}
	}
	for i, step := range gitSteps {
		f, _, err := g.open(filepath.Join(own, filepath.FromSlash(step.file)))
		if err != nil {
			return GitHead{}, nil, err
		}
		if h.Begun[i] = f != nil; f != nil {
			f.Close()
		}
	}
	log, err = g.read(filepath.Join(own, "logs", "HEAD"), maxGitFile)
	h.Log = len(log)
	return h, log, err
}

// ref is the hash that a ref has in its own file, else in packed-refs; "" for none.
func (g gitFiles) ref(common, ref string) (string, error) {
	data, err := g.read(filepath.Join(common, filepath.FromSlash(ref)), maxIdentity)
	if err != nil || data != nil {
		return strings.TrimSpace(string(data)), err
	}
	packed, err := g.read(filepath.Join(common, "packed-refs"), maxGitFile)
	for line := range bytes.Lines(packed) {
		if hash, name, ok := strings.Cut(strings.TrimRight(string(line), " \t\r\n"), " "); ok && name == ref {
			return hash, nil
		}
	}
	return "", err
}

// commits counts the lines of HEAD's log that tell of a new commit:
//
//	OLD NEW NAME <MAIL> TIME ZONE\tcommit (amend): MESSAGE
func commits(log []byte) (n int) {
	for line := range bytes.Lines(log) {
		if _, what, ok := bytes.Cut(line, []byte("\t")); ok && bytes.HasPrefix(what, []byte("commit")) {
			n++
		}
	}
	return n
}
