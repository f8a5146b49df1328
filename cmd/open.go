package cmd

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// forReading opens the project to look at it: nothing is locked or written.
func (s *session) forReading() (*recorder.Reader, error) {
	rec, err := s.openReader(false)
	if err == nil && !s.global.quiet {
		s.sayWaiting(rec)
	}
	return rec, err
}

// sayWaiting tells of what a dead process left. What a living one is at is no
// news.
func (s *session) sayWaiting(rec *recorder.Reader) {
	if rec.Project().Holder().Working(s.env.Host) {
		return
	}
	waiting, err := rec.Waiting()
	if err != nil {
		s.note(err.Error())
	}
	for _, w := range waiting {
		s.note(w + ", but no process of this machine works on it: 'decree recover' finishes it")
	}
}

// forLooking opens the tree, with or without a project.
func (s *session) forLooking() (*recorder.Reader, error) {
	rec, err := s.openReader(true)
	if err == nil && !s.global.quiet && rec.Project().Store != nil {
		s.sayWaiting(rec)
	}
	return rec, err
}

// openReader opens the project to look at it; bare: also without a project.
func (s *session) openReader(bare bool) (*recorder.Reader, error) {
	o, err := s.readerOptions()
	if err == nil {
		_, err = s.actor() // what the environment says of it is wrong for every command
	}
	if err != nil {
		return nil, err
	}
	o.Bare = bare
	err = s.openAsking(&o, func() (err error) {
		s.rec, err = recorder.OpenReader(o)
		return err
	})
	if err == nil {
		s.alarm(s.rec.Project())
	} else if root, rerr := s.rootOf(); rerr == nil && errors.Is(err, project.ErrNoProject) && s.line.verb != "backup" {
		s.sayArriving(root)
	}
	return s.rec, err
}

// forChanging opens a project that must be there: the command needs its records.
func (s *session) forChanging(ctx context.Context) (*recorder.Recorder, error) {
	rec, err := s.open(ctx, true)
	if err != nil {
		return nil, notBegun(err)
	}
	return rec, nil
}

// forWriting opens the project for a command that changes the tree or the
// history, and makes `.decree/` and the store where they are missing.
func (s *session) forWriting(ctx context.Context) (*recorder.Recorder, error) {
	rec, err := s.open(ctx, false)
	if err != nil {
		return nil, notBegun(err)
	}
	return rec, nil
}

// notBegun marks an error that came before anything was changed, unless it is one in how
// decree was called.
func notBegun(err error) error {
	if project.KindOf(err) == project.Usage {
		return err
	}
	return &recorder.BeginError{Err: err}
}

// outliveReaders has this process go on where nobody reads its output any more, as after 'decree process | less': what it does in the
// tree comes to its end. With a handler, writing to a pipe that is closed is an error, and no death; unlike an ignored signal, commands do not inherit it.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// open opens the project to change it, and makes it unless it must exist.
func (s *session) open(ctx context.Context, existing bool) (*recorder.Recorder, error) {
	outliveReaders()
	reading, err := s.readerOptions()
	if err != nil {
		return nil, err
	}
	actor, err := s.actor()
	if err != nil {
		return nil, err
	}
	o := recorder.Options{
		ReaderOptions: reading, Create: true, Existing: existing, Actor: actor, Wait: s.global.wait,
		CommandLine: append([]string{"decree"}, s.env.Args...), Beside: s.beside,
	}
	var rec *recorder.Recorder
	err = s.openAsking(&o.ReaderOptions, func() (err error) {
		rec, err = recorder.Open(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.rec, s.writer = rec.Reader, o
	s.alarm(&rec.Project().Site)
	return rec, nil
}

// readerOptions are those that every command opens a project with.
func (s *session) readerOptions() (recorder.ReaderOptions, error) {
	if s.global.wait < 0 {
		return recorder.ReaderOptions{}, usagef("--wait %s: not a positive duration", s.global.wait).Hintf("give one like 30s or 5m")
	}
	s.meter, s.feed = s.newMeter(), s.newFeed()
	return recorder.ReaderOptions{
		Disk: disk.OS, Where: s.where(), Clock: s.env.Now, Location: s.env.Location, Events: s.happened, Note: s.note,
	}, nil
}

// openAsking opens, and asks where the config places the store at a place of its own.
func (s *session) openAsking(o *recorder.ReaderOptions, open func() error) error {
	err := open()
	if s.allowed(err, "put it there? [y/N]") {
		o.Where.ConfigStore = true
		err = open()
	}
	return err
}

// where is what flags and environment say about the root and the store.
func (s *session) where() project.Where {
	return project.Where{
		RootFlag: s.global.root, Cwd: s.env.Cwd, Home: s.env.get("HOME"),
		StoreEnv: s.env.get("DECREE_STORE"), DataHome: s.env.get("XDG_DATA_HOME"),
		ConfigHome:  s.env.get("XDG_CONFIG_HOME"),
		ConfigStore: s.global.yes, Behind: s.env.behind(), Arriving: s.arriving, Anew: s.anew,
	}
}

// actor is who does this: the user, and the agent in whose name a hook or a
// wrapper calls.
func (s *session) actor() (history.Actor, error) {
	a := history.Actor{User: s.env.User, Host: s.env.Host, Agent: s.env.get("DECREE_AGENT"), Session: s.env.get("DECREE_SESSION")}
	if text := s.env.get("DECREE_TURN"); text != "" {
		turn, err := strconv.Atoi(text)
		if err != nil || turn < 0 {
			return a, usagef("DECREE_TURN=%s: not a number", oneLine(text)).Hintf("unset it, or set it to the turn's number")
		}
		a.Turn = turn
	}
	return a, nil
}

// inTree turns PATHs, which are relative to the working directory, into paths
// below the root, with slashes; "" is the root itself.
func (s *session) inTree(root string, paths []string) ([]tree.Path, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	cwd, err := filepath.EvalSymlinks(s.env.Cwd)
	if err != nil {
		return nil, err
	}
	out := make([]tree.Path, len(paths))
	for i, path := range paths {
		if out[i], err = below(root, cwd, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// below is path, seen from cwd, as a path below root. Its last component may be
// missing or a link; links in the directories above it lead where they lead, as
// long as that is inside the root.
func below(root, cwd, path string) (tree.Path, error) {
	if path == "" {
		return "", usagef("a PATH is empty").Hintf("'.' means the directory you are in")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	rel, ok := relative(root, filepath.Clean(path))
	if ok {
		return rel, nil
	}
	// The root may have been reached through a link: /tmp on a Mac.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		if rel, ok = relative(root, filepath.Join(dir, filepath.Base(path))); ok {
			return rel, nil
		}
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil && resolved == root {
		return "", nil
	}
	return "", usagef("%s is outside the root %s", quoteWord(path), quoteWord(root)).Hintf("PATHs are relative to the working directory")
}

func relative(root, path string) (tree.Path, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if rel == "." {
		return "", true
	}
	return tree.Path(filepath.ToSlash(rel)), true
}
