package cmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"decree/backup"
	"decree/message"
	"decree/project"
)

// schedule makes a project's backups at the times of its config, each by a process of its own, which
// can fail and be ended without the daemon.
type schedule struct {
	times   *message.Schedule
	project *project.Site
	target  string           // the config's, as the store remembers it
	now     func() time.Time // on the user's clock
	make    func(ctx context.Context) error
	last    time.Time // the last try of this process; before that, its start
}

// next is when the next backup is due: the first time after the newest one in the config's target, or after the last try. One
// that was missed, since no daemon was running, is due at once.
func (c *schedule) next() time.Time {
	from := c.last
	if r := backup.ReadMemory(c.project.Store).Targets[c.target]; c.last.IsZero() {
		from = r.Timestamp
	}
	now := c.now()
	if from.IsZero() || from.After(now) { // there is none yet, or the clock was set back
		from, c.last = now, now
	}
	return c.times.Next(from.In(now.Location()))
}

// serve looks every interval until ctx ends; a backup under way is then ended, too.
func (c *schedule) serve(ctx context.Context, interval time.Duration, tell func(error)) {
	for {
		if due := c.next(); !due.IsZero() && !due.After(c.now()) && c.project.HeldBack() == nil {
			c.last = c.now()
			err := c.make(ctx)
			if ctx.Err() == nil {
				tell(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(interval, 20*time.Second)):
		}
	}
}

// schedule is what makes the daemon's backups until ctx ends; nil where the config wants none.
func (s *session) schedule(p *project.Site, interval time.Duration) (func(ctx context.Context), error) {
	text := p.Config.Backup.Schedule
	if text == "" {
		return nil, nil
	}
	times, err := message.ParseCron(text)
	if err != nil {
		return nil, usagef("backup.schedule: %v", err).Hintf("mend it at %s", p.Config.From("backup.schedule"))
	}
	c := &schedule{times: times, project: p, target: s.targetName("", p), now: func() time.Time { return s.env.Now().In(s.env.Location) },
		make: func(ctx context.Context) error { return s.backupProcess(ctx, p.Root) }}
	return func(ctx context.Context) {
		c.serve(ctx, interval, func(err error) {
			if err != nil {
				s.note(err.Error())
			}
		})
	}, nil
}

// backupProcess runs "decree backup" and tells what it says.
func (s *session) backupProcess(ctx context.Context, root string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	c := exec.CommandContext(ctx, program, "-C", root, "backup", "--wait", "10m")
	c.Dir, c.Env, c.Stderr = root, s.env.Environ, &said
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute
	err = c.Run()
	for line := range strings.Lines(said.String()) {
		s.say("%s %s", s.stamp(), oneLine(strings.TrimRight(line, "\n")))
	}
	if err != nil {
		return fmt.Errorf("the backup that was due has failed: %w", err)
	}
	return nil
}
