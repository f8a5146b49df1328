package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// Options open a Queue. Recorder and Clock are needed.
type Options struct {
	Recorder *recorder.Recorder
	Clock    func() time.Time
	Location *time.Location
	Host     string
	// Environ is what routines inherit; Stdin, Stdout and Stderr are theirs.
	Environ               []string
	Stdin, Stdout, Stderr *os.File
	// Jobs is how many messages are done at once, if they are isolated; 0: one. Each but the
	// first needs a recorder of its own, from Another; Recorder's option Beside is then set.
	Jobs    int
	Another func() (*recorder.Recorder, error)
	// Timeout is for an attempt; 0 is none. Grace is as in recorder.RunOptions.
	Timeout, Grace time.Duration
	// Yes: a first capture of any size.
	Yes bool
	// Signals go to the routine's processes; the run is then taken back and the
	// message stays in the inbox.
	Signals <-chan os.Signal
	// Tell takes what happens.
	Tell func(Event)
	// LookPath finds an executable, nil: exec.LookPath.
	LookPath func(name string) (string, error)
	// Poll: do not use the system's file events.
	Poll bool
}

// Outcome is what became of a message.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "done"
	Dead        Outcome = "dead"
	Interrupted Outcome = "interrupted" // by a signal: it is still in the inbox
	Waits       Outcome = "waits"       // it cannot be gone on with yet: see stuck.go
)

// Event is something that happened. Message.Started has only Name, ID and Routine.
type Event struct {
	Started bool   // else the message has ended
	Note    string // a remark, and nothing else is set
	Result  *Result
}

// Result is what became of one message.
type Result struct {
	Name    string // of its file in the inbox
	ID      string // "" if it could not be understood
	Routine string
	Outcome Outcome
	Reason  string // of Dead, in one line
	Place   string // its file now, below .decree/inbox
	Record  *history.Record
	// Published is the record that brought the work of an isolated run into the tree; nil
	// where there was nothing, or another process did it.
	Published *history.Record
	// Run is how its run ended; nil where none was made, or by another process.
	Run       *recorder.RunResult
	FollowUps []string // files of its chain that joined the inbox
	// Kept: what its run changed could not be taken back, at least in part, which was told.
	Kept bool
}

// Queue takes messages. Next and Work are not safe for concurrent use.
type Queue struct {
	o Options
	// turn is taken for all that needs the lock, and guards what follows.
	turn turnQueue
	// tried are the specs that this process has had its turn at.
	tried map[string]bool
	// passed are the files, with their inodes, that stay where they are: see pass.
	passed          map[string]uint64
	cleaned, looked bool
	// stuck are the messages, by their ids, that could not be gone on with at the last try.
	stuck map[string]*stuck
	// list is what is known of the inbox.
	list listing
	// writing are the files that were passed over because they are being written.
	writing []string
	// routines are the names of those that were there when this process began; lacking is why the last look has passed over a message for want of one.
	routines map[string]bool
	lacking  *lackError
	toldLack map[string]bool // the routines for want of which a daemon has said that messages wait
	// began counts the messages that have begun.
	began int
	// serving: this is a daemon, which goes on where a person would be asked.
	serving bool
}

// job is a queue while it does one message. Several of them share the queue, and have the
// turn one after the other; a command that works in isolation needs no turn.
type job struct {
	*Queue
	rec     *recorder.Recorder
	signals <-chan os.Signal
	ending  func() *recorder.Interrupted // see recorder.RunOptions
	working func()                       // is called when another job may have the turn; nil: nobody asks

	number int  // of its turn
	turned bool // it has the turn
	// s is the state while the job has the lock, u what of it is about its message; nil: none
	// has begun.
	s *state
	u *underWay
	// busy are the messages that were passed over because their chain is under way.
	busy map[string]bool
	// spec is the one that the message chosen last is about, "" for one of the inbox.
	spec string
	// dying are the messages that this job found to be dead beside the one that it takes.
	dying []*Result
	// text is the completed message, file the file that holds it, asItCame what that held before.
	text           []byte
	file, asItCame identity
	// changes counts how often a message was another one, or gone, when its routine had been found.
	changes int
}

func (q *Queue) job(rec *recorder.Recorder, signals <-chan os.Signal) *job {
	return &job{Queue: q, rec: rec, signals: signals, number: beginner, busy: map[string]bool{}}
}

