package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/agent"
	"decree/disk"
	"decree/history"
	"decree/hookfile"
	"decree/patch"
	"decree/project"
	"decree/tree"
	"decree/view"
)

// agentsOptions are agents' flags.
type agentsOptions struct{ all, user, project, dryRun bool }

func (s *session) agentsVerb() verb {
	var o agentsOptions
	return verb{
		name: "agents", category: agentCategory, args: "[install|remove [AGENT...] | test AGENT]", words: agentWords, most: anyWords,
		usage: "record each turn of your coding agents: put decree's hooks into them, or take them out",
		about: `Lists the coding agents that decree knows: whether each is on this machine, whether decree's hooks are in its own files, when one of them called last, in any tree, when "agents test" last tried them, and the last turn that was recorded in this tree. A hook that never calls may have to be allowed in the agent.

"agents install" puts the hooks in: from then on each prompt, and all that the agent does until it answers, is a record, which 'decree turns' lists and 'decree undo' takes back. Without AGENT it does so for all that are here. It shows what it changes, keeps all else in the file as it is, comments too, and a copy beside it, NAME.before-decree; said again it changes nothing. A file that is a link, read-only or not understood is refused and stays as it is. It says what an agent still asks of you.

The hooks go into the user's files, for all projects; with --project into files in this tree, which you may want to commit. An agent runs one line for each event, 'decree hook AGENT EVENT || :', which never fails and prints nothing: where decree is gone, the agent works on as before.

"agents remove" takes them out: the file is byte for byte what it was, unless somebody else has changed it since; then only decree's own entries go.

"agents test" runs the lines as they stand in the agent's files with a made-up turn, in a tree and a store of its own, and says whether it was recorded; of the tree's own files only lines that decree itself writes.

Agents: ` + list(agent.Names()) + `. Directories that CODEX_HOME, CLAUDE_CONFIG_DIR, COPILOT_HOME, PI_CODING_AGENT_DIR and XDG_CONFIG_HOME move are found. Any other agent is recorded by 'decree run -- AGENT'.`,
		examples: []example{
			{"decree agents", "which are here, and hooked?"},
			{"decree agents install --dry-run", "show what would be changed"},
			{"decree agents install codex gemini", "hook these two"},
			{"decree agents test codex", "does it work?"},
			{"decree agents remove codex", "and one no longer"},
		},
		exits: []exit{{"0", "done, or nothing was to be done"}, {"2", "no such AGENT"}, {"4", "a file was refused and is as it was; others may have been changed, and are named; test: not hooked, or nothing was recorded"}},
		flags: []cli.Flag{
			boolFlag(&o.all, "every agent that decree knows, here or not", "all"),
			boolFlag(&o.user, "the user's files, for all projects (the default)", "user"),
			boolFlag(&o.project, "files in this tree", "project"),
			boolFlag(&o.dryRun, "only show what would be changed", "dry-run"),
			s.jsonFlag(), s.rootFlag(), s.quietFlag(),
		},
		interruptible: true,
		action:        func(ctx context.Context) error { return s.agents(ctx, o) },
	}
}

func (s *session) agents(ctx context.Context, o agentsOptions) error {
	words := s.words()
	if o.user && o.project {
		return usagef("--user and --project cannot be used together").Hintf("choose one")
	}
	if len(words) == 0 {
		if o != (agentsOptions{}) {
			return usagef("these flags need 'install' or 'remove'").Hintf("for example 'decree agents install --dry-run'")
		}
		return s.listAgents()
	}
	for _, name := range words[1:] {
		if !agent.Known(name) {
			return usagef("no agent %s is known", quoteWord(name)).Hintf("known are %s; any other is recorded by 'decree run -- AGENT'", list(agent.Names()))
		}
	}
	if o.all && len(words) > 1 {
		return usagef("--all takes no AGENT").Hintf("leave one of the two out")
	}
	switch words[0] {
	case "install":
		return s.hookAgents(ctx, o, words[1:], hookfile.Install)
	case "remove":
		return s.hookAgents(ctx, o, words[1:], hookfile.Remove)
	case "test":
		return s.testAgent(ctx, words[1:])
	}
	return usagef("agents has no subcommand %s", quoteWord(words[0])).Hintf("'decree agents' lists them; 'decree agents install', remove and test do something")
}

