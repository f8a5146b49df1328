package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"decree/acp"
	"decree/agent"
	"decree/project"
	"decree/runner"
)

func (s *session) acpVerb() verb {
	var name string
	return verb{
		name: "acp", category: agentCategory, args: "[--] AGENT [ARG...]", stops: true, words: commandWords, most: anyWords,
		usage: "record the turns of an agent that an editor drives by the Agent Client Protocol",
		about: `Stands between an editor and an agent that speaks the Agent Client Protocol on its stdin and stdout: put it in front of the agent's command line in the editor's settings. AGENT is started as it is, and every byte goes through as it came, both ways; what decree does not understand, or a line of more than 16 MiB without its long texts, passes unread.

Prompts, tool calls and the reasons to stop are read along and recorded as turns, as hooks do it: see 'decree turns'. A prompt is handed on once the tree is recorded, and an answer once the turn is, but not later than agents.deadline of the config says. An agent that has decree's hooks too is recorded once.

Whatever keeps decree from recording is said in a line on stderr and in hooks.log in the store, and the agent works on. Signals go to the agent. Where the agent ends without an answer, its turn is closed with what it did until then.`,
		examples: []example{
			{"decree acp -- gemini --acp", "what the editor starts instead of 'gemini --acp'"},
			{"decree acp --name claude -- npx claude-code-acp", "turns are listed under the name claude"},
		},
		exits: []exit{
			{"n", "the agent's own exit status"},
			{"128+n", "signal n ended the agent"},
			{"126", "the agent could not be executed"},
			{"127", "the agent was not found"},
		},
		flags: []cli.Flag{
			stringFlag(&name, "call the agent `NAME` in the records, instead of by its program", "name"),
			s.rootFlag(),
		},
		action: func(context.Context) error { return s.acp(name, s.words()) },
	}
}

const (
	// mostForTurn is how long a prompt or an answer is kept back at most, whatever the config says.
	mostForTurn = 10 * time.Second
	// mostWaiting is how many events wait to be recorded at most.
	mostWaiting = 1 << 10
	// forRest is how long an agent's children may be silent before what they might still
	// print after its end is given up.
	forRest = time.Second
)

// proxy stands between an editor and an agent.
type proxy struct {
	s       *session
	name    string // the agent's
	talk    *acp.Conversation
	process project.Holder // the agent's
	events  chan *waiting
	after   func(time.Duration) <-chan time.Time // time.After
	told    atomic.Bool                          // that something is not recorded
}

// waiting is an event on its way to the one goroutine that records.
type waiting struct {
	hooked
	done chan struct{}
}

func (s *session) acp(name string, command []string) error {
	if len(command) == 0 {
		return usagef("an agent is missing").Hintf("for example 'decree acp -- gemini --acp'")
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env, c.Stderr = s.env.Environ, s.env.Stderr
	toAgent, err := c.StdinPipe()
	if err != nil {
		return err
	}
	fromAgent, itsStdout, err := os.Pipe()
	if err != nil {
		return err
	}
	defer fromAgent.Close()
	c.Stdout = itsStdout
	signals, stop := commandSignals()
	defer stop()
	outliveReaders() // an editor that has gone is told by what Write returns
	err = c.Start()
	itsStdout.Close()
	if err != nil {
		return s.notStarted(command[0], err)
	}
	p := &proxy{
		s: s, name: name, talk: acp.New(name), process: s.holder(runner.ProcessAt(c.Process.Pid)),
		events: make(chan *waiting, mostWaiting), after: time.After,
	}
	go p.work()
	s.code = p.stand(c, signals, toAgent, fromAgent)
	p.end()
	return nil
}

// notStarted says why there is no agent, and exits as run does for its command.
func (s *session) notStarted(program string, err error) error {
	s.code = 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		s.code = 127
	}
	reason := err
	for inner := errors.Unwrap(reason); inner != nil; inner = errors.Unwrap(reason) {
		reason = inner
	}
	s.say("decree acp: %s was not started: %v", shownPath(program), reason)
	return nil
}

// stand passes the bytes both ways until the agent has ended, and returns its exit status.
func (p *proxy) stand(c *exec.Cmd, signals <-chan os.Signal, toAgent io.WriteCloser, fromAgent *os.File) int {
	go func() {
		for sig := range signals {
			_ = c.Process.Signal(sig) // one that has ended needs none
		}
	}()
	go func() {
		_ = acp.Copy(toAgent, p.s.env.Stdin, acp.MostLine, func(line []byte, cut int64) { p.heard(p.talk.FromEditor(line, cut)) })
		toAgent.Close() // what the agent does not read any more, nobody can write
	}()
	var gone atomic.Bool
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_ = acp.Copy(p.s.env.Stdout, untilSilent{fromAgent, &gone}, acp.MostLine, func(line []byte, _ int64) { p.heard(p.talk.FromAgent(line)) })
		fromAgent.Close() // what the editor does not read any more, nobody can write
	}()
	_ = c.Wait() // its state says how it has ended
	gone.Store(true)
	_ = fromAgent.SetReadDeadline(time.Now().Add(forRest))
	<-copied
	return exitStatus(c.ProcessState)
}

// untilSilent reads what an agent has printed; from its end on, until nothing has come for a
// while, as its children may have its stdout for ever.
type untilSilent struct {
	*os.File
	gone *atomic.Bool
}

func (r untilSilent) Read(buf []byte) (int, error) {
	if r.gone.Load() {
		_ = r.SetReadDeadline(time.Now().Add(forRest)) // where there is none, the children are waited for
	}
	return r.File.Read(buf)
}

// heard has events recorded. It waits for a prompt's turn to be open, and for an answer's to be
// closed, as long as that is allowed to take.
func (p *proxy) heard(events []agent.Event) {
	for _, e := range events {
		done := p.queue(e)
		if e.Kind == agent.Prompt || e.Kind == agent.TurnEnd {
			p.await(done)
		}
	}
}

// queue has an event recorded when those before it are. done is closed then, and at once where
// too many wait.
func (p *proxy) queue(e agent.Event) (done chan struct{}) {
	h := hooked{s: p.s, tell: p.unrecorded, proxied: &p.process, event: e, deadline: time.Now().Add(mostForTurn)}
	w := &waiting{hooked: h, done: make(chan struct{})}
	select {
	case p.events <- w:
	default:
		close(w.done)
		p.unrecorded(oneLine(e.Agent+" "+e.Name), "too many events wait")
	}
	return w.done
}

func (p *proxy) await(done <-chan struct{}) {
	select {
	case <-done:
	case <-p.after(mostForTurn):
		p.unrecorded(oneLine(p.name), "it was not done by the deadline")
	}
}

// unrecorded says so, the first time: an agent at work is not to fill an editor's log.
func (p *proxy) unrecorded(what, why string) {
	if !p.told.Swap(true) {
		p.s.say("decree acp: %s: not recorded: %s; hooks.log in the store has what else is not", what, why)
	}
}

// work records one event after the other.
func (p *proxy) work() {
	for w := range p.events {
		w.record(func() agent.Event { return w.event })
		close(w.done)
	}
}

// end closes the turns that the agent has left open, and waits for what is under way.
func (p *proxy) end() {
	p.heard(p.talk.Ended())
	p.await(p.queue(agent.Event{Agent: p.name})) // it is of no kind, and the last
}

// exitStatus is what a shell would say.
func exitStatus(state *os.ProcessState) int {
	if ended, ok := state.Sys().(syscall.WaitStatus); ok && ended.Signaled() {
		return 128 + int(ended.Signal())
	}
	return state.ExitCode()
}
