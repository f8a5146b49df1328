package cmd

import (
	"errors"

	"decree/backup"
	"decree/project"
	"decree/tree"
)

// restored is what restore --json prints.
type restored struct {
	Generation string        `json:"generation"`
	Counts     backup.Counts `json:"counts"`
	Before     tree.Text     `json:"before"` // where what was here is kept; "" where nothing was
	Held       *project.Held `json:"held"`   // whose messages, cron jobs and schedules wait for 'decree daemon --resume'; null: none do
	Record     string        `json:"record"` // of the tree's restore; "": none
	Notes      []string      `json:"notes"`  // what people are told besides
}

// note is for people and for programs.
func (r *restore) note(text string) {
	r.done.Notes = append(r.done.Notes, text)
	r.session.note(text)
}

// printDone prints what was restored, when err is no more than that a plugin did not take up its files.
func (r *restore) printDone(m *backup.Manifest, err error) error {
	if !r.global.json || err != nil && !errors.As(err, new(*backup.PluginError)) {
		return nil
	}
	r.done.Generation, r.done.Counts, r.done.Notes = r.src.name, m.Counts, append([]string{}, r.done.Notes...)
	r.done.Held, _ = r.rec.Project().Held() // one that cannot be read holds back too
	return r.printJSON(r.done)
}
