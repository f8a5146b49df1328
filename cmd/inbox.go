package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/queue"
	"decree/recorder"
	"decree/view"
)

// inboxOptions are inbox's flags.
type inboxOptions struct{ dead, done bool }

func (s *session) inboxVerb() verb {
	var o inboxOptions
	return verb{
		name: "inbox", category: messageCategory, args: "[show|edit|cancel|retry NAME...]", words: messageWords, most: anyWords,
		usage: "list messages, show, edit or cancel one, try a dead one again",
		about: `Lists the messages in .decree/inbox, the oldest first: name, when it was written, its routine, its first line. With --dead those that failed, with the reason; with --done those that are done.

"inbox show NAME" prints a message, wherever it is. "inbox edit NAME" opens one that waits or is dead in $VISUAL, $EDITOR or vi; it keeps its place, and stays as it is if the new text cannot be understood. "inbox cancel NAME" moves one that waits to inbox/dead. The one that is being done, which the list marks, is left alone. These work while another message is done.

"inbox retry NAME" moves a dead message back into the inbox, where it has all its attempts again. The same is done by moving its file by hand.`,
		examples: []example{
			{"decree inbox", "what waits"},
			{"decree inbox --dead", "what failed, and why"},
			{"decree inbox retry 2026112107015900-0", "try that one again"},
			{"decree inbox cancel fix-login", "it is no longer wanted"},
			{"decree inbox --json", "for programs"},
		},
		exits: []exit{{"3", "no such message"}, {"4", "the message is being done; retry: another decree is working on this tree"}},
		flags: append([]cli.Flag{
			boolFlag(&o.dead, "those that failed", "dead"),
			boolFlag(&o.done, "those that are done", "done"),
		}, s.jsonFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag()),
		action: func(ctx context.Context) error { return s.inbox(ctx, o) },
	}
}

func (s *session) inbox(ctx context.Context, o inboxOptions) error {
	words := s.words()
	if len(words) > 0 && (o.dead || o.done) {
		return usagef("%s takes neither --dead nor --done: NAME is looked for in all lists", quoteWord(words[0]))
	}
	if len(words) > 0 {
		switch words[0] {
		case "retry":
			return s.retry(ctx, words[1:])
		case "cancel":
			return s.cancel(ctx, words[1:])
		case "show":
			return s.showMessage(ctx, words[1:])
		case "edit":
			return s.editMessage(ctx, words[1:])
		}
	}
	switch {
	case len(words) > 0:
		return usagef("inbox has no subcommand %s", quoteWord(words[0])).Hintf("'decree inbox' lists the messages; 'decree inbox show NAME', edit, cancel and retry work on one")
	case o.dead && o.done:
		return usagef("--dead and --done cannot be used together").Hintf("choose one")
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	where := ""
	if o.dead {
		where = "dead"
	} else if o.done {
		where = "done"
	}
	return s.listMessages(rec, where)
}

// messages are those of the inbox (""), or of its directory "dead" or "done".
func (s *session) messages(rec *recorder.Reader, where string) ([]view.Waiting, error) {
	p := rec.Project()
	files, err := queue.Waiting(p, where)
	if err != nil {
		return nil, err
	}
	var underWay []queue.Doing
	var stuck map[string]string
	if where == "" {
		if underWay, err = queue.UnderWay(p, s.env.Host); err == nil {
			stuck, err = queue.WhyStuck(rec)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]view.Waiting, 0, len(files))
	for _, f := range files {
		j := waitingOf(p, where, f)
		j.Running = slices.ContainsFunc(underWay, func(m queue.Doing) bool { return m.Name == f.Name })
		if why := stuck[f.Name]; why != "" {
			j.Reason = why
		}
		out = append(out, j)
	}
	return out, nil
}

func (s *session) listMessages(rec *recorder.Reader, where string) error {
	out, err := s.messages(rec, where)
	if err != nil {
		return err
	}
	if where == "" {
		others, err := queue.NotMessages(rec.Project())
		if err != nil {
			return err
		}
		for _, name := range others {
			s.note(fmt.Sprintf("%s is no message, and nobody does it: a message is a file, no link, whose name ends in .md", quoteWord(name)))
		}
	}
	if s.global.json {
		return s.printJSON(out)
	}
	if len(out) == 0 {
		s.say("decree: %s", map[string]string{"": "nothing is waiting", "dead": "no message failed", "done": "no message is done"}[where])
		return nil
	}
	return s.print(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout)
		for _, j := range out {
			last := j.Text
			if last == "" {
				last = j.InputFile
			}
			if j.Reason != "" {
				last = deadReason(j.Name, j.Reason)
			}
			if j.Running {
				last = "being done: " + last
			}
			name, cells := quoteWord(strings.TrimSuffix(j.Name, ".md")), []string{s.ago(j.Written), orDash(j.Routine), oneLine(last)}
			if t.most > 0 && width(name) > t.most/3 { // it stays whole: one has to type it
				t.lines = append(t.lines, []string{name})
				name = ""
			}
			t.add(append([]string{name}, cells...)...)
		}
		return t.write(w)
	})
}

