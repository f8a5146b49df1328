package tui

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"decree/history"
	"decree/timeline"
	"decree/tree"
)

// key does what a key is for where it is pressed.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+z" {
		return tea.Suspend
	}
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.toast = ""
	switch {
	case m.typing != nil:
		return m.typed(k)
	case m.help:
		m.helpKey(name)
		return nil
	case m.sheet != nil:
		return m.sheetKey(name)
	case m.blamed != nil:
		return m.blameKey(name)
	case m.health != nil:
		return m.keyInHealth(name)
	}
	if cmd, ok := m.moveKey(name); ok {
		return cmd
	}
	return m.actKey(name)
}

// moveKey moves the cursor of the pane that has the keys.
func (m *model) moveKey(name string) (tea.Cmd, bool) {
	if by := m.stepOf(name); by != 0 {
		return m.move(by), true
	}
	if by := asideOf(name); by != 0 {
		m.record.moveAside(by)
		return nil, true
	}
	switch name {
	case "tab", "shift+tab":
		m.focus = (m.focus + map[string]pane{"tab": 1, "shift+tab": 2}[name]) % 3
		if m.focus != inTimeline && m.record.doc == nil {
			m.focus = inTimeline
		}
		return nil, true
	case "enter", "right":
		return m.enter(), true
	case "esc", "left":
		return m.leave(), true
	case "alt+esc": // two of them at once
		return tea.Batch(m.leave(), m.leave()), true
	case "n", "N":
		if m.focus == inDiff {
			m.record.nextHunk(map[string]int{"n": 1, "N": -1}[name])
		}
		return nil, true
	}
	return nil, false
}

// stepOf is how many lines a key goes down, wherever there are lines; 0: it is none that moves.
func (m *model) stepOf(name string) int {
	switch name {
	case "j", "down":
		return 1
	case "k", "up":
		return -1
	case "pgdown", "ctrl+f", "ctrl+d":
		return m.pageRows()
	case "pgup", "ctrl+b":
		return -m.pageRows()
	case "g", "home":
		return -far
	case "G", "end":
		return far
	}
	return 0
}

// far is further than any list is long.
const far = 1 << 40

func (m *model) pageRows() int { return max(1, m.height-8) }

func (m *model) move(by int) tea.Cmd {
	switch m.focus {
	case inFiles:
		m.record.moveFile(by)
		return nil
	case inDiff:
		m.record.moveLine(by)
		return nil
	}
	l := &m.list
	n := len(l.entries())
	l.cursor = max(0, min(l.cursor+by, n-1))
	cmd := m.opened()
	if l.next != "" && !l.loading && l.cursor > n-perPage/3 {
		l.loading = true
		return tea.Batch(cmd, m.loading(l.next))
	}
	return cmd
}

// enter goes into what is at the cursor.
func (m *model) enter() tea.Cmd {
	switch row := m.current(); {
	case m.focus == inFiles:
		m.focus = inDiff
	case m.focus == inDiff || row == nil:
	case len(row.Inner) > 0:
		if m.list.open[key(row)] = !m.list.open[key(row)]; m.list.open[key(row)] {
			return m.move(1)
		}
	case m.record.doc != nil:
		m.focus = inFiles
	default:
		m.say("%s", m.record.source.none)
	}
	return nil
}

// leave goes out of it again.
func (m *model) leave() tea.Cmd {
	l := &m.list
	switch {
	case m.focus > inTimeline:
		m.focus--
		return nil
	case m.foldHere():
		return m.opened()
	case l.typed != "":
		cmd, _ := m.filterBy("") // which is understood
		return cmd
	}
	return nil
}

// foldHere folds the session or race that the cursor is in.
func (m *model) foldHere() bool {
	l := &m.list
	entries := l.entries()
	if l.cursor >= len(entries) {
		return false
	}
	at := l.cursor
	for at > 0 && entries[at].depth > 0 {
		at--
	}
	k := key(entries[at].row)
	if !l.open[k] {
		return false
	}
	delete(l.open, k)
	l.cursor = at
	return true
}

func (m *model) filterBy(text string) (tea.Cmd, error) {
	if err := m.setFilter(text); err != nil {
		return nil, err
	}
	m.list.rows, m.list.next, m.list.cursor, m.list.top = nil, "", 0, 0
	return m.loading(""), nil
}

// operations are the keys that plan one.
var operations = map[string]string{"r": "revert", "a": "apply", "R": "restore", "p": "publish", "x": "discard", "u": "undo", "U": "redo"}

func (m *model) actKey(name string) tea.Cmd {
	if operation := operations[name]; operation != "" {
		return m.act(operation)
	}
	switch name {
	case "q":
		return tea.Quit
	case "?":
		m.help, m.helpTop = true, 0
	case "/":
		return m.prompt("/", m.list.typed, m.filterBy)
	case "space":
		m.mark()
	case "*", "d":
		m.markMany(name)
	case "c":
		return m.checkpointKey()
	case "l":
		return m.labelKey()
	case "b":
		return m.blameFile()
	case "h":
		return m.healthKey()
	case "o":
		return m.edit()
	case "Y":
		return m.copyLine(m.placeLine())
	}
	return nil
}

func (m *model) mark() {
	if m.focus == inTimeline {
		m.say("Mark files or hunks: enter goes to them")
		return
	}
	if m.record.noMarks {
		m.say("%s", outsideMarks)
	}
	m.record.mark(m.focus)
}

