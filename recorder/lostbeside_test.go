//go:build unix

package recorder

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/store"
	"decree/tree"
)

// lose damages a content where the store has it, which is small enough to stand there as it is.
func (b *bench) lose(text string) {
	b.t.Helper()
	packs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "packs", "*.pack"))
	require.NoError(b.t, err)
	found := false
	for _, pack := range packs {
		data, err := os.ReadFile(pack)
		require.NoError(b.t, err)
		found = found || bytes.Contains(data, []byte(text))
		require.NoError(b.t, os.WriteFile(pack, bytes.ReplaceAll(data, []byte(text), []byte(strings.Repeat("x", len(text)))), 0o600))
	}
	require.True(b.t, found)
}

// TestRunDeletesWhatTheStoreHasLost: a run whose command deletes .decree is recorded also where
// the store has lost one of the user's files in it, or a record's line is damaged: that is named,
// and all else is written again.
func TestRunDeletesWhatTheStoreHasLost(t *testing.T) {
	ctx := context.Background()
	config, routine := "max_store: 0\n", "echo a routine\n"
	damageLine := func(t *testing.T, b *bench) {
		logs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "records.jsonl"))
		require.NoError(t, err)
		data, err := os.ReadFile(logs[0])
		require.NoError(t, err)
		first, rest, _ := strings.Cut(string(data), "\n")
		bad := regexp.MustCompile(`("files":\{"[^"]*":")[0-9a-f]`).ReplaceAllString(first, "${1}z")
		require.NotEqual(t, first, bad)
		require.NoError(t, os.WriteFile(logs[0], []byte(bad+"\n"+rest), 0o600))
	}
	for name, damage := range map[string]func(*testing.T, *bench){
		"lost":    func(_ *testing.T, b *bench) { b.lose(config) },
		"damaged": damageLine,
	} {
		for _, dies := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: " and dies"}[dies], func(t *testing.T) {
				b := newBench(t)
				b.write("a", "a\n")
				b.write(".decree/config.yml", config)
				for range 3 {
					b.run(0, 0, shell("echo more >>a"))
					b.write(".decree/routines/r.sh", routine) // which the store has beside it
				}
				over := false
				b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action { return disktest.Action{Die: over && dies && st.Write} })
				r := b.commanded(func() int {
					b.disk = nil
					damage(t, b)
					b.write("a", "done\n")
					require.NoError(t, os.RemoveAll(filepath.Join(b.root, ".decree")))
					over = true
					return 0
				})
				var notes []string
				r.Reader.opt.Note = func(note string) { notes = append(notes, note) }
				res, err := r.Run(ctx, command(b))
				_ = r.Close()
				b.disk = nil
				if dies {
					require.Error(t, err)
					with(b, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
				} else {
					require.NoError(t, err)
					require.Equal(t, 0, res.ExitCode, res.Notes)
					require.Equal(t, name == "lost", strings.Contains(strings.Join(notes, "\n"), "cannot be written again: .decree/config.yml"))
				}
				newest := with(b, func(r *Recorder) (*history.Record, error) {
					list, err := r.history.List(history.ListOptions{Limit: 1})
					return list.Records[0], err
				})
				require.Equal(t, dies, newest.Status == history.StatusInterrupted)
				require.Equal(t, routine, b.read(".decree/routines/r.sh"))
				require.Equal(t, name == "lost", !exists(filepath.Join(b.root, ".decree/config.yml")))
				b.revert(newest.ID)
			})
		}
	}
}

// TestPutBackThatLacksAContent: a put-back that died before its record is ended as such, though a
// file of the run's directory is gone and the store has lost it too.
func TestPutBackThatLacksAContent(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.run(500, 0, nil)
	before := s.tree()
	s.dying("WriteAt records.jsonl", func(r *Recorder) error { return s.execute(r, 3, nil) })
	require.Equal(t, before, s.tree(), "it is put back, and not recorded")
	o := with(s.bench, func(r *Recorder) (*history.Opened, error) {
		open, _, err := r.history.ListOpen()
		require.Len(t, open, 1)
		return open[0], err
	})
	end, ok := endingOf(o)
	require.True(t, ok)
	require.NoError(t, os.Remove(filepath.Join(s.root, ".decree", "runs", o.Record.ID, diffFile)))
	with(s.bench, func(r *Recorder) (store.Compacted, error) {
		return r.store.Compact(t.Context(), func(h tree.Hash) bool { return h != end.Files[diffFile] }, store.CompactOptions{Force: true})
	})
	done := with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
	require.Contains(t, done[0].What, "without what the store has lost")
	rec := with(s.bench, func(r *Recorder) (*history.Record, error) { return r.history.Get(o.Record.ID) })
	require.Equal(t, history.StatusReverted, rec.Status)
	s.checkpoint(CheckpointOptions{})
	require.Equal(t, before, s.tree())
}
