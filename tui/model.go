package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"decree/history"
	"decree/recorder"
	"decree/timeline"
)

// pane is a part of the screen that keys go to.
type pane int

const (
	inTimeline pane = iota
	inFiles
	inDiff
)

// wide is from how many columns on the timeline and a record stand side by side.
const wide = 100

// The smallest screen that is drawn.
const (
	leastColumns = 40
	leastRows    = 8
)

// model is all that the terminal shows. It is used by bubbletea's goroutine alone.
type model struct {
	*engine
	ctx    context.Context
	stop   context.CancelFunc
	send   func(tea.Msg)
	styles styles

	width, height int
	focus         pane

	list   list
	record recordPane
	sheet  *sheet // a plan, or another thing that is asked about; nil: none
	blamed *blamePane
	health *healthPane
	help   bool

	helpTop int // the first line of it that is shown

	input textinput.Model
	// typing takes what is typed, or says what is wrong with it; nil: nothing is typed.
	typing func(text string) (tea.Cmd, error)

	barred  map[string]string
	toast   string // said at the bottom until the next key
	bad     bool   // the toast is about something that did not work
	working string // what is being done; "" for nothing
	zones   []zone

	whenColumns int // how wide the times are that are shown
}

// list is the timeline.
type list struct {
	filter timeline.Filter
	typed  string // the filter's text
	rows   []timeline.Row
	next   string
	notes  []string
	open   map[string]bool // rows that show what is inside them
	cursor int
	top    int
	err    error

	loading bool
}

// entry is a line of the timeline: a row, or one inside it.
type entry struct {
	row    *timeline.Row
	depth  int
	ofRace bool // it is a candidate of the race that it is in
}

// entries are the lines of the timeline.
func (l *list) entries() []entry {
	out := make([]entry, 0, len(l.rows))
	for i := range l.rows {
		r := &l.rows[i]
		out = append(out, entry{row: r})
		if l.open[key(r)] {
			for k := range r.Inner {
				out = append(out, entry{&r.Inner[k], 1, r.Kind == timeline.Race})
			}
		}
	}
	return out
}

// key names a row: a record and what it found have one id. Of what is folded the oldest is
// named, since more comes on top.
func key(r *timeline.Row) string {
	id := r.ID
	if n := len(r.Inner); n > 0 {
		id = r.Inner[n-1].ID
	}
	return string(r.Kind) + " " + id
}

func newModel(ctx context.Context, o Options) *model {
	ctx, stop := context.WithCancel(ctx)
	m := &model{engine: newEngine(o), ctx: ctx, stop: stop, styles: newStyles(true), input: textinput.New(), send: func(tea.Msg) {}}
	m.list.open = map[string]bool{}
	m.happened = func(e recorder.Event) { m.send(e) }
	m.input.SetVirtualCursor(true)
	if err := m.setFilter(o.Filter); err != nil {
		m.list.err = err
	}
	m.take(m.loading("")().(pageMsg))
	m.closeRecord() // Init opens it, with what reads it
	return m
}

// The messages of what goes on beside the screen.
type (
	pageMsg struct {
		page   *timeline.Page
		typed  string // the filter that it is of
		first  bool
		barred map[string]string
		err    error
	}
	tickMsg time.Time
	// loadedMsg: more of a document is known.
	loadedMsg struct{}
	doneMsg   struct {
		text string
		err  error
	}
)

func (m *model) Init() tea.Cmd {
	return tea.Batch(tea.RequestBackgroundColor, m.tick(), m.opened())
}

// everySecond is how often it is looked for new records.
const everySecond = time.Second

