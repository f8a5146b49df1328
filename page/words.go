package page

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Range is a part of a line, in bytes.
type Range struct{ From, To int }

// mostWords is how many words a line may have to be compared word by word.
const mostWords = 400

// Words are the parts in which a line differs from the one that took its place, word by
// word: nil for both where they have too little in common for that to help, or are long.
func Words(old, new string) (inOld, inNew []Range) {
	if len(old) > longestLine || len(new) > longestLine {
		return nil, nil
	}
	a, b := splitWords(old), splitWords(new)
	if len(a) > mostWords || len(b) > mostWords {
		return nil, nil
	}
	defer func() {
		if recover() != nil { // the library's own checks, or an answer beyond the lines: nothing is marked
			inOld, inNew = nil, nil
		}
	}()
	atA, atB := starts(a), starts(b)
	gone, come := 0, 0
	for _, d := range lcs.DiffLines(a, b) {
		gone += spoken(old[atA[d.Start]:atA[d.End]])
		come += spoken(new[atB[d.ReplStart]:atB[d.ReplEnd]])
		inOld = appendRange(inOld, Range{atA[d.Start], atA[d.End]}, old)
		inNew = appendRange(inNew, Range{atB[d.ReplStart], atB[d.ReplEnd]}, new)
	}
	if most := max(spoken(old)-gone, spoken(new)-come); most < gone && most < come || most == 0 {
		return nil, nil
	}
	return inOld, inNew
}

// spoken is how many bytes of text are no white space.
func spoken(text string) (n int) {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// appendRange joins what only white space parts, and leaves white space at the edges out.
func appendRange(list []Range, r Range, line string) []Range {
	part := line[r.From:r.To]
	r.From += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	r.To -= len(part) - len(strings.TrimRightFunc(part, unicode.IsSpace))
	if r.From >= r.To {
		return list
	}
	if n := len(list); n > 0 && strings.TrimSpace(line[list[n-1].To:r.From]) == "" {
		list[n-1].To = r.To
		return list
	}
	return append(list, r)
}

// starts are where the words begin, and where the last one ends.
func starts(words []string) []int {
	at := make([]int, len(words)+1)
	for i, w := range words {
		at[i+1] = at[i] + len(w)
	}
	return at
}

// splitWords cuts a line into words, runs of white space, and other characters one by one.
func splitWords(line string) (words []string) {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	for begin := 0; begin < len(line); {
		r, n := utf8.DecodeRuneInString(line[begin:])
		k, end := kind(r), begin+n
		for k != 0 && end < len(line) {
			r, n = utf8.DecodeRuneInString(line[end:])
			if kind(r) != k {
				break
			}
			end += n
		}
		words = append(words, line[begin:end])
		begin = end
	}
	return words
}
