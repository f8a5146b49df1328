package recorder

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestALookIntoADraftLeavesIt: what came into the tree after the run, where its layer hides it, is not deleted by who
// only looks into the draft; nor is a mode that the user has given a directory since changed by that. What a command
// in the layer does delete, and change, is a part of the draft.
func TestALookIntoADraftLeavesIt(t *testing.T) {
	runs := map[string]string{
		"opaque": "rm -rf d; mkdir d; echo n >d/n",
		"gone":   "rm -rf d",
		"file":   "rm -rf d; echo f >d",
		"link":   "rm -rf d; ln -s a d",
		"moved":  "mv d dd",
		"within": "echo more >>d/x; echo n >d/n",
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		t.Run(name, func(t *testing.T) {
			eachMechanism(t, func(t *testing.T, b *isolatedBench) {
				b.write("a", "a\n")
				b.write("d/x", "x\n")
				b.write("d/e/y", "y\n")
				b.write("g/h", "h\n")
				b.checkpoint(CheckpointOptions{})
				rec := b.isolated(runs[name] + "; echo new >g/new").Record
				told := func() string {
					changes := with(b.bench, func(r *Recorder) (string, error) {
						now, err := r.history.Get(rec.ID)
						require.NoError(t, err)
						changes, err := r.history.DiffChanges(now)
						out := ""
						for _, c := range changes {
							out += fmt.Sprintln(c.Path, c.Old != nil, c.New != nil)
						}
						return out, err
					})
					return changes
				}
				before := told()
				b.write("d/user", "mine\n")
				b.sh(b.root, "mkdir d/udir; chmod 700 d g")
				require.NoError(t, b.enter("ls -R . >/dev/null", disk.OS))
				require.Equal(t, before, told())

				require.NoError(t, b.enter("rm g/h; chmod 750 g", disk.OS))
				require.Contains(t, told(), "g/h true false\n")
				require.Contains(t, told(), "g true true\n")
				if name == "file" || name == "link" {
					return // what the user has in the directory stands in its way
				}
				require.NoError(t, os.Chmod(filepath.Join(b.root, "d"), 0o755)) // as the run has found it
				require.NoError(t, b.publish("d"))
				data, err := os.ReadFile(filepath.Join(b.root, "d/user"))
				require.NoError(t, err)
				require.Equal(t, "mine\n", string(data))
			})
		})
	}
}
