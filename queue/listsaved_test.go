//go:build unix

package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestListSavedAtAnyMoment has an editor add a line to the list of processed specs before each
// step that decree makes with it, in place or by a new file, and decree go on or die 1 to 3
// steps later: both lines are in it, and the spec is done once.
func TestListSavedAtAnyMoment(t *testing.T) {
	for _, list := range []string{"", "older.spec.md\n"} {
		for _, anew := range []bool{true, false} {
			saved := 0
			last := 4
			for n, reached := 0, true; reached; n += disktest.Stride(3) {
				for later := -1; later < last; later++ {
					reached = listSavedAt(t, list, anew, n, later)
				}
				saved++
			}
			require.Greater(t, saved*disktest.Stride(3), 5)
		}
	}
}

func listSavedAt(t *testing.T, list string, anew bool, n, later int) (reached bool) {
	files := map[string]string{".decree/routines/develop.sh": `echo "$spec_file" >>"$RAN"` + "\n", "specs/one.spec.md": "one\n"}
	if list != "" {
		files["specs/processed-spec.md"] = list
	}
	b := newBench(t, files)
	defer os.RemoveAll(b.base)
	file, steps, died, recorded := filepath.Join(b.root, "specs/processed-spec.md"), 0, false, false
	err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		recorded = recorded || len(b.ran()) > 0 && filepath.Base(st.Path) == "audit.jsonl"
		if !recorded || !strings.Contains(st.Path, "/specs/") {
			return disktest.Action{}
		}
		if steps++; steps == n+1 {
			reached = true
			data, _ := os.ReadFile(file)
			data = append(data, "mine.spec.md\n"...)
			if anew {
				require.NoError(t, os.WriteFile(file+"~", data, 0o644))
				require.NoError(t, os.Rename(file+"~", file))
			} else {
				require.NoError(t, os.WriteFile(file, data, 0o644))
			}
		}
		died = died || later > 0 && steps == n+1+later
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	where := fmt.Sprintf("%q, anew %v, step %d, dies %d later: %v", list, anew, n, later, err)
	require.True(t, err == nil || died, where)
	b.process()
	if !reached {
		return false
	}
	require.Equal(t, []string{"specs/one.spec.md"}, b.ran(), where)
	require.ElementsMatch(t, strings.Fields(list+"mine.spec.md one.spec.md"), strings.Fields(b.read("specs/processed-spec.md")), where)
	require.Len(t, b.list("specs"), 2, where)
	return true
}
