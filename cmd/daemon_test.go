//go:build unix

package cmd

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// daemonProving is a tree with a daemon.
type daemonProving struct{ *proving }

func newDaemonProving(t *testing.T, rng *rand.Rand, routine string) *daemonProving {
	p := &daemonProving{newProving(t, rng)}
	p.env = append(p.env, "BASE="+p.base)
	for _, dir := range []string{".decree/routines", ".decree/inbox"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(p.root, ".decree/routines/develop.sh"), []byte(routine), 0o644))
	return p
}

// send puts a message into the inbox, whole at once.
func (p *daemonProving) send(name, text string) {
	tmp := filepath.Join(p.base, "message")
	require.NoError(p.t, os.WriteFile(tmp, []byte(text), 0o644))
	require.NoError(p.t, os.MkdirAll(filepath.Join(p.root, ".decree/inbox"), 0o755)) // a routine may have deleted it
	require.NoError(p.t, os.Rename(tmp, filepath.Join(p.root, ".decree/inbox", name)))
}

func (p *daemonProving) start(more ...string) *exec.Cmd {
	c := exec.Command(p.bin, append([]string{"daemon", "--interval", "50ms"}, more...)...)
	c.Dir, c.Env = p.root, p.env
	var err error
	c.Stderr, err = os.OpenFile(filepath.Join(p.base, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(p.t, err)
	require.NoError(p.t, c.Start())
	return c
}

func (p *daemonProving) said() string {
	data, _ := os.ReadFile(filepath.Join(p.base, "log"))
	return string(data[max(0, len(data)-4000):])
}

func (p *daemonProving) messages(where string) (out []string) {
	list, err := os.ReadDir(filepath.Join(p.root, ".decree/inbox", where))
	if !os.IsNotExist(err) {
		require.NoError(p.t, err)
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".md") {
			out = append(out, e.Name())
		}
	}
	return out
}

// lines are those of a file, sorted; none where it is missing.
func (p *daemonProving) lines(path string) []string {
	data, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(p.t, err)
	}
	out := strings.Fields(string(data))
	slices.Sort(out)
	return out
}

func times(list []string, word string) (n int) {
	for _, w := range list {
		if w == word {
			n++
		}
	}
	return n
}

// TestDaemonEndsAfterThePresentMessage also has a second one refused meanwhile.
func TestDaemonEndsAfterThePresentMessage(t *testing.T) {
	p := newDaemonProving(t, nil, `echo >"$BASE/started"; read line <"$BASE/go"; echo did >log.txt`)
	for _, name := range []string{"started", "go"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(p.base, name), 0o600))
	}
	p.send("a.md", "one\n")
	p.send("b.md", "two\n")
	c := p.start()
	_, err := os.ReadFile(filepath.Join(p.base, "started"))
	require.NoError(t, err)
	code, out := p.decree("daemon")
	require.Equal(t, 4, code, out)
	require.Contains(t, out, fmt.Sprintf("process %d", c.Process.Pid))
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, os.WriteFile(filepath.Join(p.base, "go"), []byte("\n"), 0o600))
	require.NoError(t, c.Wait(), "it ends with 0\n%s", p.said())
	require.Equal(t, []string{"a.md"}, p.messages("done"))
	require.Equal(t, []string{"b.md"}, p.messages(""))
	require.Equal(t, []string{"did"}, p.lines(filepath.Join(p.root, "log.txt")))
}

// TestDaemonOutlivesItsLog: nobody reads what it says any more, and its routines
// are still ended by a closed pipe of their own.
func TestDaemonOutlivesItsLog(t *testing.T) {
	p := newDaemonProving(t, nil, `(kill -PIPE $BASHPID); echo $? >>log.txt; echo >"$BASE/done"`)
	require.NoError(t, syscall.Mkfifo(filepath.Join(p.base, "done"), 0o600))
	c := exec.Command(p.bin, "daemon", "--interval", "50ms")
	c.Dir, c.Env = p.root, p.env
	read, write, err := os.Pipe()
	require.NoError(t, err)
	c.Stderr = write
	require.NoError(t, c.Start())
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	for _, name := range []string{"a.md", "b.md"} {
		p.send(name, "one\n")
		_, err := os.ReadFile(filepath.Join(p.base, "done"))
		require.NoError(t, err)
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait())
	require.Equal(t, []string{"a.md", "b.md"}, p.messages("done"))
	require.Equal(t, []string{"141", "141"}, p.lines(filepath.Join(p.root, "log.txt")))
}

