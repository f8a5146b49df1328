package tui

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// blamePane is a file with what brought each of its lines. The lines are read when they are shown.
type blamePane struct {
	path   tree.Path
	file   *recorder.BlamedFile
	cursor int
	top    int
	left   int    // the columns of long lines that are scrolled out of sight
	here   string // what brought the line at the cursor

	begun int
	held  []blameLine
}

type blameLine struct{ id, when, what, text string }

type blameMsg struct {
	path tree.Path
	file *recorder.BlamedFile
	err  error
}

func (m *model) blameFile() tea.Cmd {
	path := m.record.path()
	if path == "" || m.focus == inTimeline {
		m.say("Choose a file first: enter goes to the files")
		return nil
	}
	m.working = "looking who brought each line"
	return func() tea.Msg {
		file, err := m.Read.Blame(m.ctx, path)
		return blameMsg{path, file, err}
	}
}

func (m *model) blame(msg blameMsg) {
	m.working = ""
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	m.blamed = &blamePane{path: msg.path, file: msg.file}
}

func (m *model) blameKey(name string) tea.Cmd {
	b := m.blamed
	b.cursor = max(0, min(b.cursor+m.stepOf(name), b.file.Lines-1))
	b.left = max(0, min(b.left+asideOf(name), longestRow))
	switch name {
	case "esc", "q", "b", "left":
		m.blamed = nil
	case "Y":
		return m.copyLine(tree.ShellWords([]string{"decree", "blame", string(b.path)}))
	}
	return nil
}

// errShown ends the reading of a blamed file behind the lines that are shown.
var errShown = errors.New("shown")

// lines are at most n lines from one on.
func (b *blamePane) lines(from, n int, clock func(recorder.Culprit) string) ([]blameLine, error) {
	n = min(n, b.file.Lines-from)
	if from >= b.begun && from+n <= b.begun+len(b.held) {
		return b.held[from-b.begun:][:n], nil
	}
	begin := max(0, from-windowRows/2)
	b.begun, b.held = begin, nil
	err := b.file.Each(func(i int, l recorder.Blamed) error {
		if i >= begin+windowRows+n {
			return errShown
		}
		if i < begin {
			return nil
		}
		id := "outside"
		if l.Record != nil && !l.Outside {
			id = l.Record.ID
		}
		text := l.Text
		if len(text) > longestRow {
			text = text[:longestRow]
		}
		b.held = append(b.held, blameLine{id, clock(l.Culprit), clean(view.WhatBrought(l.Culprit)), clean(string(text))})
		return nil
	})
	if err != nil && !errors.Is(err, errShown) {
		return nil, fmt.Errorf("%s: %w", view.ShownPath(b.path), err)
	}
	return b.held[min(from-begin, len(b.held)):][:max(0, min(n, len(b.held)-(from-begin)))], nil
}
