package cmd

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/recorder"
)

// TestMeterIsPatient holds that a bar shows only after a second, and is gone
// before anything else is printed.
func TestMeterIsPatient(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer f.Close()
	now := time.Unix(1000, 0)
	m := &meter{out: f, now: func() time.Time { return now }}
	shown := func() string {
		data, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		return string(data)
	}
	m.update(recorder.Progress{Phase: "recording", Done: 1, Total: 10})
	now = now.Add(900 * time.Millisecond)
	m.update(recorder.Progress{Phase: "recording", Done: 2, Total: 10})
	m.stop()
	assert.Empty(t, shown())

	m.update(recorder.Progress{Phase: "recording", Done: 3, Total: 10})
	now = now.Add(1100 * time.Millisecond)
	m.update(recorder.Progress{Phase: "recording", Done: 4, Total: 10, Bytes: 2048})
	assert.Contains(t, shown(), "recording files, 2.0 KiB")
	m.pause()
	assert.Nil(t, m.bar)
	m.update(recorder.Progress{Phase: "moving"})
	assert.Contains(t, shown(), "moving")
	m.stop()
}

func TestNoMeter(t *testing.T) {
	var m *meter
	m.update(recorder.Progress{})
	m.pause()
	m.stop()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer f.Close()
	s := &session{env: Env{Stderr: f}}
	assert.Nil(t, s.newMeter(), "a file is no terminal")
}
