package cmd

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"decree/queue"
)

// daemonOptions are daemon's flags.
type daemonOptions struct {
	interval time.Duration
	resume   bool
	routineFlags
}

func (s *session) daemonVerb() verb {
	o := daemonOptions{interval: 2 * time.Second, routineFlags: routineFlags{grace: 2 * time.Second, jobs: 1}}
	return verb{
		name: "daemon", category: messageCategory,
		usage: "process messages as they arrive, and fire cron jobs",
		about: `Does what "decree process" does, but only for the inbox, and keeps doing it: a message is noticed at once where the system reports new files, and after --interval where it does not. A file that is still open for writing is left until it is closed, an empty one until it is 10 seconds old.

The jobs in .decree/cron/*.md are messages with a "cron:" field (minute, hour, day of month, month, day of week, in local time). A job fires once in a minute that matches, by putting a copy of itself into the inbox; one that was missed while no daemon was running fires once with "catch_up: true". Jobs also fire while a message is being processed. With --jobs N up to N isolated messages are done at once, as "decree process" does them.

With backup.schedule in the config it also makes the backups, by "decree backup" in a process of its own; one that was missed while no daemon was running is made at once.

Where another program has a file open for writing that a failed run has changed, so that the tree is not put back, it says so once and goes on when that file is closed.

It ends with an error when the root's path no longer leads to the directory that it began with. It goes on when nobody reads its output any more. INT, TERM, HUP or QUIT ends it after the messages that are under way; a second one ends their routines, and they stay in the inbox. A routine that the same signal ended, as at a shutdown, has not failed: its message stays there too. A tree has at most one daemon: a second one names the first and ends. It prints a line or two per message; what routines print is in their records' routine.log. .decree/config.yml is read when it starts. With DECREE_POLL set it looks every --interval and uses no file events.`,
		examples: []example{
			{"decree daemon", "until Ctrl-C"},
			{"nohup decree daemon >daemon.log 2>&1 &", "in the background"},
			{"decree daemon --jobs 4", "up to four isolated messages at once"},
			{"decree daemon --timeout 1h", "no attempt may take longer than an hour"},
		},
		exits: []exit{
			{"0", "ended by a signal"},
			{"1", "decree itself failed (such as on a full disk); the message says what state things are in"},
			{"4", "another daemon is running on this tree, or what waits came with a backup of another place"},
		},
		flags: s.writing(append([]cli.Flag{durationFlag(&o.interval, "look at the inbox and the cron jobs at least every `D`", "interval"),
			boolFlag(&o.resume, "let go the messages, cron jobs and schedules that came with a backup of another place", "resume")}, o.flags()...)...),
		action: func(ctx context.Context) error { return s.daemon(ctx, o) },
	}
}

func (s *session) daemon(ctx context.Context, o daemonOptions) error {
	if o.interval <= 0 {
		return usagef("--interval %s: not a positive duration", o.interval).Hintf("2s is the default")
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx, signals, stop := signalled(ctx, 2)
	defer stop()
	outliveReaders()
	if o.resume {
		rec, err := s.forWriting(ctx)
		if err == nil {
			err = queue.RefuseInLayer(rec.Project())
		}
		if err == nil {
			err = rec.Project().Resume()
		}
		if err != nil {
			return err
		}
		_ = rec.Close()
	}
	q, done, err := s.openQueue(ctx, queue.Options{Timeout: o.timeout, Grace: o.grace, Signals: signals, Jobs: o.jobs, Poll: true,
		Tell: func(e queue.Event) {
			if !s.global.json && !s.global.quiet && !s.global.events && !e.Started {
				s.say("%s", s.stamp())
			}
			s.messageHappened(e)
		}})
	if err != nil {
		return err
	}
	defer done()
	beside, err := s.schedule(s.rec.Project(), o.interval)
	if err != nil {
		return err
	}
	err = q.Serve(ctx, queue.ServeOptions{
		Interval: o.interval, CommandLine: append([]string{"decree"}, s.env.Args...),
		Beside: beside,
		Ready: func(stuck int) {
			what := "the inbox is empty"
			if stuck > 0 {
				what = count(stuck, "message") + " in the inbox, which cannot be gone on with yet ('decree inbox' says why)"
			}
			s.say("decree: daemon: %s; messages are processed as they arrive", what)
		},
	})
	if err == nil {
		s.say("decree: daemon ended; nothing is under way")
	}
	return err
}
