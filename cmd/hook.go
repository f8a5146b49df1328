package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"decree/agent"
	"decree/disk"
	"decree/history"
	"decree/hookfile"
	"decree/project"
	"decree/recorder"
	"decree/runner"
)

func (s *session) hookVerb() verb {
	return verb{
		name: "hook", category: agentCategory, args: "AGENT EVENT", most: anyWords,
		usage: "what a coding agent's hooks call",
		about: `Takes one event of a coding agent: a session that begins, a prompt, a tool, an answer. The agent's own JSON is read from stdin; 'decree agents install' writes the lines that call this.

It never disturbs the agent: the exit status is 0 whatever happens, nothing is printed on stdout, and what is not done within agents.deadline of the config, or half of what the agent allows, is not recorded. What could not be recorded, and why, is a line in hooks.log in the store, which 'decree status' and 'decree doctor' show. Outside a project (no .decree and no .git up to the file system's root, or the home directory) nothing is recorded.`,
		examples: []example{
			{"echo '{\"session_id\": \"s\", \"prompt\": \"tidy up\"}' | decree hook codex UserPromptSubmit", "what Codex does at a prompt"},
		},
		exits:  []exit{{"0", "always"}},
		action: func(context.Context) error { s.hook(s.words(), time.Now()); return nil },
	}
}

// isHook says whether a command line is a hook's. It is told apart before anything of it is
// looked at: also a line that a later agent writes in another way must not fail.
func isHook(args []string) bool {
	return len(args) > 0 && args[0] == "hook" && !(len(args) == 2 && (args[1] == "--help" || args[1] == "-h"))
}

const (
	// mostPayload is how much of what an agent sends is read, in bytes.
	mostPayload = 1 << 20
	// leastHook is how long a hook may work at least: a config cannot forbid all of it.
	leastHook = 100 * time.Millisecond
)

// hooked is one event of an agent on its way to be recorded.
type hooked struct {
	s        *session
	tell     func(what, why string) // says what is not recorded
	proxied  *project.Holder        // the agent's process, where the event was read along; nil: a hook has called
	event    agent.Event
	deadline time.Time
	limit    *time.Timer // when hook returns at the latest; nil: nobody waits
	where    project.Where
	project  *project.Project // nil until it is found
}

// hook takes an event. It returns when all is done, or when the deadline has come: what is still
// under way then ends with the process, as by a kill.
func (s *session) hook(words []string, began time.Time) {
	var name, event string
	if len(words) > 0 {
		name = words[0]
	}
	if len(words) > 1 {
		event = words[1]
	}
	tell := func(what, why string) {
		_, _ = fmt.Fprintf(s.env.Stderr, "decree hook %s: not recorded: %s\n", what, why)
	}
	h := &hooked{s: s, tell: tell, deadline: began.Add(agent.Deadline(name, event))}
	h.limit = time.NewTimer(time.Until(h.deadline))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.record(func() agent.Event {
			payload, rest := s.payload(h.deadline)
			e, _ := agent.Read(name, event, payload)                           // of what is broken, what can be known is used
			if len(payload) == mostPayload && len(e.Prompt) > len(payload)/2 { // it is the prompt that was cut off
				e.PromptSize = int64(len(e.Prompt)) + rest
			}
			return e
		})
	}()
	select {
	case <-done:
	case <-h.limit.C:
	}
}

// record records the event that read returns, or says why it does not.
func (h *hooked) record(read func() agent.Event) {
	defer func() {
		if p := recover(); p != nil {
			h.failed(fmt.Errorf("decree itself failed: %v", p))
		}
	}()
	ctx, cancel := context.WithDeadline(context.Background(), h.deadline.Add(-lastWords))
	defer cancel()
	h.event = read()
	if err := h.take(ctx); err != nil {
		h.failed(err)
	}
	if h.project != nil {
		h.project.Close()
	}
}

// lastWords is how long before the deadline the work is given up, so that it can be said.
const lastWords = 50 * time.Millisecond