// markMany marks all files, or those of the directory at the cursor.
func (m *model) markMany(name string) {
	switch {
	case m.record.noMarks:
		m.say("%s", outsideMarks)
	case name == "*":
		m.record.markAll()
	default:
		m.record.markDirectory()
	}
}

// markDirectory marks the directory at the cursor with all below it, or the one that the file there is in.
func (v *diffView) markDirectory() {
	at := v.path()
	if at == "" {
		return
	}
	on, dir := len(v.marks.of(at)) == 0, at
	if !v.doc.isDir(at) {
		dir = at.Parent()
	}
	for _, p := range v.doc.within(dir) {
		if delete(v.marks, p); on {
			v.marks[p] = map[int]bool{whole: true}
		}
	}
	if !on {
		v.marks.notAbove(at)
	}
}

// prompt has a line typed at the bottom. What take refuses stays there, to be mended.
func (m *model) prompt(label, text string, take func(string) (tea.Cmd, error)) tea.Cmd {
	m.input.Prompt = label + " "
	m.input.SetValue(text)
	m.input.CursorEnd()
	m.input.SetWidth(max(10, m.width-len(label)-3))
	m.typing = take
	return m.input.Focus()
}

func (m *model) typed(msg tea.Msg) tea.Cmd {
	if m.typing == nil {
		return nil
	}
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter":
			cmd, err := m.typing(strings.TrimSpace(m.input.Value()))
			if err != nil {
				m.fail(err)
				return nil
			}
			m.typing = nil
			m.input.Blur()
			return cmd
		case "esc":
			m.typing = nil
			m.input.Blur()
			return nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}

func (m *model) checkpointKey() tea.Cmd {
	if why := m.barred["checkpoint"]; why != "" {
		m.refuse(why)
		return nil
	}
	return m.prompt("Description (may be empty):", "", func(text string) (tea.Cmd, error) {
		line := []string{"checkpoint"}
		if text != "" {
			line = append(line, "-d", text)
		}
		m.ask("Checkpoint", "Creating a checkpoint records the files as they are now. Nothing is changed.", line, func(ctx context.Context) (string, error) {
			return "Checkpoint created", m.checkpoint(ctx, text)
		})
		return nil, nil
	})
}

func (m *model) labelKey() tea.Cmd {
	row := m.current()
	if !actable(row) {
		m.say("Choose a record first: this line is none that can have a label")
		return nil
	}
	id := row.ID
	return m.prompt("Label:", "", func(name string) (tea.Cmd, error) {
		if name == "" {
			return nil, nil
		}
		if err := history.CheckLabel(name); err != nil {
			return nil, err
		}
		m.ask("Label", fmt.Sprintf("The label '%s' will name record %s, whatever it named before. A record with a label is not pruned.", clean(name), id), []string{"label", name, id},
			func(ctx context.Context) (string, error) {
				return "Labelled " + clean(name), m.label(ctx, name, id)
			})
		return nil, nil
	})
}

// edit opens the file at the cursor, as it is now.
func (m *model) edit() tea.Cmd {
	path := m.record.path()
	if path == "" || m.focus == inTimeline {
		m.say("Choose a file first: enter goes to the files")
		return nil
	}
	if m.Editor == nil {
		m.say("No editor is known: set EDITOR")
		return nil
	}
	cmd := m.Editor(filepath.Join(m.Read.Project().Root, filepath.FromSlash(string(path))))
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		if err != nil {
			return doneMsg{err: fmt.Errorf("the editor could not be used: %w", err)}
		}
		return doneMsg{text: "Back from the editor"}
	})
}

// copyLine puts a command line into the clipboard, by way of the terminal.
func (m *model) copyLine(line string) tea.Cmd {
	if line == "" {
		return nil
	}
	m.say("Copied: %s", clean(line))
	return tea.SetClipboard(line)
}

// placeLine is the command that shows what is at the cursor.
func (m *model) placeLine() string {
	row := m.current()
	if row == nil {
		return "decree log"
	}
	line := []string{"decree", "diff", row.ID}
	switch {
	case row.Kind == timeline.Damaged:
		return "decree doctor"
	case row.Kind == timeline.Outside:
		line = append(line, "--edits")
	case len(row.Inner) > 0, m.record.doc == nil:
		line[1] = "show"
	}
	if path := m.record.path(); path != "" && m.focus != inTimeline {
		line = append(line, "--", string(path))
	}
	return tree.ShellWords(line)
}

// sheetKey is a key where something is asked.
func (m *model) sheetKey(name string) tea.Cmd {
	s := m.sheet
	if by := m.stepOf(name); by != 0 {
		s.moveLine(by)
		return nil
	}
	s.moveAside(asideOf(name))
	switch name {
	case "y", "enter":
		return m.confirm()
	case "m", "o", "f":
		if s.conflict != nil {
			return m.wayOut(name)
		}
	case "esc", "n", "q":
		if m.working == "" {
			m.closeSheet()
			m.say("Nothing was changed")
		}
	case "Y":
		return m.copyLine(s.command)
	case "tab":
		s.nextHunk(1)
	case "space":
		if s.hunks {
			s.mark(inDiff)
		}
	}
	return nil
}
