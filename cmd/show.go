package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// showOptions are show's flags.
type showOptions struct{ after, stat, manifest, log, judge bool }

func (s *session) showVerb() verb {
	var o showOptions
	return verb{
		name: "show", category: lookCategory, args: "REF | REF:PATH", words: refWords, most: 1,
		missing: usagef("a REF is missing").Hintf("for example 'decree show last'; 'decree log' lists the records"),
		usage:   "show one record in full, or a file as it was",
		about: `Shows a record: when, why, how it ended, who made it, what it changed. With --manifest it prints the manifest, the list of all files with their hashes; with --log what its command printed, which decree keeps as routine.log: as a plain file in .decree/runs for the 20 newest records and up to 64 KiB for others, else compressed in the store.

REF:PATH prints the file PATH, seen from the working directory, as it was when the record began; with --after as it was when the record ended. Of a directory, REF:DIR/, it lists what it held; "REF:." is the one you are in. Of a draft PATH is printed as its run left it; other paths than those that it changed are as the tree has them.`,
		examples: []example{
			{"decree show last", "the newest record"},
			{"decree show last --stat", "with a table of what it changed"},
			{"decree show last --log | less", "what its command printed"},
			{"decree show last:src/main.go > old.go", "a file as it was before the newest record"},
			{"decree show good:src/", "what a directory held"},
			{"decree show '@yesterday:notes.txt'", "a file as it was at midnight yesterday"},
		},
		exits: []exit{{"3", "no such record, or no such file in it"}, {"5", "the content is missing from the store or damaged"}},
		flags: s.reading(
			boolFlag(&o.after, "with REF:PATH and --manifest: the state when the record ended", "after"),
			boolFlag(&o.stat, "add a table of what it changed", "stat"),
			boolFlag(&o.manifest, "print manifest.json", "manifest"),
			boolFlag(&o.log, "print what its command printed, byte for byte", "log"),
			boolFlag(&o.judge, "print what the judge of a race printed about it", "judge"),
		),
		action: func(ctx context.Context) error { return s.show(ctx, o) },
	}
}

func (s *session) show(ctx context.Context, o showOptions) error {
	words := s.words()
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	point, path, err := s.resolveWithPath(rec, words[0])
	if err != nil {
		return err
	}
	switch r := point.Record; {
	case path == "" && o.manifest && r.Isolated != "": // what it found is asked for as of any record
		point.After = o.after
	case o.after:
		point.After = true
	}
	switch {
	case path != "":
		return s.showFile(ctx, rec, point, path)
	case o.manifest:
		return s.showManifest(ctx, rec, point)
	case o.log:
		return s.showLog(rec, point.Record, history.RoutineLog, "log: it ran no command")
	case o.judge:
		return s.showLog(rec, point.Record, history.JudgeLog, "judge: it was no candidate, or nobody judged it")
	case s.global.json:
		return s.printRecord(point.Record)
	}
	return s.page(func(w io.Writer) error {
		if err := s.writeRecord(w, point.Record); err != nil || !o.stat {
			return err
		}
		stat, err := s.recordDiff(rec, point.Record, nil).stat()
		if err != nil {
			return err
		}
		fmt.Fprintln(w)
		return s.writeStat(w, stat)
	})
}

// showLog prints what a record's command printed, or its judge; none says what is missing.
func (s *session) showLog(rec *recorder.Reader, r *history.Record, name, none string) error {
	log, err := rec.History().OpenFile(r.ID, name)
	if errors.Is(err, fs.ErrNotExist) {
		return notFoundf("%s has no %s", r.ID, none)
	}
	if err != nil {
		return err
	}
	defer log.Close()
	return s.print(func(w io.Writer) error {
		_, err := io.Copy(w, log)
		return err
	})
}

// showManifest prints manifest.json, the list of the tree that a record saw.
func (s *session) showManifest(ctx context.Context, rec *recorder.Reader, point recorder.Point) error {
	return s.print(func(w io.Writer) error {
		switch {
		case !point.After:
			return rec.Manifest(ctx, w, point)
		case point.Record.After.IsZero() && point.Record.Isolated == "":
			return notFoundf("%s has no state after it", point.Record.ID).Hintf("without --after, the state before it is meant")
		}
		return rec.History().WriteManifestAfter(point.Record, w)
	})
}