// TestDeletedAfterAKill: the routine outlives its daemon. The next command ends and
// names it, and does neither the message under way nor another one that were
// deleted meanwhile. Nobody knows by whose hand they were: they lie with the dead ones.
func TestDeletedAfterAKill(t *testing.T) {
	p := newDaemonProving(t, nil, `tail -n1 "$message_file" >>"$BASE/ran"
[ -p "$BASE/started" ] || exit 0
echo "at work"; echo half >half.txt; echo >"$BASE/started"; exec sleep 600`)
	require.NoError(t, syscall.Mkfifo(filepath.Join(p.base, "started"), 0o600))
	for _, name := range []string{"a", "b", "c"} {
		p.send(name+".md", name+"\n")
	}
	c := p.start()
	_, err := os.ReadFile(filepath.Join(p.base, "started"))
	require.NoError(t, err)
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.NoError(t, os.Remove(filepath.Join(p.base, "started")))
	p.tickAfterOutput()
	for _, name := range []string{"a.md", "b.md"} {
		require.NoError(t, os.Remove(filepath.Join(p.root, ".decree/inbox", name)))
	}
	code, out := p.decree("process")
	require.Zero(t, code, out)
	require.Regexp(t, `ended what run \S+ had left alive when its decree died: \d+ \((bash|sleep)\)`, out)
	require.Regexp(t, `deleted since run \S+ began, by its command or by somebody later: .*/dead/.*; 'decree inbox retry NAME'`, out)
	require.Equal(t, []string{"a", "c"}, p.lines(filepath.Join(p.base, "ran")))
	require.NoFileExists(t, filepath.Join(p.root, "half.txt"))
	require.Equal(t, []string{"c.md"}, p.messages("done"))
	require.Equal(t, []string{"a.md", "b.md"}, p.messages("dead"))
}

// tickAfterOutput returns once the file system's clock has moved on since the last
// output of the only run: what is deleted in the same tick counts as the command's work.
func (p *daemonProving) tickAfterOutput() {
	logs, err := filepath.Glob(filepath.Join(p.root, ".decree/runs/*/routine.log"))
	require.NoError(p.t, err)
	require.Len(p.t, logs, 1)
	output, err := os.Stat(logs[0])
	require.NoError(p.t, err)
	probe := filepath.Join(p.base, "probe")
	for {
		require.NoError(p.t, os.WriteFile(probe, nil, 0o600))
		now, err := os.Stat(probe)
		require.NoError(p.t, err)
		if now.ModTime().After(output.ModTime()) {
			return
		}
	}
}

