package patch

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPairsAreWhatWholesAre writes pairs of large texts both ways: compared while they are
// read, and held whole. The bytes are the same.
func TestPairsAreWhatWholesAre(t *testing.T) {
	base := logText(streamFrom + 3*headStep)
	near := func(at int, text string) []byte { return slices.Concat(base[:at], []byte(text), base[at:]) }
	long := bytes.Repeat([]byte("no line ends here "), streamFrom/18+headStep)
	for name, tt := range map[string]struct{ old, new []byte }{
		"a line more":                {base, near(len(base), "one more\n")},
		"an unended line more":       {base, near(len(base), "one more")},
		"an unended line goes on":    {near(len(base), "one"), near(len(base), "one more\nand more\n")},
		"the last line gone":         {near(len(base), "one more\n"), base},
		"a step ends at the change":  {near(16*headStep, "x"), near(16*headStep, "y")},
		"just behind":                {near(16*headStep+1, "x\n"), near(16*headStep+1, "y\n")},
		"just before":                {near(16*headStep-1, "\nx"), near(16*headStep-1, "\ny")},
		"at the first byte":          {near(0, "x"), near(0, "y\n")},
		"the same lines over":        {bytes.Repeat([]byte("same\n"), 1<<20), bytes.Repeat([]byte("same\n"), 1<<20+5)},
		"one line, no end":           {long, append(slices.Clone(long), 'x')},
		"a text and no text":         {base, near(len(base), "\x00")},
		"no texts":                   {near(5, "\x00"), near(5, "\x00x")},
		"a NUL byte in the old only": {near(len(base)-4, "\x00"), base},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := diffOf(t, tt.old, tt.new, streamFrom), diffOf(t, tt.old, tt.new, math.MaxInt64)
			assert.Equal(t, b, a)
		})
	}
}

func diffOf(t *testing.T, old, new []byte, stream int64) string {
	t.Helper()
	var out strings.Builder
	w := NewWriter(&out, Limits{})
	w.stream = stream
	require.NoError(t, w.Write(context.Background(), Change{
		"f", &Entry{SHA256: Sum(old), Size: int64(len(old)), Mode: 0o644}, &Entry{SHA256: Sum(new), Size: int64(len(new)), Mode: 0o644},
		Bytes(old), Bytes(new),
	}))
	require.NoError(t, w.Close())
	return out.String()
}

// TestPairsAreChecked gives contents that are not what their entries say.
func TestPairsAreChecked(t *testing.T) {
	base := logText(streamFrom + headStep)
	more := append(slices.Clone(base), "more\n"...)
	for name, spoil := range map[string]func(old, new *Entry){
		"old sum":      func(old, _ *Entry) { old.SHA256[0]++ },
		"new sum":      func(_, new *Entry) { new.SHA256[0]++ },
		"old longer":   func(old, _ *Entry) { old.Size-- },
		"new longer":   func(_, new *Entry) { new.Size-- },
		"old shorter":  func(old, _ *Entry) { old.Size++ },
		"new shorter":  func(_, new *Entry) { new.Size += headStep },
		"much too big": func(old, _ *Entry) { old.Size -= headStep / 2 },
	} {
		old := Entry{SHA256: Sum(base), Size: int64(len(base)), Mode: 0o644}
		new := Entry{SHA256: Sum(more), Size: int64(len(more)), Mode: 0o644}
		spoil(&old, &new)
		w := NewWriter(&strings.Builder{}, Limits{})
		err := w.Write(context.Background(), Change{"f", &old, &new, Bytes(base), Bytes(more)})
		assert.ErrorIs(t, err, errChanged, name)
	}
}
