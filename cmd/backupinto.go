package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/worktree"
)

// arrival is a restore of tree and history that a death, or what stood in the way, has left unfinished, and that the same command goes on
// with: into a directory that has nothing, or over a project whose records are replaced. project.Into is what it is known by.
type arrival struct {
	rec *recorder.Recorder // nil: nothing was begun there
	// swapped: the records are there, and may have been added to since; the tree may not be there.
	swapped bool
	in      *project.Into
}

// arrived says how far a restore into the root has come; nil where none is unfinished.
func (s *session) arrived(ctx context.Context, root string, site *project.Site) (*arrival, error) {
	a := &arrival{}
	var err error
	if site != nil && site.Swapping() { // what is to follow is known when that is done
		if err = a.recover(ctx, s); err != nil {
			return nil, err
		}
	}
	in, err := project.ReadInto(disk.OS, root)
	if in == nil || err != nil {
		return nil, err
	}
	a.in = in
	if site != nil {
		if err = a.recover(ctx, s); err != nil {
			return nil, err
		}
		if a.swapped = in.Over || a.rec.Project().From() == in.Project; a.swapped {
			return a, nil
		}
		if list, err := a.rec.History().Logged(); err != nil || len(list) > 0 {
			return nil, cmp.Or(err, a.refuse(root, "has records of its own by now"))
		}
	}
	others, err := project.BesideInto(disk.OS, root, true)
	if err == nil && len(others) > 0 {
		err = a.refuse(root, "has something else in it by now: "+list(others))
	}
	return a, err
}

// recover opens the project and does what a dead process left there.
func (a *arrival) recover(ctx context.Context, s *session) (err error) {
	if a.rec == nil {
		if a.rec, err = s.forWriting(ctx); err == nil {
			_, err = a.rec.Recover(ctx, false)
		}
	}
	return err
}

func (a *arrival) refuse(root, why string) error {
	return refusedf("a restore of %s into %s was begun, and the directory %s; nothing was changed", a.in.Generation, quoteWord(root), why).Hintf("move that away and repeat the restore, or name a new directory with --into; to give it up, remove .decree/%s there", project.IntoFile)
}

// goOn completes what the command names by what the restore was begun with: all of it where the records are there already, or where
// the command names nothing.
func (a *arrival) goOn(o *backupOptions, word string) string {
	switch {
	case !a.swapped && (word != "" || o.from != ""):
		return word
	case a.in.Over && (!o.tree || !strings.Contains(a.in.Generation, word)): // it is another restore
		return word
	case a.in.Name == "":
		return cmp.Or(word, string(a.in.From))
	}
	o.from, o.name = cmp.Or(o.from, string(a.in.From)), cmp.Or(o.name, a.in.Name)
	return cmp.Or(word, a.in.Generation)
}

// sameAs refuses another generation than the one whose records are there already.
func (a *arrival) sameAs(src *backupSource) error {
	is := intoOf(src)
	if !a.swapped || is.Project == a.in.Project && is.Generation == a.in.Generation {
		return nil
	}
	return refusedf("the records of %s were restored here, and its tree is to follow: %s cannot come in their place; nothing was changed", a.in.Generation, is.Generation).
		Hintf("'decree backup restore' without a name goes on with %s; or name a new directory with --into", a.in.Generation)
}

// orAnew has a restore over a project begin anew, with the records, unless what it names is the tree that is to follow and is in the store: a gc
// may have swept that.
func (r *restore) orAnew() {
	if r.begun == nil || !r.begun.in.Over {
		return
	}
	is := intoOf(r.src)
	if !r.o.tree || is.Project != r.begun.in.Project || is.Generation != r.begun.in.Generation || !r.begun.rec.Holds(r.src.source.Manifest.Tree) {
		r.rec, r.begun = r.begun.rec, nil
	}
}

// mayGoOn asks whether the tree may follow the records, over what stands there by now.
func (s *session) mayGoOn(src *backupSource) error {
	switch {
	case s.global.yes:
	case !s.canAsk():
		return refusedf("the tree of %s would replace the one that is here; nothing was changed", src.name).Hintf("say --yes; 'decree revert last' takes it back")
	case s.ask(fmt.Sprintf("replace the tree that is here by that of %s? [y/N]", src.name), 'n') != 'y':
		return refusedf("not confirmed; nothing was changed")
	}
	return nil
}

