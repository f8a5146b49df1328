//go:build unix

package queue

import (
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// The sweep ends the process at each step on the disk while it does a spec, a
// message with a follow-up, and one that fails, or makes that step fail. Then a
// process that works goes on. Whatever happened, no message is lost, none is done
// again that was in done, and the tree is as if nothing had gone wrong. By default
// some steps are tried; DECREE_LONG=1 tries all.

const sweptRoutine = `# Writes one line into the tree, and one outside of it.
key=$(grep -o 'key:[a-z]*' "$message_file" "$spec_file" 2>/dev/null | head -n1 | sed 's/.*key://')
echo "$key" >>"$RAN"
echo "$key" >>log.txt
case $key in
with) echo 'key:follow' >.decree/inbox/$chain-$((seq + 1)).md ;;
fails) echo 'key:never' >.decree/inbox/$chain-$((seq + 1)).md; exit 3 ;;
wipes) rm -rf .decree/routines .decree/runs .decree/config.yml .decree/inbox/*.md; echo wiped ;;
esac
`

func sweptFiles() map[string]string {
	return map[string]string{
		".decree/routines/develop.sh": sweptRoutine,
		".decree/inbox/a.md":          "key:with\n",
		".decree/inbox/b.md":          "key:fails\n",
		".decree/inbox/c.md":          "key:wipes\n",
		".decree/inbox/d.md":          "key:last\n",
		".decree/config.yml":          "max_attempts: 3\n",
		"specs/one.spec.md":           "key:spec\n",
		"kept.txt":                    "kept\n",
	}
}

func TestSweep(t *testing.T) { sweep(t, sweptFiles()) }

// TestSweepIsolated is the same with each message in a layer of its own.
func TestSweepIsolated(t *testing.T) {
	needsLayers(t)
	files := sweptFiles()
	files[".decree/config.yml"] += "isolated: {queue: true}\n"
	sweep(t, files)
}

func sweep(t *testing.T, files map[string]string) {
	const tries = 29 // in the usual form of the tests
	clean := newBench(t, files)
	clean.settle()
	require.Len(t, clean.process(), 6)
	judgeSwept(t, clean, files, nil)
	seed := int64(1)
	for _, cause := range []error{nil, syscall.ENOSPC} {
		name := "dies"
		if cause != nil {
			name = "fails"
		}
		t.Run(name, func(t *testing.T) {
			total := sweepOnce(t, files, 1<<30, cause, seed)
			require.Positive(t, total)
			for n := 0; n < total; n += disktest.Stride(max(1, total/tries)) {
				sweepOnce(t, files, n, cause, int64(n))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// sweepOnce lets writing step n go wrong, and returns how many there were.
func sweepOnce(t *testing.T, files map[string]string, n int, cause error, seed int64) (steps int) {
	b := newBench(t, files)
	b.settle()
	defer os.RemoveAll(b.base)
	rng := rand.New(rand.NewSource(seed))
	var hit disktest.Step
	err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !st.Write {
			return disktest.Action{}
		}
		steps++
		if steps-1 != n {
			return disktest.Action{}
		}
		hit = st
		if cause == nil {
			return disktest.Action{Die: true, Torn: rng.Intn(st.Size + 1)}
		}
		return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: cause}}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	if n >= steps {
		require.NoError(t, err)
	}
	acknowledged := map[string]int{}
	for _, key := range b.keysDone() {
		acknowledged[key] = strings.Count("\n"+strings.Join(b.ran(), "\n")+"\n", "\n"+key+"\n")
	}
	what := fmt.Sprintf("step %d: %s %s: %v: err %v", n, hit.Op, strings.ReplaceAll(hit.Path, b.base, ""), cause, err)
	defer func() {
		if t.Failed() {
			t.Log(what, b.said)
		}
	}()
	b.settle()
	b.process()
	judgeSwept(t, b, files, acknowledged)
	return steps
}

// keysDone are the keys of the messages in done.
func (b *bench) keysDone() (out []string) {
	for _, name := range b.done() {
		text := b.read(".decree/inbox/done/" + name)
		switch {
		case strings.Contains(text, "one.spec.md"):
			out = append(out, "spec")
		default:
			_, key, _ := strings.Cut(text, "key:")
			out = append(out, strings.TrimSpace(key))
		}
	}
	slices.Sort(out)
	return out
}

func judgeSwept(t *testing.T, b *bench, files map[string]string, acknowledged map[string]int) {
	t.Helper()
	require.Empty(t, b.inbox(), "lost in the inbox")
	require.Equal(t, []string{"follow", "last", "spec", "wipes", "with"}, b.keysDone(), "each is done, once")
	dead := b.dead()
	require.Contains(t, dead, "b.md")
	require.Contains(t, dead, "b.error.txt")
	lines := strings.Fields(b.read("log.txt"))
	slices.Sort(lines)
	require.Equal(t, []string{"follow", "last", "spec", "wipes", "with"}, lines, "the tree has each message's work once")
	require.Equal(t, "one.spec.md\n", b.read("specs/processed-spec.md"))
	require.Equal(t, "kept\n", b.read("kept.txt"))
	ran := b.ran()
	for key, times := range acknowledged {
		require.Equal(t, times, strings.Count("\n"+strings.Join(ran, "\n")+"\n", "\n"+key+"\n"), "%s was in done and is done again", key)
	}
	require.NotContains(t, ran, "never", "the follow-up of a failed run")
	require.Empty(t, b.list(".decree/tmp"))
	require.Equal(t, sweptRoutine, b.read(".decree/routines/develop.sh"))
	require.Equal(t, files[".decree/config.yml"], b.read(".decree/config.yml"))
	layers, err := filepath.Glob(filepath.Join(b.base, "store/*/layers/2*"))
	require.NoError(t, err)
	for _, l := range layers { // of the drafts of b.md, which failed
		require.Contains(t, b.read(".decree/inbox/dead/b.error.txt"), filepath.Base(l), "a layer is left over")
	}
}

// TestSweepAnotherOfItsName ends the process at each step while a message is done
// whose routine puts another one under its name: that is done once, whenever decree
// died, and the first at most once.
func TestSweepAnotherOfItsName(t *testing.T) {
	files := map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>log.txt
[ "$text" = second ] || { rm -f .decree/inbox/a.md; echo second >.decree/inbox/a.md; }
`,
		".decree/inbox/a.md": "first\n",
	}
	stride := disktest.Stride(17)
	for n, fired := 0, true; fired; n += stride {
		b := newBench(t, files)
		steps := 0
		err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Write {
				steps++
			}
			return disktest.Action{Die: st.Write && steps == n+1}
		}), func(q *Queue) error { _, err := b.all(q); return err })
		fired = steps > n
		if !fired {
			require.NoError(t, err)
		}
		b.process()
		require.Empty(t, b.inbox(), "step %d", n)
		require.Empty(t, b.dead(), "step %d", n)
		lines := strings.Fields(b.read("log.txt"))
		require.Contains(t, [][]string{{"second"}, {"first", "second"}}, lines, "step %d", n)
		require.Len(t, b.done(), len(lines), "step %d", n)
		require.True(t, fired || len(lines) == 2)
		os.RemoveAll(b.base)
	}
}

// TestDiesAfterARoutineThatWipesTheInbox ends the process at each step after the end
// of a routine that has deleted its own message and others. Also where decree had
// written some of these again, every message is done, and none is taken for deleted
// by a person.
func TestDiesAfterARoutineThatWipesTheInbox(t *testing.T) {
	files := map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>log.txt
[ "$text" = second ] || rm -rf .decree/routines .decree/config.yml .decree/inbox/*.md
[ "$text" = second ] || echo wiped
echo ran >>"$RAN"
`,
		".decree/inbox/a.md": "first\n",
		".decree/inbox/b.md": "second\n",
	}
	stride := 3
	if os.Getenv("DECREE_LONG") != "" {
		stride = 1
	}
	for n, fired := 0, true; fired; n += stride {
		b := newBench(t, files)
		steps := 0
		_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			after := st.Write && path.Base(st.Path) != "routine.log" && len(b.ran()) > 0 && len(b.done()) == 0
			if after {
				steps++
			}
			return disktest.Action{Die: after && steps == n+1}
		}), func(q *Queue) error { _, err := b.all(q); return err })
		fired = steps > n
		b.process()
		require.Empty(t, b.inbox(), "step %d", n)
		require.Empty(t, b.dead(), "step %d", n)
		require.Equal(t, []string{"a.md", "b.md"}, b.done(), "step %d", n)
		require.Equal(t, "first\nsecond\n", b.read("log.txt"), "step %d", n)
		os.RemoveAll(b.base)
	}
}

