package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// endings are the signals that ask a program to end.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// heed has c get those of sigs that decree was not started to ignore, until stop. nohup has HUP ignored, and a script its
// background jobs INT: who asks for such a signal is no longer spared, nor is the command that is started then.
func heed(c chan<- os.Signal, sigs ...os.Signal) (stop func()) {
	for _, s := range sigs {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return func() { signal.Stop(c) }
}

// commandSignals are those that a recorded command gets from decree, until stop.
func commandSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 8)
	return signals, heed(signals, endings...)
}

// interruptible is ctx, cancelled by the first signal that asks for the end: a writing
// command then takes back what it has begun. A second signal ends the process,
// and the next command cleans up.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c := make(chan os.Signal, 1)
	stop := heed(c, endings...)
	go func() {
		select {
		case <-c:
			cancel()
		case <-ctx.Done():
		}
		stop()
	}()
	return ctx, cancel
}
