package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/plan"
	"decree/tree"
	"decree/worktree"
)

// Some of what lies in the root is not recorded: .git, and what the rules ignore. decree cannot
// put its contents back. But when a failed run has deleted such an entry, the message about the
// put-back names it, and when the run has only renamed it, it gets its former name.

// What is not put back at once, as a run's that succeeded or an agent's turn, has in its record which of it got a name
// that is recorded: a revert would take that away as a file that was made. It stays there, named.

// unrecordedEntry is an entry of the root that is not recorded, as a run or turn begins, and as its open record has it.
type unrecordedEntry struct {
	Name  string `json:"name"` // quoted
	Dir   bool   `json:"dir,omitempty"`
	Ino   uint64 `json:"ino"`
	Born  int64  `json:"born,omitempty"` // disk.Dir.Born; 0: not known
	Mtime int64  `json:"mtime"`
	Size  int64  `json:"size"`
	// linked: other paths lead to it too, hard links, of which none is told from one that it was moved to.
	linked bool
}

func (l *unrecordedEntry) name() string { return tree.Unquoted(l.Name) }

// is says whether what stat says now, and was born when born says, is the entry under any name, and not another one that has got its inode.
// An overlay gives what it copies up another time of birth; a directory that was written to has other facts.
func (l *unrecordedEntry) is(now disk.Info, born func() int64) bool {
	if now.Ino != l.Ino || (now.Kind == disk.Directory) != l.Dir {
		return false
	}
	return now.Mtime == l.Mtime && now.Size == l.Size || l.Born != 0 && born() == l.Born
}

// Gone is something unrecorded that a failed run's command took away and that is not
// back in its place.
type Gone struct {
	Path tree.Path
	Now  tree.Path // where it is now, "" if it is nowhere in the tree
	Why  error     // it could not be moved back from there; it does not name Path
}

// Irreplaceable says whether what made it can hardly make it again: ignored things
// that are deleted are mostly what builds leave.
func (g Gone) Irreplaceable() bool { return isRepository(g.Path) || g.Now != "" }

// Below says whether it lay deeper than in the root: it was not looked at before the run, so
// whether it was deleted or is somewhere else now is not known.
func (g Gone) Below() bool { return g.Path.Parent() != "" }

func isRepository(path tree.Path) bool { return path.Name() == ".git" || path.Name() == ".decree" }

// extraLeft is the place in an open record of each unrecordedEntry.
const extraLeft = "left"

// extraRenamed is the field of run.json with the paths in the tree that they had at its end, by name.
const extraRenamed = "renamed"

// extraGone is the field of run.json that names what is gone.
const extraGone = "gone"

const (
	// maxLeftOut bounds what is noted of a root before a run, and the entries that are looked at at once.
	maxLeftOut = 4096
	// maxBelow bounds what is named of what lay deeper.
	maxBelow = 100
)

// lookLeftOut notes what lies in the root and is not recorded.
func (r *Recorder) lookLeftOut(ctx context.Context) (out []unrecordedEntry, err error) {
	list, err := r.project.Dir.List()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return strings.Compare(a.Name, b.Name) }) // .git among the first
	for part := range slices.Chunk(list, maxLeftOut) {
		var paths []tree.Path
		infos := map[tree.Path]disk.Info{}
		for _, e := range part {
			if e.Name == ".decree" {
				continue
			}
			info, err := r.project.Dir.Stat(e.Name)
			if err != nil && !isMissing(err) && e.Name == ".git" {
				return nil, err
			}
			if err != nil || info.Kind == disk.Special { // a mount whose server is gone has nothing that a command could move
				continue
			}
			path := tree.Path(e.Name)
			paths = append(paths, path)
			infos[path] = info
		}
		if paths, err = r.onlyIgnored(ctx, paths); err != nil {
			return nil, err
		}
		for _, path := range paths {
			if len(out) == maxLeftOut {
				return out, nil
			}
			info := infos[path]
			l := unrecordedEntry{Name: tree.Quote(path), Dir: info.Kind == disk.Directory, Ino: info.Ino, Born: r.project.Dir.Born(path.Name()), Mtime: info.Mtime, Size: info.Size}
			l.linked = !l.Dir && info.Nlink > 1
			out = append(out, l)
		}
	}
	return out, nil
}

func (r *Recorder) onlyIgnored(ctx context.Context, paths []tree.Path) (out []tree.Path, err error) {
	req, err := r.request(captureOptions{})
	if err != nil {
		return nil, err
	}
	answers, err := capture.Explain(ctx, req, paths)
	for _, a := range answers {
		if a.Ignored {
			out = append(out, a.Path)
		}
	}
	return out, err
}

