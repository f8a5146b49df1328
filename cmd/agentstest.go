package cmd

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"decree/agent"
	"decree/disk"
	"decree/history"
	"decree/hookfile"
	"decree/project"
	"decree/recorder"
	"decree/view"
)

// testAgent runs the lines that stand in an agent's files as the agent would, with a
// made-up turn in a tree of its own, and says what was recorded of it.
func (s *session) testAgent(ctx context.Context, names []string) error {
	if len(names) != 1 {
		return usagef("test takes one AGENT").Hintf("for example 'decree agents test codex'")
	}
	lines, err := s.hookLines(names[0])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "decree-agents-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	trial := hookTrial{s: s, agent: names[0], root: filepath.Join(dir, "tree"), store: filepath.Join(dir, "store")}
	if err := os.MkdirAll(filepath.Join(trial.root, ".git"), 0o755); err != nil {
		return err
	}
	out := view.AgentTest{Agent: names[0], Lines: []string{}}
	for _, l := range lines {
		took, err := trial.fire(ctx, l)
		if err != nil {
			return err
		}
		out.Lines = append(out.Lines, l.line)
		if l.kind == agent.Prompt {
			out.PromptMS = took.Milliseconds()
			if err := os.WriteFile(filepath.Join(trial.root, "made.txt"), []byte("made by a turn\n"), 0o644); err != nil {
				return err
			}
		}
	}
	if out.Recorded, err = trial.recorded(); err != nil {
		return err
	}
	proof := hookfile.Proof{At: s.env.Now().UTC(), Recorded: out.Recorded}
	if base := s.where().Base(); base != "" {
		err = hookfile.NoteHeard(disk.OS, base, names[0], true, func(known *hookfile.Heard) { known.Proof = &proof })
	}
	if err != nil {
		s.note("that it was tried is not noted: " + s.describe(err))
	}
	return s.tellTest(out, trial.said.String())
}

// hookLine is the line that an agent runs for an event.
type hookLine struct {
	event, line string
	kind        agent.Kind
}

// hookLines are those of a turn, as they stand in the agent's files: the user's, else the tree's.
func (s *session) hookLines(name string) ([]hookLine, error) {
	places := []string{""}
	if root := s.agentRoot(); root != "" {
		places = append(places, root)
	}
	for _, root := range places {
		files, err := agent.Files(name, s.agentPlaces(), root)
		if err != nil {
			continue
		}
		lines, err := linesIn(name, files)
		if err == nil && root != "" {
			err = onlyDecrees(name, files, lines)
		}
		if err != nil || len(lines) > 0 {
			return lines, err
		}
	}
	return nil, refusedf("%s is not hooked", name).Hintf("'decree agents install %s' does that", name)
}

// onlyDecrees refuses lines in a tree's files that do more than decree's: they may have come with the tree.
func onlyDecrees(name string, files []agent.File, lines []hookLine) error {
	for _, l := range lines {
		if len(files) > 0 && l.line != files[0].Line(l.event) {
			return refusedf("the hook of %s in this tree's files is not the line that decree writes, and nothing was executed: %s", l.event, oneLine(l.line)).
				Hintf("look at it, then 'decree agents remove %[1]s --project' and 'decree agents install %[1]s --project'", name)
		}
	}
	return nil
}

func linesIn(name string, files []agent.File) (lines []hookLine, err error) {
	for _, kind := range []agent.Kind{agent.Session, agent.Prompt, agent.TurnEnd} {
		for _, event := range agent.Events(name, kind) {
			line := ""
			for _, f := range files {
				state := hookfile.Look(disk.OS, f)
				if state.Err != nil {
					return nil, state.Err
				}
				line = cmp.Or(line, f.Command(state.Text, event))
			}
			if line != "" {
				lines = append(lines, hookLine{event, line, kind})
				break // one event of each kind is a turn
			}
		}
	}
	return lines, nil
}

// hookTrial is a tree and a store for one made-up turn.
type hookTrial struct {
	s                  *session
	agent, root, store string
	said               bytes.Buffer // what the lines printed
}

// fire runs a line with a payload as the agent would send it.
func (t *hookTrial) fire(ctx context.Context, l hookLine) (time.Duration, error) {
	c := exec.CommandContext(ctx, "sh", "-c", l.line)
	c.Dir = t.root
	c.Env = append(t.s.env.Environ[:len(t.s.env.Environ):len(t.s.env.Environ)], "DECREE_STORE="+t.store)
	c.Stdin = bytes.NewReader(agent.Payload(agent.Event{
		Agent: t.agent, Name: l.event, Session: "decree-agents-test", Turn: "1", Directory: t.root, Prompt: "a trial of the hooks",
	}))
	c.Stdout, c.Stderr = &t.said, &t.said
	began := time.Now()
	if err := c.Run(); err != nil {
		return 0, refusedf("the line of %s failed: %s: %v", l.event, l.line, err)
	}
	return time.Since(began), nil
}

// recorded says whether the turn was recorded, with what was changed in it.
func (t *hookTrial) recorded() (bool, error) {
	where := t.s.where()
	where.RootFlag, where.StoreEnv = t.root, t.store
	rec, err := recorder.OpenReader(recorder.ReaderOptions{Disk: disk.OS, Where: where, Clock: t.s.env.Now, Location: t.s.env.Location, Note: func(string) {}})
	if project.KindOf(err) == project.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = rec.Close() }()
	list, err := rec.History().List(history.ListOptions{Keep: func(r *history.Record) bool {
		return r.Reason == history.Turn && r.Actor.Agent == t.agent && r.Status == history.StatusSucceeded && r.Changes.Created == 1
	}})
	return err == nil && len(list.Records) == 1, err
}

// tellTest says how the trial ended; one that recorded nothing is an error.
func (s *session) tellTest(out view.AgentTest, said string) error {
	if s.global.json {
		if err := s.printJSON(out); err != nil {
			return err
		}
	}
	if !out.Recorded {
		for line := range strings.Lines(said) {
			s.note(strings.TrimRight(line, "\n"))
		}
		e := refusedf("%s's lines ran, and no turn was recorded", out.Agent)
		if _, err := exec.LookPath("decree"); err != nil && !os.IsPermission(err) {
			return e.Hintf("there is no decree in $PATH: put it there, where %s finds it too", out.Agent)
		}
		return e.Hintf("'decree agents remove %s', then 'decree agents install %s'", out.Agent, out.Agent)
	}
	s.tell("%s: recorded: a made-up turn that changed a file, by the lines in its own files", out.Agent)
	s.tell("  the prompt's hook took %s", span(time.Duration(out.PromptMS)*time.Millisecond))
	for _, a := range agent.All() {
		if a.Name == out.Agent && a.Asks != "" {
			s.tell("  whether %s runs them, only it can show: %s", a.Name, a.Asks)
		}
	}
	return nil
}
