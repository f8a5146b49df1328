package recorder

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPiped: who has read enough closes next what the writer may still read from.
func TestPiped(t *testing.T) {
	var ended atomic.Bool
	r := Piped(func(w io.Writer) error {
		_, err := w.Write(make([]byte, 100))
		for range 1000 {
			runtime.Gosched()
		}
		ended.Store(true)
		return err
	})
	_, err := r.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.True(t, ended.Load())

	damaged := errors.New("damaged")
	r = Piped(func(w io.Writer) error { _, _ = io.WriteString(w, "one"); return damaged })
	text, err := io.ReadAll(r)
	require.ErrorIs(t, err, damaged)
	require.Equal(t, "one", string(text))
	require.NoError(t, r.Close())
}
