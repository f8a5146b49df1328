package cmd

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/acp"
	"decree/agent"
)

// TestProxyPassesOnAfterTheDeadline: a prompt whose recording does not come to its end is passed
// on when the time for it is over, not before, and that is said.
func TestProxyPassesOnAfterTheDeadline(t *testing.T) {
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	defer said.Close()
	expired, asked := make(chan time.Time), make(chan time.Duration, 1)
	p := &proxy{
		s: &session{env: Env{Stderr: said}}, name: "gemini", talk: acp.New("gemini"),
		events: make(chan *waiting, 1), // nobody takes from it
		after:  func(d time.Duration) <-chan time.Time { asked <- d; return expired },
	}
	heard := make(chan bool)
	go func() {
		p.heard([]agent.Event{{Agent: "gemini", Kind: agent.Prompt, Name: "session/prompt"}})
		close(heard)
	}()
	require.Equal(t, mostForTurn, <-asked)
	select {
	case <-heard:
		t.Fatal("it is passed on while its capture is under way")
	case expired <- time.Time{}: // taken only by who still waits
	}
	<-heard
	text, err := os.ReadFile(said.Name())
	require.NoError(t, err)
	require.Contains(t, string(text), "it was not done by the deadline")
}