// payload reads what the agent sends. All of it is taken, lest the agent meets a closed pipe,
// and the beginning kept; rest is how many bytes came behind it. An agent that does not end it is not
// waited for longer than need be, and what it has sent counts where that is whole.
func (s *session) payload(deadline time.Time) (head []byte, rest int64) {
	if s.env.Stdin == nil || isTerminal(s.env.Stdin) {
		return nil, 0
	}
	data, behind := make(chan []byte, 1), make(chan int64, 1)
	go func() {
		var head bytes.Buffer
		in := io.LimitReader(s.env.Stdin, mostPayload)
		if json.NewDecoder(io.TeeReader(in, &head)).Decode(new(json.RawMessage)) != nil { // broken, or cut off
			_, _ = io.Copy(&head, in)
		}
		data <- head.Bytes()
		n, _ := io.Copy(io.Discard, s.env.Stdin)
		behind <- n
	}()
	quarter := time.Until(deadline) / 4
	patience, most := time.After(quarter), time.After(2*quarter)
	select {
	case head = <-data:
		select {
		case rest = <-behind:
		case <-patience:
		}
	case <-most:
	}
	return head, rest
}

// failed notes why an event is not recorded: in the log of hooks, and in what tell says.
func (h *hooked) failed(err error) {
	text := strings.Join(strings.Fields(oneLine(err.Error())), " ")
	if errors.Is(err, context.DeadlineExceeded) {
		text = "it was not done by the deadline"
	}
	what := strings.TrimSpace(h.event.Agent + " " + h.event.Name)
	if h.project != nil {
		_ = h.project.NoteHook(h.s.env.Now(), oneLine(what)+": "+text)
	}
	h.tell(oneLine(what), text)
}

// take does what the event asks for.
func (h *hooked) take(ctx context.Context) error {
	if h.event.Kind == agent.Unknown {
		return nil
	}
	found, err := h.find()
	h.heard()
	if err != nil || !found {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, h.deadline.Add(-lastWords))
	defer cancel()
	kind := h.event.Kind
	if kind == agent.ToolBefore || kind == agent.ToolAfter || kind == agent.SessionEnd && h.proxied == nil {
		return h.told(ctx)
	}
	return h.turn(ctx)
}

// heard notes for 'decree agents' that the agent's hooks call: the user may still have to
// allow them, and only this shows that.
func (h *hooked) heard() {
	base := h.s.where().Base()
	if h.proxied != nil || base == "" {
		return
	}
	e := hookfile.HeardEvent{Name: h.event.Name, Kind: string(h.event.Kind), At: h.s.env.Now().UTC(), Root: h.where.RootFlag}
	_ = hookfile.NoteHeard(disk.OS, base, h.event.Agent, false, func(known *hookfile.Heard) { known.Event = &e }) // nothing depends on it
}

// find looks for the root upwards from where the agent works, and opens its project if
// there is one. False: nothing is to be recorded there.
func (h *hooked) find() (bool, error) {
	s := h.s
	h.where = s.where()
	h.where.ConfigStore = false
	if dir := h.event.Directory; filepath.IsAbs(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			h.where.Cwd = dir
		}
	}
	root, err := project.FindRoot(disk.OS, h.where)
	if project.KindOf(err) == project.Usage { // the home directory, or /
		return false, nil
	}
	if err != nil || !project.Marked(disk.OS, root) {
		return false, err
	}
	h.where.RootFlag = root
	var config project.Config
	p, err := project.Open(disk.OS, h.where, false)
	switch {
	case err == nil:
		h.project, config = p, p.Config
	case errors.As(err, new(*project.ConfigError)):
		h.openForLog()
	case errors.Is(err, project.ErrNoProject):
		config, err = project.ConfigOf(disk.OS, root)
	}
	if err != nil {
		return false, err
	}
	if d := config.Agents.Deadline; d < time.Until(h.deadline) {
		h.deadline = time.Now().Add(max(d, leastHook))
		if h.limit != nil {
			h.limit.Reset(time.Until(h.deadline))
		}
	}
	return true, nil
}

// openForLog opens the project for its log alone, where its config cannot be read.
func (h *hooked) openForLog() {
	where := h.where
	where.NoConfig = true
	h.project, _ = project.Open(disk.OS, where, false) // else the agent's stderr has it
}