// TestDaemonKilled ends the daemon with SIGKILL wherever it is, over and over:
// no message is lost, none is done again that was in done, and the tree has the
// work of each once. DECREE_KILLS and DECREE_SEED are as for TestSoak.
func TestDaemonKilled(t *testing.T) {
	kills := 15
	switch {
	case os.Getenv("DECREE_LONG") != "":
		kills = 500
	case testing.Short():
		kills = 4
	}
	kills = int(numberOf(t, "DECREE_KILLS", int64(kills)))
	rng := rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 0))
	p := newDaemonProving(t, rng, `key=$(tail -n1 "$message_file")
echo "$key" >>"$BASE/ran"
echo "$key" >>log.txt
mkdir -p "dir-$key" && echo "$key" >"dir-$key/file"
case $key in
follow*) [ "$seq" = 0 ] && echo "after$key" >"$DECREE_OUTBOX/next" ;;
wiped*) [ "$seq" = 0 ] && echo "after$key" >".decree/inbox/$chain-1.md" ;;
fail*) exit 1 ;;
wipe*|afterwiped*) rm -rf .decree ;;
esac
exit 0
`)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, ".decree/config.yml"), []byte("max_attempts: 3\n"), 0o644))
	var want, failing []string
	acknowledged := map[string]int{}
	check := func() {
		ran := p.lines(filepath.Join(p.base, "ran"))
		for key, n := range acknowledged {
			require.Equal(t, n, times(ran, key), "%s was in done, and is done again\n%s", key, p.said())
		}
		for _, name := range p.messages("done") {
			data, err := os.ReadFile(filepath.Join(p.root, ".decree/inbox/done", name))
			require.NoError(t, err)
			key := lastWord(string(data))
			if _, known := acknowledged[key]; !known {
				acknowledged[key] = times(ran, key)
			}
		}
	}
	for n := range kills {
		if slices.ContainsFunc(want, func(key string) bool { return strings.HasPrefix(key, "wipe") }) {
			p.must("recover", "--kill", "--wait", "1m") // a routine that is still alive would delete what is sent now
		}
		switch kind := []string{"plain", "follow", "fail", "wipe", "wiped"}[rng.IntN(5)]; kind {
		case "fail":
			failing = append(failing, fmt.Sprintf("fail%d", n))
			p.send(fmt.Sprintf("fail%d.md", n), fmt.Sprintf("fail%d\n", n))
		default:
			key := fmt.Sprintf("%s%d", kind, n)
			want = append(want, key)
			if kind == "follow" || kind == "wiped" {
				want = append(want, "after"+key)
			}
			p.send(key+".md", key+"\n")
		}
		c := p.start()
		timer := time.NewTimer(time.Duration(rng.IntN(250)) * time.Millisecond)
		<-timer.C
		require.NoError(t, c.Process.Kill())
		err := c.Wait()
		require.ErrorContains(t, err, "killed", p.said())
		check()
	}
	code, out := p.decree("process")
	require.Contains(t, []int{0, 1}, code, out)
	check()
	require.Empty(t, p.messages(""), out)
	// A message that a death took its attempts may be dead though its routine works.
	var dead []string
	for _, pattern := range []string{"dead/*.md", "dead/*.md.deleted"} { // the latter: a kill in the midst of rm
		found, err := filepath.Glob(filepath.Join(p.root, ".decree/inbox", pattern))
		require.NoError(t, err)
		for _, path := range found {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			dead = append(dead, lastWord(string(data)))
		}
	}
	// A routine that deletes .decree takes done along: the tree says what was done.
	done := p.lines(filepath.Join(p.root, "log.txt"))
	require.Equal(t, slices.Compact(slices.Clone(done)), done, "the tree has the work of each once\n%s", p.said())
	for key := range acknowledged {
		require.Contains(t, done, key, "the tree has the work of what is done\n%s", p.said())
	}
	for _, key := range failing {
		require.Contains(t, dead, key, "lost")
	}
	for _, key := range want {
		root := strings.TrimPrefix(key, "after")
		if root != key && slices.Contains(dead, root) {
			continue // its follow-up went with it
		}
		require.True(t, slices.Contains(done, key) != slices.Contains(dead, key), "%s is lost, or twice there\n%s", key, p.said())
	}
	p.must("verify", "--all")
	t.Logf("%d kills: %d done, %d dead", kills, len(done), len(dead))
}

// isolates makes all messages of the tree isolated, or skips the test where none can be.
func (p *daemonProving) isolates() {
	p.must("checkpoint")
	code, out := p.decree("run", "--isolated", "--", "true")
	if code == 125 && strings.Contains(out, "cannot be isolated") {
		p.t.Skip(out)
	}
	require.Zero(p.t, code, out)
	require.NoError(p.t, os.WriteFile(filepath.Join(p.root, ".decree/config.yml"), []byte("max_attempts: 3\nisolated: {queue: true}\n"), 0o644))
}

