package patch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A content that is not the one of the entry is refused, with the line where a hunk tells
// it, and never taken at another offset.
func TestForwardMismatch(t *testing.T) {
	old, new := text(40), text(40, 10, 30)
	s := read(t, write(t, Limits{}, modify("f", old, new)))[0]
	tests := []struct {
		name, data string
		line       int
		reason     string
	}{
		{"context", strings.Replace(old, "line 12\n", "line XX\n", 1), 13, "the diff has another line there"},
		{"removed line", strings.Replace(old, "line 30\n", "line YY\n", 1), 31, "the diff has another line there"},
		{"elsewhere", strings.Replace(old, "line 20\n", "line ZZ\n", 1), 0, "sha256"},
		{"one line down", "top\n" + old, 8, "the diff has another line there"},
		{"longer", old + "end\n", 0, "bytes before, not"},
		{"cut", old[:49], 8, "the file ends before this line"},
		{"empty", "", 8, "the file ends before this line"},
		{"already done", new, 11, "the diff has another line there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Forward([]byte(tt.data))
			var mismatch *MismatchError
			require.ErrorAs(t, err, &mismatch)
			assert.Equal(t, tt.line, mismatch.Line, err.Error())
			assert.Contains(t, err.Error(), tt.reason)
		})
	}
	_, err := s.Reverse([]byte(old))
	var mismatch *MismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, 11, mismatch.Line)
}

// Hunks that are well-formed but give another content than the entry's are refused after
// they were applied.
func TestForwardChecksTheResult(t *testing.T) {
	diff := first + modLine + modHead + strings.Replace(modHunk, "+c", "+d", 1)
	s := read(t, []byte(diff))[0]
	_, err := s.Forward([]byte("a\nb\n"))
	var mismatch *MismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Contains(t, mismatch.Reason, "after, not")
}

func TestForwardKinds(t *testing.T) {
	empty := file("", 0o644)
	for _, tt := range []struct {
		name     string
		change   Change
		old, new string
	}{
		{"create", Change{Path: "f", New: file("x", 0o644), NewContent: Bytes("x")}, "", "x"},
		{"create empty", Change{Path: "f", New: empty}, "", ""},
		{"delete", Change{Path: "f", Old: file("x\n", 0o644), OldContent: Bytes("x\n")}, "x\n", ""},
		{"mode", Change{Path: "f", Old: file("x", 0o644), New: file("x", 0o755)}, "x", "x"},
		{"symlink", Change{Path: "f", Old: link("a"), New: link("b")}, "a", "b"},
		{"mkdir", Change{Path: "f", New: dir(0o755)}, "", ""},
		{"binary", modify("f", "\x00a", "b"), "\x00a", "b"},
		{"binary create", Change{Path: "f", New: file("\x00", 0o644), NewContent: Bytes("\x00")}, "", "\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := read(t, write(t, Limits{}, tt.change))[0]
			got, err := s.Forward([]byte(tt.old))
			require.NoError(t, err)
			assert.Equal(t, tt.new, string(got))
			got, err = s.Reverse([]byte(tt.new))
			require.NoError(t, err)
			assert.Equal(t, tt.old, string(got))
			_, err = s.Forward([]byte("something else"))
			var mismatch *MismatchError
			assert.ErrorAs(t, err, &mismatch)
		})
	}
}