// agentPlaces says where agents keep what is theirs.
func (s *session) agentPlaces() agent.Places {
	return agent.Places{Home: s.env.get("HOME"), Getenv: s.env.get}
}

// agentHere says whether an agent is on this machine: its program, or its directory.
func (s *session) agentHere(a agent.Agent) bool {
	for _, program := range a.Programs {
		if _, err := exec.LookPath(program); err == nil {
			return true
		}
	}
	dir := agent.Directory(a.Name, s.agentPlaces())
	info, err := os.Stat(dir)
	return dir != "" && err == nil && info.IsDir()
}

// agentScopes are the places where hooks may be: the user's files, and, in a tree, those of the project.
func (s *session) agentRoot() string {
	root, err := project.FindRoot(disk.OS, s.where())
	if err != nil {
		return ""
	}
	return root
}

// hooked says how far the hooks are in an agent's files below root, of the user if it is "".
func (s *session) hooked(name, root string) (view.HookedAgent, error) {
	out := view.HookedAgent{Hooked: string(agent.NotHooked), Files: []string{}}
	files, err := agent.Files(name, s.agentPlaces(), root)
	if err != nil {
		return out, nil //nolint:nilerr // it has none there
	}
	states := map[agent.Hooked]int{}
	for _, f := range files {
		state := hookfile.Look(disk.OS, f)
		if state.Err != nil {
			err = state.Err
		}
		if state.Hooked != agent.NotHooked {
			out.Files = append(out.Files, state.Path)
		}
		states[state.Hooked]++
	}
	switch {
	case states[agent.FullyHooked] == len(files):
		out.Hooked = string(agent.FullyHooked)
	case states[agent.NotHooked] < len(files):
		out.Hooked = string(agent.PartlyHooked)
	}
	return out, err
}