func (q *job) project() *project.Project { return q.rec.Project() }

// takeTurn and giveTurn may be called again.
func (q *job) takeTurn() {
	if !q.turned {
		q.turn.acquire(q.number)
		q.turned = true
	}
}

func (q *job) giveTurn() {
	if q.turned {
		q.turned = false
		q.turn.release()
	}
}

// Open makes a Queue over a recorder that was opened with Create.
func Open(o Options) *Queue {
	if o.Location == nil {
		o.Location = time.Local
	}
	clock := o.Clock
	o.Clock = func() time.Time { return history.Recordable(clock()) }
	if told := o.Tell; told != nil { // several messages, and cron, tell at once
		var mu sync.Mutex
		o.Tell = func(e Event) { mu.Lock(); defer mu.Unlock(); told(e) }
	}
	return &Queue{o: o, tried: map[string]bool{}, passed: map[string]uint64{}, stuck: map[string]*stuck{}}
}

func (q *Queue) project() *project.Project { return q.o.Recorder.Project() }

func (q *Queue) note(format string, args ...any) {
	if q.o.Tell != nil {
		q.o.Tell(Event{Note: fmt.Sprintf(format, args...)})
	}
}

func (q *Queue) tell(started bool, r *Result) {
	if q.o.Tell != nil {
		q.o.Tell(Event{Started: started, Result: r})
	}
}

// Pick says which message is wanted.
type Pick struct {
	Name  string // that one; "" the next one
	Specs bool   // the specs that are not processed come before the inbox
	Ended bool   // only what is known of Name's end is noted, and nothing is begun
}

// Writing are the files that the last look for a message passed over since somebody has
// them open for writing, and in a daemon also since somebody has just made them and written nothing yet.
func (q *Queue) Writing() []string {
	q.turn.acquire(beginner)
	defer q.turn.release()
	return q.writing
}

// Lacking is why the last look for a message passed one over whose routine is gone; nil: it did not.
func (q *Queue) Lacking() error {
	q.turn.acquire(beginner)
	defer q.turn.release()
	if q.lacking == nil {
		return nil
	}
	return q.lacking
}

// lockPause is how often a wait for the lock looks whether it is still wanted.
const lockPause = 200 * time.Millisecond

// Next does one message and returns what became of it; nil means that there is
// none. An error means that decree itself failed or refused: the message under
// way is in the inbox or its end is recorded, and the next call goes on with it.
//
// ctx ends the wait for the lock, and not the message. wait is how long to wait
// for the lock; negative is until ctx ends.
func (q *Queue) Next(ctx context.Context, wait time.Duration, pick Pick) (res *Result, err error) {
	return q.job(q.o.Recorder, q.o.Signals).take(ctx, wait, pick)
}

