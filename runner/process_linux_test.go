package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// awaitChangeOnly waits for the end of pid and leaves it a zombie.
func awaitChangeOnly(t *testing.T, pid int) bool {
	t.Helper()
	c := awaitChange(pid)
	return c.ended && !c.reaped
}

const statTail = " 0 -1 4194304 77 0 0 0 0 0 0 0 20 0 3 0 183496 3133440 389"

func TestParseStat(t *testing.T) {
	r, err := parseStat([]byte("21551 (a) R (b)) S 1 21547 2705" + statTail))
	require.NoError(t, err)
	assert.Equal(t, row{pid: 21551, parent: 1, pgrp: 21547, session: 2705, name: "a) R (b)", state: 'S', start: 183496, threads: 3}, r)

	for what, text := range map[string]string{
		"empty":     "",
		"no name":   "12 S 1 2 3" + statTail,
		"cut":       "12 (x) S 1 2 3 0 -1",
		"no number": "x (x) S 1 2 3" + statTail,
		"reversed":  "12 )x( S 1 2 3" + statTail,
		"nothing":   "()",
	} {
		_, err := parseStat([]byte(text))
		require.ErrorIs(t, err, errStat, what)
	}
}

func TestZombieWithThreadsLives(t *testing.T) {
	assert.False(t, row{state: 'Z', threads: 1}.live())
	assert.False(t, row{state: 'X', threads: 0}.live())
	assert.True(t, row{state: 'Z', threads: 2}.live(), "its first thread alone has ended")
	assert.True(t, row{state: 'T', threads: 1}.live())
}

func TestLookAt(t *testing.T) {
	r, err := lookAt(os.Getpid())
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), r.pid)
	assert.Equal(t, unix.Getpgrp(), r.pgrp)
	rows, err := processes(0)
	require.NoError(t, err)
	assert.Contains(t, pids(rows), os.Getpid())
	rows, err = processes(r.start + 1e12)
	require.NoError(t, err)
	assert.Empty(t, rows, "nothing comes from the future")
}

func pids(rows []row) []int {
	var out []int
	for _, r := range rows {
		out = append(out, r.pid)
	}
	return out
}

func TestCovers(t *testing.T) {
	o := outsiders{root: "/a/b"}
	assert.True(t, o.covers("/a/b"))
	assert.True(t, o.covers("/a/b/c"))
	assert.True(t, o.covers("/a/b/gone (deleted)"))
	assert.False(t, o.covers("/a/bc"))
	assert.False(t, o.covers("/a"))
	assert.True(t, outsiders{root: "/"}.covers("/x"))
	assert.False(t, outsiders{}.covers("/x"))
}

func FuzzParseStat(f *testing.F) {
	f.Add("21551 (a) R (b)) S 1 21547 2705" + statTail)
	f.Add("1 (" + strings.Repeat(")", 40) + " S 1 2 3" + statTail)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseStat([]byte(text)); err == nil && !strings.Contains(text, "("+r.name+")") {
			t.Errorf("name %q is not in %q", r.name, text)
		}
	})
}

func BenchmarkProcesses(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := processes(0); err != nil {
			b.Fatal(err)
		}
	}
}
