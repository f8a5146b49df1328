package tui

import (
	"context"

	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"decree/planner"
	"decree/recorder"
	"decree/timeline"
)

// Options are what both faces of the terminal need.
type Options struct {
	// Read is the project that is looked at. The caller closes it.
	Read *recorder.Reader
	// Change opens the project to change it; events of what it does go to the function.
	Change func(ctx context.Context, create bool, events func(recorder.Event)) (*recorder.Recorder, error)
	// Editor is the command that opens a file, by its path on this machine; nil: none is known.
	Editor   func(path string) *exec.Cmd
	Now      func() time.Time
	Location *time.Location

	Stdin, Stdout *os.File
	Environ       []string
	Filter        string // to begin with
	Echo          bool   // of Talk: answers are not typed on a terminal, which would show them
}

// perPage is how many rows of the timeline are read at once.
const perPage = 60

// Run shows the timeline on the terminal until the user ends it.
func Run(ctx context.Context, o Options) error {
	m := newModel(ctx, o)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.Stdin), tea.WithOutput(o.Stdout), tea.WithEnvironment(o.Environ))
	m.send = program.Send
	defer m.stop()
	_, err := program.Run()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a signal ended it, which is no failure of its
	}
	return err
}

// engine is what plans and performs, for both faces.
type engine struct {
	Options
	plans    *planner.Planner
	happened func(recorder.Event)
}

func newEngine(o Options) *engine {
	e := &engine{Options: o}
	e.plans = planner.New(planner.Options{Barred: timeline.Barred, Change: func(ctx context.Context, create bool) (*recorder.Recorder, error) {
		return o.Change(ctx, create, func(ev recorder.Event) {
			if e.happened != nil {
				e.happened(ev)
			}
		})
	}})
	return e
}

// checkpoint makes one.
func (e *engine) checkpoint(ctx context.Context, description string) error {
	return e.plans.Use(ctx, true, func(rec *recorder.Recorder) error {
		_, err := rec.Checkpoint(ctx, recorder.CheckpointOptions{Description: description})
		return err
	})
}

// label gives a record a label.
func (e *engine) label(ctx context.Context, name, id string) error {
	return e.plans.Use(ctx, false, func(rec *recorder.Recorder) error {
		_, err := rec.SetLabel(ctx, name, id)
		return err
	})
}