// process is the agent's.
func (h *hooked) process() project.Holder {
	if h.proxied != nil {
		return *h.proxied
	}
	a, _ := runner.Caller("decree " + strings.Join(h.s.env.Args, " "))
	return h.s.holder(a)
}

// holder is a process on this machine.
func (s *session) holder(a runner.Ancestor) project.Holder {
	return project.Holder{Host: s.env.Host, Boot: runner.BootID(), Start: s.env.Now().UTC(), PID: a.PID, Born: a.StartTime}
}

// turn records the beginning of a session, or the beginning or the end of a turn.
func (h *hooked) turn(ctx context.Context) error {
	if ends := h.event.Kind == agent.TurnEnd || h.event.Kind == agent.SessionEnd; !ends {
		if ready, err := h.firstCapture(ctx); err != nil || !ready {
			return err
		}
	} else if h.project == nil {
		return nil
	}
	rec, err := h.recorder(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rec.Close() }() // the event is recorded, or why not is told
	e := recorder.TurnEvent{Event: h.event, Process: h.process(), Proxied: h.proxied != nil}
	if filepath.IsAbs(e.Transcript) {
		if st, err := os.Stat(e.Transcript); err == nil && st.Mode().IsRegular() {
			e.TranscriptSize = st.Size()
		}
	}
	switch h.event.Kind {
	case agent.Session:
		_, err = rec.BeginSession(ctx, e)
	case agent.Prompt:
		_, err = rec.BeginTurn(ctx, e)
	case agent.TurnEnd, agent.SessionEnd:
		_, err = rec.EndTurn(ctx, e)
	}
	return err
}

func (h *hooked) recorder(ctx context.Context) (*recorder.Recorder, error) {
	env := h.s.env
	return recorder.Open(ctx, recorder.Options{
		ReaderOptions: recorder.ReaderOptions{
			Disk: disk.OS, Where: h.where, Clock: env.Now, Location: env.Location, Note: func(string) {},
		},
		Create: true, Actor: history.Actor{User: env.User, Host: env.Host}, Wait: time.Until(h.deadline) - lastWords,
		CommandLine: append([]string{"decree"}, env.Args...),
	})
}

// awaitOthers waits while another may be recording the tree for the first time, and says whether it is recorded, or else
// whether the other is still at it.
func (h *hooked) awaitOthers(ctx context.Context) (recorded, others bool) {
	const pause = 5 * time.Millisecond
	for ; h.project != nil; time.Sleep(pause) {
		if history.HasRecords(&h.project.Site) {
			return true, false
		}
		if by := h.project.Holder(); by.Run != "" || !by.Working(h.s.env.Host) { // that of a run works with the lock free
			return false, false
		}
		if ctx.Err() != nil {
			return false, true
		}
	}
	return false, false
}

// firstCapture sees to it that the tree has been recorded once. That of a large tree takes
// longer than an agent waits: then it goes on in the background, and this event, whose tree nobody
// knows any more by then, is not recorded. One that is under way already is waited for, and no other
// is begun. False: there is nothing left to do.
func (h *hooked) firstCapture(ctx context.Context) (bool, error) {
	goesOn := errors.New("the tree is being recorded for the first time, which goes on in the background; turns are recorded once that is done")
	switch recorded, others := h.awaitOthers(ctx); {
	case recorded:
		return true, nil
	case others:
		return false, goesOn
	}
	s := h.s
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	env := append(slices.DeleteFunc(slices.Clone(s.env.Environ), func(kv string) bool { return strings.HasPrefix(kv, "DECREE_TURN=") }),
		"DECREE_AGENT="+h.event.Agent, "DECREE_SESSION="+h.event.Session[:min(len(h.event.Session), mostSession)])
	args := []string{"-C", h.where.RootFlag, "-q", "checkpoint", "--wait", "5m", "--reason", string(history.Auto), "--label", history.SessionLabel, "--skip-unreadable"}
	ended, err := runner.Background(program, args, env, h.where.RootFlag)
	if err != nil {
		return false, err
	}
	select {
	case err = <-ended:
		if err != nil {
			err = fmt.Errorf("the tree is not recorded (%w); 'decree checkpoint' says why", err)
		}
	case <-ctx.Done():
		err = goesOn
	}
	if h.project == nil {
		h.project, _ = project.Open(disk.OS, h.where, false) // for its log
	}
	return err == nil && h.event.Kind == agent.Prompt, err
}

