package cmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"decree/history"
	"decree/recorder"
)

// exportOptions are export's flags.
type exportOptions struct {
	tar               string
	fastImport, after bool
}

func (s *session) exportVerb() verb {
	var o exportOptions
	return verb{
		name: "export", category: lookCategory, args: "REF | A..B", words: refWords, interruptible: true, most: anyWords,
		usage: "write a state as an archive, or the history as a stream",
		about: `With --tar the tree as the record found it (--after: as it left it) becomes a tar archive: sorted, every entry with owner 0 and the time of the state, so that one state always gives the same bytes. Files whose contents were forgotten are left out and named.

With --fast-import the records from A to B, or all, become a stream that "git fast-import" reads: a commit for the state that a record found and one for what it left, each with its time, the actor as author, the description or command as message, and a ref below refs/decree/ that no clone or push takes along. Directories without files, and modes except for the x bit, are not in it. decree itself runs no other program.`,
		examples: []example{
			{"decree export last --tar before.tar", "the tree as the newest record found it"},
			{"decree export good --tar - | tar -x -C /tmp/good", "look at it elsewhere"},
			{"decree export --fast-import | git fast-import", "the whole history, in a repository of your choice"},
		},
		exits: []exit{{"0", "written"}, {"3", "no such record"}, {"5", "a content is missing from the store or damaged"}},
		flags: s.reading(
			stringFlag(&o.tar, "write a tar archive to `FILE`, - is stdout", "tar"),
			boolFlag(&o.fastImport, "write records as a stream for git fast-import to stdout", "fast-import"),
			boolFlag(&o.after, "the state when the record ended, not when it began", "after"),
		),
		action: func(ctx context.Context) error { return s.export(ctx, o) },
	}
}

func (s *session) export(ctx context.Context, o exportOptions) error {
	words := s.words()
	switch {
	case (o.tar != "") == o.fastImport:
		return usagef("one of --tar FILE and --fast-import is needed").Hintf("for example 'decree export last --tar state.tar'")
	case o.fastImport && o.after:
		return usagef("--after needs --tar").Hintf("a stream has both states of each record")
	case o.tar != "" && len(words) != 1:
		return usagef("--tar takes one REF").Hintf("for example 'decree export last --tar state.tar'")
	}
	if err := s.atMost(1); err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	if o.fastImport {
		return s.exportStream(ctx, rec, words)
	}
	point, err := s.resolve(rec, words[0])
	if err != nil {
		return err
	}
	point.After = point.After || o.after
	if r := point.Record; r.Isolated != "" {
		s.note(fmt.Sprintf("%s is no state of the tree: the archive has what its run left at the paths that it changed", r.ID))
	} else if point.After && r.After.IsZero() {
		return notFoundf("%s has no state after it", point.Record.ID).Hintf("without --after, the state before it is meant")
	}
	return s.exportTo(ctx, o.tar, func(w io.Writer) (*recorder.Exported, error) { return rec.ExportTar(ctx, w, point) })
}

// exportStream writes all records, or those from A to B.
func (s *session) exportStream(ctx context.Context, rec *recorder.Reader, words []string) error {
	var from, to *history.Record
	if len(words) == 1 {
		a, b, ranged := strings.Cut(words[0], "..")
		if !ranged {
			b = a
		}
		for _, end := range []struct {
			ref string
			to  **history.Record
		}{{a, &from}, {b, &to}} {
			point, err := s.resolve(rec, end.ref)
			if err != nil {
				return err
			}
			*end.to = point.Record
		}
		if history.Compare(from, to) > 0 {
			return usagef("%s: the first record is newer than the second", quoteWord(words[0])).Hintf("A..B goes from the older to the newer")
		}
	}
	return s.exportTo(ctx, "-", func(w io.Writer) (*recorder.Exported, error) { return rec.ExportStream(ctx, w, from, to) })
}

// exportTo writes to a file or stdout. A file comes into being whole or not at all.
func (s *session) exportTo(ctx context.Context, name string, write func(io.Writer) (*recorder.Exported, error)) error {
	var done *recorder.Exported
	fill := func(w io.Writer) (err error) {
		done, err = write(w)
		return err
	}
	if name == "-" {
		if isTerminal(s.env.Stdout) {
			return refusedf("stdout is a terminal").Hintf("name a file, or pipe it into a program")
		}
		if err := s.printOn(&leaving{ctx, s.env.Stdout}, fill); err != nil {
			return err
		}
	} else if err := s.replaceFile(ctx, name, fill); err != nil {
		return err
	}
	for _, path := range done.LeftOut {
		s.note(shownPath(path) + ": left out, its content was forgotten")
	}
	for _, path := range done.Plain {
		s.note(shownPath(path) + ": exported without set-user-ID and set-group-ID, because no record that is trusted says who owned it")
	}
	for _, path := range done.Closed {
		s.note(shownPath(path) + ": exported without its group's rights, which came from an access control list")
	}
	return nil
}

// replaceFile writes a file beside its place, flushes it and moves it there. What a
// link points to is replaced, not the link; a device or pipe is written to as it is.
func (s *session) replaceFile(ctx context.Context, name string, fill func(io.Writer) error) (err error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.env.Cwd, name)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	there, err := os.Stat(name)
	if err == nil && !there.Mode().IsRegular() {
		return s.writeInto(ctx, name, fill)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%s", filepath.Base(name), rand.Text()[:8])), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if there != nil {
		if err := f.Chmod(there.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := s.printOn(f, fill); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func (s *session) writeInto(ctx context.Context, name string, fill func(io.Writer) error) error {
	f, err := unlessDone(ctx, func() (*os.File, error) { return os.OpenFile(name, os.O_WRONLY, 0) })
	if err != nil {
		return err
	}
	return errors.Join(s.printOn(&leaving{ctx, f}, fill), f.Close())
}

// leaving is a Writer that is left in the middle of a write when ctx ends: nobody may be reading at
// the other end of the pipe. Then it must not be used any more.
type leaving struct {
	ctx context.Context
	w   io.Writer
}

func (l *leaving) Write(b []byte) (int, error) {
	return unlessDone(l.ctx, func() (int, error) { return l.w.Write(b) })
}

// unlessDone is what do returns, or the error of ctx when that ends first: then do goes on by itself.
func unlessDone[T any](ctx context.Context, do func() (T, error)) (v T, err error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}