// resolveWithPath takes REF or REF:PATH apart. A TIME may hold colons itself, as in
// @14:30:05, so there the last colon counts whose left side is one, else the first.
func (s *session) resolveWithPath(rec *recorder.Reader, word string) (recorder.Point, string, error) {
	point, err := s.resolve(rec, word)
	if err == nil {
		return point, "", nil
	}
	for n, i := range colons(word) {
		p, perr := s.resolve(rec, word[:i])
		if perr != nil {
			if word[0] != '@' || n == 0 && project.KindOf(err) != project.NotFound { // what was a time says more than half of it
				err = perr
			}
			continue
		}
		if word[i+1:] == "" {
			return p, "", usagef("%s: a PATH is missing after the colon", quoteWord(word)).Hintf("'decree show REF:PATH'")
		}
		return p, word[i+1:], nil
	}
	return point, "", err
}

// colons are the places of a word's colons in the order in which they are tried.
func colons(word string) (places []int) {
	for i := range len(word) {
		if word[i] == ':' {
			places = append(places, i)
		}
	}
	if strings.HasPrefix(word, "@") {
		slices.Reverse(places)
	}
	return places
}

// showFile prints a file as it was. Its bytes are checked before the last of
// them are printed, and what is damaged is an error.
func (s *session) showFile(ctx context.Context, rec *recorder.Reader, point recorder.Point, path string) error {
	paths, err := s.inTree(rec.Project().Root, []string{path})
	if err != nil {
		return err
	}
	content, entry, err := rec.Content(ctx, point, paths[0])
	if entry.Type == tree.Dir || paths[0] == "" {
		return s.showDir(rec, point, paths[0])
	}
	if err != nil {
		return err
	}
	defer content.Close()
	if s.global.json {
		return s.printJSON(view.FileAt(point, paths[0], entry))
	}
	w := bufio.NewWriterSize(s.env.Stdout, 256<<10)
	_, err = io.Copy(w, content)
	return errors.Join(err, w.Flush())
}

// showDir lists a directory as it was; of a draft, which has no state of the directories
// above what it changed, all that it left below.
func (s *session) showDir(rec *recorder.Reader, point recorder.Point, dir tree.Path) error {
	list := []tree.Item{}
	deep := point.Record.Isolated != ""
	err := rec.Entries(point, dir, func(p tree.Path, e tree.Entry) error {
		if name := seenFrom(dir, p); name != "" && (deep || !strings.Contains(name, "/")) {
			list = append(list, tree.Item{Path: p, Entry: e})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b tree.Item) int { return a.Path.Compare(b.Path) })
	return s.printBelow(point, dir, list)
}

// seenFrom is a path as seen from dir; "" is dir itself.
func seenFrom(dir, path tree.Path) string {
	return strings.TrimPrefix(strings.TrimPrefix(string(path), string(dir)), "/")
}

// printBelow lists a directory as it was: mode, size and name of what it held.
func (s *session) printBelow(point recorder.Point, dir tree.Path, list []tree.Item) error {
	if s.global.json {
		out := make([]view.File, len(list))
		for i, it := range list {
			out[i] = view.FileAt(point, it.Path, it.Entry)
		}
		return s.printJSON(out)
	}
	return s.print(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout, 2)
		for _, it := range list {
			name, bytes := shownPath(seenFrom(dir, it.Path)), size(it.Entry.Size)
			switch it.Entry.Type {
			case tree.Dir:
				name, bytes = name+"/", "-"
			case tree.Symlink:
				name += " -> " + shownPath(it.Entry.Target)
			}
			t.add(tree.FormatMode(it.Entry.Mode), bytes, name)
		}
		return t.write(w)
	})
}

