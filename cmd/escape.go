package cmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"decree/patch"
)

// unsafe is the one place that decides which characters a terminal must not get from a
// name, a command, a description or a file's line: controls (C0, DEL, C1), which it
// obeys, and those that turn the direction of writing or end a line unseen, with which
// a text looks like another one.
func unsafe(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// oneLine makes text safe to print on one line: unsafe characters, and bytes that are no
// UTF-8, become visible in octal, as git writes them.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, unsafe) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(text[i:])
		if unsafe(r) || r == utf8.RuneError && size == 1 {
			octal(&b, text[i:i+size])
			continue
		}
		b.WriteString(text[i : i+size])
	}
	return b.String()
}

func octal(b *strings.Builder, raw string) {
	for i := range len(raw) {
		fmt.Fprintf(b, `\%03o`, raw[i])
	}
}

// manifestPath is a path as the manifest has it, for JSON.
func manifestPath(path string) string { return patch.Quote(path) }

// shownPath is a path as people see it: as the manifest has it, and with what is unsafe
// on a terminal escaped in the same way.
func shownPath(path string) string { return shownQuoted(manifestPath(path)) }

// shownQuoted is shownPath for a path that the manifest's quotes are around already.
func shownQuoted(path string) string {
	if strings.ContainsFunc(path, unsafe) {
		return quoted(path)
	}
	return path
}

// quoted is text between double quotes, with octal escapes.
func quoted(text string) string {
	return `"` + oneLine(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)) + `"`
}

// jsonWriter writes JSON with the unsafe characters of its strings as \u escapes: for
// a program the text is the same. Each Write holds whole characters.
type jsonWriter struct{ to io.Writer }

func (w jsonWriter) Write(p []byte) (int, error) {
	if _, err := w.to.Write(escapedJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func escapedJSON(p []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && unsafe(r) } // JSON has escaped the rest
	if !bytes.ContainsFunc(p, hidden) {
		return p
	}
	out := make([]byte, 0, len(p)+16)
	for i, size := 0, 0; i < len(p); i += size {
		var r rune
		r, size = utf8.DecodeRune(p[i:])
		if hidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, p[i:i+size]...)
		}
	}
	return out
}
