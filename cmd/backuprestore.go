package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"decree/backup"
	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/queue"
	"decree/recorder"
	"decree/tree"
)

// backupSource is where a restore or an export reads from.
type backupSource struct {
	source *backup.Source
	name   string                                      // for messages
	from   string                                      // the target, or the path of the zip
	place  string                                      // of the project in the target; "" for a zip
	lies   string                                      // the path of the zip or of the target; "" where that is not in this file system
	paths  func(ctx context.Context) ([]string, error) // what lies there that is no part of a tree
	close  func()
}

// source finds a generation: word is its name, a part of it or the path of a FILE.zip.
func (s *session) source(ctx context.Context, o backupOptions, p *project.Site, word string) (*backupSource, error) {
	if strings.HasSuffix(word, ".zip") {
		if src, err := s.zipSource(word); src != nil || err != nil {
			return src, err
		}
	}
	t, err := s.openTarget(ctx, cmp.Or(o.from, o.to), p, false)
	if err != nil {
		return nil, err
	}
	out, err := s.inTarget(ctx, o, p, t, word)
	if err != nil {
		t.Close()
	}
	return out, err
}

// below are the paths in the tree of what is read from, and of what lies beside it in the same target.
func (s *backupSource) below(ctx context.Context, root string) (out []tree.Path, err error) {
	if s.lies == "" {
		return nil, nil
	}
	if root, err = realAbove(root); err != nil {
		return nil, err
	}
	if _, inside, err := relIn(root, s.lies); err != nil || !inside {
		return nil, err
	}
	paths, err := s.paths(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		rel, inside, err := relIn(root, path)
		if err != nil {
			return nil, err
		}
		if inside && rel != "." {
			out = append(out, tree.Path(filepath.ToSlash(rel)))
		}
	}
	return out, nil
}

// relIn is the path from root, which is real, to another one, and whether that is inside.
func relIn(root, path string) (rel string, inside bool, err error) {
	real, err := realAbove(path)
	if err != nil {
		return "", false, err
	}
	rel, err = filepath.Rel(root, real)
	return rel, err == nil && filepath.IsLocal(rel), nil
}

