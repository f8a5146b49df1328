// Package words counts words.
package words

import (
	"bufio"
	"io"
	"sort"
	"strings"
)

// Word is a word and how often it was seen.
type Word struct {
	Text  string
	Count int
}

// Table holds the counts of a text.
type Table map[string]int

// Tally reads r to its end and counts its words, folded to lower case.
func Tally(r io.Reader) (Table, error) {
	t := Table{}
	s := bufio.NewScanner(r)
	s.Split(bufio.ScanWords)
	for s.Scan() {
		t[strings.ToLower(strings.Trim(s.Text(), ".,;:!?\"'()"))]++
	}
	return t, s.Err()
}

// Top returns the n most frequent words, the more frequent first.
func (t Table) Top(n int) []Word {
	out := make([]Word, 0, len(t))
	for text, count := range t {
		out = append(out, Word{text, count})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Count != out[j].Count {
			return out[i].Count > out[j].Count
		}
		return out[i].Text < out[j].Text
	})
	if len(out) > n {
		out = out[:n]
	}
	return out
}