// writeRecord prints a record for people.
func (s *session) writeRecord(w io.Writer, r *history.Record) error {
	labels, err := s.labelsOf(r.ID)
	if err != nil {
		return err
	}
	var t table
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			t.add(name, text)
		}
	}
	row("record", "%s", r.ID)
	row("labels", "%s", list(labels))
	foreign, err := s.rec.History().Foreign(r.ID)
	if err != nil {
		return err
	}
	if foreign {
		row("foreign", "it is in .decree/runs, but this store has never seen it: what it says is not verified")
	}
	row("reason", "%s", r.Reason)
	row("status", "%s", statusInWords(r))
	row("about", "%s", strings.Join(strings.Split(oneLine(r.Description), `\012`), " "))
	if r.Reason == history.Run {
		row("command", "%s", commandLine(r.Command))
		row("in", "%s", shownPath(r.Cwd))
		row("ended", "%s", endedText(r))
	}
	if r.Turn != nil {
		s.turnRows(row, r)
	}
	if r.Judge != nil {
		row("judged", "%s, with exit status %d, by: %s", view.Judged(r), r.Judge.ExitCode, oneLine(r.Judge.Command))
	}
	row("when", "%s (%s)", s.clock(r.Started), s.ago(r.Started))
	row("took", "%s", took(r))
	row("limits", "%s", limitsInWords(r))
	switch {
	case r.Isolated != "":
		row("isolated", "%s", isolatedWords(r))
	case r.Reason == history.Revert || r.Reason == history.Apply: // they look at the paths of the diff alone
		row("touched", "%s, %s", count(r.Files, "file"), size(r.Bytes))
	default:
		row("tree", "%s, %s", count(r.Files, "file"), size(r.Bytes))
	}
	if text := changesOf(r); text != "" {
		row("changed", "%s", changesInWords(r.Changes))
	}
	if found, ok := r.Outside(); ok {
		row("outside", "%s between the previous record and this one, not by any run (see outside.diff)", changesInWords(found.Changes))
	}
	row("by", "%s", actorText(r.Actor))
	row("of", "%s", r.Parent)
	row("inside", "%s", r.Inside)
	for _, path := range r.Unrecorded {
		row("unrecorded", "%s", shownPath(path))
	}
	row("files", ".decree/runs/%s/", r.ID)
	return t.write(w)
}

// isolatedWords says how a run was isolated, and what has become of its draft.
func isolatedWords(r *history.Record) string {
	words := "in an " + r.Isolated
	if r.Isolated == "clone" {
		words = "in a clone"
	}
	d := r.Draft
	if d == nil {
		return words + "; it changed nothing"
	}
	words += ", draft"
	if d.Name != "" {
		words += " " + d.Name
	}
	switch {
	case d.State == history.DraftWaiting:
		return words + ", not published"
	case len(d.By) > 0:
		return fmt.Sprintf("%s, %s by %s", words, draftState(d), list(d.By))
	}
	return words + ", " + draftState(d)
}

// limitsInWords are those that a run's command was kept to.
func limitsInWords(r *history.Record) string {
	var words []string
	if text := map[string]string{
		"landlock": "fenced in", "partly": "fenced in, with a gap", "none": "a fence was asked for, and the kernel had none",
	}[r.Fence]; text != "" {
		words = append(words, text)
	}
	if r.NoNet {
		words = append(words, "without a network")
	}
	return strings.Join(words, ", ")
}

// endedText is a run's exit status and attempts.
func endedText(r *history.Record) string {
	if r.ExitCode == nil {
		return ""
	}
	text := fmt.Sprintf("exit status %d", *r.ExitCode)
	if r.Attempts > 1 {
		text += fmt.Sprintf(" after %d attempts", r.Attempts)
	}
	return text
}

func actorText(a history.Actor) string {
	text := a.User + "@" + a.Host
	for _, part := range []struct{ name, value string }{{"agent", a.Agent}, {"model", a.Model}, {"session", a.Session}} {
		if part.value != "" {
			text += ", " + part.name + " " + part.value
		}
	}
	if a.Turn > 0 {
		text += fmt.Sprintf(", turn %d", a.Turn)
	}
	return oneLine(text)
}
