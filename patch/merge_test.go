package patch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMerge(t *testing.T) {
	old := text(40)
	new := strings.Replace(text(40, 20), "line 5\n", "line 5\nextra\n", 1)
	tests := []struct {
		name, old, new, cur, want string
		reverse                   bool
	}{
		{"as it was", old, new, new, old, true},
		{"as it was, forward", old, new, old, new, false},
		{"edited elsewhere", old, new, "top\n" + new + "end\n", "top\n" + old + "end\n", true},
		{"edited between", old, new, strings.Replace(new, "line 12\n", "mine\n", 1), strings.Replace(old, "line 12\n", "mine\n", 1), true},
		{"hunks in another order", "1\n2\n3\n4\nx\n5\n6\n7\n8\na\nb\nc\nd\ny\ne\nf\ng\nh\n", "1\n2\n3\n4\nX\n5\n6\n7\n8\na\nb\nc\nd\nY\ne\nf\ng\nh\n",
			"a\nb\nc\nd\nY\ne\nf\ng\nh\n1\n2\n3\n4\nX\n5\n6\n7\n8\n", "a\nb\nc\nd\ny\ne\nf\ng\nh\n1\n2\n3\n4\nx\n5\n6\n7\n8\n", true},
		{"last line without newline", "a\nb", "a\nc", "top\na\nc", "top\na\nb", true},
		{"filled", "", "a\n", "a\n", "", true},
		{"emptied", "a\n", "", "", "a\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := read(t, write(t, Limits{}, modify("f", tt.old, tt.new)))[0]
			got, err := s.Merge([]byte(tt.cur), tt.reverse)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
		})
	}
}

func TestMergeConflicts(t *testing.T) {
	old, new := text(40), text(40, 3, 30)
	tests := []struct {
		name, old, new, cur string
		hunk                int
		reason              string
	}{
		{"changed line", old, new, strings.Replace(new, "changed 30\n", "mine\n", 1), 2, "its lines are not there"},
		{"changed context", old, new, strings.Replace(new, "line 31\n", "mine\n", 1), 2, "its lines are not there"},
		{"not a whole line", "a\n", "b\n", "xb\n", 1, "its lines are not there"},
		{"twice", old, new, new + new, 1, "more than once"},
		{"twice, overlapping", "x\n", "a\na\n", "a\na\na\n", 1, "more than once"},
		{"gone", old, new, "", 1, "its lines are not there"},
		{"newline missing", "a\nb\n", "a\nc\n", "a\nc", 1, "its lines are not there"},
		{"newline added", "a\nb", "a\nc", "a\nc\n", 1, "its lines are not there"},
		{"no longer the end", "a\nb", "a\nc\n", "a\nc\nd\n", 1, "its last line no longer ends the file"},
		{"no lines", "a\n", "", "x\n", 1, "no lines to find its place by"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := read(t, write(t, Limits{}, modify("f", tt.old, tt.new)))[0]
			_, err := s.Merge([]byte(tt.cur), true)
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, tt.hunk, conflict.Hunk)
			assert.Contains(t, conflict.Reason, tt.reason)
			assert.Equal(t, s.Hunks[tt.hunk-1].Header(), conflict.Header)
		})
	}
	for name, c := range map[string]Change{
		"create":  {Path: "f", New: file("x", 0o644), NewContent: Bytes("x")},
		"delete":  {Path: "f", Old: file("x", 0o644), OldContent: Bytes("x")},
		"binary":  modify("f", "\x00", "x"),
		"symlink": {Path: "f", Old: link("a"), New: link("b")},
		"mkdir":   {Path: "f", New: dir(0o755)},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, write(t, Limits{}, c))[0]
			_, err := s.Merge([]byte("x"), false)
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Contains(t, conflict.Reason, name)
		})
	}
	s := read(t, write(t, Limits{}, Change{Path: "f", Old: file("x", 0o644), New: file("x", 0o755)}))[0]
	got, err := s.Merge([]byte("anything"), true)
	require.NoError(t, err)
	assert.Equal(t, "anything", string(got), "a mode alone needs no content")
}

// Two hunks whose lines would be the same ones of the file.
func TestMergeOverlap(t *testing.T) {
	s := &Section{Path: "f", Op: OpModify, Old: file("", 0o644), New: file("", 0o644), Hunks: []Hunk{
		{OldStart: 1, OldLines: 2, NewStart: 1, NewLines: 1, Body: []byte(" a\n-b\n")},
		{OldStart: 9, OldLines: 2, NewStart: 8, NewLines: 1, Body: []byte("-b\n c\n")},
	}}
	_, err := s.Merge([]byte("a\nb\nc\n"), false)
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, 2, conflict.Hunk)
	assert.Contains(t, conflict.Reason, "also those of another hunk")
}