// withoutTree is an error after which the records are restored over a project, and its tree is not.
func (r *restore) withoutTree(err error) error {
	advice := "mend what stands in the way; 'decree backup restore --tree --yes' then goes on with the tree"
	left := leftIn(err, "the records are restored, and the tree is as it was", advice)
	if e := (*project.Error)(nil); r.begun == nil && errors.As(left, &e) && e.Kind == project.Refused {
		e.Kind = project.Failed // since something was changed
	}
	return left
}

// leftIn is an error of the tree's restore with the state in which the whole is left: what it says itself, as that nothing was changed, is true of
// a part.
func leftIn(err error, state, advice string) error {
	if moved := (*worktree.Error)(nil); errors.As(err, &moved) && (!moved.Moved || moved.RolledBack && len(moved.Left) == 0) {
		cause := moved.Err
		if moved.Path != "" {
			cause = tree.At(moved.Path, cause)
		}
		err = &project.Error{Kind: project.KindOf(err), Err: cause}
	}
	return project.LeftIn(err, state, advice)
}

// afterRecords is an error behind the replacement of the records, as where it could not be noted: they stay, and into.json has the next restore go
// on with the tree.
func (r *restore) afterRecords(err error) error {
	switch {
	case r.empty:
		return notThere(err)
	case r.o.tree:
		return r.withoutTree(err)
	}
	return project.LeftIn(err, "the records are restored", project.HintOf(err))
}

// sayArriving says that a restore into the root is not finished.
func (s *session) sayArriving(root string) {
	in, err := project.ReadInto(disk.OS, root)
	switch {
	case err != nil:
		s.note(err.Error())
	case in != nil:
		why := in.Unfinished(root)
		s.note(why.Msg + ": " + why.Advice)
	}
}

// notThere is an error after which the records of a generation are there, and its tree is not.
func notThere(err error) error {
	state := "the records are restored, and the tree is not whole yet"
	if short := (*recorder.FillError)(nil); errors.As(err, &short) && short.There > 0 {
		state = fmt.Sprintf("the records are restored, and of the tree %s there so far", pathsAre(short.There))
	}
	return leftIn(err, state, "'decree backup restore' there goes on with the tree, once what stands in the way is mended")
}

func pathsAre(n int) string {
	if n == 1 {
		return "1 path is"
	}
	return count(n, "path") + " are"
}

// lostError is that parts of a tree are not in the generation that it came from.
type lostError struct {
	why   *project.Error
	paths []tree.Path
}

func (e *lostError) Error() string { return e.why.Error() }

func (e *lostError) Unwrap() error { return e.why }

// Details are the paths.
func (e *lostError) Details() (out [][]string) {
	const most = 20
	for i, p := range e.paths {
		if i == most {
			return append(out, []string{fmt.Sprintf("and %d more", len(e.paths)-most)})
		}
		out = append(out, []string{shownPath(p)})
	}
	return out
}

// lostFromTree is the error of a tree of which a generation lacks paths; nil where it has all. state says what became of them.
func lostFromTree(paths []tree.Path, state string) error {
	if len(paths) == 0 {
		return nil
	}
	return &lostError{&project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("the backup lacks %s of the tree, which the store had lost when it was made", count(len(paths), "path")),
		State: state, Advice: "'decree backup list' lists other generations, which may have what is missing"}, paths}
}

// intoOf is what is written down of a restore into a directory, before anything else is made there.
func intoOf(src *backupSource) project.Into {
	m := src.source.Manifest
	in := project.Into{Project: m.Project, Generation: m.Generation(), From: tree.Text(src.from), Name: src.place}
	if src.place != "" {
		in.Generation = src.name // which may be what a restore has replaced
	}
	return in
}

// rootOf is the root of the command, whether or not a project is there.
func (s *session) rootOf() (string, error) {
	root, err := project.FindRoot(disk.OS, s.where())
	return strings.TrimSuffix(root, string(filepath.Separator)), err
}
