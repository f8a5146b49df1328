//go:build unix

package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestSavedAtAnyMoment has a person save another text in the file of a message before each
// step that the queue makes with it (in the short form: before each that gives a file
// another name), in its place or by a new file. As long as it lies in the inbox the text
// is a task, and is done once, whatever becomes of the earlier one.
func TestSavedAtAnyMoment(t *testing.T) {
	for _, routine := range []string{"true", "false"} {
		for _, how := range []string{"in place", "anew", "in place, at the old time"} {
			t.Run(routine+" "+how, func(t *testing.T) {
				saved := 0
				for n, reached := 0, true; reached; n++ {
					var done bool
					if reached, done = savedAt(t, routine, how, n, -1); how == "anew" {
						for later := 1; later < 5; later++ {
							savedAt(t, routine, how, n, later)
						}
					}
					if done {
						saved++
					}
				}
				require.Greater(t, saved, 1)
			})
		}
	}
}

// savedAt saves before step n, and ends decree so many steps later, if it is not below 0.
func savedAt(t *testing.T, routine, how string, n, later int) (reached, saved bool) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; [ \"$text\" = new ] || " + routine + "\n",
		".decree/inbox/a.md":          "old\n", ".decree/config.yml": "max_attempts: 1\n",
	})
	defer os.RemoveAll(b.base)
	file := filepath.Join(b.root, ".decree/inbox/a.md")
	steps := 0
	err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		naming := strings.HasPrefix(st.Op, "Rename") || st.Op == "Exchange"
		if !strings.Contains(st.Path, "/inbox") || !naming && os.Getenv("DECREE_LONG") == "" {
			return disktest.Action{}
		}
		if steps++; steps == n+1 {
			reached = true
			saved = save(t, file, how)
		}
		return disktest.Action{Die: later >= 0 && steps == n+1+later}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	where := fmt.Sprintf("saved %v before step %d, dead %d later: %v", saved, n, later, err)
	require.True(t, err == nil || later >= 0, where)
	if slices.Contains(b.ran(), "new") {
		return reached, saved // it died too late for this
	}
	b.process()
	require.Empty(t, b.inbox(), where)
	times := strings.Count(strings.Join(b.ran(), " "), "new")
	require.Equal(t, map[bool]int{true: 1, false: 0}[saved], times, where)
	return reached, saved
}

// save writes another text into a file that is there.
func save(t *testing.T, file, how string) bool {
	was, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	if how == "anew" {
		require.NoError(t, os.WriteFile(file+"~", []byte("new\n"), 0o644))
		require.NoError(t, os.Rename(file+"~", file))
		return true
	}
	require.NoError(t, os.WriteFile(file, []byte("new\n"), 0o644))
	if how != "in place" {
		require.NoError(t, os.Chtimes(file, was.ModTime(), was.ModTime()))
	}
	return true
}
