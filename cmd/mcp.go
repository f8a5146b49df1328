package cmd

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v2"

	"decree/disk"
	"decree/mcpserver"
	"decree/project"
	"decree/recorder"
)

func (s *session) mcpVerb() verb {
	var allowWrite bool
	return verb{
		name: "mcp", category: agentCategory, usage: "serve the records to a program that speaks the Model Context Protocol",
		about: `Reads requests on stdin and answers on stdout, until stdin ends: a program that speaks the Model Context Protocol starts it, as a rule a coding agent. Its tools are history, show, diff, blame, checkpoint and plan. A plan says what an undo, redo, revert, apply, restore or publish would do to each path, and changes nothing.

With --allow-write there is perform too, which does what a plan said: it is refused if one of the plan's paths, or the newest record, is no longer what the plan saw. What it did is a record, as always, and can be taken back.

Answers are bounded, with a cursor for more, and have the same JSON objects that the commands print with --json. Hooks record what an agent does without this: see 'decree agents'.`,
		examples: []example{
			{"decree mcp </dev/null", "what an agent starts; it ends with its input"},
		},
		exits: []exit{{"0", "stdin has ended"}, {"1", "stdin or stdout cannot be used"}},
		flags: []cli.Flag{
			boolFlag(&allowWrite, "let the program perform what it has planned", "allow-write"),
			s.rootFlag(), s.quietFlag(),
		},
		interruptible: true,
		action:        func(ctx context.Context) error { return s.mcp(ctx, allowWrite) },
	}
}

func (s *session) mcp(ctx context.Context, allowWrite bool) error {
	s.stay()
	server, done := mcpserver.New(mcpserver.Options{
		Read: s.readForServer, Change: s.changeForServer, Resolve: s.pointForServer, AllowWrite: allowWrite, Version: Version(),
	})
	err := server.Run(ctx, &mcp.IOTransport{Reader: s.env.Stdin, Writer: keptOpen{s.env.Stdout}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, done())
}

// stay has all that the session opens from now on be of the project that it is in now, whatever becomes of the directory
// that it was started in.
func (s *session) stay() {
	if root, err := project.FindRoot(disk.OS, s.where()); err == nil && project.Marked(disk.OS, root) {
		s.global.root = root
	}
}

// keptOpen leaves a stream open for who has it.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// quietly are the options of a project that is opened while answers go to stdout: nothing is shown of its work.
func (s *session) quietly() recorder.ReaderOptions {
	return recorder.ReaderOptions{Disk: disk.OS, Where: s.where(), Clock: s.env.Now, Location: s.env.Location, Note: s.note}
}

func (s *session) readForServer() (*recorder.Reader, error) { return recorder.OpenReader(s.quietly()) }

func (s *session) changeForServer(ctx context.Context, create bool) (*recorder.Recorder, error) {
	return s.changeTelling(ctx, create, nil)
}

// changeTelling is changeForServer for a server that tells what happens meanwhile.
func (s *session) changeTelling(ctx context.Context, create bool, happens func(recorder.Event)) (*recorder.Recorder, error) {
	actor, err := s.actor()
	if err != nil {
		return nil, err
	}
	reading := s.quietly()
	reading.Events = happens
	return recorder.Open(ctx, recorder.Options{
		ReaderOptions: reading, Create: true, Existing: !create, Actor: actor, Wait: 10 * time.Second,
		CommandLine: append([]string{"decree"}, s.env.Args...),
	})
}

func (s *session) pointForServer(rec *recorder.Reader, ref string) (recorder.Point, error) {
	return (&session{env: s.env, global: globals{quiet: true}}).resolve(rec, ref)
}