// TestDaemonKilledWithJobs ends a daemon with SIGKILL that has four messages under way, over
// and over: as TestDaemonKilled, and nothing of a message is in the tree that is not done.
func TestDaemonKilledWithJobs(t *testing.T) {
	kills := 10
	switch {
	case os.Getenv("DECREE_LONG") != "":
		kills = 200
	case testing.Short():
		kills = 3
	}
	kills = int(numberOf(t, "DECREE_KILLS", int64(kills)))
	rng := rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 0))
	p := newDaemonProving(t, rng, `key=$(tail -n1 "$message_file")
echo "$key" >>"$BASE/ran"
echo "$key" >>log.txt
mkdir -p "dir-$key" && echo "$key" >"dir-$key/file"
case $key in
*wipes) rm -rf .decree ;;
[0-9]*follows) [ "$seq" != 0 ] || { echo "after$key" >"$DECREE_OUTBOX/next"; echo "beside$key" >.decree/inbox/beside$key.md; } ;;
*fails) exit 1 ;;
esac
exit 0
`)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "log.txt"), nil, 0o644))
	p.isolates()
	var sent []string
	acknowledged := map[string]int{}
	check := func() {
		ran := p.lines(filepath.Join(p.base, "ran"))
		for key, n := range acknowledged {
			require.Equal(t, n, times(ran, key), "%s was in done, and is done again\n%s", key, p.said())
		}
		for _, key := range p.keysIn("done") {
			if _, known := acknowledged[key]; !known {
				acknowledged[key] = times(ran, key)
			}
		}
	}
	for n := range kills {
		for _, kind := range []string{"plain", "wipes", "follows", "fails", "other"} {
			key := fmt.Sprintf("%d%s", n, kind)
			sent = append(sent, key)
			p.send(key+".md", key+"\n")
		}
		c := p.start("--jobs", "4")
		timer := time.NewTimer(time.Duration(rng.IntN(500)) * time.Millisecond)
		<-timer.C
		require.NoError(t, c.Process.Kill())
		require.ErrorContains(t, c.Wait(), "killed", p.said())
		check()
	}
	code, out := p.decree("process", "--jobs", "4")
	require.Contains(t, []int{0, 1}, code, out)
	check()
	require.Empty(t, p.messages(""), out)
	done, dead := p.keysIn("done"), p.keysIn("dead")
	for _, key := range sent {
		require.Equal(t, 1, times(done, key)+times(dead, key), "%s is lost, or twice there\n%s", key, p.said())
		if strings.HasSuffix(key, "follows") {
			for _, follower := range []string{"after" + key, "beside" + key} {
				require.Equal(t, times(done, key), times(done, follower)+times(dead, follower), "%s\n%s", follower, p.said())
			}
		}
		require.False(t, strings.HasSuffix(key, "fails") && slices.Contains(done, key))
	}
	require.Equal(t, done, p.lines(filepath.Join(p.root, "log.txt")), "the tree has the work of what is done, once\n%s", p.said())
	for _, key := range done {
		require.FileExists(t, filepath.Join(p.root, "dir-"+key, "file"))
	}
	for _, key := range dead {
		require.NoDirExists(t, filepath.Join(p.root, "dir-"+key), "of what is dead nothing is there")
	}
	p.must("verify", "--all")
	t.Logf("%d kills: %d done, %d dead", kills, len(done), len(dead))
}

// keysIn are the last words of the messages in done or dead, sorted.
func (p *daemonProving) keysIn(where string) (keys []string) {
	for _, name := range p.messages(where) {
		data, err := os.ReadFile(filepath.Join(p.root, ".decree/inbox", where, name))
		require.NoError(p.t, err)
		keys = append(keys, lastWord(string(data)))
	}
	slices.Sort(keys)
	return keys
}