// bringLeftOut gives what only got another name its own again, notes what is gone,
// and returns the paths that must stay as they are, since they hold what was left out.
func (u *run) bringLeftOut() (stay []tree.Path, err error) {
	u.res.Gone, u.res.MoreGone = nil, 0
	if err := u.r.project.Respell(); err != nil {
		return nil, err
	}
	gone, places, err := u.elsewhere("")
	if err != nil {
		return nil, err
	}
	for _, l := range gone {
		at, name := places[l.Name], l.name()
		if at == "" {
			_, err := u.r.project.Dir.Stat(name)
			if err != nil || name == ".git" { // else it is written anew, as editors and builds do
				u.res.Gone = append(u.res.Gone, Gone{Path: tree.Path(name)})
			}
			continue
		}
		respelled, err := u.r.isAtName(l)
		if err != nil {
			return nil, err
		}
		var moved bool
		if respelled {
			stay = append(stay, at) // it leads to what is brought back
			moved, err = u.r.respell(at, name)
		} else {
			moved, err = u.r.bring(at, name)
		}
		if moved && !respelled {
			u.vacated = append(u.vacated, at)
		}
		if moved {
			u.say("%s had become %s, and has its name again", l.Name, tree.Quote(at))
			if err != nil {
				u.say("%v", err)
			}
			continue
		}
		stay = append(stay, at)
		u.res.Gone = append(u.res.Gone, Gone{Path: tree.Path(name), Now: at, Why: err})
	}
	return stay, u.tellBelow()
}

// noteBelow notes what an attempt's walk missed below the root's own entries, and each .git that came there.
func (u *run) noteBelow(res *capture.Result) {
	u.newGit = append(u.newGit, res.NewGit...)
	for _, p := range res.Lost {
		if !slices.Contains(u.below, p) {
			u.below = append(u.below, p)
		}
	}
	u.moreBelow = max(u.moreBelow, res.MoreLost)
}

// tellBelow adds to what is gone what of that is still not there: no put-back makes it.
func (u *run) tellBelow() error {
	var gone []Gone
	for _, p := range u.below {
		_, err := disk.StatPath(u.r.project.Dir, string(p))
		switch {
		case isMissing(err) || disk.OtherKind(err):
			gone = append(gone, Gone{Path: p})
		case err != nil && !errors.Is(err, fs.ErrPermission): // what cannot be looked at is not known to be gone
			return err
		}
	}
	slices.SortStableFunc(gone, func(a, b Gone) int { // an earlier attempt's may come first
		switch {
		case isRepository(a.Path) == isRepository(b.Path):
			return 0
		case isRepository(a.Path):
			return -1
		}
		return 1
	})
	named := min(len(gone), maxBelow)
	u.res.MoreGone = u.moreBelow + len(gone) - named
	u.res.Gone = append(u.res.Gone, gone[:named]...)
	return nil
}

// tellNewGit names each .git that came below the root's own and outlives the put-back: for git, its directory is still the
// clone or the submodule, without its files.
func (u *run) tellNewGit() {
	u.newGit = slices.DeleteFunc(u.newGit, func(p tree.Path) bool {
		_, err := disk.StatPath(u.r.project.Dir, string(p))
		return isMissing(err)
	})
	if len(u.newGit) > 0 {
		u.say("came with the command, and stays, as .git is not taken back: %s; if the command made it, delete it before that is run again", some(u.newGit))
	}
	u.newGit = nil // an attempt that follows does not tell it again
}

// elsewhere are the entries that are not at their names, what lies deepest first, and
// by their names where at and below a directory they are now.
func (u *run) elsewhere(top tree.Path) (gone []unrecordedEntry, places map[string]tree.Path, err error) {
	list, err := u.r.project.Dir.List()
	if err != nil {
		return nil, nil, err
	}
	listed := make(map[string]bool, len(list))
	for _, e := range list {
		listed[e.Name] = true
	}
	for _, l := range u.unrecorded {
		here, err := u.r.isAtName(l)
		if err != nil {
			return nil, nil, err
		}
		if !here || !listed[l.name()] {
			gone = append(gone, l)
		}
	}
	places, err = u.r.whereIs(gone, top)
	depth := func(l unrecordedEntry) int { return strings.Count(string(places[l.Name]), "/") }
	slices.SortStableFunc(gone, func(a, b unrecordedEntry) int { return depth(b) - depth(a) })
	return gone, places, err
}

