//go:build unix

package queue

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/recorder"
)

// touches has a routine touch all messages that it sees: their bytes stay as they are.
const touches = "for m in .decree/inbox/*.md; do cat $m >$m.new && mv $m.new $m; touch $m; chmod 600 $m; done\n"

// told does, in the order of its words, what routines tell it to by their function tell.
const told = "tell() { echo \"$1\" >\"$RAN.ask\"; read answer <\"$RAN.answer\"; }\ntext=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; mkdir -p w; echo \"$text\" >>w/$message_id\n"

func (b *bench) told(do map[string]func()) {
	ask, answer := filepath.Join(b.base, "ran.ask"), filepath.Join(b.base, "ran.answer")
	for _, pipe := range []string{ask, answer} {
		require.NoError(b.t, syscall.Mkfifo(pipe, 0o600))
	}
	in, err := os.OpenFile(ask, os.O_RDWR, 0)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { in.Close() })
	out, err := os.OpenFile(answer, os.O_RDWR, 0)
	require.NoError(b.t, err)
	go func() {
		defer out.Close()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			do[lines.Text()]()
			_, _ = out.WriteString("\n")
		}
	}()
}

// TestDoneBesideWhoTouchedIt: a message that came while an isolated one was done, that the routine of that has touched in its
// layer, and that was done beside it, is done once, whatever became of its file in done, and of its record, and of the clock.
func TestDoneBesideWhoTouchedIt(t *testing.T) {
	needsLayers(t)
	for how, after := range map[string]func(b *bench, done string){
		"removed": func(b *bench, done string) { require.NoError(b.t, os.Remove(done)) },
		"archived": func(b *bench, done string) {
			require.NoError(b.t, os.Rename(done, filepath.Join(b.root, "b.md")))
		},
		"pruned": func(b *bench, done string) {
			require.NoError(b.t, os.Remove(done))
			r, err := b.open(disk.OS)
			require.NoError(b.t, err)
			defer r.Close()
			_, err = r.Prune(b.t.Context(), recorder.PruneOptions{Last: map[string]int{string(history.Run): 0}})
			require.NoError(b.t, err)
		},
		"appended": func(b *bench, done string) {
			require.NoError(b.t, os.WriteFile(done, []byte(b.read(".decree/inbox/done/b.md")+"looked at\n"), 0o600))
		},
		"clock was set back": func(b *bench, _ string) { // by an hour, since long began
			began, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*/message.md"))
			require.NoError(b.t, err)
			later := time.Now().Add(time.Hour)
			for _, file := range began {
				require.NoError(b.t, os.Chtimes(file, later, later))
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t, isolatedFiles(told+"case $text in\ngo) echo >\"$RAN.began\"; read x <\"$RAN.touch\"\n"+touches+
				"echo >\"$RAN.touched\"; read x <\"$RAN.end\" ;;\nmid) read x <\"$RAN.mid\" ;;\nesac\n", map[string]string{".decree/inbox/aa.md": "mid\n"}))
			b.known()
			ran := filepath.Join(b.base, "ran")
			for _, pipe := range []string{"began", "touch", "touched", "mid", "end"} {
				require.NoError(t, syscall.Mkfifo(ran+"."+pipe, 0o600))
			}
			let := func(pipe string) { _ = os.WriteFile(ran+"."+pipe, []byte("\n"), 0o600) }
			await := func(pipe string) { _, _ = os.ReadFile(ran + "." + pipe) }
			go func() {
				await("began")
				_ = os.WriteFile(filepath.Join(b.root, ".decree/inbox/.b"), []byte("short\n"), 0o600)
				_ = os.Rename(filepath.Join(b.root, ".decree/inbox/.b"), filepath.Join(b.root, ".decree/inbox/b.md"))
				let("touch")
				await("touched")
				let("mid")
			}()
			b.jobs = 2
			require.NoError(t, b.with(disk.OS, func(q *Queue) error {
				return q.Work(context.Background(), WorkOptions{Ended: func(res *Result) {
					if res.Name == "b.md" && !strings.Contains(strings.Join(b.said, "\n"), "b is done") {
						b.say("b is done")
						after(b, filepath.Join(b.root, ".decree/inbox/done/b.md"))
						go let("end")
					}
				}})
			}))
			require.ElementsMatch(t, []string{"go", "mid", "short"}, b.ran(), strings.Join(b.said, "\n"))
			require.Empty(t, b.inbox())
			require.Empty(t, b.dead())
		})
	}
}

