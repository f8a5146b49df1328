package recorder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/plan"
	"decree/project"
	"decree/worktree"
)

// TestSavedWhileMoved: a person saves a file at each moment of a move. It is refused as
// any edit is, or is done with what was saved in it or stored: no hash is said to be wrong.
func TestSavedWhileMoved(t *testing.T) {
	ctx := context.Background()
	step := disktest.Stride(7)
	for name, move := range map[string]func(r *Recorder) error{
		"revert": func(r *Recorder) error {
			_, err := r.Revert(ctx, MoveOptions{Refs: []string{"last"}})
			return err
		},
		"revert --merge": func(r *Recorder) error {
			_, err := r.Revert(ctx, MoveOptions{Refs: []string{"last"}, Merge: plan.Refuse})
			return err
		},
		"restore": func(r *Recorder) error {
			_, err := r.Restore(ctx, RestoreOptions{Ref: "last~1", Yes: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for at := 0; ; at += step {
				s := &sweep{bench: newBench(t), t: t}
				lines := strings.Repeat("line\n", 20)
				s.write("f", lines)
				s.checkpoint(CheckpointOptions{})
				require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
					return s.execute(r, 0, shell(`echo theirs >>f`))
				}))
				if strings.Contains(name, "merge") {
					s.write("f", "mine\n"+lines+"theirs\n")
				}
				n, saved := 0, false
				save := lines + "theirs\nsaved now\n"
				err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
					if n++; n > at && !saved {
						saved = true
						require.NoError(t, os.WriteFile(filepath.Join(s.root, "f.new"), []byte(save), 0o644))
						require.NoError(t, os.Rename(filepath.Join(s.root, "f.new"), filepath.Join(s.root, "f")))
					}
					return disktest.Action{}
				}), move)
				if !saved {
					require.Positive(t, refused)
					return
				}
				now := s.read("f")
				if err != nil {
					refused++
					var moved *worktree.Error // a new file that is written to at once is not what it was to become
					if !errors.As(err, &moved) || moved.Phase != "verify" {
						require.Equal(t, project.Refused, project.KindOf(err), "step %d: %v", at, err)
					}
					require.Contains(t, now, "saved now", "step %d", at)
					continue
				}
				if !strings.Contains(now, "saved now") {
					s.revert("last")
					require.Contains(t, s.read("f"), "saved now", "step %d", at)
				}
			}
		})
	}
}
