package agent

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// Places says where agents keep what is theirs.
type Places struct {
	Home string // absolute; "" if it is not known
	// Getenv is asked for the variables by which agents' directories are moved.
	Getenv func(key string) string
}

// placement says where and how decree's hooks are put into an agent's own files.
type placement struct {
	// home is the agent's directory below the user's home; variable moves it. One below
	// ".config" is moved by XDG_CONFIG_HOME.
	home, variable string
	// user is the file below that, project the one below a tree's root; "" where the agent
	// has none. With scripts both are directories.
	user, project string
	// entry makes the JSON object of one hook, for a file that has all hooks; limit is what the agent is
	// asked to wait.
	entry func(command string, limit time.Duration) string
	// answer is what the agent has to read on the hook's stdout before it goes on; nil: nothing.
	answer func(event string) string
	// grouped: an event's hooks stand in groups: [{"hooks": [ENTRY]}].
	grouped bool
	// versioned: the file says "version": 1 beside the hooks.
	versioned bool
	// plugin is the whole file of an agent that runs code of its own language.
	plugin string
	// scripts: an executable file for each event, named by it.
	scripts bool
	// programs are the names of the agent's program; none where others use them too.
	programs []string
	// asks is what the agent still wants of the user, asksProject what it wants for the files in a tree.
	asks, asksProject string
	// untried: where it is known from, if no real client was tried.
	untried string
}

// Agent is what is known of an agent beyond its events.
type Agent struct {
	Name string
	// Programs are the names that its program may have in $PATH.
	Programs []string
	// Asks and AsksProject are what it still wants of the user before it runs hooks; "" for nothing.
	Asks, AsksProject string
	// Untried says from what it is known, "its documentation", if no real client was tried; else "".
	Untried string
}

// All returns what is known of each agent, in order of their names.
func All() []Agent {
	var all []Agent
	for _, a := range adapters {
		all = append(all, Agent{a.name, a.place.programs, a.place.asks, a.place.asksProject, a.place.untried})
	}
	return all
}

// Names returns the names of all agents, in order.
func Names() []string {
	var names []string
	for _, a := range adapters {
		names = append(names, a.name)
	}
	return names
}

// Known says whether there is an agent of that name.
func Known(name string) bool { return find(name) != nil }

// Directory returns where the agent keeps what is a user's: if it is there, the agent
// has been used. "" where the home is not known.
func Directory(name string, p Places) string {
	at := find(name).place
	if moved := p.Getenv(at.variable); at.variable != "" && path.IsAbs(moved) {
		return path.Clean(moved)
	}
	if below, ok := strings.CutPrefix(at.home, ".config/"); ok {
		if moved := p.Getenv("XDG_CONFIG_HOME"); path.IsAbs(moved) {
			return path.Join(moved, below)
		}
	}
	if p.Home == "" {
		return ""
	}
	return path.Join(p.Home, at.home)
}

// File is one of the files that decree's hooks are in.
type File struct {
	// Dir is the directory that the file belongs to and Path the file below it, with
	// slashes. In a tree Dir is its root.
	Dir, Path string
	// Perm is the mode of a new one.
	Perm uint32

	agent *adapter
	event string // of a script
}

// ErrNoProject says that an agent has no files in a tree.
var ErrNoProject = errors.New("no hooks of a project")

// Files returns the files that the hooks of an agent that is known are in: a user's, or, with
// the root of a tree, the project's. The error is ErrNoProject.
func Files(name string, p Places, root string) ([]File, error) {
	a := find(name)
	dir, file := Directory(name, p), a.place.user
	if root != "" {
		dir, file = root, a.place.project
	}
	if file == "" {
		return nil, ErrNoProject
	}
	if !a.place.scripts {
		return []File{{Dir: dir, Path: file, Perm: 0o644, agent: a}}, nil
	}
	var files []File
	for _, event := range a.order() {
		files = append(files, File{Dir: dir, Path: path.Join(file, event), Perm: 0o755, agent: a, event: event})
	}
	return files, nil
}

// kinds has the order in which the events of a session come.
var kinds = []Kind{Session, Prompt, ToolBefore, ToolAfter, TurnEnd, SessionEnd}

// order returns a's events, in the order in which they come, and by name.
func (a *adapter) order() []string {
	events := slices.Sorted(maps.Keys(a.events))
	slices.SortStableFunc(events, func(x, y string) int {
		return slices.Index(kinds, a.events[x]) - slices.Index(kinds, a.events[y])
	})
	return events
}