// TestTakenAwayBesideWhoTouchedIt: a message that was sent while an isolated one was done, that the routine of that has touched in
// its layer, and that a person then cancelled, edited, deleted or renamed, is not done as it was.
func TestTakenAwayBesideWhoTouchedIt(t *testing.T) {
	needsLayers(t)
	const byHand, sent = "short\n", "---\nid: 2026112108000000-0\nchain: \"2026112108000000\"\nseq: 0\ntype: task\n---\nshort\n"
	for how, c := range map[string]struct {
		text string
		do   func(b *bench, r *recorder.Recorder) error
		ran  []string
	}{
		"cancelled, and no more dead": {sent, func(b *bench, r *recorder.Recorder) error {
			_, err := Cancel(r, "h", "b.md", "not wanted")
			require.NoError(b.t, os.RemoveAll(filepath.Join(b.root, ".decree/inbox/dead")))
			return err
		}, nil},
		"by hand, cancelled, and no more dead": {byHand, func(b *bench, r *recorder.Recorder) error {
			_, err := Cancel(r, "h", "b.md", "not wanted")
			require.NoError(b.t, os.RemoveAll(filepath.Join(b.root, ".decree/inbox/dead")))
			return err
		}, nil},
		"deleted": {sent, func(b *bench, _ *recorder.Recorder) error {
			return os.Remove(filepath.Join(b.root, ".decree/inbox/b.md"))
		}, nil},
		"renamed": {sent, func(b *bench, _ *recorder.Recorder) error {
			return os.Rename(filepath.Join(b.root, ".decree/inbox/b.md"), filepath.Join(b.root, ".decree/inbox/c.md"))
		}, []string{"short"}},
		"by hand, edited": {byHand, func(_ *bench, r *recorder.Recorder) error {
			return Edit(r, "h", "", "b.md", []byte(byHand), []byte("better\n"))
		}, []string{"better"}},
	} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t, isolatedFiles(told+"[ \"$text\" = go ] || exit 0\ntell send\n"+touches+"tell then\n", nil))
			person, err := b.open(disk.OS)
			require.NoError(t, err)
			defer person.Close()
			b.told(map[string]func(){
				"send": func() {
					if c.text == sent {
						require.NoError(t, person.Project().Drop("b.md", []byte(c.text)))
						return
					}
					require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox/b.md"), []byte(c.text), 0o600))
				},
				"then": func() { require.NoError(t, c.do(b, person)) },
			})
			b.process()
			require.Equal(t, append([]string{"go"}, c.ran...), b.ran(), strings.Join(b.said, "\n"))
			require.Empty(t, b.inbox())
		})
	}
}

// TestWrittenAgainByARoutine: a message that an isolated routine writes is its own though one with the same name and text was done, or
// cancelled, before it began, or one of its name with another text beside it.
func TestWrittenAgainByARoutine(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(told+"case $text in\ngo|again) rm -f .decree/inbox/dead/*; echo 'go on' >.decree/inbox/next.md; echo more >.decree/inbox/b.md; tell send ;;\nesac\n",
		map[string]string{".decree/inbox/next.md": "go on\n", ".decree/inbox/a.md": "nothing\n"}))
	b.process()
	require.Equal(t, []string{"nothing", "go on"}, b.ran())
	person, err := b.open(disk.OS)
	require.NoError(t, err)
	defer person.Close()
	b.told(map[string]func(){"send": func() {
		require.NoError(t, person.Project().Drop("b.md", []byte("of a person\n")))
		_, err := Cancel(person, "h", "b.md", "not wanted")
		require.NoError(t, err)
	}})
	b.settle()
	b.message("c.md", "go\n")
	b.process()
	require.Equal(t, []string{"nothing", "go on", "go", "more", "go on"}, sortedTail(b.ran(), 3), strings.Join(b.said, "\n"))
	b.settle()
	b.message("d.md", "again\n")
	b.process()
	require.Len(t, b.ran(), 8, "again, more, go on: %s", strings.Join(b.said, "\n"))
}

func sortedTail(lines []string, from int) []string {
	if len(lines) > from+1 && lines[from] == "go on" {
		lines[from], lines[from+1] = lines[from+1], lines[from]
	}
	return lines
}