// TestDaemonWithJobsEnds: the first signal lets what is under way come to its end, the second
// ends it, and it waits in the inbox; nothing of it is in the tree.
func TestDaemonWithJobsEnds(t *testing.T) {
	p := newDaemonProving(t, nil, `echo x >"of-$(tail -n1 "$message_file")"; echo >"$BASE/started"; read line <"$BASE/go"; exit 0`)
	for _, name := range []string{"started", "go"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(p.base, name), 0o600))
	}
	p.isolates()
	started, err := os.OpenFile(filepath.Join(p.base, "started"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer started.Close()
	gone, err := os.OpenFile(filepath.Join(p.base, "go"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer gone.Close()
	begun := func() {
		_, err := started.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	for _, key := range []string{"a", "b", "c"} {
		p.send(key+".md", key+"\n")
	}
	c := p.start("--jobs", "2")
	begun()
	begun()
	out := p.must("inbox", "--json")
	require.Equal(t, 2, strings.Count(out, `"running": true`), out)
	require.Contains(t, p.must("status"), "3 messages waiting, 0 dead; being done: a.md and b.md")
	code, out := p.decree("inbox", "cancel", "b")
	require.Equal(t, 4, code, out)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	_, err = gone.WriteString("\n\n")
	require.NoError(t, err)
	require.NoError(t, c.Wait(), p.said())
	require.Equal(t, []string{"a.md", "b.md"}, p.messages("done"), p.said())
	require.Equal(t, []string{"c.md"}, p.messages(""))

	p.send("d.md", "d\n")
	c = p.start("--jobs", "2")
	begun()
	begun()
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	for ended := false; !ended; { // the second may come before the first is heard
		_ = c.Process.Signal(syscall.SIGTERM)
		ended = !slices.ContainsFunc([]string{"c", "d"}, func(key string) bool {
			return !strings.Contains(p.said(), key+".md: stopped by")
		})
	}
	require.NoError(t, c.Wait(), p.said())
	require.Equal(t, []string{"c.md", "d.md"}, p.messages(""), p.said())
	require.NoFileExists(t, filepath.Join(p.root, "of-c"))
}

// TestDaemonAndRoutineEndedAtOnce: where one signal ends the daemon and its routine, as at a shutdown, the message has not failed:
// no further attempt begins, and it waits with all its attempts. A routine that ends like that by itself has failed.
func TestDaemonAndRoutineEndedAtOnce(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		p := newDaemonProving(t, nil, `echo x >>"$BASE/began"; echo x >w; if [ -e "$BASE/alone" ]; then kill -TERM $$; fi; [ $DECREE_ATTEMPT = 1 ] || exit 1; echo $$ >"$BASE/started"; read line <"$BASE/go"`)
		for _, name := range []string{"started", "go"} {
			require.NoError(t, syscall.Mkfifo(filepath.Join(p.base, name), 0o600))
		}
		if isolated {
			p.isolates()
		}
		p.send("a.md", "one\n")
		c := p.start()
		pid, err := os.ReadFile(filepath.Join(p.base, "started"))
		require.NoError(t, err)
		routine, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		require.NoError(t, syscall.Kill(routine, syscall.SIGTERM))
		require.NoError(t, c.Wait(), p.said())
		require.Equal(t, []string{"x"}, p.lines(filepath.Join(p.base, "began")))
		require.Equal(t, []string{"a.md"}, p.messages(""), p.said())
		require.Contains(t, p.said(), "a.md: stopped by")
		require.NoFileExists(t, filepath.Join(p.root, "w"))
		require.NoError(t, os.WriteFile(filepath.Join(p.base, "alone"), nil, 0o600))
		p.decree("process")
		require.Equal(t, []string{"a.md"}, p.messages("dead"))
	}
}

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// TestDiesWhileAnotherWaits: whoever waits for a daemon that is killed ends what its routine
// has left alive, and does the message again.
func TestDiesWhileAnotherWaits(t *testing.T) {
	p := newDaemonProving(t, nil, `echo $$ >>"$BASE/ran"
[ -p "$BASE/started" ] || exit 0
echo >"$BASE/started"; exec sleep 600`)
	started := filepath.Join(p.base, "started")
	require.NoError(t, syscall.Mkfifo(started, 0o600))
	p.send("a.md", "one\n")
	c := p.start()
	_, err := os.ReadFile(started)
	require.NoError(t, err)
	require.NoError(t, os.Remove(started))

	waiting := exec.Command(p.bin, "process", "--wait", "5m")
	waiting.Dir, waiting.Env = p.root, p.env
	out, err := waiting.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, waiting.Start())
	lines := bufio.NewScanner(out)
	said := ""
	for !strings.Contains(said, "waiting") && lines.Scan() {
		said += lines.Text() + "\n"
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	require.NoError(t, waiting.Wait(), said)
	require.Contains(t, said, "had left alive when its decree died")
	require.Equal(t, []string{"a.md"}, p.messages("done"))
	require.Len(t, p.lines(filepath.Join(p.base, "ran")), 2)
}

// TestRunMessageEndsWhileItWaits: a signal ends 'run -m' that waits for another's message as it ends every command that waits.
func TestRunMessageEndsWhileItWaits(t *testing.T) {
	p := newDaemonProving(t, nil, `echo >"$BASE/started"; exec cat "$BASE/end"`)
	started, end := filepath.Join(p.base, "started"), filepath.Join(p.base, "end")
	require.NoError(t, syscall.Mkfifo(started, 0o600))
	require.NoError(t, syscall.Mkfifo(end, 0o600))
	p.send("a.md", "one\n")
	c := p.start()
	_, err := os.ReadFile(started)
	require.NoError(t, err)
	p.send("b.md", "two\n")

	waiting := exec.Command(p.bin, "run", "-m", "b", "--wait", "5m")
	waiting.Dir, waiting.Env = p.root, p.env
	out, err := waiting.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, waiting.Start())
	lines := bufio.NewScanner(out)
	said := ""
	for !strings.Contains(said, "waiting") && lines.Scan() {
		said += lines.Text() + "\n"
	}
	require.NoError(t, waiting.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	require.Error(t, waiting.Wait())
	require.Equal(t, 128+int(syscall.SIGTERM), waiting.ProcessState.ExitCode(), said)
	require.Contains(t, said, "nothing is under way")

	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.NoError(t, c.Wait())
}