// take is Next.
func (q *job) take(ctx context.Context, wait time.Duration, pick Pick) (res *Result, err error) {
	defer func() { q.turn.ended(q.number) }()
	q.ending = func() *recorder.Interrupted {
		asked, _ := errors.AsType[*recorder.Interrupted](context.Cause(ctx))
		return asked
	}
	if err := RefuseInLayer(q.project()); err != nil {
		return nil, err
	}
	begin, told := time.Now(), false
	for {
		lockWait := wait
		if wait < 0 || wait > lockPause {
			lockWait = lockPause
		}
		entered := false
		err = q.hold(ctx, lockWait, true, func() error {
			entered = true
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err = q.project().HeldBack(); err == nil {
				res, err = q.next(ctx, pick)
			}
			return err
		})
		var held *project.HeldError
		for _, r := range q.dying {
			q.onDead(ctx, r)
		}
		q.dying = nil
		alive := new(*recorder.AliveError) // what a person's dead run has left may end at any moment
		if !errors.As(err, alive) && (!errors.As(err, &held) || entered && !held.Holder.Isolated) {
			if err == nil && res != nil && res.Outcome == Dead {
				q.onDead(ctx, res) // without the lock: it may send a message
			}
			return res, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if q.number != beginner {
			wait = -1 // a message has begun, and was taken away: the next one is not to pay for its time
		}
		if wait >= 0 && time.Since(begin) >= wait {
			return nil, err
		}
		if !told && (held == nil || held.Holder.PID != os.Getpid()) {
			told = true
			q.note("waiting: %v", err)
		}
		switch {
		case held == nil:
			time.Sleep(lockPause)
		case held.Holder.Isolated:
			q.awaitLease(ctx, held.Holder.Run)
		}
	}
}

// awaitLease returns when the isolated run has ended that an in-place one waits for, or ctx.
func (q *job) awaitLease(ctx context.Context, record string) {
	for ctx.Err() == nil {
		leases, err := q.project().Leases()
		if err != nil || !slices.ContainsFunc(leases, func(l project.Lease) bool { return l.ID == record }) {
			return
		}
		time.Sleep(lockPause)
	}
}

// hold is Recorder.Hold, after the end of what still runs of a routine whose decree died.
// That may die while the lock is waited for, or a part of its routine may have the lock: so
// a refusal has it looked for again.
func (q *job) hold(ctx context.Context, wait time.Duration, runs bool, do func() error) error {
	q.takeTurn()
	defer q.giveTurn()
	const tries = 10
	for n := 1; ; n++ {
		if err := q.endOrphan(ctx); err != nil {
			return err
		}
		entered := false
		err := q.rec.Hold(context.WithoutCancel(ctx), wait, runs, func() error { entered = true; return do() })
		if entered || n == tries || project.KindOf(err) != project.Refused || errors.As(err, new(*project.HeldError)) {
			return err
		}
		q.looked = false
	}
}

// endOrphan ends what still runs of a routine whose decree died: it is the message
// under way, and its run is to be taken back. What a person's dead run has left is
// theirs to end. It looks once.
func (q *job) endOrphan(ctx context.Context) error {
	if q.looked {
		return nil
	}
	q.looked = true
	s, err := readState(q.project().Store)
	if err != nil {
		return err
	}
	for _, u := range s.UnderWay {
		if u.Isolated || u.Record == "" { // what is left of isolated runs ends with every recovery
			continue
		}
		if _, err := q.rec.History().Opened(u.Record); isMissing(err) {
			continue
		} else if err != nil {
			return err
		}
		return q.endLeft(ctx)
	}
	return nil
}

// endLeft recovers, and ends before what is left of dead processes' commands.
func (q *job) endLeft(ctx context.Context) error {
	done, err := q.rec.Recover(context.WithoutCancel(ctx), true)
	if _, ok := errors.AsType[*project.HeldError](err); ok {
		q.looked = false
		return nil // the caller waits for the lock, or is refused too
	}
	for _, d := range done {
		q.note("%s", d.What)
	}
	return err
}

// dirs are the inbox's directories, open for one message.
type dirs struct{ inbox, done, dead disk.Dir }

func (d *dirs) close() {
	for _, x := range []disk.Dir{d.inbox, d.done, d.dead} {
		if x != nil {
			x.Close()
		}
	}
}

// open opens the directories, made where they are missing. A run may delete
// .decree, so they are opened again after it.
func (q *job) open() (*dirs, error) {
	decree := q.project().Decree
	d := &dirs{}
	var err error
	if d.inbox, err = ownDir(q.project(), decree, project.InboxDir); err == nil {
		if d.done, err = ownDir(q.project(), d.inbox, doneName); err == nil {
			d.dead, err = ownDir(q.project(), d.inbox, deadName)
		}
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// next is Next under the lock. Once a message has begun ctx does not end it.
func (q *job) next(ctx context.Context, pick Pick) (*Result, error) {
	q.u = nil
	clear(q.busy)
	d, err := q.open()
	if err != nil {
		return nil, err
	}
	defer func() { d.close() }()
	if err := q.cleanUp(d); err != nil {
		return nil, err
	}
	if err := q.takenBack(d); err != nil {
		return nil, err
	}
	if q.s, err = readState(q.project().Store); err != nil {
		return nil, err
	}
	defer q.forgetStuck() // those that this look has ended
	if err := q.notInside(); err != nil {
		return nil, err
	}
	if res, err := q.recoverMessages(context.WithoutCancel(ctx), d, pick); err != nil || res != nil {
		return res, err
	}
	q.lacking = nil
	for !pick.Ended {
		if q.u == nil && ctx.Err() != nil {
			return nil, ctx.Err() // it ended beside the run of a message that this one has left
		}
		name := ""
		if q.u != nil {
			name = q.u.Name
		} else if name, err = q.choose(d, pick); err != nil || name == "" {
			return nil, err
		}
		res, err := q.do(ctx, d, name)
		passed := q.passesOver(name, pick, err)
		switch {
		case isStuck(err) && pick.Name == "":
			return &Result{Name: q.u.Name, ID: q.u.ID, Outcome: Waits}, nil
		case !passed:
			return res, err
		}
		q.u = nil
		q.turn.ended(q.number) // what comes now may have to wait for one that began later
	}
	return nil, nil
}

// cleanUp removes, once, what dead processes have left.
func (q *job) cleanUp(d *dirs) error {
	if q.cleaned {
		return nil
	}
	for _, dir := range []disk.Dir{d.inbox, d.done, d.dead} {
		if err := clean(dir, begins(queueDraft), q.project().PutAside); err != nil {
			return err
		}
	}
	if err := q.cleanSpecs(); err != nil {
		return err
	}
	q.noteRoutines()
	q.cleaned = true
	return nil
}

// passesOver says whether the error of a try to do a message is that another one is to be chosen.
func (q *job) passesOver(name string, pick Pick, err error) bool {
	lack := new(*lackError)
	lacks := errors.As(err, lack) && pick.Name == ""
	busy := lacks || errors.Is(err, errBusy)
	if busy || errors.As(err, new(*project.HeldError)) {
		delete(q.tried, q.spec) // it has not begun, and comes before the specs after it
	}
	if lacks {
		if q.lacking = *lack; q.serving && !q.toldLack[q.lacking.routine] {
			q.note("%v; %s; this is tried again", err, project.HintOf(err))
			q.toldLack[q.lacking.routine] = true
		}
	}
	if busy {
		q.busy[name] = true
	}
	return busy || errors.Is(err, errPassed) || errors.Is(err, errGone)
}

// notInside refuses to take a message where this process is a part of one that is done in
// place: that one has not ended, and the next ones come after it.
func (q *job) notInside() error {
	leases, err := q.project().Leases()
	for _, l := range leases {
		for _, u := range q.s.UnderWay {
			if u.Record == l.ID && !u.Isolated {
				return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("this command is a part of message %s, which is being done", tree.Quote(u.Name)),
					Advice: "what waits in the inbox is done after it"}
			}
		}
	}
	return err
}

// beside says whether a message may begin beside those whose runs go on: an isolated one, if
// none of them is of its chain (errBusy), nor one that cannot be gone on with yet. What changes the tree itself waits for
// the end of them all (*project.HeldError).
func (q *job) beside(m *message.Message, isolated bool) error {
	leases, err := q.project().Leases()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(q.s.UnderWay, func(u *underWay) bool { return u != q.u && u.Stuck != "" && u.Chain == m.Chain }) {
		return errBusy
	}
	for _, l := range leases {
		for _, u := range q.s.UnderWay {
			switch {
			case u == q.u || u.Record != l.ID:
			case u.Chain == m.Chain:
				return errBusy
			case !isolated:
				return &project.HeldError{Holder: l.Holder}
			}
		}
	}
	return nil
}

// errBusy: a message of the same chain is under way.
var errBusy = errors.New("another message of its chain is being done")

// choose is the file whose turn it is, "" for none.
func (q *job) choose(d *dirs, pick Pick) (string, error) {
	q.writing, q.spec = nil, ""
	if err := q.list.look(d.inbox); err != nil {
		return "", err
	}
	if pick.Name != "" {
		return q.named(d, pick.Name)
	}
	for _, name := range slices.Clone(q.s.Stack) {
		info, err := d.inbox.Stat(name)
		if err != nil && !isMissing(err) {
			return "", err
		}
		if err == nil && q.isBusy(name) {
			continue
		}
		if err == nil && info.Kind == disk.Regular && q.complete(d, Pending{name, info.Mtime, info.Size, info.Ino}) {
			return name, nil
		}
		q.s.unstack(name)
	}
	if name, err := q.follower(d); name != "" || err != nil {
		return name, err
	}
	if pick.Specs {
		name, err := q.chooseSpec(d)
		if name != "" || err != nil {
			return name, err
		}
	}
	complete := func(p Pending) bool { return q.complete(d, p) }
	name, err := q.list.next(d.inbox, complete)
	if name != "" || err != nil {
		return name, err
	}
	q.list.stale = true // what was overlooked
	if err := q.list.look(d.inbox); err != nil {
		return "", err
	}
	return q.list.next(d.inbox, complete)
}

// named finds the one that is asked for.
func (q *job) named(d *dirs, name string) (string, error) {
	info, err := d.inbox.Stat(name)
	if isMissing(err) || err == nil && (info.Kind != disk.Regular || !isMessage(name)) {
		return "", &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: fmt.Sprintf("%s: no such message in the inbox", name),
			Advice: "'decree inbox' lists them, 'decree inbox --dead' those that failed"}
	}
	if err != nil {
		return "", err
	}
	if q.isBusy(name) {
		return "", &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s, or another message of its chain, is being done", tree.Quote(name)), Advice: "wait until that has ended"}
	}
	if q.passed[name] == info.Ino {
		return "", &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s can neither be done nor moved; it is still in the inbox", tree.Quote(name))}
	}
	if !hasNoWriter(d.inbox, name, info.Mtime) {
		return "", &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s is open for writing", name), Advice: "save and close it first"}
	}
	return name, nil
}

// follower is the first file that is named as one of the chain done last.
func (q *job) follower(d *dirs) (string, error) {
	best := ""
	for _, name := range q.list.chains[q.s.Last] {
		if _, _, ok := message.NameParts(name, q.maxDepth()); !ok || best != "" && compareNames(name, best) > 0 {
			continue
		}
		p, ok, err := pending(d.inbox, name)
		if err != nil {
			return "", err
		}
		if ok && q.complete(d, p) {
			best = name
		}
	}
	return best, nil
}

func (q *Queue) maxDepth() int { return q.project().Config.MaxDepth }

// complete says whether the file is whole, and remembers one that is not. One that
// is passed over is not asked.
func (q *job) complete(d *dirs, p Pending) bool {
	if q.passed[p.Name] == p.Ino || q.isBusy(p.Name) {
		return false
	}
	if hasNoWriter(d.inbox, p.Name, p.Mtime) && (p.Size > 0 || !q.serving || leftAlone(p.Mtime, emptyAge)) {
		return true
	}
	if !slices.Contains(q.writing, p.Name) {
		q.writing = append(q.writing, p.Name)
	}
	return false
}

// isBusy says whether a message is under way, or has to wait for one that is.
func (q *job) isBusy(name string) bool { return q.busy[name] || q.s.named(name) != nil }

// chooseSpec is the message of the next spec, made if there is none yet.
func (q *job) chooseSpec(d *dirs) (string, error) {
	specs, err := q.specsInReach()
	if err != nil {
		return "", err
	}
	for _, spec := range specs {
		if q.tried[spec] {
			continue
		}
		name := q.aboutSpecs(d)[spec]
		if q.busy[name] {
			continue
		}
		q.tried[spec], q.spec = true, spec
		if name != "" && q.isBusy(name) {
			continue
		} else if name != "" {
			return name, nil // made by a process that died, or by a person
		}
		chain, err := NewChain(q.rec)
		if err != nil {
			return "", err
		}
		m, err := message.Parse("", fmt.Appendf(nil, "---\ninput_file: %s\n---\n", yamlText(tree.Quote(spec))))
		if err != nil {
			return "", err
		}
		_, data, err := message.Complete(m, message.Defaults{Chain: chain, MaxDepth: max(q.maxDepth(), 1)})
		if err != nil {
			return "", err
		}
		name, err = free(d.inbox, chain+"-0"+suffix, "")
		if err != nil {
			return "", err
		}
		return name, putNew(d.inbox, name, data)
	}
	return "", nil
}

// yamlText is a scalar that is text, whatever it holds: U+0085 would be read as a line break if it stood for itself.
func yamlText(s string) string { return strconv.Quote(s) }

// aboutSpecs are the messages that wait, by the spec that they are about.
func (q *job) aboutSpecs(d *dirs) map[string]string {
	out := map[string]string{}
	for _, p := range q.list.order {
		if m, err := parseFile(d.inbox, p.Name); err == nil && m.InputFile != "" && out[m.InputFile] == "" {
			out[m.InputFile] = p.Name
		}
	}
	return out
}