// Events returns an agent's events of a kind.
func Events(name string, kind Kind) []string {
	a := find(name)
	return slices.DeleteFunc(a.order(), func(event string) bool { return a.events[event] != kind })
}

// command is the line that an agent executes. It never changes: Codex asks its user again for each
// line that has another hash. Without decree it succeeds, as some agents deny a tool
// whose hook fails. An answer is printed by the line, so that it comes without decree too, and
// `decree hook` prints nothing for any agent.
func (a *adapter) command(event string) string {
	line := "decree hook " + a.name + " " + event + " || :"
	if a.place.answer != nil {
		line += "; echo '" + a.place.answer(event) + "'"
	}
	return line
}

// limit is how long the agent is asked to wait for a hook, in whole seconds.
func (a *adapter) limit(event string) time.Duration {
	return time.Duration(math.Ceil(a.allowed(event).Seconds())) * time.Second
}

// With returns the file's bytes with decree's hooks in them: old itself where they are. old is nil where there is no
// file. Everything else in it stays, comments and order too. An error says why it cannot be done.
func (f File) With(old []byte) ([]byte, error) {
	if own := f.own(); own != nil {
		if old != nil && !isOwn(old) {
			return nil, errors.New("another file has the name")
		}
		return own, nil
	}
	return f.merged(old)
}

// Without returns the file's bytes without decree's hooks, nil where no file is to be
// left: before, the bytes that With was once given, if nobody else has changed the file since;
// else old without the entries that are decree's.
func (f File) Without(old, before []byte) ([]byte, error) {
	if installed, err := f.With(before); err == nil && bytes.Equal(installed, old) {
		return before, nil
	}
	if f.own() != nil {
		if isOwn(old) {
			return nil, nil
		}
		return old, nil
	}
	return f.stripped(old)
}

// Hooked is how far hooks are in a file.
type Hooked string

// Nothing is decree's, a part of what With would write is there, or all of it.
const (
	NotHooked    Hooked = "no"
	PartlyHooked Hooked = "partly"
	FullyHooked  Hooked = "yes"
)

// Hooked says how far decree's hooks are in a file with these bytes, nil if there is none.
func (f File) Hooked(old []byte) (Hooked, error) {
	if old == nil {
		return NotHooked, nil
	}
	if own := f.own(); own != nil {
		switch {
		case bytes.Equal(own, old):
			return FullyHooked, nil
		case isOwn(old):
			return PartlyHooked, nil
		}
		return NotHooked, nil
	}
	with, err := f.merged(old)
	if err != nil {
		return NotHooked, err
	}
	if bytes.Equal(with, old) {
		return FullyHooked, nil
	}
	without, err := f.stripped(old)
	if err != nil || bytes.Equal(without, old) || len(bytes.TrimSpace(old)) == 0 {
		return NotHooked, err
	}
	return PartlyHooked, nil
}

// Command returns the line that the hook of an event runs, as the file with these bytes
// has it: where the agent runs code, the one that the code stands for. "" if it has none.
func (f File) Command(old []byte, event string) string {
	line := f.agent.command(event)
	if f.own() != nil {
		if isOwn(old) && (f.event == "" || f.event == event) {
			return line
		}
		return ""
	}
	doc, err := readDocument(old)
	if err != nil {
		return ""
	}
	return doc.command(f.agent, event)
}

// Line is the command line that install writes for an event.
func (f File) Line(event string) string { return f.agent.command(event) }

// own returns all of a file that has nothing but decree's in it; nil for others.
func (f File) own() []byte {
	switch {
	case f.agent.place.plugin != "":
		return []byte(f.agent.place.plugin)
	case f.agent.place.scripts:
		return fmt.Appendf(nil, "#!/bin/sh\n# %s; '%s' takes it away.\n%s\n",
			mark, "decree agents remove "+f.agent.name, f.agent.command(f.event))
	}
	return nil
}

// mark stands in the head of a file that is decree's own.
const mark = "Made by 'decree agents install'"

func isOwn(file []byte) bool {
	head, rest, _ := bytes.Cut(file, []byte("\n"))
	if bytes.HasPrefix(head, []byte("#!")) {
		head, _, _ = bytes.Cut(rest, []byte("\n"))
	}
	return bytes.Contains(head, []byte(mark))
}

// entryText is an event's hook as JSON on one line.
func (a *adapter) entryText(event string) string {
	text := a.place.entry(a.command(event), a.limit(event))
	if a.place.grouped {
		text = `{"hooks": [` + text + `]}`
	}
	return text
}
