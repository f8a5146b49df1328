package backup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/project"
)

// deleting is a target as object storage is one. before is called once, when a pack is about to be deleted.
type deleting struct {
	target.Target
	before func() error
}

func (d *deleting) Delete(ctx context.Context, name string) error {
	if strings.HasSuffix(name, ".pack") && d.before != nil {
		before := d.before
		d.before = nil
		if err := before(); err != nil {
			return err
		}
	}
	return d.Target.Delete(ctx, name)
}

// outdated has a target with a pack that was condemned more than a day ago and is not yet deleted, and the content that it has, which
// no record names, in the tree again.
func outdated(t *testing.T) (w *world, content string) {
	w = newWorld(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		content += fmt.Sprintf("%016x\n", rnd.Uint64())
	}
	for _, text := range []string{"before", content, "other"} {
		w.write("tree/back", text)
		w.clk = w.clk.Add(time.Hour)
		require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), asBucket(o, true)); return err }))
	}
	out, err := w.prune(nil)
	require.NoError(t, err)
	require.Empty(t, out.Held)
	place := w.place()
	require.NotEmpty(t, place.Manifest.Condemned, "nothing is outdated, so nothing is looked at")
	require.Empty(t, place.Manifest.Going)
	w.clk = w.clk.Add(25 * time.Hour)
	w.write("tree/back", content)
	return w, content
}

func (w *world) place() (place *Place) {
	require.NoError(w.t, w.with(func(o Options) (err error) {
		place, err = One(w.t.Context(), o.Target, "tree")
		return err
	}))
	return place
}

// prune keeps the newest generation only. before is called when the first pack is about to be deleted.
func (w *world) prune(before func() error) (out *Prune, err error) {
	require.NoError(w.t, w.with(func(o Options) error {
		o.Target = &deleting{Target: o.Target, before: before}
		_, err := Drill(w.t.Context(), o, false)
		require.NoError(w.t, err)
		return nil
	}))
	err = w.with(func(o Options) (err error) {
		o.Target = &deleting{Target: o.Target, before: before}
		out, err = o.Prune(w.t.Context(), project.BackupRetention{Last: 1}, false)
		return err
	})
	return out, err
}

func (w *world) bucketBackup() (made *Made, err error) {
	err = w.with(func(o Options) (err error) {
		made, err = generate(w.t.Context(), asBucket(o, true))
		return err
	})
	return made, err
}

// TestAPackThatGoesIsNotTakenFrom: a backup that another machine makes while a prune deletes packs is whole afterwards, though what
// it has was in one of these.
func TestAPackThatGoesIsNotTakenFrom(t *testing.T) {
	w, content := outdated(t)
	var made *Made
	_, err := w.prune(func() (err error) {
		made, err = w.bucketBackup()
		return err
	})
	require.ErrorIs(t, err, target.ErrConflict, "the prune ends after the backup has counted")
	require.NotNil(t, made, "no pack was deleted")
	require.Contains(t, w.generations("after the prune"), made.Manifest.Generation())
	require.Greater(t, made.NewBytes, int64(len(content)/3))

	// What it still lists as going is gone with the next.
	require.NotEmpty(t, w.place().Manifest.Going)
	out, err := w.prune(nil)
	require.NoError(t, err)
	require.Empty(t, out.Held)
	require.Empty(t, w.place().Manifest.Going)
	w.generations("after another prune")
}

// TestAPruneDuringABackup is the other order: the backup has looked before the prune, and is refused.
func TestAPruneDuringABackup(t *testing.T) {
	w, _ := outdated(t)
	pruned := false
	err := w.with(func(o Options) error {
		o.Target = &flat{Target: o.Target, at: "/archives/", once: func() {
			out, err := w.prune(nil)
			require.NoError(t, err)
			require.Positive(t, out.Packs)
			pruned = true
		}}
		_, err := generate(t.Context(), o)
		return err
	})
	require.True(t, pruned)
	require.ErrorIs(t, err, target.ErrConflict)
	require.ErrorContains(t, err, "its generation stands, and this one may stand before it", "where nobody can lock a place")
	w.generations("after the refusal")
	made, err := w.bucketBackup()
	require.NoError(t, err)
	require.Contains(t, w.generations("made again"), made.Manifest.Generation())
}

// TestAPruneThatDied leaves packs that are going: backups send what they need of them, and the next prune deletes them.
func TestAPruneThatDied(t *testing.T) {
	w, _ := outdated(t)
	died := errors.New("died")
	_, err := w.prune(func() error { return died })
	require.ErrorIs(t, err, died)
	going := w.place().Manifest.Going
	require.NotEmpty(t, going)
	made, err := w.bucketBackup()
	require.NoError(t, err)
	require.Equal(t, going, made.Manifest.Going)
	for _, h := range going {
		require.NotContains(t, made.Manifest.Packs, h)
	}
	_, err = w.prune(nil)
	require.NoError(t, err)
	require.Empty(t, w.place().Manifest.Going)
	require.NoError(t, w.with(func(o Options) error {
		for _, h := range going {
			_, _, err := o.Target.Open(t.Context(), w.place().packName(h), 0, 0)
			require.True(t, isMissing(err))
		}
		return nil
	}))
	w.generations("after all")
}

// TestACondemnedPackIsNamedAgain: before a prune has said that it goes, a backup takes what it needs of it, and it stays.
func TestACondemnedPackIsNamedAgain(t *testing.T) {
	w, content := outdated(t)
	made, err := w.bucketBackup()
	require.NoError(t, err)
	require.Less(t, made.NewBytes, int64(len(content)/3))
	w.clk = w.clk.Add(48 * time.Hour)
	_, err = w.prune(nil)
	require.NoError(t, err)
	require.Contains(t, w.generations("after the prune"), made.Manifest.Generation())
}
