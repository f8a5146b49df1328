package backup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// dying is a target from which the process does not hear any more that a manifest.json was written.
type dying struct{ target.Target }

var errDead = errors.New("dead")

func (d *dying) Swap(ctx context.Context, name string, data []byte, was target.Version) (target.Version, error) {
	v, err := d.Target.Swap(ctx, name, data, was)
	if err == nil && strings.HasSuffix(name, "/"+manifestFile) {
		return "", errDead
	}
	return v, err
}

// TestOneThatDiedIsNoOtherCopy: a generation that was acknowledged, although a death kept that from being remembered, was made
// from here; one that the store knows nothing of was not.
func TestOneThatDiedIsNoOtherCopy(t *testing.T) {
	for _, noted := range []bool{true, false} {
		w := newWorld(t)
		require.ErrorIs(t, w.with(func(o Options) error {
			o.Target = &dying{o.Target}
			_, err := generate(t.Context(), o)
			return err
		}), errDead)
		require.NoError(t, w.with(func(o Options) error {
			p := o.Recorder.Project()
			if !noted {
				require.NoError(t, Remember(p.Store, o.Target.String(), func(r *Remembered) { r.Written = nil }))
			}
			place, err := FindOwn(t.Context(), o.Target, &p.Site, o.Where, o.Host)
			require.NoError(t, err)
			require.True(t, place.marked(), "the marker has that of before")
			if noted {
				require.Equal(t, "tree", place.Name)
				require.Empty(t, place.Apart)
				require.Same(t, place, place.ToRead())
				return nil
			}
			require.Equal(t, "tree-2", place.Name)
			require.Contains(t, place.Apart, "another copy of this project goes on there, so the backups from here go to tree-2")
			require.Equal(t, "tree", place.ToRead().Name)
			return nil
		}))
	}
}

// TestWhoMadeWhatIsThere where the store remembers nothing of the target, or another one.
func TestWhoMadeWhatIsThere(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		p := &o.Recorder.Project().Site
		find := func(host string) string {
			place, err := FindOwn(t.Context(), o.Target, p, o.Where, host)
			require.NoError(t, err)
			return place.Name
		}
		memory := ReadMemory(p.Store)
		keep := func(change func(*Remembered)) {
			r := memory.Targets[o.Target.String()]
			change(&r)
			require.NoError(t, Remember(p.Store, o.Target.String(), func(now *Remembered) { *now = r }))
		}
		require.Equal(t, "tree", find("renamed"), "it is remembered")
		keep(func(r *Remembered) { *r = Remembered{} })
		require.Equal(t, "tree", find("h"))
		require.Equal(t, "tree-2", find("another machine"))
		require.NoError(t, Remember(p.Store, "/another/way/there", func(r *Remembered) { *r = memory.Targets[o.Target.String()] }))
		require.Equal(t, "tree", find("another machine"))
		return nil
	}))
	for name, want := range map[string]bool{"tool": false, "tool-2": true, "tool-10": true, "tool-": false, "tool-x": false, "tools": false} {
		require.Equal(t, want, numbered(name, "tool"), name)
	}
	require.Equal(t, Remembered{Name: "b"}, Remembered{Name: "a", Generation: "g", Problems: []string{"p"}}.in("b"))
}

// TestADateIsThatOfABackup: what a restore of the same day has replaced is not meant by the day.
func TestADateIsThatOfABackup(t *testing.T) {
	at := time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)
	p := &Place{Manifest: &Manifest{Timestamp: at.Add(day), Others: map[string]Generation{NameOf(at): {}, preRestore + NameOf(at.Add(time.Hour)): {}}}}
	for ref, want := range map[string]string{"2026-11-20": NameOf(at), "pre": preRestore + "2026-11-20T080000Z", "T08": preRestore + "2026-11-20T080000Z", "current": "2026-11-21T070000Z"} {
		name, err := p.Resolve(ref)
		require.NoError(t, err)
		require.Equal(t, want, name)
	}
	_, err := p.Resolve("2026-11-2")
	require.ErrorContains(t, err, "several generations have 2026-11-2 in their names: 2026-11-20T070000Z, 2026-11-21T070000Z")
}

// beside is a target on which another command of the project makes a backup when the place is read first.
type beside struct {
	target.Target
	once func()
}

func (b *beside) Read(ctx context.Context, name string, limit int64) ([]byte, target.Version, error) {
	if once := b.once; once != nil && strings.HasSuffix(name, "/"+markerFile) {
		b.once = nil
		once()
	}
	return b.Target.Read(ctx, name, limit)
}

// TestACommandOfTheSameProjectIsNoOtherCopy has a backup be made while another command looks where to write.
func TestACommandOfTheSameProjectIsNoOtherCopy(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		quiet := o.Target
		o.Target = &beside{quiet, func() {
			o := o
			o.Target = &flat{Target: quiet}
			_, err := generate(t.Context(), o)
			require.NoError(t, err)
		}}
		p := o.Recorder.Project()
		place, err := FindOwn(t.Context(), o.Target, &p.Site, o.Where, o.Host)
		require.NoError(t, err)
		require.Equal(t, "tree", place.Name)
		require.Empty(t, place.Apart)
		return nil
	}))
}