// told notes what a tool has named, or that a session has ended, and records the tree after a
// command where the config asks for that.
func (h *hooked) told(ctx context.Context) error {
	e := h.event
	if e.Kind == agent.ToolBefore && !e.Reads && h.proxied == nil { // else its prompt was waited for
		h.awaitPrompt(ctx)
	}
	if h.project == nil {
		return nil
	}
	if e.Reads { // that this agent tells of its tools is all that is of use
		return h.project.NoteAgentReport(project.AgentReport{Agent: e.Agent, Session: e.Session[:min(len(e.Session), mostSession)], Process: h.process()})
	}
	t := project.AgentReport{Agent: e.Agent, Session: e.Session[:min(len(e.Session), mostSession)], Process: h.process(), Tool: firstWord(e.Tool)}
	if t.End = e.Kind == agent.SessionEnd; !t.End {
		t.Any, t.After = !e.Edits, e.Kind == agent.ToolAfter
		for _, path := range e.Paths {
			t.Paths = append(t.Paths, h.inRoot(path)...)
		}
	}
	err := h.project.NoteAgentReport(t)
	if err != nil || e.Kind != agent.ToolAfter || e.Edits || !h.project.Config.Agents.PerTool {
		return err
	}
	rec, err := h.recorder(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rec.Close() }() // the event is recorded, or why not is told
	_, err = rec.AfterTool(ctx, recorder.TurnEvent{Event: e, Process: t.Process})
	return err
}

// mostSession bounds what is noted of a session's id, in bytes. A record has less of it.
const mostSession = 1 << 10

// firstWord keeps a tool's name short: it comes from outside.
func firstWord(name string) string {
	if fields := strings.Fields(name); len(fields) > 0 {
		return fields[0][:min(len(fields[0]), 100)]
	}
	return ""
}

// forPrompt is how long a tool of an agent that does not wait for its prompt's hook waits for
// that one to be at work.
const forPrompt = 500 * time.Millisecond

// awaitPrompt waits, before a tool works, for the capture of its prompt, which some agents do
// not wait for themselves. The first one of a tree makes the project. The prompt of an agent that
// does is recorded by now, or never: whoever else is at work is not waited for.
func (h *hooked) awaitPrompt(ctx context.Context) {
	const pause = 5 * time.Millisecond
	waits := !agent.Awaits(h.event.Agent)
	for until := time.Now().Add(forPrompt); ctx.Err() == nil; time.Sleep(pause) {
		if h.project == nil {
			h.project, _ = project.Open(disk.OS, h.where, false) // it is on its way, perhaps
		}
		switch p := h.project; {
		case !waits, p != nil && p.HasOpen():
			return
		case p != nil && p.Holder().Working(h.s.env.Host):
			until = time.Now().Add(forPrompt)
		case time.Now().After(until):
			return
		}
	}
}

// inRoot are the places below the root of a path that a tool named: as it was named, and where the links on its way lead.
func (h *hooked) inRoot(path string) (list [][]byte) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.where.Cwd, path)
	}
	path = filepath.Clean(path)
	link := filepath.Join(followed(filepath.Dir(path)), filepath.Base(path)) // which the tool may replace
	for _, at := range slices.Compact([]string{path, link, followed(path)}) {
		if rel, ok := relative(h.project.Root, at); ok && rel != "" {
			list = append(list, []byte(rel))
		}
	}
	return list
}

// followed is a clean, absolute path with the links on its way followed; what is not there stays as it is.
func followed(path string) string {
	up := filepath.Dir(path)
	if at, err := filepath.EvalSymlinks(path); err == nil || path == up {
		return cmp.Or(at, path)
	}
	return filepath.Join(followed(up), filepath.Base(path))
}
