package backup

import (
	"bytes"
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// decreeFiles are all files below .decree that a restore brings back, with what they say.
func (w *world) decreeFiles() map[string]string {
	out := map[string]string{}
	var walk func(dir disk.Dir, at string)
	walk = func(dir disk.Dir, at string) {
		list, err := dir.List()
		require.NoError(w.t, err)
		for _, e := range list {
			name := path.Join(at, e.Name)
			if IsOwnName(name) {
				continue
			}
			if sub, err := dir.OpenDir(e.Name); err == nil {
				walk(sub, name)
				sub.Close()
				continue
			}
			data, err := project.ReadFile(dir, e.Name, 1<<20)
			require.NoError(w.t, err)
			out[name] = string(data)
		}
	}
	dir, err := w.m.OpenRoot("/w/tree/.decree")
	require.NoError(w.t, err)
	walk(dir, "")
	return out
}

// asBucket is what a backup is made with on a target without locks and directories, if bucket, else as it is.
func asBucket(o Options, bucket bool) Options {
	if bucket {
		o.Target = &flat{Target: o.Target}
	}
	return o
}

// colliding has in .decree all the names that a generation has for something else.
func colliding(t *testing.T) *world {
	w := newWorld(t)
	var id string
	require.NoError(t, w.with(func(o Options) error {
		list, err := o.Recorder.History().Logged()
		id = list[0].ID
		return err
	}))
	for _, name := range []string{
		"manifest.json", "records/" + id + "/run.json", "plugins/beads/x", "specs/processed-spec.md", "tree/a", "contents/foo", "Records/x", `cron/a\b`, "records/mine",
		"routines/a\xffb", "routines/a\xfeb", "a\nb", "top\xff", "top\xfe", `"quoted"`, `"`,
	} {
		w.write("tree/.decree/"+name, "of a person: "+name)
	}
	w.write("tree/.decree-upload-in-the-tree", "a file like others")
	return w
}

// TestNamesOfPeopleThatAGenerationHas: whatever people, or what a run executed, have put into .decree, every generation is read, restored
// and exported, with all of it.
func TestNamesOfPeopleThatAGenerationHas(t *testing.T) {
	for _, bucket := range []bool{false, true} {
		w := colliding(t)
		want := w.decreeFiles()
		for range 2 { // the first gets its zip by the second
			w.clk = w.clk.Add(time.Hour)
			require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), asBucket(o, bucket)); return err }))
		}
		require.Len(t, w.generations("with colliding names"), 4)

		require.NoError(t, w.with(func(o Options) error {
			proof, err := Drill(t.Context(), asBucket(o, bucket), true)
			require.NoError(t, err)
			require.True(t, proof.OK, proof.Problems)
			return nil
		}))
		delete(want, "config.yml")
		for name := range want {
			w.rewrite("tree/.decree/"+name, func(string) string { return "changed" })
		}
		for _, name := range []string{"", preRestore} { // and then what that has replaced
			require.NoError(t, w.with(func(o Options) error {
				o = asBucket(o, bucket)
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				names := place.Generations()
				src, err := place.Generation(t.Context(), names[2])
				if name != "" {
					ref, rerr := place.Resolve(name)
					require.NoError(t, rerr)
					src, err = place.Generation(t.Context(), ref)
				}
				require.NoError(t, err)
				_, err = Restore(t.Context(), o, RestoreOptions{Source: src})
				return err
			}))
			is := w.decreeFiles()
			delete(is, "config.yml")
			if name == "" {
				require.Equal(t, want, is)
				continue
			}
			for at := range want {
				require.Equal(t, "changed", is[at], at)
			}
		}
	}
}

// TestAnExportOfNamesThatAZipHas: an export can be read again, also that of a generation that an earlier decree has made, in which all have
// their own names.
func TestAnExportOfNamesThatAZipHas(t *testing.T) {
	w := colliding(t)
	require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
	var out bytes.Buffer
	export := func(change func(m *Manifest)) {
		out.Reset()
		require.NoError(t, w.with(func(o Options) error {
			place, err := One(t.Context(), o.Target, "tree")
			require.NoError(t, err)
			src, err := place.Generation(t.Context(), place.Manifest.Generation())
			require.NoError(t, err)
			return stageIn(t, w.m, src, func(s *Staged) error {
				change(s.Manifest)
				return s.WriteZip(t.Context(), &out)
			})
		}))
		src, err := FromZip(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		require.NoError(t, stageIn(t, w.m, src, func(s *Staged) error {
			var a bytes.Buffer
			require.NoError(t, s.write(&a, "aside/manifest.json"))
			require.Equal(t, "of a person: manifest.json", a.String())
			return nil
		}))
	}
	export(func(*Manifest) {})
	export(func(m *Manifest) {
		for _, name := range []FileName{"manifest.json", "tree/a", "contents/foo"} {
			m.Files[name] = m.Files[asidePart+name]
		}
	})
}

// TestANameThatNoTargetTakes is left out and named, and what else there is can be read.
func TestANameThatNoTargetTakes(t *testing.T) {
	for _, bucket := range []bool{false, true} {
		w := newWorld(t)
		w.write("tree/.decree/cron/.decree-upload-x", "x")
		w.write("tree/.decree/.decree-upload-dir/x", "x")
		w.write("tree/.decree/cron/y", "y")
		for range 2 {
			w.clk = w.clk.Add(time.Hour)
			text := w.told(func(o Options) error {
				made, err := generate(context.Background(), asBucket(o, bucket))
				if err == nil {
					require.Contains(t, made.Manifest.Files, FileName("cron/y"))
				}
				return err
			})
			require.Contains(t, text, "/.decree/cron/.decree-upload-x is not in the backup")
			require.Contains(t, text, "/.decree/.decree-upload-dir is not in the backup")
		}
		require.Len(t, w.generations("with names of uploads"), 4)
	}
}

// TestEncodeRefusesWhatNobodyReads: what parseManifest would refuse is never written.
func TestEncodeRefusesWhatNobodyReads(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		for _, name := range []FileName{"../x", "/x", "cron/.decree-upload-x", "a//b"} {
			m := *place.Manifest
			m.Files = map[FileName]File{name: {SHA256: tree.Sum(nil)}}
			_, err := m.Encode()
			require.ErrorAs(t, err, new(*formatError), name)
			require.Error(t, place.commit(t.Context(), &m))
		}
		return nil
	}))
	w.generations("after refusals")
}
