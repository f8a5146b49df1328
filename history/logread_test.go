package history

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allocated is how many bytes do allocates in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLogWithAHole: whatever is in the log, only what may be a line of it takes memory.
func TestLogWithAHole(t *testing.T) {
	const hole, little = 256 << 20, 16 << 20
	for name, c := range map[string]struct {
		behind string // the hole
		broken int
	}{
		"to the end":            {"", 0},
		"written on by decree":  {"!\n", 0},
		"in the midst":          {"\n", 1},
		"with a part of a line": {`"}` + "\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.checkpoint()
			path := w.stored(logFile)
			before := int64(len(w.read(path)))
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(before+hole))
			_, err = f.WriteAt([]byte(c.behind), before+hole)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			w.reopen()
			assert.Less(t, allocated(func() {
				l, err := w.readOn()
				require.NoError(t, err)
				assert.Equal(t, c.broken, l.broken.n)
				assert.Equal(t, c.behind == "", l.torn)
				assert.Equal(t, c.broken == 0, l.cut != nil)
			}), uint64(little))
			var next *Record
			assert.Less(t, allocated(func() { next = w.checkpoint() }), uint64(little))
			l, err := w.readOn()
			require.NoError(t, err)
			if c.broken == 0 {
				assert.Less(t, l.size, int64(compactMin), "what a death cut off went with the first line behind it")
			}
			var aside *DamagedLines
			assert.Less(t, allocated(func() { aside, err = w.SetLinesAside(nothingFirst) }), uint64(little))
			require.NoError(t, err)
			if assert.Equal(t, c.broken > 0, aside != nil) && aside != nil {
				st, err := os.Stat(aside.Path)
				require.NoError(t, err)
				assert.Equal(t, int64(hole+len(c.behind)), st.Size(), "it is kept as it was")
			}
			w.reopen()
			assert.Equal(t, []string{next.ID, r.ID}, ids(w.list().Records))
			assert.Less(t, len(w.read(path)), compactMin)
		})
	}
}

// TestLongLines: a line that is longer than a block is read whole where it may be a record's, and is damaged where it has a NUL
// or is longer than any.
func TestLongLines(t *testing.T) {
	r := fullRecord()
	r.Description = strings.Repeat("long ", logBlock)
	long := string((&line{key: recordKey(r), record: r}).append(nil))
	nul := strings.Replace(long, "g", "\x00", 1)
	for name, c := range map[string]struct {
		text         string
		rows, broken int
		torn         bool
	}{
		"a record":           {long, 1, 0, false},
		"with a NUL":         {nul, 0, 1, false},
		"torn":               {nul[:len(nul)-9], 0, 0, true},
		"torn, and ended":    {nul[:len(nul)-9] + "!\n", 0, 0, false},
		"several":            {"x\n" + nul + "y\n\n" + nul + long, 1, 4, false},
		"short, with a NUL":  {"{\x00}\n", 0, 1, false},
		"longer than any":    {`{"` + strings.Repeat("x", mostLine) + "\"}\n", 0, 1, false},
		"ends with a block":  {strings.Repeat("\x00", 3*logBlock-1) + "\n" + long, 1, 1, false},
		"begins with one":    {strings.Repeat("\n", logBlock) + nul, 0, 1, false},
		"ends with its mark": {strings.Repeat("\x00", 3*logBlock-1) + "!\n" + long, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(c.text) > mostLine {
				t.Skip("64 MiB are flushed")
			}
			w := newWorld(t)
			w.put(w.stored(logFile), c.text)
			l, err := readLog(w.p.Store, nil)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(c.rows, c.broken, c.torn, len(c.text)), fmt.Sprint(len(l.rows), l.broken.n, l.torn, l.size))
			require.NoError(t, l.compact(w.p.Store))
			again, err := readLog(w.p.Store, nil)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(c.rows, c.broken, false), fmt.Sprint(len(again.rows), again.broken.n, again.torn))
			var kept bytes.Buffer
			for _, p := range l.broken.parts {
				kept.WriteString(c.text[p.at : p.at+p.size])
			}
			assert.True(t, strings.HasSuffix(w.read(w.stored(logFile)), kept.String()), "damaged lines are kept as they are")
		})
	}
}
