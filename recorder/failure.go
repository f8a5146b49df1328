package recorder

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"decree/disk"
	"decree/patch"
	"decree/runner"
	"decree/tree"
)

// attemptResult is what is remembered of an attempt for failure-context.md.
type attemptResult struct {
	number  int
	result  runner.Result
	changes []tree.Change
	stat    patch.Stat
	tail    []string // the last lines of its log
}

// logTail is how many lines of an attempt's log failure-context.md quotes.
const logTail = 50

// failureContext is failure-context.md: what each attempt so far did and how it
// ended, for the last attempt (and whoever reads over its shoulder).
func failureContext(command []string, attempts int, list []attemptResult) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Failed attempts\n\nCommand: `%s`\n\nThis is the last of %d attempts. The tree is back at its state before the first one.\n",
		strings.ReplaceAll(strings.Join(command, " "), "`", "'"), attempts)
	for _, t := range list {
		fmt.Fprintf(&b, "\n## Attempt %d: %s after %s\n\n", t.number, endingWords(t.result), t.result.Duration.Round(time.Millisecond))
		if len(t.changes) == 0 {
			b.WriteString("It changed nothing.\n")
		} else {
			fmt.Fprintf(&b, "Against the state before the first attempt: %d created, %d modified, %d deleted, +%d -%d lines.\n\n",
				t.stat.Created, t.stat.Modified, t.stat.Deleted, t.stat.AddedLines, t.stat.RemovedLines)
			writeChanges(&b, t.changes)
		}
		if len(t.tail) == 0 {
			b.WriteString("\nIt printed nothing.\n")
			continue
		}
		fmt.Fprintf(&b, "\nThe end of its output:\n\n")
		for _, line := range t.tail {
			b.WriteString("    " + line + "\n")
		}
	}
	return b.Bytes()
}

// maxListed bounds the paths that failure-context.md names for one attempt.
const maxListed = 100

// failureContext for a last attempt that interrupted runs have left alone.
func interruptedContext(command []string, attempts int, earlier string) []byte {
	return append(failureContext(command, attempts, nil), "\n"+strings.TrimSpace(earlier)+"\n"...)
}

func writeChanges(b *bytes.Buffer, changes []tree.Change) {
	for i, c := range changes {
		if i == maxListed {
			fmt.Fprintf(b, "- and %d more\n", len(changes)-i)
			return
		}
		fmt.Fprintf(b, "- %s %s\n", change(c), tree.Quote(c.Path))
	}
}

// change names what happened to a path.
func change(c tree.Change) string {
	switch {
	case c.Old == nil:
		return "created"
	case c.New == nil:
		return "deleted"
	case c.Old.Type != c.New.Type:
		return "replaced"
	case c.Old.SHA256 == c.New.SHA256 && c.Old.Size == c.New.Size:
		return "mode changed"
	}
	return "modified"
}

// endingWords says in words how an attempt ended.
func endingWords(r runner.Result) string {
	switch {
	case r.NotStarted != nil:
		return fmt.Sprintf("not started (%v)", r.NotStarted)
	case r.TimedOut:
		return "timed out"
	case r.Interrupted != nil:
		return "stopped by " + signalName(r.Interrupted)
	case r.Signal != "":
		return "ended by " + r.Signal
	}
	return fmt.Sprintf("exit status %d", r.ExitCode)
}

// tailOf returns the last lines of a log. It reads at most 64 KiB from the end,
// so a log of any size costs the same; control characters are dropped, since
// the lines are quoted into a document.
func tailOf(f disk.File) ([]string, error) {
	const most = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size-most)
	buf := make([]byte, info.Size-from)
	if n, err := f.ReadAt(buf, from); err != nil && err != io.EOF {
		return nil, err
	} else {
		buf = buf[:n]
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(buf), "\uFFFD"), "\n")
	if text == "" {
		return nil, nil
	}
	all := strings.Split(text, "\n")
	if from > 0 && len(all) > 1 {
		all = all[1:] // the first is cut
	}
	all = all[max(0, len(all)-logTail):]
	for i, line := range all {
		all[i] = printable(line)
	}
	return all, nil
}

func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r >= 0x20 && r != 0x7f {
			return r
		}
		return -1
	}, line)
}