// isAtName says whether the name of an entry leads to it. Where case is folded another
// spelling of it does, too. What was made anew may have its inode, but not its birth.
func (r *Recorder) isAtName(l unrecordedEntry) (bool, error) {
	now, err := r.project.Dir.Stat(l.name())
	is := err == nil && now.Ino == l.Ino
	if is && l.Born != 0 && r.project.Dir.FileSystem().Steady { // an overlay gives what it copies up another birth
		is = r.project.Dir.Born(l.name()) == l.Born
	}
	return is, disk.UnlessMissing(err)
}

// clearOwn puts aside what was left out and lies in the place of decree's own files
// now, before these are written again over it.
func (u *run) clearOwn() error {
	gone, places, err := u.elsewhere(".decree")
	for _, l := range gone {
		if at := places[l.Name]; err == nil && u.isOwn(at) {
			err = u.r.project.PutPathAside(string(at))
		}
	}
	return err
}

// isOwn says whether decree itself writes or removes what is at a path below .decree.
func (u *run) isOwn(at tree.Path) bool {
	rest, below := strings.CutPrefix(string(at), ".decree/")
	if !below {
		return at == ".decree"
	}
	top, rest, below := strings.Cut(rest, "/")
	if top != "runs" || !below {
		return !below && top != "aside" && notOwn[top]
	}
	id, rest, below := strings.Cut(rest, "/")
	if is := history.IsID(id); !is || !below {
		return is
	}
	name, _, _ := strings.Cut(rest, "/")
	return slices.Contains(history.RecordFiles, name)
}

// bring gives what is at a path in the root its name in the root again.
func (r *Recorder) bring(at tree.Path, name string) (moved bool, err error) {
	err = disk.InDir(r.project.Dir, string(at.Parent()), func(dir disk.Dir) error {
		moved, err = r.tree.Rename(dir, at.Name(), tree.Path(name))
		return err
	})
	return moved, err
}

// respell gives an entry of the root that only has another spelling its own again. As its
// name counts as taken it goes by way of .decree/tmp, where the next command finds it
// after a death and puts it aside, named.
func (r *Recorder) respell(at tree.Path, name string) (moved bool, err error) {
	tmp, err := r.project.Decree.OpenDir("tmp")
	if err != nil {
		return false, err
	}
	defer tmp.Close()
	if err := r.project.Dir.RenameNew(string(at), tmp, name); err != nil {
		return false, err
	}
	if moved, err = r.tree.Rename(tmp, name, tree.Path(name)); !moved {
		err = errors.Join(err, tmp.RenameNew(name, r.project.Dir, string(at)))
	}
	return moved, err
}

// whereIs looks at and below a directory of the root for entries that are not at
// their names. The error is one that may have hidden them.
func (r *Recorder) whereIs(gone []unrecordedEntry, top tree.Path) (map[string]tree.Path, error) {
	found := map[string]tree.Path{}
	gone = slices.DeleteFunc(slices.Clone(gone), func(l unrecordedEntry) bool { return l.linked })
	dirs := []tree.Path{top}
	if top != "" {
		info, err := r.project.Dir.Stat(string(top))
		if err != nil && !isMissing(err) {
			return found, err
		}
		if i := slices.IndexFunc(gone, func(l unrecordedEntry) bool { return err == nil && l.is(info, birthOf(r.project.Dir, string(top))) }); i >= 0 {
			found[gone[i].Name] = top
		}
		if err != nil || info.Kind != disk.Directory {
			dirs = nil // a command may have put anything in its place
		}
	}
	var mounted map[tree.Path]string
	if len(gone) > 0 {
		mounted = r.mounts()
	}
	for len(dirs) > 0 && len(found) < len(gone) {
		at := dirs[len(dirs)-1]
		var below []tree.Path
		err := disk.InDir(r.project.Dir, string(at), func(dir disk.Dir) (err error) {
			below, err = r.lookIn(dir, at, mounted, gone, found)
			return err
		})
		if err != nil && !isMissing(err) && !errors.Is(err, fs.ErrPermission) {
			return found, err
		}
		dirs = append(dirs[:len(dirs)-1], below...)
	}
	return found, nil
}

