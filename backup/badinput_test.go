package backup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/project"
)

// TestAnotherVersionsMarkerStopsAll: what a newer decree has written is neither read nor written over.
func TestAnotherVersionsMarkerStopsAll(t *testing.T) {
	for _, file := range []string{markerFile, manifestFile} {
		w := newWorld(t)
		w.rewrite("target/tree/"+file, func(s string) string {
			return strings.Replace(strings.Replace(s, `"version":1`, `"version":2`, 1), `"version": 1`, `"version": 2`, 1)
		})
		for name, do := range map[string]func(o Options) error{
			"backup": func(o Options) error { _, err := generate(t.Context(), o); return err },
			"drill":  func(o Options) error { _, err := Drill(t.Context(), o, false); return err },
			"prune":  func(o Options) error { _, err := o.Prune(t.Context(), project.BackupRetention{}, false); return err },
		} {
			err := w.with(do)
			require.ErrorContains(t, err, "format version 2 is newer than the newest that this decree can read (1)", "%s %s", file, name)
			require.Equal(t, project.Refused, project.KindOf(err))
			require.Equal(t, "use the decree that made these backups, or a newer one", project.HintOf(err))
		}
	}
}

// TestTwoMachinesAtOnce: of two that have read the same manifest.json one counts, and the other is told.
func TestTwoMachinesAtOnce(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		var places []*Place
		for range 2 {
			p, err := One(t.Context(), o.Target, "tree")
			require.NoError(t, err)
			places = append(places, p)
		}
		for i, p := range places {
			m := *p.Manifest
			m.Host = []string{"first", "second"}[i]
			err := p.commit(t.Context(), &m)
			if i == 0 {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "another machine or command was faster")
			require.Equal(t, project.Refused, project.KindOf(err))
		}
		p, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		require.Equal(t, "first", p.Manifest.Host)
		require.True(t, p.marked())
		return nil
	}))
}
