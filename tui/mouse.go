package tui

import tea "charm.land/bubbletea/v2"

// mouse does what a click or the wheel is for where the pointer is.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		by := 3
		if at.Button == tea.MouseWheelUp {
			by = -3
		}
		return m.wheel(at.X, by)
	case tea.MouseClickMsg:
		if at.Button != tea.MouseLeft || m.typing != nil {
			return nil
		}
		m.toast = ""
		for _, z := range m.zones {
			if at.Y == z.y && at.X >= z.x0 && at.X < z.x1 {
				return z.click()
			}
		}
	}
	return nil
}

func (m *model) wheel(x, by int) tea.Cmd {
	switch {
	case m.sheet != nil:
		m.sheet.moveLine(by)
		return nil
	case m.blamed != nil:
		m.blamed.cursor = max(0, min(m.blamed.cursor+by, m.blamed.file.Lines-1))
		return nil
	case m.help:
		m.helpTop += by
		return nil
	case m.health != nil:
		m.health.top += by
		return nil
	case m.width >= wide && x >= m.leftColumns():
		m.record.moveLine(by)
		m.focus = inDiff
		return nil
	}
	return m.move(by)
}
