package cmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"decree/recorder"
	"decree/view"
)

func (s *session) duVerb() verb {
	var all bool
	return verb{
		name: "du", category: keepCategory,
		usage: "show what the records take space for",
		about: `Shows how much space the records take in the store and in .decree/runs, by their reasons, by record and by path, and what "decree prune" would free. Contents are compressed, and what several records need is stored once: it counts for the first of them, the one that brought it. So a record that goes frees less than it brought, as long as later ones still need it; what it frees at least, its own diffs, logs and copies, stands beside it under OWN. Of a path all that was ever recorded of it counts.

With --all it also lists the other stores in the same place whose trees are gone, and how to delete them. A tree that was moved, or that lies on a disk that is not mounted, looks gone until its next record: look before you delete its history.`,
		examples: []example{
			{"decree du", "where did the space go?"},
			{"decree du --all", "also what deleted trees have left behind"},
			{"decree du --json | head -n 5", "the same for a program, with every record"},
			{"decree prune --dry-run --keep-run 20", "what fewer runs would take"},
		},
		flags:  s.reading(boolFlag(&all, "also list stores whose trees are gone", "all", "a")),
		action: func(ctx context.Context) error { return s.du(ctx, all) },
	}
}

func (s *session) du(ctx context.Context, all bool) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	u, err := rec.Usage()
	if err != nil {
		return err
	}
	var orphans []recorder.OrphanUsage
	if all {
		if orphans, err = rec.Orphans(); err != nil {
			return err
		}
	}
	if s.global.json {
		return s.printJSON(view.UsageOf(rec.Project(), u, orphans))
	}
	return s.page(func(w io.Writer) error {
		for _, part := range []func(io.Writer) error{
			func(w io.Writer) error { return writePlaces(w, rec, u) },
			func(w io.Writer) error { return writeReasons(w, u) },
			func(w io.Writer) error { return s.writeRecordUsage(w, u) },
			func(w io.Writer) error { return s.writePathUsage(w, u) },
			func(w io.Writer) error { return s.writePruneUsage(w, u) },
		} {
			if err := part(w); err != nil {
				return err
			}
		}
		if !all {
			return nil
		}
		return writeOrphans(w, orphans)
	})
}

// leastUnneeded is from how many bytes on what no record needs is told: less are the
// ends of divisions.
const leastUnneeded = 64 << 10

func writePlaces(w io.Writer, rec *recorder.Reader, u *recorder.Usage) error {
	var t table
	t.add("store", size(u.Store), quoteWord(rec.Project().StorePath))
	t.add("runs", size(u.Runs), ".decree/runs: diffs, logs, manifests")
	if u.Layers > 0 {
		t.add("layers", size(u.Layers), "of isolated runs: see 'decree drafts'")
	}
	t.add("total", size(u.Total()+u.Layers))
	if err := t.write(w); err != nil || u.Unneeded < leastUnneeded {
		return err
	}
	_, err := fmt.Fprintf(w, "\nabout %s of the store are needed by no record any more: 'decree gc' frees what is worth it\n", size(u.Unneeded))
	return err
}

func writeReasons(w io.Writer, u *recorder.Usage) error {
	if len(u.Records) == 0 {
		_, err := fmt.Fprintln(w, "\nno record yet: 'decree run -- COMMAND' or 'decree checkpoint' makes one")
		return err
	}
	fmt.Fprintln(w)
	var t table
	t.add("REASON", "RECORDS", "STORE", "RUNS")
	for _, r := range view.ByReason(u) {
		name := r.Reason
		if name == "" {
			name = "not of this store"
		}
		t.add(name, fmt.Sprint(r.Records), size(r.Store), size(r.Runs))
	}
	return t.write(w)
}

// usageLines is how many records and paths are shown.
const usageLines = 10

func (s *session) writeRecordUsage(w io.Writer, u *recorder.Usage) error {
	if len(u.Records) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := s.fits(&table{}, s.env.Stdout)
	t.add("RECORD", "WHEN", "STORE", "RUNS", "OWN", "WHAT")
	for i, r := range u.Records {
		if i == usageLines {
			break
		}
		when, what := time.Time{}, "not of this store"
		if r.Record != nil {
			when, what = r.Record.Started, string(r.Record.Reason)+"  "+clip(view.What(r.Record), 40)
		}
		t.add(s.shortID(r.ID), s.ago(when), size(r.Store), size(r.Runs), size(r.Own), what)
	}
	if err := t.write(w); err != nil {
		return err
	}
	if n := len(u.Records) - usageLines; n > 0 {
		_, err := fmt.Fprintf(w, "and %s more, which take less; --json lists all\n", count(n, "record"))
		return err
	}
	return nil
}

func (s *session) writePathUsage(w io.Writer, u *recorder.Usage) error {
	if len(u.Paths) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := s.fits(&table{}, s.env.Stdout, 2)
	t.add("SIZE", "CONTENTS", "PATH")
	for _, p := range u.Paths[:min(len(u.Paths), usageLines)] {
		t.add(size(p.Bytes), fmt.Sprint(p.Contents), shownPath(p.Path))
	}
	return t.write(w)
}

func (s *session) writePruneUsage(w io.Writer, u *recorder.Usage) error {
	gone := len(u.Prune.Gone())
	if gone == 0 {
		_, err := fmt.Fprintln(w, "\n"+s.fitted("'decree prune' would remove nothing: by the config every record stays; 'decree help prune' has ways to keep fewer", s.env.Stdout))
		return err
	}
	_, err := fmt.Fprintf(w, "\n'decree prune' would remove %s and free about %s\n", count(gone, "record"), size(u.Prune.Freed))
	return err
}

func writeOrphans(w io.Writer, list []recorder.OrphanUsage) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "\nno other store here has lost its tree")
		return err
	}
	fmt.Fprintf(w, "\n%s of which the tree is gone; one that was moved or is not mounted looks the same, so look before you delete:\n", count(len(list), "store"))
	var t table
	for _, o := range list {
		t.add("  "+size(o.Bytes), "was of "+quoteWord(o.Root))
		t.add("", "rm -rf -- "+quoteWord(o.Path))
	}
	return t.write(w)
}