// lookIn looks at the entries of one directory, and returns its directories. Nothing can be renamed to what is mounted.
func (r *Recorder) lookIn(dir disk.Dir, at tree.Path, mounted map[tree.Path]string, gone []unrecordedEntry, found map[string]tree.Path) (below []tree.Path, err error) {
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		name := at.Join(e.Name)
		wanted := func(l unrecordedEntry) bool { return e.Kind == disk.Unknown || (e.Kind == disk.Directory) == l.Dir }
		if mounted[name] != "" || e.Kind != disk.Directory && !slices.ContainsFunc(gone, wanted) {
			continue
		}
		info, err := dir.Stat(e.Name)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return below, err
		}
		for _, l := range gone {
			if l.is(info, birthOf(dir, e.Name)) {
				found[l.Name] = name
			}
		}
		if info.Kind == disk.Directory {
			below = append(below, name)
		}
	}
	return below, nil
}

// withoutStaying drops the changes at and below the paths that stay, and returns which of those were there before the command.
func withoutStaying(p *plan.Plan, stay []tree.Path) (barred []tree.Path) {
	p.Steps = slices.DeleteFunc(p.Steps, func(s worktree.Step) bool {
		stays := len(stay) > 0 && s.Path.Within(stay...)
		if stays && s.To != nil {
			barred = append(barred, s.Path)
		}
		return stays
	})
	return barred
}

// toPutBack are the changes of the last attempt, and all that the tree had at and below the paths that were vacated since:
// what was left out went from there to its own name, also where it looked like what had been there.
func (u *run) toPutBack() ([]tree.Change, error) {
	if len(u.vacated) == 0 {
		return u.changes, nil
	}
	out := slices.DeleteFunc(slices.Clone(u.changes), func(c tree.Change) bool { return c.Path.Within(u.vacated...) })
	had, err := u.r.history.Tree(u.before)
	if err != nil {
		return nil, err
	}
	for it, err := range had {
		if err != nil {
			return nil, err
		}
		if it.Path.Within(u.vacated...) {
			out = append(out, tree.Change{Path: it.Path, Old: &it.Entry})
		}
	}
	slices.SortFunc(out, func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	return out, nil
}

// markGone writes into the record what is gone: run.json tells it too.
func (u *run) markGone() error {
	names := make([]string, len(u.res.Gone))
	for i, g := range u.res.Gone {
		names[i] = tree.Quote(g.Path)
	}
	return setField(u.rec, extraGone, names, len(names) > 0)
}

// setField gives a record a field, or takes it away.
func setField(rec *history.Record, field string, value any, is bool) error {
	rec.Extra = slices.DeleteFunc(rec.Extra, func(f history.Field) bool { return f.Name == field })
	if !is {
		return nil
	}
	raw, err := json.Marshal(value)
	rec.Extra = append(rec.Extra, history.Field{Name: field, Raw: raw})
	return err
}

// fieldOf is a field of a record; the zero value where it has none that makes sense.
func fieldOf[T any](rec *history.Record, field string) T {
	var value, none T
	i := slices.IndexFunc(rec.Extra, func(f history.Field) bool { return f.Name == field })
	if i < 0 || json.Unmarshal(rec.Extra[i].Raw, &value) != nil {
		return none
	}
	return value
}

// namesIn are the names in a field of a record.
func namesIn(rec *history.Record, field string) []string { return fieldOf[[]string](rec, field) }

// noteLeft puts them into an open record.
func noteLeft(left []unrecordedEntry, extra map[string]json.RawMessage) (err error) {
	extra[extraLeft], err = json.Marshal(slices.DeleteFunc(slices.Clone(left), func(l unrecordedEntry) bool { return l.linked }))
	return err
}

// noteRenamed writes into a record which of what it left out has a path that is recorded by its end.
func (r *Recorder) noteRenamed(rec *history.Record, o *history.Opened, changes changeSeq) error {
	var gone []unrecordedEntry
	if raw := o.Extra[extraLeft]; raw == nil || json.Unmarshal(raw, &gone) != nil {
		return nil // of an older decree
	}
	gone = slices.DeleteFunc(gone, func(l unrecordedEntry) bool {
		is, err := r.isAtName(l)
		return err == nil && is
	})
	var found []renaming
	dirs := r.tree.Dirs()
	defer dirs.Close()
	note := func(path tree.Path, isDir bool, size int64) {
		likely := func(l unrecordedEntry) bool { return l.Dir == isDir && (isDir || l.Born != 0 || l.Size == size) }
		if !slices.ContainsFunc(gone, likely) {
			return
		}
		now, err := dirs.Stat(path)
		i := slices.IndexFunc(gone, func(l unrecordedEntry) bool { return err == nil && l.is(now, r.birthAt(path)) })
		if i >= 0 {
			l := gone[i]
			l.Mtime, l.Size = now.Mtime, now.Size
			found = append(found, renaming{tree.Quote(path), l})
			gone = slices.Delete(gone, i, i+1)
		}
	}
	above := map[tree.Path]bool{"": true}
	for c, err := range changes {
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			break
		}
		if c.New == nil || c.New.Type == tree.Symlink {
			continue
		}
		// A directory that took the place of a recorded one is no change: only what is in it is.
		for dir := c.Path.Parent(); !above[dir]; dir = dir.Parent() {
			above[dir] = true
			note(dir, true, 0)
		}
		if c.New.Type != tree.Dir {
			note(c.Path, false, c.New.Size)
		} else if !above[c.Path] {
			above[c.Path] = true
			note(c.Path, true, 0)
		}
	}
	return setField(rec, extraRenamed, found, len(found) > 0)
}

