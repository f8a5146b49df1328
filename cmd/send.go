package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/queue"
	"decree/recorder"
	"decree/view"
)

// sendOptions are send's flags.
type sendOptions struct {
	name, routine string
	values        fieldFlag
}

// fieldFlag collects K=V, as often as it is given. (A flag for lists would cut V at commas.)
type fieldFlag []message.Param

func (f *fieldFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return errors.New("write NAME=VALUE, with letters, digits and _ in the name")
	}
	*f = append(*f, message.Param{Name: name, Value: value})
	return nil
}

func (f *fieldFlag) String() string { return "" }

func (s *session) sendVerb() verb {
	var o sendOptions
	return verb{
		name: "send", category: messageCategory, args: "[TEXT | -]", most: 1,
		usage: "write a message into the inbox",
		about: `Writes a message into .decree/inbox, for "decree process" or a daemon to do, and prints its name alone on stdout. TEXT is what is to be done; "-" takes it from stdin. If that begins with a front matter, its fields are kept, and the flags go before them.

The message is there whole or not at all, and replaces no other. send does not wait: it works even while another decree is working on this tree.

Inside a routine the message is a follow-up: it joins the chain of the message that is being done, and counts only if that succeeds; in a "decree run" inside the routine also that run has to. From a directory that is of no project yet, as a nested repository or a scratch directory, it goes to the project of the run; with a .decree there, or --root, to that one. Outside it begins a chain of its own, unless its fields or its name <chain>-<seq> say otherwise.`,
		examples: []example{
			{"decree send 'Give the parser a test for empty input.'", "for the default routine"},
			{"decree send -r review -v target_branch=next 'Look at the last change.'", "with a routine and a parameter"},
			{"git log -1 --format=%B | decree send -m from-log -", "from another program, as from-log.md"},
			{"decree send -v input_file=specs/parser.spec.md 'Do the spec.'", "about a spec"},
		},
		exits: []exit{{"4", "the inbox has a message of that NAME"}},
		flags: append([]cli.Flag{
			stringFlag(&o.name, "call the message `NAME` (default: <chain>-0)", "name", "m"),
			stringFlag(&o.routine, "use `ROUTINE` for it", "routine", "r"),
			&cli.GenericFlag{Name: "value", Aliases: []string{"v"}, Value: &o.values, DefaultText: "",
				Usage: "set the field `NAME=VALUE`: input_file and such, or a parameter of the routine; may be repeated"},
		}, s.jsonFlag(), s.rootFlag(), s.quietFlag()),
		action: func(ctx context.Context) error { return s.send(ctx, o) },
	}
}

// sentMessage is a message that was sent.
type sentMessage struct {
	view.Sent
	message *message.Message
	stays   bool // in the inbox of a layer, where no queue sees it
}

func (s *session) send(ctx context.Context, o sendOptions) error {
	fields, err := o.fields()
	if err != nil {
		return err
	}
	text, err := s.messageText(len(fields) > 0)
	if err != nil {
		return err
	}
	run := s.rootOfRun()
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	p := rec.Project()
	nested := run != "" && p.Root != run
	if nested && p.InLayer {
		return refusedf("%s is a project of its own in the tree of this isolated run, and a message there would go with the run's layer; nothing was sent", p.Root).
			Hintf("send it again after the run; or send it to the project of the run: decree send --root %s", quoteWord(run))
	}
	sent, err := s.drop(rec, o.name, text, fields)
	if err != nil {
		return rec.BehindFence(err)
	}
	s.checkSent(&rec.Project().Site, sent.message)
	if nested {
		s.note(fmt.Sprintf("%s is in the inbox of %s, a project of its own; to the one of this run it goes with 'decree send --root %s'", quoteWord(sent.Name), p.Root, quoteWord(run)))
	}
	if sent.stays {
		s.note("this is an isolated run: " + sent.Name + " is in the inbox of its layer; if a message is done in that, it comes into the project's inbox when the work of the message is published; of another run it stays there: then send it again after the run")
	}
	if s.global.json {
		err = s.printJSON(sent)
	} else {
		_, err = fmt.Fprintln(s.env.Stdout, sent.Name)
	}
	if err != nil { // the hint for a full disk would be to run this again
		return &project.Error{Kind: project.Failed, Msg: fmt.Sprintf("%s is in the inbox, but its name was not printed: %v", quoteWord(sent.Name), err), Advice: "do not send it again"}
	}
	return nil
}

// rootOfRun is the root of the run that this is part of, "" for none. It becomes the place to send to
// where in the working directory a project would only begin, as in a nested repository or a scratch directory.
func (s *session) rootOfRun() string {
	run, err := filepath.EvalSymlinks(s.env.get("DECREE_ROOT"))
	if err != nil || !filepath.IsAbs(run) || s.global.root != "" {
		return ""
	}
	here, err := project.FindRoot(disk.OS, s.where())
	if err == nil {
		_, err = os.Lstat(filepath.Join(here, ".decree"))
	}
	if err != nil {
		s.env.Cwd = run
	}
	return run
}

