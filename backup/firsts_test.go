package backup

import (
	"context"
	"io/fs"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// in is with for another project, in the tree at root.
func (w *world) in(root string, do func(o Options) error) error {
	_, err := w.m.MkdirAll(root, 0o700)
	require.NoError(w.t, err)
	where := project.Where{RootFlag: root, Cwd: root, Home: "/w/home", StoreEnv: "/w/store", RealPath: func(p string) (string, error) { return p, nil }}
	r, err := recorder.Open(w.t.Context(), recorder.Options{
		ReaderOptions: recorder.ReaderOptions{Disk: w.m, Where: where, Location: time.UTC, Clock: w.now},
		Create:        true, Actor: history.Actor{User: "u", Host: "h"},
	})
	require.NoError(w.t, err)
	defer r.Close()
	to, err := target.OpenDirectory(w.m, "/w/target", true)
	require.NoError(w.t, err)
	defer to.Close()
	return do(Options{Recorder: r, Target: to, Where: where, Version: "test", Host: "h", Now: w.now, Tell: func(string) {}, Progress: func(string, int64, int64) {}})
}

// TestTwoFirstBackupsOfOneName has two new projects that are called alike make their first backups at once. Where nobody can lock a place, the
// slower one is refused before it counts, and gets a directory of its own; where one can, it is refused at once.
func TestTwoFirstBackupsOfOneName(t *testing.T) {
	for name, locks := range map[string]bool{"with a lock": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var fast *Made
			makes := func(root string, at string, meanwhile func()) (made *Made, err error) {
				w.write(path.Join(root, "a")[len("/w/"):], root)
				err = w.in(root, func(o Options) error {
					as := &flat{Target: o.Target, at: at, once: meanwhile}
					o.Target = as
					if l := as.Target.(target.Locker); locks {
						o.Target = struct {
							*flat
							target.Locker
						}{as, l}
					}
					made, err = generate(t.Context(), o)
					return err
				})
				return made, err
			}
			var other error
			slow, err := makes("/w/one/tool", "/packs/", func() { fast, other = makes("/w/two/tool", "", nil) })
			if locks {
				require.NoError(t, err)
				require.Equal(t, project.Refused, project.KindOf(other), "%v", other)
				fast, other = makes("/w/two/tool", "", nil)
				require.NoError(t, other)
				require.Equal(t, "tool-2", fast.Place.Name)
			} else {
				require.NoError(t, other)
				require.Equal(t, project.Refused, project.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "was faster")
				slow, err = makes("/w/one/tool", "", nil)
				require.NoError(t, err)
				require.Equal(t, "tool-2", slow.Place.Name)
			}
			require.NotEqual(t, slow.Manifest.Project, fast.Manifest.Project)
			require.NoError(t, w.with(func(o Options) error {
				for _, made := range []*Made{slow, fast} {
					place, err := One(t.Context(), o.Target, made.Place.Name)
					require.NoError(t, err)
					require.Equal(t, made.Manifest.Project, place.Manifest.Project)
				}
				return nil
			}))
		})
	}
}

// readOnly is a target on which nothing can be written any more.
type readOnly struct{ *target.Directory }

func (readOnly) Swap(context.Context, string, []byte, target.Version) (target.Version, error) {
	return "", fs.ErrPermission
}

func (readOnly) Create(context.Context, string) (target.Upload, error) { return nil, fs.ErrPermission }

// TestADrillOfATargetThatCannotBeWritten proves what is there, and says where its proof is written down.
func TestADrillOfATargetThatCannotBeWritten(t *testing.T) {
	w, told := newWorld(t), ""
	require.NoError(t, w.with(func(o Options) error {
		o.Target, o.Tell = readOnly{o.Target.(*target.Directory)}, func(text string) { told += text }
		proof, err := Drill(t.Context(), o, true)
		require.NoError(t, err)
		require.True(t, proof.OK, proof.Problems)
		require.Equal(t, proof.At, ReadMemory(o.Recorder.Project().Store).Targets["/w/target"].Proof.At)
		return nil
	}))
	require.Contains(t, told, "the proof is not written down in tree/proofs.jsonl")
	require.Contains(t, told, "the store and the audit of this project have it")
}
