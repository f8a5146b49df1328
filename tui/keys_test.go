package tui

import (
	"bytes"
	"context"
	"io"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
)

// copier is a program whose first message is a line to copy; it ends when that was written.
type copier struct {
	m    *model
	line string
}

func (c copier) Init() tea.Cmd                       { return tea.Sequence(c.m.copyLine(c.line), tea.Quit) }
func (c copier) Update(tea.Msg) (tea.Model, tea.Cmd) { return c, nil }
func (c copier) View() tea.View                      { return tea.NewView("") }

// TestACommandIsCopiedByTheTerminal: what is copied reaches the terminal as OSC 52 with the line in base64, so
// that no byte of a name in it can end the sequence.
func TestACommandIsCopiedByTheTerminal(t *testing.T) {
	m := &model{}
	var out bytes.Buffer
	line := "decree diff 1 -- 'a\x1b\\\ab'"
	_, err := tea.NewProgram(copier{m, line}, tea.WithContext(context.Background()), tea.WithInput(io.Reader(nil)), tea.WithOutput(&out), tea.WithoutSignals()).Run()
	require.NoError(t, err)
	require.Contains(t, out.String(), "\x1b]52;c;ZGVjcmVlIGRpZmYgMSAtLSAnYRtcB2In\a")
	require.Equal(t, `Copied: decree diff 1 -- 'a\033\\007b'`, m.toast)
	require.Nil(t, m.copyLine(""))
}