// fields are the flags' fields of the front matter.
func (o sendOptions) fields() ([]message.Param, error) {
	fields := append([]message.Param(nil), o.values...)
	if o.routine != "" {
		if err := message.CheckRoutineName(o.routine); err != nil {
			return nil, usagef("--routine: %s", err).Hintf("'decree routines' lists them")
		}
		fields = append([]message.Param{{Name: "routine", Value: o.routine}}, fields...)
	}
	for _, f := range fields {
		if !utf8.ValidString(f.Value) {
			return nil, usagef("%s: its value is not UTF-8 text", f.Name).Hintf("put such data into a file, and name the file")
		}
	}
	return fields, nil
}

// messageText is TEXT, or stdin for "-". There need be none where a field says something.
func (s *session) messageText(said bool) ([]byte, error) {
	words := s.words()
	switch {
	case len(words) == 0 && said:
		return nil, nil
	case len(words) == 0:
		return nil, usagef("a TEXT is missing").Hintf("for example: decree send 'Fix the typo in the README'; '-' takes it from stdin")
	case words[0] != "-":
		return []byte(strings.TrimSuffix(words[0], "\n") + "\n"), nil
	}
	text, err := io.ReadAll(io.LimitReader(s.env.Stdin, message.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return text, nil
}

// drop puts the message into the inbox under the name that is asked for, or the first
// free one.
func (s *session) drop(rec *recorder.Recorder, name string, text []byte, fields []message.Param) (sentMessage, error) {
	p := rec.Project()
	// The run that this is part of may have deleted .decree.
	if err := p.EnsureDecree(); err != nil {
		return sentMessage{}, err
	}
	if name != "" {
		var err error
		if name, err = messageFile(name); err != nil {
			return sentMessage{}, err
		}
	}
	for {
		box, _ := queue.FindOutbox(rec, s.env.get("DECREE_OUTBOX"))
		to, drop := inboxOf(p)
		if box != nil {
			to, drop = box.Path(), box.Drop
		}
		stays := p.InLayer && box == nil
		chain, err := queue.NewChain(rec)
		if err != nil {
			return sentMessage{}, err
		}
		file := cmp.Or(name, chain+"-0.md")
		if name == "" && box != nil {
			file = "follow-up-" + chain + ".md"
		}
		m, data, err := written(file, text, fields)
		if err == nil && box == nil && !stays { // the ids that a layer gives are those of others, too
			m, data, err = message.Complete(m, message.Defaults{Chain: chain, MaxDepth: p.Config.MaxDepth, MaxChain: p.Config.MaxChain})
		}
		if err != nil {
			queue.ReturnChain(p, chain)
			return sentMessage{}, usagef("%s", err).Hintf("see 'decree send --help'; nothing was sent")
		}
		err = drop(file, data)
		if err == nil && box != nil {
			late, lerr := box.TakeBack(file)
			if lerr != nil {
				return sentMessage{}, fmt.Errorf("the run that it was sent in has ended meanwhile, and it lies in %s: %w", to, lerr)
			}
			if late {
				queue.ReturnChain(p, chain)
				continue
			}
		}
		if taken := errors.Is(err, fs.ErrExist); !taken && (err != nil || m.Chain != chain) { // a name that is taken would be tried again
			queue.ReturnChain(p, chain)
		}
		switch {
		case err == nil:
			return sentMessage{view.Sent{Name: strings.TrimSuffix(file, ".md"), ID: m.ID, Path: filepath.Join(to, file)}, m, stays}, nil
		case !errors.Is(err, fs.ErrExist):
			return sentMessage{}, fmt.Errorf("%w; nothing was sent", err)
		case name != "":
			return sentMessage{}, refusedf("the %s has a message %s; nothing was sent", filepath.Base(to), quoteWord(name)).Hintf("choose another name, or leave it out")
		}
	}
}

// inboxOf is the inbox of a project, and how a message is put into it.
func inboxOf(p *project.Project) (path string, drop func(name string, data []byte) error) {
	return filepath.Join(p.Root, ".decree", project.InboxDir), p.Drop
}

// written is a message of a text that may have a front matter, with fields.
func written(file string, text []byte, fields []message.Param) (*message.Message, []byte, error) {
	m, err := message.Parse(file, text)
	if err != nil {
		return nil, nil, err
	}
	m, data, err := message.Set(m, fields)
	if err == nil && len(bytes.TrimSpace(m.Body)) == 0 && m.Routine == "" && m.InputFile == "" && len(m.Params) == 0 {
		err = errors.New("the message is empty: it needs a text, or a field that says what is to be done")
	}
	return m, data, err
}

// messageFile is the file of a message called name, with or without ".md".
func messageFile(name string) (string, error) {
	stem := strings.TrimSuffix(name, ".md")
	if stem == "" || stem[0] == '.' || strings.ContainsAny(stem, "/\x00") || strings.ContainsFunc(stem, view.Unsafe) || len(stem) > 200 {
		return "", usagef("%s cannot be the name of a message", quoteWord(name)).Hintf("a name is one part of a path, not hidden, and at most 200 bytes long")
	}
	return stem + ".md", nil
}