// zipSource opens a FILE.zip; nil where there is none of that name.
func (s *session) zipSource(word string) (*backupSource, error) {
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	st, err := os.Stat(path) // before it is opened, since that waits at a pipe and may do more at a device
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	if !st.Mode().IsRegular() {
		return nil, &project.Error{Kind: project.Failed, Msg: quoteWord(path) + " is no regular file", State: project.Unchanged, Advice: "name a file that 'decree backup export' has written"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err = f.Stat()
	var src *backup.Source
	if err == nil {
		src, err = backup.FromZip(f, st.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	itself := func(context.Context) ([]string, error) { return []string{path}, nil }
	return &backupSource{source: src, name: word, from: path, lies: path, paths: itself, close: func() { f.Close() }}, nil
}

func (s *session) inTarget(ctx context.Context, o backupOptions, p *project.Site, t target.Target, word string) (*backupSource, error) {
	var place *backup.Place
	var err error
	if o.name == "" && p != nil && p.ID != "" {
		if place, err = backup.FindOwn(ctx, t, p, s.where(), s.env.Host); err != nil {
			return nil, err
		}
		place = place.ToRead()
	}
	if place != nil && len(place.Generations()) == 0 {
		if err := backup.Missing(p.Store, t.String()); err != nil {
			return nil, err
		}
	}
	if place == nil || len(place.Generations()) == 0 {
		if place, err = backup.One(ctx, t, o.name); err != nil {
			return nil, err
		}
	}
	s.sayDamage(place)
	name, err := place.Resolve(word)
	if err != nil {
		return nil, err
	}
	src, err := place.Generation(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &backupSource{source: src, name: name, from: t.String(), place: place.Name, paths: place.Directories, close: func() { t.Close() }}
	if placed, ok := t.(target.Placed); ok {
		out.lies, _, _, err = placed.Place()
	}
	return out, err
}

// siteIfAny is the project that is here, nil if there is none.
func (s *session) siteIfAny() (*project.Site, error) {
	rec, err := s.forReading()
	if errors.Is(err, project.ErrNoProject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return rec.Project(), nil
}

func (s *session) restoreBackup(ctx context.Context, o backupOptions, words []string) error {
	word := ""
	s.arriving = true
	if len(words) > 0 {
		word = words[0]
	}
	if o.into != "" {
		made, err := s.emptyRoot(o.into)
		if err != nil {
			return err
		}
		done := false
		defer func() {
			if !done && made {
				_ = os.Remove(s.global.root) // it is still empty
			}
		}()
		err = s.restoreHere(ctx, o, word)
		done = err == nil
		return err
	}
	return s.restoreHere(ctx, o, word)
}

// emptyRoot makes DIR of --into the root. It must be empty, or have a restore into it that was not finished.
func (s *session) emptyRoot(into string) (made bool, err error) {
	if s.global.root != "" {
		return false, usagef("--into and --root cannot be used together").Hintf("choose one")
	}
	path := into
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	if err := s.notDecreesOwn(path); err != nil {
		return false, err
	}
	s.global.root = path
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return true, os.MkdirAll(path, 0o755)
	}
	begun, err := project.ReadInto(disk.OS, path)
	if err != nil || begun != nil && !begun.Over {
		return false, err
	}
	others, err := project.BesideInto(disk.OS, path, false)
	if err == nil && len(others) > 0 {
		err = refusedf("%s is not empty; nothing was changed", quoteWord(into)).Hintf("name a new directory; or, to replace the files that are there too, go there and say -y --tree in place of --into")
	}
	return false, err
}

func (s *session) restoreHere(ctx context.Context, o backupOptions, word string) error {
	site, err := s.siteIfAny()
	if lost := (*project.StoreMissing)(nil); errors.As(err, &lost) {
		return s.restoreLost(ctx, o, word, lost)
	}
	if err != nil {
		return err
	}
	root, err := s.rootOf()
	if err == nil && site == nil && o.into == "" {
		err = s.notDecreesOwn(root)
	}
	if err != nil {
		return err
	}
	r := &restore{session: s, o: o, root: root, fresh: site == nil}
	if !o.dryRun {
		if r.begun, err = s.arrived(ctx, root, site); err != nil {
			return err
		}
	}
	if r.begun != nil {
		word = r.begun.goOn(&r.o, word)
		r.fresh = !r.begun.swapped
	}
	if r.src, err = s.source(ctx, r.o, site, word); err != nil {
		return err
	}
	defer r.src.close()
	if o.dryRun {
		return s.tryRestore(ctx, r.src)
	}
	if err := s.mayRead(r.src); err != nil {
		return err
	}
	r.orAnew()
	switch {
	case site != nil && r.begun == nil:
		err = s.mayReplace(r.src)
	case site != nil && r.begun.in.Over:
		err = s.mayGoOn(r.src)
	}
	if err != nil {
		return err
	}
	return r.all(ctx)
}

// mayReplace asks whether a restore may replace what the project has.
func (s *session) mayReplace(src *backupSource) error {
	switch {
	case s.global.yes:
	case !s.canAsk():
		return refusedf("a restore replaces the records, config, routines and messages of this project; nothing was changed").Hintf("say --yes; what is here is kept as an archive first, and 'decree backup restore --dry-run' only reads and proves")
	case s.ask(fmt.Sprintf("replace the records, config, routines and messages of this project by those of %s? [y/N]", src.name), 'n') != 'y':
		return refusedf("not confirmed; nothing was changed")
	}
	return nil
}

// restore is a restore that the user wants.
type restore struct {
	*session
	o     backupOptions
	root  string
	src   *backupSource
	begun *arrival    // nil: none was begun before
	fresh bool        // no project is here
	holds bool        // without a project, .decree has something of its user's, such as a config
	anew  bool        // the store was missing and is made anew
	empty bool        // the tree comes too, into a root that has nothing else in it
	apart []tree.Path // of the backup itself, which the tree's restore leaves alone
	rec   *recorder.Recorder
	done  restored
}

// all does it: nothing is changed before begin, and no record before bring.
func (r *restore) all(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	return r.bring(ctx)
}

// look finds out what is here.
func (r *restore) look(ctx context.Context) (err error) {
	if r.begun != nil {
		r.rec, r.empty = r.begun.rec, !r.begun.in.Over
		if err := r.begun.sameAs(r.src); err != nil {
			return err
		}
	} else if r.fresh {
		others, err := project.BesideInto(disk.OS, r.root, false)
		if err != nil {
			return err
		}
		r.empty = len(others) == 0
		r.holds = slices.ContainsFunc(others, isUsers)
	}
	if r.o.tree && !r.empty { // what the target has to say is said before anything is changed
		r.apart, err = r.src.below(ctx, r.root)
	}
	return project.Unmoved(err)
}

// begin notes that a restore goes on where it needs that, and opens the project, which is made if it is missing.
func (r *restore) begin(ctx context.Context) (err error) {
	if r.empty && r.fresh {
		if err := r.beginInto(); err != nil {
			return err
		}
	}
	if r.rec == nil {
		if r.rec, err = r.forWriting(ctx); err != nil {
			r.undo(err)
			return err
		}
		if (r.fresh || r.anew) && !r.rec.Project().Made {
			if err := r.endOwnInto(); err != nil {
				return project.LeftIn(err, "somebody else has begun to use decree there", "remove .decree/"+project.IntoFile)
			}
			return refusedf("somebody else has begun to use decree in %s while the backup was looked at; nothing was changed", quoteWord(r.root)).Hintf("repeat the restore, which then keeps an archive of what is here")
		}
	}
	err = r.refuseInRun() // before a target is made
	if err == nil {
		err = r.holdLost()
	}
	if err != nil {
		r.undo(err)
	}
	return err
}

// bring brings the records, the files and what plugins have.
func (r *restore) bring(ctx context.Context) error {
	live := r.rec.Project().Config.Backup.Plugins
	other, err := r.rec.Project().ConfigOfAnother() // before its files are root's
	if err != nil {
		return err
	}
	distrusted := other != "" || r.rec.Project().HeldBack() != nil
	m, err := r.records(ctx)
	if err != nil {
		return err
	}
	lost, err := r.files(ctx, m)
	if err != nil {
		return err
	}
	err = r.restorePlugins(ctx, r.o, r.rec, live, r.fresh || r.begun != nil, distrusted, m)
	if r.empty && (err == nil || errors.As(err, new(*backup.PluginError))) {
		if eerr := r.rec.Project().EndInto(); eerr != nil {
			return project.LeftIn(eerr, "all is restored", "'decree backup restore' there ends the restore")
		}
	}
	return cmp.Or(r.printDone(m, err), err, lost)
}

// refuseInRun refuses within a run that holds the project, and in the layer of an isolated one.
func (r *restore) refuseInRun() error {
	err := r.rec.RefuseSwapInRun()
	if err == nil && !r.fresh {
		err = backupInLayer(r.rec.Project())
	}
	return err
}

// holdLost holds what the generation holds where the store that said so is lost.
func (r *restore) holdLost() error {
	held := r.src.source.Manifest.Held
	if !r.anew || held == nil {
		return nil
	}
	return project.Hold(r.rec.Project().Store, *held)
}

// beginInto notes that the generation comes into a directory that has nothing in it.
func (r *restore) beginInto() error {
	var was *project.Into
	if r.begun != nil {
		was = r.begun.in
	}
	err := project.BeginInto(disk.OS, r.root, intoOf(r.src), was)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, disk.ErrLocked) {
		return refusedf("another restore into %s has just begun; nothing was changed", quoteWord(r.root)).Hintf("wait for that one, or name a new directory with --into")
	}
	return project.Unmoved(err)
}

// endOwnInto takes back that this restore has begun: what an earlier one has left is another's, that goes on with it.
func (r *restore) endOwnInto() error {
	if !r.empty || !r.fresh || r.begun != nil {
		return nil
	}
	return r.rec.Project().EndInto()
}

// records replaces what the project has, unless a restore that was begun here has done that.
func (r *restore) records(ctx context.Context) (*backup.Manifest, error) {
	if r.begun != nil && r.begun.swapped {
		r.note("the records of " + r.src.name + " are here already: the restore that was begun goes on with the tree")
		return r.src.source.Manifest, nil
	}
	var then *project.Into
	if r.o.tree && !r.empty {
		in := intoOf(r.src)
		in.Over = true
		then = &in
	}
	if !r.fresh {
		if err := r.endMessages(ctx); err != nil {
			return nil, err
		}
	}
	out, err := r.replace(ctx, then)
	if out == nil {
		r.undo(err)
		return nil, err
	}
	r.tellRestored(out)
	if begun := r.rec.Project().Begun; begun != "" {
		r.note(begun)
	}
	if err != nil {
		return nil, r.afterRecords(err)
	}
	return out.Manifest, nil
}

// files restores the tree, where that is wanted. What the generation lacks of it is lost, and all else is there.
func (r *restore) files(ctx context.Context, m *backup.Manifest) (lost, err error) {
	switch {
	case r.empty:
		out, err := r.rec.Fill(ctx, m.Tree)
		if err != nil {
			return nil, notThere(err)
		}
		for _, note := range out.Notes {
			r.note(note)
		}
		if lost = lostFromTree(out.Lost, "all else is restored"); lost == nil {
			r.say("decree: the tree is that of the backup")
		}
	case r.o.tree:
		out, err := r.rec.RestoreState(ctx, m.Tree, "the backup of "+r.src.name, r.apart)
		if err != nil {
			return nil, r.withoutTree(err)
		}
		if err := r.rec.Project().EndInto(); err != nil {
			return nil, project.LeftIn(err, "records and tree are restored", "'decree backup restore --tree --yes' ends the restore")
		}
		for _, note := range (moveReport{result: out}).notes() {
			r.note(note)
		}
		lost = lostFromTree(out.Lost, "they are as they were, and all else is restored")
		if out.Record != nil {
			r.done.Record = out.Record.ID
			r.say("decree: the tree is that of the backup: record %s; 'decree revert last' takes that back", out.Record.ID)
		}
	}
	return lost, nil
}

// isUsers says whether a path is of what people have in .decree.
func isUsers(path string) bool {
	dir, name := filepath.Split(path)
	return dir == ".decree/" && !backup.IsOwnName(name)
}

// undo removes the project, or the store, that was made for a restore which failed with err, unless somebody else works there or has
// recorded something since. What lies in .decree goes last, so that a death leaves what the next restore takes up.
func (r *restore) undo(err error) {
	if !r.fresh && !r.anew || errors.As(err, new(*project.HeldError)) {
		return
	}
	if r.rec != nil {
		p := r.rec.Project()
		unlock, err := p.Lock(context.Background(), r.rec.Holder(), 0)
		if err != nil {
			return // somebody has waited for this restore, and is at work
		}
		defer unlock()
		if empty, err := r.rec.History().Empty(); p.Swapping() || err != nil || !empty {
			return // it was decided on, and the next command finishes it; or it is somebody's
		}
		if r.fresh {
			_ = p.Forsake()
		}
		_ = os.RemoveAll(p.StorePath)
	}
	dir := filepath.Join(r.root, ".decree")
	if _, err := os.Lstat(filepath.Join(dir, "project.json")); r.empty && errors.Is(err, fs.ErrNotExist) { // else it is not this restore's
		_ = os.RemoveAll(dir)
	}
}

// replace replaces what the project has by the generation. then is what is to follow.
// endMessages has what dead processes left of messages ended or taken back, while the records that tell of it are there: the
// generation may have these messages as waiting, and they would be done on top of it, or again.
func (r *restore) endMessages(ctx context.Context) error {
	q, done, err := r.queueOver(ctx, r.rec, queue.Options{})
	if err != nil {
		return project.Unmoved(err)
	}
	defer done()
	left, err := q.EndAll(ctx, r.global.wait)
	for _, why := range left {
		r.note(fmt.Sprintf("%v; what its run has changed stays in the tree", why))
	}
	if err != nil {
		r.note(fmt.Sprintf("what dead processes left of messages cannot be found out: %v", err))
	}
	return nil
}

func (r *restore) replace(ctx context.Context, then *project.Into) (*backup.Restored, error) {
	aside := func() (target.Target, error) {
		return r.openTarget(ctx, project.DefaultBackupTo, &r.rec.Project().Site, true)
	}
	fresh := r.fresh && !r.holds
	var t target.Target
	if !fresh {
		var err error
		if t, err = r.openTarget(ctx, r.o.to, &r.rec.Project().Site, true); err != nil {
			r.note(fmt.Sprintf("the target for what is here now cannot be used: %v; it is kept in %s", err, project.DefaultBackupTo))
			if t, err = aside(); err != nil {
				return nil, err
			}
		}
		defer t.Close()
	}
	o := r.backupOf(r.rec, t)
	o.Tell = r.note
	return backup.Restore(ctx, o, backup.RestoreOptions{Source: r.src.source, Fresh: fresh, Aside: aside, Then: then})
}

func (r *restore) tellRestored(out *backup.Restored) {
	r.meter.stop()
	c := out.Manifest.Counts
	r.done.Before = tree.Text(out.Before)
	r.say("decree: restored %s: %s, %s of contents, each proven by its hash", r.src.name, count(c.Records, "record"), size(c.Bytes))
	if out.Before != "" {
		r.say("decree: what was here before is kept in %s", quoteWord(out.Before))
	}
	for _, name := range out.Skipped {
		r.note("message " + name + " is not queued again: it is done or dead here")
	}
	for _, name := range out.UnderWay {
		r.note("message " + name + " was being done when this backup was made, and the tree has what it had done by then: it waits, and would be done again on top of that; look at the tree first, or give it up with 'decree inbox cancel'")
	}
	if n := len(out.Gone); n > 0 {
		names := make([]string, n)
		for i, name := range out.Gone {
			names[i] = shownPath(name)
		}
		r.note(fmt.Sprintf("%s gone from .decree/inbox, as %s does not have them: %s; in %s", messagesAre(n), r.src.name, list(names), quoteWord(out.Before)))
	}
	if h := out.Held; h != nil {
		why := "it is from"
		if !out.Foreign {
			why = "nobody had let go, when it was made, what came from"
		}
		r.note(fmt.Sprintf("%s %s:%s; its messages, cron jobs and schedules wait until 'decree daemon --resume'", why, h.Host, h.Root))
	}
}

func messagesAre(n int) string {
	if n == 1 {
		return "1 message is"
	}
	return fmt.Sprintf("%d messages are", n)
}

// tryRestore reads and proves a generation, and changes nothing.
func (s *session) tryRestore(ctx context.Context, src *backupSource) error {
	return s.inScratch(ctx, src, func(staged *backup.Staged) error {
		s.meter.stop()
		c := staged.Manifest.Counts
		if s.global.json {
			return s.printJSON(staged.Manifest.Counts)
		}
		files, err := staged.TreeFiles()
		if err != nil {
			return err
		}
		s.tell("%s can be restored: %s, a tree of %s, %s of contents, each proven by its hash; nothing was changed", src.name, count(c.Records, "record"), count(files, "file"), size(c.Bytes))
		return nil
	})
}

// inScratch stages a generation in a temporary directory.
func (s *session) inScratch(ctx context.Context, src *backupSource, do func(*backup.Staged) error) error {
	path, dir, remove, err := s.backupScratch()
	if err != nil {
		return err
	}
	defer remove()
	staged, err := backup.Stage(ctx, src.source, dir, project.Site{Disk: disk.OS, Root: path, Dir: dir, StorePath: path, ID: src.source.Manifest.Project},
		func(done, total int64) { s.meter.update(recorder.Progress{Phase: "reading", Done: done, Total: total}) })
	if err != nil {
		return project.Unmoved(err)
	}
	defer staged.Close()
	return do(staged)
}

// exported is what export --json prints.
type exported struct {
	Generation string `json:"generation"`
	File       string `json:"file"`
	Bytes      int64  `json:"bytes"`
}

func (s *session) exportBackup(ctx context.Context, o backupOptions, words []string) error {
	if len(words) < 2 {
		return usagef("export needs a GENERATION and a FILE.zip").Hintf("for example 'decree backup export current tool.zip'")
	}
	site, err := s.siteIfAny()
	if err != nil {
		return err
	}
	src, err := s.source(ctx, o, site, words[0])
	if err != nil {
		return err
	}
	defer src.close()
	path := words[1]
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.env.Cwd, path)
	}
	return s.inScratch(ctx, src, func(staged *backup.Staged) error {
		dir, err := disk.OS.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		var n int64
		// Its directory is the user's: no name there may be taken that somebody could have given.
		how := disk.Replacement{Perm: project.PrivateFile, Flush: true, Temp: ".decree-export-" + rand.Text(), Place: dir.RenameNew}
		err = disk.Replace(dir, filepath.Base(path), how, func(f disk.File) error {
			if err := staged.WriteZip(ctx, f); err != nil {
				return err
			}
			n, err = f.Seek(0, io.SeekCurrent)
			return err
		})
		if errors.Is(err, fs.ErrExist) {
			return refusedf("%s is there already; nothing was changed", quoteWord(words[1])).Hintf("name another file, or move that one away")
		}
		if err != nil {
			return err
		}
		s.meter.stop()
		if s.global.json {
			return s.printJSON(exported{src.name, path, n})
		}
		s.tell("exported %s to %s, %s", src.name, quoteWord(words[1]), size(n))
		return nil
	})
}
