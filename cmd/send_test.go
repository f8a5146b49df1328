package cmd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/recorder"
)

// TestSentInTheSameMoment: a queue completes one message with the chain that another,
// just sent, has got. The sent one gets its own, in its file too, unless somebody has
// edited it since.
func TestSentInTheSameMoment(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "tree")
	inbox := filepath.Join(root, ".decree/inbox")
	require.NoError(t, os.MkdirAll(inbox, 0o755))
	rec, err := recorder.Open(context.Background(), recorder.Options{
		Disk: disk.OS, Where: project.Where{RootFlag: root, Cwd: root, Home: base, StoreEnv: filepath.Join(base, "store")},
		Create: true, Clock: func() time.Time { return time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC) }, Location: time.UTC,
	})
	require.NoError(t, err)
	defer rec.Close()
	const text = "---\nid: 2026112107015900-0\nchain: 2026112107015900\nseq: 0\ntype: task\n---\n"
	for _, name := range []string{"begun.md", "b.md", "2026112107015900-0.md", "edited.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(inbox, name), []byte(text+name+"\n"), 0o644))
	}
	s := &session{env: Env{Host: "h"}}
	for _, name := range []string{"b.md", "2026112107015900-0.md"} {
		m, err := message.Parse(name, []byte(text+name+"\n"))
		require.NoError(t, err)
		m = s.unshared(rec, name, m, []byte(text+name+"\n"))
		data, err := os.ReadFile(filepath.Join(inbox, name))
		require.NoError(t, err)
		now, err := message.Parse(name, data)
		require.NoError(t, err)
		require.Equal(t, m.Chain, now.Chain)
		require.NotEqual(t, "2026112107015900", now.Chain)
		require.Equal(t, now.Chain+"-0", m.ID)
		require.Contains(t, string(data), "---\n"+name+"\n")
	}
	m, err := message.Parse("edited.md", []byte(text+"sent\n"))
	require.NoError(t, err)
	require.Equal(t, m, s.unshared(rec, "edited.md", m, []byte(text+"sent\n")))
	data, err := os.ReadFile(filepath.Join(inbox, "edited.md"))
	require.NoError(t, err)
	require.Equal(t, text+"edited.md\n", string(data))
}