func (m *model) tick() tea.Cmd {
	return tea.Tick(everySecond, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// loading reads the page of the timeline behind the cursor, "" for the first, beside the screen.
func (m *model) loading(cursor string) tea.Cmd {
	f, typed := m.list.filter, m.list.typed
	f.Now = m.Now()
	return func() tea.Msg {
		msg := pageMsg{typed: typed, first: cursor == ""}
		msg.page, msg.err = timeline.List(m.ctx, m.Read, f, cursor, perPage)
		if msg.first && msg.err == nil {
			msg.barred, msg.err = timeline.Barred(m.Read)
		}
		return msg
	}
}

func (m *model) setFilter(text string) error {
	f, err := timeline.ParseFilter(text, m.Location, m.Now())
	if err == nil {
		m.list.filter, m.list.typed = f, text
	}
	return err
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.styles = newStyles(msg.IsDark())
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		return m, m.typed(msg)
	case tea.MouseMsg:
		return m, m.mouse(msg)
	case tickMsg:
		if m.list.loading {
			return m, m.tick()
		}
		return m, tea.Batch(m.tick(), m.loading(""))
	case pageMsg:
		return m, m.take(msg)
	case loadedMsg:
		m.loaded()
	case recorder.Event:
		m.progress(msg)
	case plannedMsg:
		return m, m.planned(msg)
	case performedMsg:
		return m, m.performed(msg)
	case doneMsg:
		m.done(msg)
		return m, m.loading("")
	case blameMsg:
		m.blame(msg)
	case healthMsg:
		m.showHealth(msg)
	case insideMsg:
		m.record.inside = msg
	}
	return m, nil
}

// take puts a page of the timeline in its place.
func (m *model) take(msg pageMsg) tea.Cmd {
	l := &m.list
	if msg.typed != l.typed {
		return nil // of another filter
	}
	if !msg.first {
		l.loading = false
	}
	if l.err = msg.err; msg.err != nil {
		return nil
	}
	if msg.barred != nil {
		m.barred = msg.barred
	}
	var at string
	entries := l.entries()
	if l.cursor < len(entries) {
		at = key(entries[l.cursor].row)
	}
	before := l.cursor
	switch {
	case !msg.first:
		l.rows, l.next = append(l.rows, msg.page.Rows...), msg.page.Next
	case l.join(msg.page):
	default:
		l.rows, l.next = msg.page.Rows, msg.page.Next
	}
	if msg.first {
		l.notes = msg.page.Notes
	}
	entries = l.entries()
	if i := slices.IndexFunc(entries, func(e entry) bool { return key(e.row) == at }); i >= 0 {
		l.cursor = i
		if before > 0 || l.top > 0 { // what stands on the screen stays where it is
			l.top += i - before
		} else if i > 0 {
			l.cursor = 0 // who looks at the newest sees the newest
		}
	}
	l.cursor = max(0, min(l.cursor, len(entries)-1))
	return m.opened()
}

// join puts a new first page on top of what is there; false where they do not meet.
func (l *list) join(page *timeline.Page) bool {
	n := len(page.Rows)
	if n == 0 || page.Next == "" || len(l.rows) <= n {
		return false
	}
	last := key(&page.Rows[n-1])
	i := slices.IndexFunc(l.rows, func(r timeline.Row) bool { return key(&r) == last })
	if i < 0 {
		return false
	}
	l.rows = append(slices.Clone(page.Rows), l.rows[i+1:]...)
	return true
}

// current is the row at the cursor; nil where there is none.
func (m *model) current() *timeline.Row {
	if e := m.list.entries(); m.list.cursor < len(e) {
		return e[m.list.cursor].row
	}
	return nil
}

// history is what the diff of a record is read from.
func (m *model) history() history.Reader { return m.Read.History() }

// say puts a line at the bottom.
func (m *model) say(format string, args ...any) { m.toast, m.bad = fmt.Sprintf(format, args...), false }

// fail says what did not work, and what can be done about it.
func (m *model) fail(err error) { m.refuse(sayError(err)) }

// refuse says why something cannot be done.
func (m *model) refuse(why string) { m.toast, m.bad = why, true }

// sayError is an error with its hint, in a line.
func sayError(err error) string {
	text := err.Error()
	var hint interface{ Hint() string }
	if errors.As(err, &hint) && hint.Hint() != "" {
		text += ". " + hint.Hint()
	}
	return clean(text)
}

func (m *model) progress(e recorder.Event) {
	if e.Kind != recorder.Progressed || m.working == "" {
		return
	}
	m.working = e.Progress.Phase
	if p := e.Progress; p.Total > 0 {
		m.working += fmt.Sprintf(" %d %%", 100*p.Done/p.Total)
	}
}

func (m *model) done(msg doneMsg) {
	m.working = ""
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	m.sheet = nil
	m.say("%s", msg.text)
}
