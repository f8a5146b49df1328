package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"decree/message"
	"decree/tree"
)

const (
	shellTime = 2 * time.Minute
	lateTime  = 5 * time.Second // of what begins when decree was told to end
	maxAnswer = 64 << 10
)

var errToldToEnd = errors.New("ended, as decree was told to end")

// askRouter runs the router's command line in the root with the prompt on stdin;
// its first line is the answer.
func (q *Queue) askRouter(ctx context.Context, command string, routines *Routines, m *message.Message, spec *message.Message) (string, error) {
	prompt, err := routerPrompt(routines, m, spec)
	if err != nil {
		return "", err
	}
	return q.shell(ctx, shellTime, command, prompt, nil)
}

// shell runs a command line of the config in the root and returns what it printed, at
// most maxAnswer bytes. Its error ends with its last line on stderr. It ends with ctx.
func (q *Queue) shell(asked context.Context, limit time.Duration, command string, stdin []byte, env []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(asked, limit, fmt.Errorf("no answer in %s", limit))
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", command)
	c.Dir, c.Env, c.Stdin = q.project().Root, slices.Concat(q.o.Environ, env), bytes.NewReader(stdin)
	out := &bounded{left: maxAnswer}
	said := &bounded{left: maxAnswer}
	c.Stdout, c.Stderr = out, said
	ownGroup(c)
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		if asked.Err() != nil {
			return "", errToldToEnd
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		last := strings.TrimSpace(said.String())
		if i := strings.LastIndexByte(last, '\n'); i >= 0 {
			last = last[i+1:]
		}
		return "", errors.Join(err, errors.New(last))
	}
	return out.String(), nil
}

// onDead tells the config's command that a message is dead. It is run once at most, and
// what comes of it changes nothing but a note.
func (q *Queue) onDead(ctx context.Context, res *Result) {
	command := q.project().Config.OnDead
	if command == "" {
		return
	}
	env := []string{"DECREE_MESSAGE=" + path.Base(res.Place), "DECREE_REASON=" + res.Reason, "DECREE_ROOT=" + q.project().Root, "DECREE_RECORD="}
	if res.Record != nil {
		env[3] += res.Record.ID
	}
	limit := shellTime
	if ctx.Err() != nil { // it is told nevertheless
		ctx, limit = context.WithoutCancel(ctx), lateTime
	}
	if _, err := q.shell(ctx, limit, command, nil, env); err != nil {
		q.note("on_dead, for %s: %v", tree.Quote(res.Name), err)
	}
}

// routerPrompt names the routines with their descriptions, and the task.
func routerPrompt(routines *Routines, m *message.Message, spec *message.Message) ([]byte, error) {
	list, err := message.List(routines.Dirs...)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("Choose the routine that fits the task below. Answer with its name alone, on one line.\n\nRoutines:\n")
	for _, r := range list {
		fmt.Fprintf(&b, "- %s: %s\n", r.Name, strings.ReplaceAll(r.Description, "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\nTask (%s):\n\n%s\n", m.ID, m.Body)
	if spec != nil {
		fmt.Fprintf(&b, "\nSpec %s:\n\n%s\n", tree.Quote(m.InputFile), spec.Body)
	}
	return b.Bytes(), nil
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom knows no bound
	left int
}

func (b *bounded) String() string { return b.kept.String() }

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.kept.Write(p[:n])
	return len(p), nil
}
