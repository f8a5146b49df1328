package view

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"decree/history"
	"decree/patch"
	"decree/tree"
)

// Unsafe is the one place that decides which characters a terminal must not get from a
// name, a command, a description or a file's line: controls (C0, DEL, C1), which it
// obeys, and those that turn the direction of writing or end a line unseen, with which
// a text looks like another one.
func Unsafe(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// OneLine makes text safe to print on one line: unsafe characters, and bytes that are no
// UTF-8, become visible in octal, as git writes them.
func OneLine(text string) string {
	if !strings.ContainsFunc(text, Unsafe) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(text[i:])
		if Unsafe(r) || r == utf8.RuneError && size == 1 {
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

// Path is a path as the manifest has it, for JSON.
func Path[T ~string](path T) string { return tree.Quote(path) }

// Paths are paths as the manifest has them; never null.
func Paths(paths []tree.Path) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = Path(p)
	}
	return out
}

// ShownPath is a path as people see it: as the manifest has it, and with what is unsafe
// on a terminal escaped in the same way.
func ShownPath[T ~string](path T) string { return ShownQuoted(Path(path)) }

// ShownQuoted is ShownPath for a path that the manifest's quotes are around already.
func ShownQuoted(path string) string {
	if strings.ContainsFunc(path, Unsafe) {
		return `"` + OneLine(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path)) + `"`
	}
	return path
}

// What says in a line what a record is about: its description, else its command.
func What(r *history.Record) string {
	switch {
	case r.Description != "":
		first, _, _ := strings.Cut(r.Description, "\n")
		return OneLine(first)
	case r.Turn != nil:
		return OneLine(strings.Join(strings.Fields(r.Turn.Prompt), " "))
	case len(r.Command) > 0:
		return tree.ShellWords(r.Command)
	case r.Parent != "":
		return "of " + r.Parent
	}
	return ""
}

// Called is what a record is called among others: a draft's name, else what it is about, or its id.
func Called(r *history.Record) string {
	if r.Draft != nil && r.Draft.Name != "" {
		return OneLine(r.Draft.Name)
	}
	return cmp.Or(What(r), r.ID)
}

// About is What, where a record that is about another one, such as a publish, says what that is called instead of its
// id: "of greet.1". get finds it, unless it was removed.
func About(r *history.Record, get func(id string) (*history.Record, error)) string {
	if What(r) == "of "+r.Parent {
		if of, err := get(r.Parent); err == nil {
			return "of " + Called(of)
		}
	}
	return What(r)
}

// OpWord is the word for a section's operation, the same for the same thing in all JSON.
func OpWord(op patch.Op) string {
	switch op {
	case patch.OpCreate, patch.OpMkdir:
		return "created"
	case patch.OpDelete, patch.OpRmdir:
		return "deleted"
	case patch.OpMode, patch.OpDirMode:
		return "mode"
	}
	return "modified"
}

// ChangeWord says in a word how a path goes from one state to another.
func ChangeWord(from, to *tree.Entry) string {
	switch {
	case from == nil && to == nil:
		return "unchanged"
	case from == nil:
		return "created"
	case to == nil:
		return "deleted"
	case from.Same(*to):
		return "unchanged"
	case from.Type != to.Type:
		return "replaced"
	case from.Type == tree.Dir, from.SHA256 == to.SHA256 && from.Size == to.Size:
		return "mode"
	}
	return "modified"
}
