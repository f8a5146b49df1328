package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// say tells people something on stderr; -q leaves it out.
func (s *session) say(format string, args ...any) {
	if s.global.events {
		s.newFeed().note(fmt.Sprintf(format, args...))
		return
	}
	if s.global.quiet {
		return
	}
	s.meter.pause()
	fmt.Fprintf(s.env.Stderr, format+"\n", args...)
}

// note is a remark of the layers below, one line.
func (s *session) note(text string) { s.say("decree: note: %s", oneLine(text)) }

// tell gives people the result of a command on stdout; -q leaves it out, and
// --json has an object instead.
func (s *session) tell(format string, args ...any) {
	if s.global.quiet || s.global.json {
		return
	}
	s.meter.pause()
	fmt.Fprintf(s.env.Stdout, format+"\n", args...)
}

// printJSON prints v on stdout, indented, without HTML escapes: a path stays readable.
func (s *session) printJSON(v any) error {
	s.meter.pause()
	enc := json.NewEncoder(jsonWriter{s.env.Stdout})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printEach prints what each yields as printJSON prints a list, without holding it.
func (s *session) printEach(each func(yield func(any) error) error) error {
	return s.print(func(w io.Writer) error {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.SetIndent("  ", "  ")
		lead := "[\n  "
		err := each(func(v any) error {
			buf.Reset()
			buf.WriteString(lead)
			lead = ",\n  "
			if err := enc.Encode(v); err != nil {
				return err
			}
			buf.Truncate(buf.Len() - len("\n"))
			_, err := w.Write(buf.Bytes())
			return err
		})
		switch {
		case err != nil:
		case lead[0] == '[':
			_, err = io.WriteString(w, "[]\n")
		default:
			_, err = io.WriteString(w, "\n]\n")
		}
		return err
	})
}

// print runs fill on a buffered stdout.
func (s *session) print(fill func(w io.Writer) error) error { return s.printOn(s.env.Stdout, fill) }

func (s *session) printOn(out *os.File, fill func(w io.Writer) error) error {
	s.meter.pause()
	w := bufio.NewWriterSize(out, 64<<10)
	err := fill(w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	return err
}

// quoteWord quotes a word as a shell would want it back, if it needs quoting.
func quoteWord(word string) string {
	if strings.ContainsFunc(word, unsafe) || !utf8.ValidString(word) {
		return shownPath(word)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r >= 0x80 || strings.ContainsRune("@%+=:,./_~^-", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// commandLine is argv as one would type it.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = quoteWord(w)
	}
	return strings.Join(words, " ")
}

// printLine prints v on stdout as one line of JSON.
func (s *session) printLine(v any) error {
	s.meter.pause()
	enc := json.NewEncoder(jsonWriter{s.env.Stdout})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
