package history

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/tree"
)

// FuzzOpened reads arbitrary open records. What is taken holds nothing that a
// recovery could act on outside of the tree, and is written as it was read.
func FuzzOpened(f *testing.F) {
	whole, err := (&Opened{Record: fullRecord(), Transaction: "2026112107015900-0", Rules: []Rule{{Path: "a/.gitignore"}, {Path: "caf\xe9/.gitignore"}},
		Effects: Effects{Status: []StatusEffect{{ID: "2026112107015900-0", Status: StatusUndone}}, Labels: map[string]string{"l": "2026112107015900-0"}}}).encode()
	require.NoError(f, err)
	f.Add(whole)
	with := func(field string) []byte {
		return []byte(`{"version":1,"record":` + string(fullRecord().appendCompact(nil)) + "," + field + "}")
	}
	for _, path := range []string{"../x/.gitignore", "/etc/.gitignore", ".git/.gitignore", ".decree/.gitignore", "a//b", "a\\u0000b", `\"a\\000b\"`, strings.Repeat("a/", 3000) + "b"} {
		f.Add(with(`"rules":[{"path":"` + path + `","sha256":"` + strings.Repeat("0", 64) + `"}]`))
	}
	for _, s := range []string{`"effects":{"status":[{"id":"../../x","status":"undone"}]}`, `"effects":{"labels":{"x":"../../x"}}`,
		`"tree":{"id":1}`, `"tree":{"files":[[[[`, `"extra":{"ending":{"files":{"../../x":""}}}`, `"transaction":"../x"`} {
		f.Add(with(s))
	}
	for _, s := range []string{"", "{}", `{"version":2}`, `{"version":1e99}`, `{"record":null}`, strings.Repeat(`{"record":`, 20000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := parseOpened(data)
		if err != nil {
			return
		}
		for _, r := range o.Rules {
			if !project.IsGitExclude(r.Path) { // of these only the recorded bytes are read
				require.NoError(t, tree.Path(r.Path).Check())
			}
		}
		_, _, ok := ParseID(o.Record.ID)
		require.True(t, ok)
		again, err := o.encode()
		require.NoError(t, err)
		twice, err := parseOpened(again)
		require.NoError(t, err)
		final, err := twice.encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(final))
	})
}

// FuzzLabels reads arbitrary labels.json files: what is in them names records
// or nothing, and a label can still be set or the file is refused.
func FuzzLabels(f *testing.F) {
	for _, s := range []string{"", "{}", `{"version":1,"labels":{"a":"2026112107015900-0"}}`, `{"version":2}`, `{"labels":{"a":"../../../etc/passwd"}}`,
		`{"labels":{"..":"x","\u0000":"","last":"2026112107015900-0"}}`, `{"labels":{"a":1}}`, `{"labels":[]}`, `{"labels":null}`, `{"labels":{"a":"2026112107015900-0","a":"x"}}`} {
		f.Add([]byte(s))
	}
	w := newWorld(f)
	rec := w.checkpoint()
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(w.stored(LabelsFile), data, 0o600))
		all, err := w.Labels()
		if err != nil {
			require.Error(t, w.SetLabel("mine", rec.ID), "a file that is not understood is not overwritten")
			return
		}
		for name := range all {
			ref, err := w.Resolve(name, w.clock.Location())
			require.True(t, err != nil || ref.ID == rec.ID, "%q is %q", name, ref.ID)
		}
		require.NoError(t, w.SetLabel("mine", rec.ID))
		ref, err := w.Resolve("mine", w.clock.Location())
		require.NoError(t, err)
		require.Equal(t, rec.ID, ref.ID)
	})
}
