package history

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"decree/project"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (w *world) audited() ([]*Operation, *AuditReport) {
	w.t.Helper()
	var ops []*Operation
	rep, err := w.ReadAudit(func(o *Operation) error { ops = append(ops, o); return nil })
	require.NoError(w.t, err)
	return ops, rep
}

func TestAuditChain(t *testing.T) {
	w := newWorld(t)
	ops, rep := w.audited()
	assert.Empty(t, ops)
	require.NoError(t, rep.Err())
	written := ""
	for i := range 5 {
		require.NoError(t, w.Audit(Operation{Op: "revert", Record: fmt.Sprint(i), Actor: Actor{User: "u", Host: "h"}, Outcome: "refused: a\nb", Detail: strings.Repeat("\xff", i*5000)}))
		now := w.read(w.stored(auditFile))
		require.True(t, strings.HasPrefix(now, written), "earlier bytes never change")
		written = now
	}
	ops, rep = w.audited()
	require.NoError(t, rep.Err())
	assert.Equal(t, 5, rep.Lines)
	assert.Equal(t, "3", ops[3].Record)
	assert.Equal(t, w.clock, ops[3].Time)
	assert.Equal(t, zeroPrev, ops[0].Prev)
	assert.Equal(t, "refused: a\nb", ops[0].Outcome)
}

func TestAuditFindsTheFirstBrokenLine(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		require.NoError(t, w.Audit(Operation{Op: "run", Record: fmt.Sprint(i), Outcome: "done"}))
	}
	lines := strings.SplitAfter(w.read(w.stored(auditFile)), "\n")[:6]
	join := func(l ...string) string { return strings.Join(l, "") }
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"edited":         {join(lines[0], lines[1], strings.Replace(lines[2], `"2"`, `"9"`, 1), lines[3], lines[4]), 4},
		"removed":        {join(lines[0], lines[2], lines[3]), 2},
		"first removed":  {join(lines[1:]...), 1},
		"swapped":        {join(lines[0], lines[2], lines[1], lines[3]), 2},
		"repeated":       {join(lines[0], lines[0], lines[1]), 2},
		"not JSON":       {join(lines[0], "xxx\n", lines[1]), 3},
		"last not JSON":  {join(lines[0], lines[1], "{}\n"), 3},
		"one huge line":  {join(lines[0], strings.Repeat("x", 1<<20)+"\n", lines[1]), 3},
		"empty line":     {join(lines[0], "\n", lines[1]), 3},
		"two not JSON":   {join(lines[0], "x\n", "y\n"), 2},
		"zeros in front": {"\x00\x00\n" + join(lines...), 2},
	} {
		t.Run(name, func(t *testing.T) {
			w.put(w.stored(auditFile), c.text)
			_, rep := w.audited()
			assert.Equal(t, c.line, rep.Broken)
			assert.Equal(t, project.Integrity, project.KindOf(rep.Err()))
			// It goes on behind the break, whose place stays the same.
			require.NoError(t, w.Audit(Operation{Op: "later", Outcome: "done"}))
			ops, rep := w.audited()
			assert.Equal(t, c.line, rep.Broken)
			assert.Equal(t, "later", ops[len(ops)-1].Op)
		})
	}
}

func TestAuditTornAnywhere(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.Audit(Operation{Op: "run", Record: "1", Outcome: "done"}))
	first := len(w.read(w.stored(auditFile)))
	require.NoError(t, w.Audit(Operation{Op: "run", Record: "2", Outcome: "done"}))
	text := w.read(w.stored(auditFile))
	for cut := 0; cut < len(text); cut += 11 {
		w.put(w.stored(auditFile), text[:cut])
		_, rep := w.audited()
		require.NoError(t, rep.Err(), "cut at %d", cut)
		require.NoError(t, w.Audit(Operation{Op: "run", Record: "3", Outcome: "done"}))
		require.NoError(t, w.Audit(Operation{Op: "run", Record: "4", Outcome: "done"}))
		now := w.read(w.stored(auditFile))
		require.True(t, strings.HasPrefix(now, text[:cut]))
		ops, rep := w.audited()
		require.NoError(t, rep.Err(), "cut at %d:\n%s", cut, now)
		require.Equal(t, "4", ops[len(ops)-1].Record)
		if cut != 0 && cut != first {
			require.Len(t, rep.Torn, 1, "cut at %d", cut)
		}
	}
	st, err := os.Stat(w.stored(auditFile))
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, st.Mode().Perm())
}

func FuzzAudit(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add(append((&Operation{Op: "x", Prev: zeroPrev}).append(nil), '\n'))
	f.Add([]byte("\x00\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rep := &AuditReport{}
		c := chainCheck{rep: rep, prev: zeroPrev}
		for _, b := range strings.SplitAfter(string(data), "\n") {
			if b != "" {
				_ = c.line([]byte(strings.TrimSuffix(b, "\n")), strings.HasSuffix(b, "\n"))
			}
		}
		c.end()
		if rep.Broken > rep.Lines {
			t.Fatal(rep)
		}
	})
}
