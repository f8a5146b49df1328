package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"decree/history"
	"decree/tree"
)

// Count is "1 file", "3 files", "1,204 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	plural := noun + "s"
	if strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") {
		plural = strings.TrimSuffix(noun, "y") + "ies"
	} else if strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch") {
		plural = noun + "es"
	}
	return humanize.Comma(int64(n)) + " " + plural
}

// PathsIn counts what changed: "12 files", "12 files and 3 directories", "1 directory". A link counts as a file, a
// directory never does, as in a record's changes.
func PathsIn(files, directories int) string {
	switch {
	case directories == 0:
		return Count(files, "file")
	case files == 0:
		return Count(directories, "directory")
	}
	return Count(files, "file") + " and " + Count(directories, "directory")
}

// Size is a byte count for people: "1.5 MiB".
func Size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// Span is a duration for people: "1.2 s", "3m 20s".
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}

// List is "a", "a and b", "a, b and c".
func List(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// IsCheckpoint says whether a record is one without a command or a move.
func IsCheckpoint(r *history.Record) bool {
	return r.Reason == history.Manual || r.Reason == history.Auto || r.Reason == history.Publish && r.DiffSHA256.IsZero()
}

// ChangeWords are counts of changes as a summary has them.
func ChangeWords(created, modified, deleted int, added, removed int64) string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{created, "created"}, {modified, "modified"}, {deleted, "deleted"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "no file changed"
	}
	if added > 0 || removed > 0 {
		text += fmt.Sprintf("; +%d -%d lines", added, removed)
	}
	return text
}

// ChangesInWords is a record's changes as a summary has them.
func ChangesInWords(c history.Changes) string {
	return ChangeWords(c.Created, c.Modified, c.Deleted, int64(c.AddedLines), int64(c.RemovedLines))
}

// StatusWords says in few words what became of a record and of its changes.
func StatusWords(r *history.Record) string {
	nothing := r.DiffSHA256 == tree.EmptySum
	switch {
	case r.Draft != nil:
		return string(r.Status) + ", " + DraftState(r.Draft)
	case r.UndoneBy != "" && r.Status != history.StatusUndone:
		return "partly undone"
	case (r.Status == history.StatusFailed || r.Status == history.StatusReverted) && nothing:
		return "failed"
	case r.Status == history.StatusFailed:
		return "failed, kept"
	case r.Status == history.StatusReverted:
		return "failed, put back"
	}
	return string(r.Status)
}

// DraftState says in few words what has become of a draft.
func DraftState(d *history.Draft) string {
	switch d.State {
	case history.DraftWaiting:
		return "a draft"
	case history.DraftPartly:
		return "published in part"
	}
	return string(d.State)
}

// Judged is what the judge of a race said of a candidate: "good" or "bad"; "" where nobody judged it.
func Judged(r *history.Record) string {
	switch {
	case r.Judge == nil:
		return ""
	case r.Judge.Good():
		return "good"
	}
	return "bad"
}

// Took is how long a record took, "" if it is not known.
func Took(r *history.Record) string {
	if r.Duration <= 0 {
		return ""
	}
	return Span(r.Duration.Round(time.Millisecond))
}