// birthOf is when what has a name in a directory was born, for unrecordedEntry.is.
func birthOf(dir disk.Dir, name string) func() int64 {
	return func() int64 { return dir.Born(name) }
}

// birthAt is birthOf of a path in the tree.
func (r *Recorder) birthAt(at tree.Path) func() int64 {
	return func() (born int64) {
		_ = disk.InDir(r.project.Dir, string(at.Parent()), func(dir disk.Dir) error { born = dir.Born(at.Name()); return nil })
		return born
	}
}

// renaming is a path in the tree that something has which was left out under its name in the root.
type renaming struct {
	Path string `json:"path"` // quoted
	unrecordedEntry
}

func (n renaming) at() tree.Path { return tree.Path(tree.Unquoted(n.Path)) }

// renamedIn are those that noteRenamed found.
func renamedIn(rec *history.Record) []renaming { return fieldOf[[]renaming](rec, extraRenamed) }

// leaveRenamed takes out of a plan what would take that away, and names it. It is not given its name again: what was
// changed in it since would come under that name, unseen.
func (r *Recorder) leaveRenamed(recs []*history.Record, p *plan.Plan) (notes []string) {
	var stay []tree.Path
	for _, rec := range recs {
		for _, l := range renamedIn(rec) {
			at := r.placeOf(l, p)
			isAbout := func(it plan.Item) bool { return it.Verdict != plan.Done && it.Path.Within(at) }
			if at == "" || slices.Contains(stay, at) || !slices.ContainsFunc(p.Items, isAbout) {
				continue
			}
			stay = append(stay, at)
			note := fmt.Sprintf("%s was %s when %s %s began, and stays", tree.Quote(at), tree.Quote(tree.Path(l.name())), noun(rec), rec.ID)
			if _, err := r.project.Dir.Stat(l.name()); isMissing(err) {
				note += fmt.Sprintf("; 'mv %s %s' gives it its name again", tree.ShellWord(string(at)), tree.ShellWord(l.name()))
			}
			was := slices.IndexFunc(p.Steps, func(s worktree.Step) bool {
				return s.To != nil && (s.Path.Within(at) || at.Below(s.Path) && !s.To.IsDir())
			})
			if was >= 0 {
				path := at
				if at.Below(p.Steps[was].Path) {
					path = p.Steps[was].Path
				}
				note += fmt.Sprintf("; once it is moved away, 'decree restore %s %s' brings what was there before", rec.ID, tree.ShellWord(string(path)))
			}
			notes = append(notes, note)
		}
	}
	p.Leave(stay)
	return notes
}

// placeOf is where something renamed is now, as far as the plan is about it, "" where it is not. What stands at its path is what became of
// it, also as another file or directory: an editor saves by a rename, and an undo makes directories anew.
func (r *Recorder) placeOf(l renaming, p *plan.Plan) tree.Path {
	dirs := r.tree.Dirs()
	defer dirs.Close()
	isAt := func(path tree.Path) bool {
		now, err := dirs.Stat(path)
		return err == nil && l.is(now, r.birthAt(path))
	}
	if isAt(tree.Path(l.name())) {
		return ""
	}
	for _, it := range p.Items {
		if it.From != nil && (it.From.Type == tree.Dir) == l.Dir && isAt(it.Path) {
			return it.Path
		}
	}
	if now, err := dirs.Stat(l.at()); err == nil && (now.Kind == disk.Directory) == l.Dir {
		return l.at()
	}
	return ""
}