// waitingOf is a file of the inbox, or of its directory where, as it is shown.
func waitingOf(p *project.Site, where string, f queue.Pending) view.Waiting {
	j := view.Waiting{Name: f.Name, Written: time.Unix(0, f.Mtime).UTC(), Path: strings.Join(nonEmpty(".decree/"+project.InboxDir, where, f.Name), "/")}
	data, reason, err := queue.Read(p, where, f.Name)
	var m *message.Message
	if err == nil {
		m, err = message.Parse(f.Name, data)
	}
	if err != nil {
		j.Reason = err.Error()
	} else {
		j.ID, j.Type, j.Routine, j.InputFile, j.Text = m.ID, m.Type, m.Routine, manifestPath(m.InputFile), m.Heading()
	}
	if reason != "" {
		j.Reason = reason
	}
	return j
}

func nonEmpty(words ...string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneLine(text)
}

// oneName is the file that the words of show and edit name.
func oneName(words []string) (string, error) {
	switch len(words) {
	case 0:
		return "", usagef("a NAME is missing").Hintf("'decree inbox' lists them")
	case 1:
		return messageName(words[0]), nil
	}
	return "", usagef("%s is unexpected: only one NAME can be given", quoteWord(words[1]))
}

// showMessage prints a message as it is, and on stderr why it is dead.
func (s *session) showMessage(ctx context.Context, words []string) error {
	name, err := oneName(words)
	if err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	where, err := queue.Where(rec.Project(), name)
	if err != nil {
		return err
	}
	data, reason, err := queue.Read(rec.Project(), where, name)
	if err != nil {
		return err
	}
	if reason != "" {
		s.note(oneLine("it is dead: " + reason))
	}
	return s.print(func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (s *session) cancel(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return usagef("a NAME is missing").Hintf("'decree inbox' lists them")
	}
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	if err := queue.RefuseInLayer(rec.Project()); err != nil {
		return err
	}
	for _, w := range words {
		if _, err := s.endMessage(ctx, rec, messageName(w), false); err != nil {
			return err
		}
		reason := fmt.Sprintf("cancelled by %s at %s", s.env.User, s.stamp())
		as, err := queue.Cancel(rec, s.env.Host, messageName(w), reason)
		if err != nil {
			return err
		}
		s.tell("%s is cancelled; queue it again: %s", quoteWord(strings.TrimSuffix(as, ".md")), queue.RetryCommand(as))
	}
	return nil
}

// endMessage notes the end of a message whose run has ended and whose process died before that was noted: one that
// is done is neither cancelled nor edited. The name is that of its file then.
func (s *session) endMessage(ctx context.Context, rec *recorder.Recorder, name string, editing bool) (as string, err error) {
	q, done, err := s.queueOver(ctx, rec, queue.Options{})
	if err != nil {
		return "", err
	}
	defer done()
	res, err := q.End(ctx, s.global.wait, name, editing)
	switch {
	case err != nil || res == nil:
		return name, err
	case res.Outcome == queue.Done:
		e := queue.DoneError(name, res.Record.ID)
		e.State = "that was not noted yet, and it now lies in .decree/inbox/" + res.Place
		return "", e
	}
	return path.Base(res.Place), nil
}

// editMessage opens a copy of a message in the user's editor, and puts it in its place.
func (s *session) editMessage(ctx context.Context, words []string) error {
	name, err := oneName(words)
	if err != nil {
		return err
	}
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	if name, err = s.endMessage(ctx, rec, name, true); err != nil {
		return err
	}
	where, was, err := toEdit(rec.Project(), name)
	if err != nil {
		return err
	}
	dir, err := rec.Project().OwnDir(rec.Project().Store, editsDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	unlock, err := lockDrafts(dir)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	file, shown := draftOf(name, was), quoteWord(strings.TrimSuffix(name, ".md"))
	text, err := s.edited(ctx, dir, file, was)
	switch {
	case err != nil:
	case bytes.Equal(text, was):
		s.tell("%s stays as it was", shown)
	default:
		if err = queue.Edit(rec, s.env.Host, where, name, was, text); err == nil {
			s.tell("%s is changed", shown)
		}
	}
	if err != nil && text != nil {
		advice := "your text is in " + quoteWord(filepath.Join(rec.Project().StorePath, editsDir, file))
		if !errors.Is(err, queue.ErrEdited) {
			advice += "; the next edit goes on with it"
		}
		return &project.Error{Kind: project.KindOf(err), Msg: fmt.Sprintf("%s: %v; your text has replaced nothing", quoteWord(name), err), Advice: advice}
	}
	if ctx.Err() != nil {
		return err // what is in the draft is for the next edit
	}
	if wasKilled(err) {
		return fmt.Errorf("%w; the next edit goes on with what it had saved", err)
	}
	return errors.Join(err, dir.Remove(file))
}

// toEdit is where the message lies that is to be edited, and its text.
func toEdit(p *project.Project, name string) (where string, text []byte, err error) {
	if err := queue.RefuseInLayer(p); err != nil {
		return "", nil, err
	}
	if where, err = queue.Where(&p.Site, name); err != nil {
		return "", nil, err
	}
	if where == "done" {
		return "", nil, refusedf("%s is done", quoteWord(name)).Unchanged().Hintf("'decree send' writes a new message")
	}
	text, _, err = queue.Read(&p.Site, where, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = queue.ErrEdited
	}
	return where, text, err
}

// lockDrafts keeps other edits out of the drafts.
func lockDrafts(dir disk.Dir) (unlock func() error, err error) {
	if err := ownDrafts(dir); err != nil {
		return nil, err
	}
	unlock, err = dir.TryLock()
	if errors.Is(err, disk.ErrLocked) {
		return nil, refusedf("another 'decree inbox edit' of this project is open; the message stays as it is").Hintf("end the editor there, then repeat this")
	}
	return unlock, err
}

// editsDir is where drafts of edited messages lie in the store: where one is left, since decree died beside the editor or the
// text was refused, the next edit of the message goes on with it.
const editsDir = "edits"

// draftOf is the name of the draft of a message that holds was: another message, or another text of it, has another draft.
func draftOf(name string, was []byte) string {
	const most = 200 // bytes of the message's name, so that there is room for the rest
	stem := strings.TrimSuffix(filepath.Base(name), ".md")
	return fmt.Sprintf("%s-%.8x.md", strings.ToValidUTF8(stem[:min(len(stem), most)], ""), sha256.Sum256(was))
}

// ownDrafts refuses drafts in another user's directory: that user could put a link in the place of one, and the
// editor would read and write what it leads to with the rights of this process.
func ownDrafts(dir disk.Dir) error {
	self, err := dir.Self()
	if err != nil || project.Mine(self) {
		return err
	}
	return refusedf("%s, where drafts of edited messages are kept, belongs to another user, who decides what the editor would open", dir.Path()).Unchanged().
		Hintf("run this as that user, with 'sudo -u', or edit the message's file yourself")
}

// edited has the draft called file in dir edited, which begins as text unless there is one, and returns it; nil where that failed.
func (s *session) edited(ctx context.Context, dir disk.Dir, file string, text []byte) ([]byte, error) {
	left, err := project.ReadFile(dir, file, math.MaxInt32)
	switch {
	case err == nil && !bytes.Equal(left, text):
		s.say("decree: this goes on with what an earlier edit has left; leave the editor with an error (:cq in vi) to give that up")
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		if err := project.ReplaceFile(dir, file, text, project.PrivateFile, false); err != nil {
			return nil, err
		}
	}
	editor := cmp.Or(s.env.get("VISUAL"), s.env.get("EDITOR"), "vi")
	c := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", filepath.Join(dir.Path(), file))
	c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = s.env.Cwd, s.env.Environ, s.env.Stdin, s.env.Stdout, s.env.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("the editor (%s): %w; the message is as it was", editor, err)
	}
	return project.ReadFile(dir, file, math.MaxInt32)
}

// wasKilled says whether a signal has ended a command, or what it executed in a shell: its user did not mean that.
func wasKilled(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	return is && (!exit.Exited() || exit.ExitCode() > 128)
}

func (s *session) retry(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return usagef("a NAME is missing").Hintf("'decree inbox --dead' lists them")
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	return s.waitAgain(ctx, rec, queue.Options{}, s.global.wait, words, func(as string) {
		s.tell("%s waits again", quoteWord(strings.TrimSuffix(as, ".md")))
	})
}

// waitAgain has dead messages wait again, once their ends are noted that a dead decree had not noted; told takes
// the name that each has then. wait is how long to wait for the lock.
func (s *session) waitAgain(ctx context.Context, rec *recorder.Recorder, o queue.Options, wait time.Duration, words []string, told func(as string)) error {
	q, done, err := s.queueOver(ctx, rec, o)
	if err != nil {
		return err
	}
	defer done()
	for _, w := range words {
		if err := q.EndDead(ctx, wait, messageName(w)); err != nil {
			return err
		}
	}
	return rec.Hold(ctx, wait, false, func() error {
		for _, w := range words {
			as, err := queue.Retry(rec.Project(), messageName(w))
			if err != nil {
				return err
			}
			told(as)
		}
		return nil
	})
}