func (s *session) listAgents() error {
	last, err := s.lastTurns()
	if err != nil {
		return err
	}
	root := s.agentRoot()
	all := []view.Agent{}
	for _, a := range agent.All() {
		v := view.Agent{Agent: a.Name, Here: s.agentHere(a), Untried: a.Untried}
		var problem error
		if v.User, problem = s.hooked(a.Name, ""); problem == nil && root != "" {
			v.Project, problem = s.hooked(a.Name, root)
		}
		if problem != nil {
			v.Problem = strings.TrimSuffix(s.describe(problem), "; "+project.Unchanged)
		}
		if rec := last[a.Name]; rec != nil {
			v.LastTurn = rec.ID
		}
		heard := hookfile.ReadHeard(disk.OS, s.where().Base(), a.Name)
		v.LastEvent, v.LastProof = (*view.AgentEvent)(heard.Event), (*view.AgentProof)(heard.Proof)
		all = append(all, v)
	}
	if s.global.json {
		return s.printJSON(all)
	}
	return s.print(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout)
		for _, v := range all {
			if v.Problem != "" {
				s.note(v.Agent + ": " + v.Problem)
			}
		}
		t.add("AGENT", "HERE", "HOOKED", "LAST EVENT", "LAST PROOF", "LAST TURN IN THIS TREE")
		for _, v := range all {
			event, proof, turn := "", "", ""
			if v.LastEvent != nil {
				event = v.LastEvent.Kind + ", " + s.ago(v.LastEvent.At)
			}
			if v.LastProof != nil {
				proof = map[bool]string{true: "recorded", false: "failed"}[v.LastProof.Recorded] + ", " + s.ago(v.LastProof.At)
			}
			if rec := last[v.Agent]; rec != nil {
				turn = s.shortID(rec.ID) + ", " + s.ago(rec.Started)
			}
			t.add(v.Agent, yesNo(v.Here), hookedWords(v), oneLine(event), proof, turn)
		}
		return t.write(w)
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// hookedWords says in which files the hooks are.
func hookedWords(v view.Agent) string {
	var words []string
	for _, place := range []struct {
		view.HookedAgent
		of string
	}{{v.User, "yes"}, {v.Project, "in this tree"}} {
		switch place.Hooked {
		case string(agent.FullyHooked):
			words = append(words, place.of)
		case string(agent.PartlyHooked):
			words = append(words, place.of+", not all of it: install again")
		}
	}
	if v.Problem != "" {
		words = append(words, "not known")
	}
	if len(words) == 0 {
		return "no"
	}
	return strings.Join(words, "; ")
}

// lastTurns are the newest turns in this tree, by agent; none where it has no project.
func (s *session) lastTurns() (map[string]*history.Record, error) {
	rec, err := s.forReading()
	if err != nil {
		return nil, nil //nolint:nilerr // agents are listed everywhere
	}
	listing, err := rec.History().List(history.ListOptions{})
	if err != nil {
		return nil, err
	}
	last := map[string]*history.Record{}
	for _, r := range listing.Records {
		if r.Reason == "turn" && (last[r.Actor.Agent] == nil || last[r.Actor.Agent].Started.Before(r.Started)) {
			last[r.Actor.Agent] = r
		}
	}
	return last, nil
}

// hookAgents installs or removes, file by file. What one file refuses does not keep the others from it.
func (s *session) hookAgents(ctx context.Context, o agentsOptions, names []string, do func(context.Context, disk.Disk, agent.File, bool) (hookfile.Change, error)) error {
	removing := s.words()[0] == "remove"
	root := ""
	if o.project {
		var err error
		if root, err = project.FindRoot(disk.OS, s.where()); err != nil {
			return err
		}
	} else if s.agentPlaces().Home == "" {
		return refusedf("HOME is not set: the agents' files are not known").Unchanged().Hintf("set it, or name a tree's with --project")
	}
	chosen, err := s.chosenAgents(names, o.all || removing && len(names) == 0)
	if err != nil {
		return err
	}
	out := []view.AgentChange{}
	var refused []error
	for _, a := range chosen {
		changes, err := s.hookAgent(ctx, a, root, o.dryRun, do)
		if errors.Is(err, agent.ErrNoProject) {
			if len(names) > 0 {
				refused = append(refused, refusedf("%s has no files of a project", a.Name).Unchanged().Hintf("leave out --project"))
			}
			continue
		}
		if err != nil {
			refused = append(refused, err)
			if !s.global.json {
				continue
			}
		}
		shown := s.agentChange(a, changes, root != "", removing)
		out = append(out, shown)
		if err := s.tellAgent(shown, changes, o.dryRun, removing); err != nil {
			return err
		}
	}
	if s.global.json {
		if err := s.printJSON(out); err != nil {
			return err
		}
	}
	return s.refusals(refused)
}

// refusals reports all but the last, which the caller gets.
func (s *session) refusals(refused []error) error {
	if len(refused) == 0 {
		return nil
	}
	for _, err := range refused[:len(refused)-1] {
		s.report(err)
	}
	return refused[len(refused)-1]
}

// chosenAgents are those that were named, all, or else those that are here.
func (s *session) chosenAgents(names []string, all bool) ([]agent.Agent, error) {
	chosen := slices.DeleteFunc(agent.All(), func(a agent.Agent) bool {
		if len(names) > 0 {
			return !slices.Contains(names, a.Name)
		}
		return !all && !s.agentHere(a)
	})
	if len(chosen) == 0 {
		return nil, refusedf("no coding agent was found here").Unchanged().Hintf("name one: 'decree agents install codex'; known are %s", list(agent.Names()))
	}
	return chosen, nil
}

func (s *session) hookAgent(ctx context.Context, a agent.Agent, root string, dryRun bool, do func(context.Context, disk.Disk, agent.File, bool) (hookfile.Change, error)) ([]hookfile.Change, error) {
	files, err := agent.Files(a.Name, s.agentPlaces(), root)
	if err != nil {
		return nil, err
	}
	var changes []hookfile.Change
	for _, f := range files {
		c, err := do(ctx, disk.OS, f, dryRun)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (s *session) agentChange(a agent.Agent, changes []hookfile.Change, inTree, removing bool) view.AgentChange {
	out := view.AgentChange{Agent: a.Name, InTree: inTree, Files: []view.AgentFile{}, Asks: []string{}, Untried: a.Untried}
	for _, c := range changes {
		out.Files = append(out.Files, view.AgentFile{Path: c.Path, Changed: c.Changes(), Copy: c.Copy})
		out.Changed = out.Changed || c.Changes()
	}
	if removing {
		return out
	}
	asks := []string{a.Asks}
	if inTree {
		asks = append(asks, a.AsksProject)
	}
	for _, text := range asks {
		if text != "" {
			out.Asks = append(out.Asks, text)
		}
	}
	return out
}

// tellAgent shows what became of an agent's files.
func (s *session) tellAgent(v view.AgentChange, changes []hookfile.Change, dryRun, removing bool) error {
	if s.global.json || s.global.quiet {
		return nil
	}
	if !v.Changed {
		s.tell("%s: nothing to do, the hooks are %s", v.Agent, map[bool]string{true: "not there", false: "in"}[removing])
		return nil
	}
	if err := s.print(func(w io.Writer) error { return s.showHookDiff(w, changes) }); err != nil {
		return err
	}
	verb := map[bool]string{true: "removed from", false: "put into"}[removing]
	if dryRun {
		verb = "to be " + verb
	}
	var paths []string
	for _, f := range v.Files {
		if f.Changed {
			paths = append(paths, f.Path)
		}
	}
	where := paths[0]
	if len(paths) > 1 {
		where = count(len(paths), "file") + " beside " + where
	}
	s.tell("%s: hooks %s %s", v.Agent, verb, oneLine(where))
	for _, f := range v.Files {
		if f.Copy != "" && !dryRun {
			s.tell("  a copy of what was there is %s", oneLine(f.Copy))
		}
	}
	if v.InTree && !removing {
		s.tell("  this is in the tree: whoever else has the tree gets the hooks too")
	}
	for _, text := range v.Asks {
		s.tell("  you still have to %s", text)
	}
	if v.Untried != "" && !removing {
		s.tell("  decree knows this agent from %s; it was not tried with it", v.Untried)
	}
	return nil
}

// showHookDiff shows what changes in an agent's files.
func (s *session) showHookDiff(w io.Writer, changes []hookfile.Change) error {
	changes = slices.SortedFunc(slices.Values(changes), func(a, b hookfile.Change) int { return strings.Compare(a.Path, b.Path) })
	var diff bytes.Buffer
	pw := patch.NewWriter(&diff, patch.Limits{})
	for _, c := range changes {
		p := patch.Change{Path: tree.Path(strings.TrimPrefix(c.Path, "/"))}
		if p.Old = fileEntry(c.Old); p.Old != nil {
			p.OldContent = patch.Bytes(c.Old)
		}
		if p.New = fileEntry(c.New); p.New != nil {
			p.NewContent = patch.Bytes(c.New)
		}
		if !c.Changes() {
			continue
		}
		if err := pw.Write(context.Background(), p); err != nil {
			return err
		}
	}
	if err := pw.Close(); err != nil {
		return err
	}
	_, err := diffView{out: w, paint: s.paint(s.env.Stdout)}.show(&diff, nil)
	return err
}

func fileEntry(text []byte) *tree.Entry {
	if text == nil {
		return nil
	}
	return &tree.Entry{Type: tree.Regular, Mode: 0o644, Size: int64(len(text)), SHA256: tree.Sum(text)}
}