// TestDiesAfterAFollowUpThatWipesDecree ends the process at each step after the end of a follow-up whose routine has
// deleted .decree: its work is in the tree once.
func TestDiesAfterAFollowUpThatWipesDecree(t *testing.T) {
	files := map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>log.txt
[ "$text" = follow ] || { echo follow >".decree/inbox/$chain-1.md"; exit 0; }
rm -rf .decree; echo wiped; echo ran >>"$RAN"
`,
		".decree/inbox/a.md": "first\n",
	}
	stride := disktest.Stride(19)
	for n, fired := 0, true; fired; n += stride {
		b := newBench(t, files)
		steps := 0
		_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			after := st.Write && path.Base(st.Path) != "routine.log" && len(b.ran()) > 0
			if after {
				steps++
			}
			return disktest.Action{Die: after && steps == n+1}
		}), func(q *Queue) error { _, err := b.all(q); return err })
		fired = steps > n
		for range 2 {
			b.process()
			require.Empty(t, b.inbox(), "step %d", n)
			require.Empty(t, b.dead(), "step %d", n)
			require.Equal(t, "first\nfollow\n", b.read("log.txt"), "step %d", n)
		}
		os.RemoveAll(b.base)
	}
}

// TestDiesAfterAFailureThatWipesTheInbox: a message that its routine had deleted before it
// failed is dead, wherever decree dies.
func TestDiesAfterAFailureThatWipesTheInbox(t *testing.T) {
	files := map[string]string{
		".decree/config.yml": "max_attempts: 1\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" | grep -q second && exit 0
rm -rf .decree/inbox; echo ran >>"$RAN"; exit 1
`,
		".decree/inbox/a.md": "first\n", ".decree/inbox/b.md": "second\n",
	}
	stride := 5
	if os.Getenv("DECREE_LONG") != "" {
		stride = 1
	}
	for n, fired := 0, true; fired; n += stride {
		b := newBench(t, files)
		steps := 0
		_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			after := st.Write && path.Base(st.Path) != "routine.log" && len(b.ran()) > 0 && len(b.dead()) == 0
			if after {
				steps++
			}
			return disktest.Action{Die: after && steps == n+1}
		}), func(q *Queue) error { _, err := b.all(q); return err })
		fired = steps > n
		b.process()
		require.Empty(t, b.inbox(), "step %d", n)
		require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead(), "step %d", n)
		require.Equal(t, []string{"b.md"}, b.done(), "step %d", n)
		os.RemoveAll(b.base)
	}
}

// bash is what the routines need.
func TestMain(m *testing.M) {
	if _, err := exec.LookPath("bash"); err != nil {
		fmt.Println("no bash: skipped")
		return
	}
	os.Exit(m.Run())
}
