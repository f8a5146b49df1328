package cmd

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"decree/recorder"
)

// patience is how long an operation runs before people want to see it move.
const patience = time.Second

// meter shows progress on a terminal. Its methods may be called on nil, where
// there is nothing to show it on, and by several goroutines at once.
type meter struct {
	mu    sync.Mutex
	out   *os.File
	now   func() time.Time
	began time.Time
	phase string // that the bar shows
	total int64
	bar   *progressbar.ProgressBar
}

// phaseWords say of what a phase is, where its name does not.
var phaseWords = map[string]string{
	"recording": "recording files", "comparing": "comparing files", "moving": "moving files",
	"checking": "checking what is stored", "exporting": "exporting records",
	"freeing": "freeing space", "finding what records need": "finding the contents that records need",
}

// newMeter is a meter on stderr, or nil where it is no terminal or -q is given.
func (s *session) newMeter() *meter {
	if s.global.quiet || s.global.events || !isTerminal(s.env.Stderr) || s.env.get("TERM") == "dumb" {
		return nil
	}
	return &meter{out: s.env.Stderr, now: s.env.Now}
}

// update shows how far a phase has come, once the operation has lasted a second.
func (m *meter) update(p recorder.Progress) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began.IsZero() {
		m.began = m.now()
	}
	if m.now().Sub(m.began) < patience {
		return
	}
	if p.Phase != m.phase || p.Total != m.total {
		m.clear()
		m.phase, m.total = p.Phase, p.Total
	}
	if m.bar == nil {
		m.bar = m.newBar()
	}
	text := phaseWords[m.phase]
	if text == "" {
		text = m.phase
	}
	if p.Bytes > 0 {
		text += ", " + size(p.Bytes)
	}
	m.bar.Describe(text)
	_ = m.bar.Set64(p.Done)
}

func (m *meter) newBar() *progressbar.ProgressBar {
	total := m.total
	if total == 0 {
		total = -1 // unknown: a spinner with a count
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(m.out), progressbar.OptionSetWidth(30), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		// Without a clock of its own: a spinner that turned by itself would go on
		// turning over a question or a command's output.
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(total > 0))
}

// clear takes the bar off the screen; the caller holds mu.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}

// pause takes the bar off the screen, so that something else can be printed.
func (m *meter) pause() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}

// stop ends the operation that the meter shows: the next one waits its own second.
func (m *meter) stop() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.began, m.phase, m.total = time.Time{}, "", 0
}
