package tree

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ShellWord is a word as one types it: bash, zsh and ksh hand that very word on, and a
// terminal can be shown it, whatever is in it.
func ShellWord(word string) string {
	switch {
	case !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }):
		return escaped(word)
	case word == "" || word[0] == '~' || strings.ContainsFunc(word, meansSomething):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// ShellWords is a command as one types it.
func ShellWords(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = ShellWord(w)
	}
	return strings.Join(words, " ")
}

// meansSomething says whether a shell may take a printable character for more than itself.
func meansSomething(r rune) bool {
	return r < utf8.RuneSelf && !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_~^-", r))
}

// escaped writes a word byte by byte: other escapes than octal ones give other bytes where
// the shell's locale is not UTF-8.
func escaped(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		if c := word[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
