package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStories tells what a person does on the demo project, once with each hand. Each story goes on
// from the tree that the one before has left.
func TestStories(t *testing.T) {
	for _, h := range hands {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			s, root := demo(t)
			for _, story := range []struct {
				name string
				tell func(b *tab, root string)
			}{
				{"find what the agent did", findTheAgent},
				{"make a checkpoint", makeCheckpoint},
				{"restore and undo it", restoreAndUndo},
				{"bring back a run's work, and take back a hunk of it", applyAndRevertHunk},
				{"give a record a label", giveLabel},
				{"restore one file", restoreFile},
				{"look where lines come from, and compare", blameAndCompare},
				{"publish a candidate of a race", publishCandidate},
				{"publish one file of a draft, and discard the rest", publishAndDiscard},
				{"take back a turn", revertTurn},
				{"send a message, and try a dead one again", sendAndRetry},
				{"a plan that is stale", stalePlan},
				{"refuse a plan", refusePlan},
				{"merge with what was edited since", mergeWithEdits},
				{"mark a directory, but not all of it", markDirectory},
				{"see what arrives", seeNews},
			} {
				t.Run(story.name, func(t *testing.T) { story.tell(s.open(t, h), root) })
			}
		})
	}
}

func (b *tab) file(root, name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) {
		return "(nothing)"
	}
	require.NoError(b, err)
	return string(data)
}

func findTheAgent(b *tab, _ string) {
	assert.NotContains(b, eval[string](b, `location.href`), "token", "the token is gone from the address bar")
	b.fill("^Filter", "reason:turn")
	b.goes("button", "^Show$")
	b.sees("Session")
	require.NotContains(b, b.text(), "Generate")
	b.use("button", "2 turns") // a summary, which opens
	if b.script && !b.keyboard {
		b.looked("timeline-open")
	}
	b.goes("link", "Open the session")
	b.sees("Leave out words that say nothing")
	b.goes("link", "turn 2")
	b.sees("words/stop.go")
	b.sees("Stop are words that say nothing")
}

func makeCheckpoint(b *tab, _ string) {
	b.fill("^Description", "Before "+b.hand.String())
	b.use("button", "^Create checkpoint$")
	b.sees("Before " + b.hand.String())
	b.until("row of the checkpoint", func() bool { return b.has("link", "Before "+b.hand.String()) })
}

// confirm presses the button of the plan that is shown.
func (b *tab) confirm(button string) {
	b.Helper()
	b.sees("The same as a command: ")
	b.use("button", "^"+button+"$")
}

func restoreAndUndo(b *tab, root string) {
	before := b.file(root, "words/stop.go")
	require.Contains(b, before, "Stop")
	row := b.recordAbout("Before the agent")
	b.use("button", "^Restore to before Before the agent")
	b.sees("Restoring makes the files what they were at")
	b.sees("at the checkpoint 'Before the agent'")
	b.sees("What is here now is kept and can be brought back.")
	if b.script && !b.keyboard {
		b.axe("the dialogue of a plan")
		b.picture("plan-1280-light", 1280)
	}
	require.Equal(b, before, b.file(root, "words/stop.go"), "a plan changes nothing")
	b.confirm("Restore")
	b.sees("Restored")
	require.Equal(b, "(nothing)", b.file(root, "words/stop.go"))
	if b.script {
		b.until("focus on the row it came from", func() bool {
			return b.try(`document.activeElement.closest('#r-` + row + `')`)
		})
	}
	b.looked0("restored")
	b.undo()
	require.Equal(b, before, b.file(root, "words/stop.go"))
}

// undo presses the button of the banner.
func (b *tab) undo() {
	b.Helper()
	b.use("button", "^Undo$")
	b.sees("Undoing takes back the newest change")
	b.confirm("Undo")
	b.banner("Undone")
}

// banner waits for what the banner says; elsewhere on a page the same word may tell of something earlier.
func (b *tab) banner(says string) {
	b.Helper()
	b.until("banner "+says, func() bool { return b.try(`document.querySelector('.banner strong').textContent === ` + quoted(says)) })
}

// looked0 takes a picture alone.
func (b *tab) looked0(name string) { b.picture(name+"-1280-light", 1280) }

func applyAndRevertHunk(b *tab, root string) {
	id := b.recordAbout("renamed Tally to Count")
	b.visit("/r/" + id)
	b.use("button", "^Apply$")
	b.sees("Applying does again what")
	b.confirm("Apply")
	b.sees("Applied")
	require.Contains(b, b.file(root, "main.go"), "words.Count(")
	require.Contains(b, b.file(root, "words/tally.go"), "func Count(")

	b.visit("/r/" + id)
	b.use("box", "hunk 1 of main.go")
	if b.script {
		b.until("count of what is marked", func() bool {
			return b.try(`/^1 of [0-9]+ marked, 1 hunk$/.test(document.querySelector("[data-marks]").textContent)`)
		})
	}
	b.use("button", "^Revert what is marked$")
	b.sees("only what is marked: main.go (hunk 1)")
	b.confirm("Revert")
	b.sees("Reverted")
	require.Contains(b, b.file(root, "main.go"), "words.Tally(")
	require.Contains(b, b.file(root, "words/tally.go"), "func Count(", "what is not marked stays")
}

func giveLabel(b *tab, _ string) {
	b.visit("/r/" + b.recordAbout("Generate"))
	b.fill("^Label$", "by-hand")
	b.goes("button", "^Give$")
	b.goes("button", "^Take away the label by-hand$")
	require.False(b, b.has("button", "^Take away the label by-hand$"))
}

func restoreFile(b *tab, root string) {
	b.visit("/f/docs/usage.md")
	require.Contains(b, b.file(root, "docs/usage.md"), "are left out")
	b.use("button", "^Restore it as it was .*before Leave out words")
	b.sees("only docs/usage.md")
	b.confirm("Restore")
	b.sees("Restored")
	require.NotContains(b, b.file(root, "docs/usage.md"), "are left out")
	b.undo()
	require.Contains(b, b.file(root, "docs/usage.md"), "are left out")
}

func blameAndCompare(b *tab, _ string) {
	b.visit("/f/docs/usage.md")
	b.goes("link", "Where its lines come from")
	b.sees("Words that say nothing, such as *the*, are left out.")
	b.visit("/f/docs/usage.md")
	b.use("box", "^From: before changed outside")
	b.goes("button", "^Compare the two")
	b.sees("tally -top 5")
}

func publishCandidate(b *tab, root string) {
	if b.script && b.keyboard {
		for range 40 { // past what is folded, to the last row
			b.key("j")
		}
		require.True(b, b.try(`(() => {
			const rows = [...document.querySelectorAll(".timeline a.cells, .timeline summary")].filter((e) => !e.closest("details:not([open]) > :not(summary)"));
			return document.activeElement === rows.at(-1);
		})()`), "j comes to the last row")
		b.visit("/")
	}
	b.use("button", "greet: 3 candidates")
	b.goes("link", "Compare the candidates")
	b.sees("judged good")
	b.goes("link", "^see what it changed in docs/usage.md$") // the first one's
	b.sees("See also wc(1).")
	b.visit("/race/greet")
	b.goes("link", "^Compare the diffs$")
	b.sees("What greet.3 would change")
	b.sees("Its judge found it bad.")
	if b.script && !b.keyboard {
		b.looked("race-compared")
	}
	b.use("button", "^Publish greet.3$")
	b.sees("The judge of the race found it bad")
	b.use("link", "^Cancel$")
	b.visit("/race/greet")
	b.use("button", "^Publish greet.1$")
	b.sees("Publishing brings what draft 'greet.1' did into your files")
	b.confirm("Publish")
	b.sees("Published")
	require.Contains(b, b.file(root, "docs/usage.md"), "See also wc(1).")
	b.visit("/race/greet")
	b.sees("greet.1, which was published, changed it, too")
	b.use("button", "^Discard the others$")
	b.sees("Discarding gives up drafts 'greet.2', 'greet.3'")
	b.sees("What is given up")
	b.use("link", "^Cancel$")
}

func publishAndDiscard(b *tab, root string) {
	b.visit("/drafts")
	b.goes("link", "^greet.2$")
	b.use("box", "^all of doc.go$")
	b.use("button", "^Publish what is marked$")
	b.sees("only what is marked: doc.go")
	b.confirm("Publish")
	b.sees("Published")
	require.Equal(b, "package main\n", b.file(root, "doc.go"))
	require.Contains(b, b.file(root, "docs/usage.md"), "See also wc(1).")

	b.visit("/drafts")
	b.sees("greet.2")
	b.use("button", "^Discard tidy$")
	b.sees("Discarding gives up draft 'tidy'")
	b.confirm("Discard")
	b.until("drafts without tidy", func() bool { return b.try(`![...document.querySelectorAll('h2')].some(e => e.textContent === 'tidy')`) })
	b.use("button", "^Discard greet.3$") // from a page that says so of tidy already
	b.confirm("Discard")
	b.until("drafts without greet.3", func() bool {
		return b.try(`![...document.querySelectorAll('h2')].some(e => e.textContent === 'greet.3')`)
	})
	require.Contains(b, b.file(root, "TODO.md"), "read files")
}

func revertTurn(b *tab, root string) {
	b.visit("/sessions/5f0c2a7e-demo")
	require.Contains(b, b.file(root, "words/empty_test.go"), "TestNothing")
	b.use("button", "^Revert turn 1$")
	b.sees("Reverting takes back what 'Write a test for empty input.' changed")
	b.confirm("Revert")
	b.sees("Reverted")
	require.Equal(b, "(nothing)", b.file(root, "words/empty_test.go"))
}

func sendAndRetry(b *tab, _ string) {
	b.visit("/inbox")
	b.fill("^What is to be done", "Look at it by "+b.hand.String())
	b.fill("^Name", "look-"+strings.ReplaceAll(b.hand.String(), " ", "-"))
	b.goes("button", "^Send$")
	b.sees("Look at it by " + b.hand.String())
	b.goes("button", "^Retry colours")
	require.False(b, b.has("button", "^Retry colours"))
	b.sees("Print the counts in colour.")
}

func stalePlan(b *tab, root string) {
	b.use("button", "^Restore to before Before the agent")
	b.sees("Restoring makes the files what they were at")
	mine := filepath.Join(root, "words", "mine.go")
	require.NoError(b, os.WriteFile(mine, []byte("package words\n"), 0o644))
	b.confirm("Restore")
	b.sees("no longer what the plan saw")
	b.forgive("409")
	require.FileExists(b, mine, "nothing was changed")
	b.sees("words/mine.go")
	b.confirm("Restore")
	b.sees("Restored")
	require.NoFileExists(b, mine)
	b.undo()
	require.FileExists(b, mine)
}

func refusePlan(b *tab, root string) {
	before := b.file(root, "words/stop.go")
	b.use("button", "^Restore to before Before the agent")
	b.sees("Restoring makes the files what they were at")
	if b.script && b.keyboard {
		b.key("\x1b")
	} else {
		b.use("link", "^Cancel$")
	}
	b.until("the timeline", func() bool {
		return b.try(`!document.querySelector('dialog[open]') && document.querySelector('ol.timeline')`)
	})
	require.Equal(b, before, b.file(root, "words/stop.go"))
}

// markDirectory marks a directory without one of its files, and what is marked in a plan is what its button does.
func markDirectory(b *tab, root string) {
	if !b.script { // without it boxes do not turn each other on and off
		return
	}
	decree(b.T, b.home, root, "run", "--", "sh", "-c", "mkdir box && echo a > box/a && echo b > box/b")
	b.visit("/")
	id := b.recordAbout("mkdir box")
	b.visit("/r/" + id)
	b.use("box", "^all of box$")
	b.use("box", "^all of box/b$")
	b.use("button", "^Revert what is marked$")
	b.sees("only what is marked: box/a.")
	b.confirm("Revert")
	b.sees("Reverted")
	require.Equal(b, "(nothing)", b.file(root, "box/a"))
	require.Equal(b, "b\n", b.file(root, "box/b"), "its box was empty")

	b.visit("/r/" + id)
	b.use("button", "^Revert$")
	b.sees("The same as a command: ")
	b.use("box", "^all of box/b$")
	b.use("button", "^Revert$")
	b.sees("only what is marked: box/b.")
	require.Equal(b, "b\n", b.file(root, "box/b"), "it is shown first")
	b.confirm("Revert")
	b.sees("Reverted")
	require.Equal(b, "(nothing)", b.file(root, "box/b"))
}

func mergeWithEdits(b *tab, root string) {
	notes := filepath.Join(root, "notes.txt")
	text := ""
	for i := range 30 {
		text += fmt.Sprintf("line %d\n", i+1)
	}
	edit := func(from, to string) {
		text = strings.Replace(text, from, to, 1)
		require.NoError(b, os.WriteFile(notes, []byte(text), 0o644))
	}
	edit("", "")
	decree(b.T, b.home, root, "run", "--", "sed", "-i", "s/^line 2$/line two/", "notes.txt")
	text = b.file(root, "notes.txt")
	edit("line 20\n", "line twenty, by hand\n")

	b.visit("/")
	record := b.recordAbout("line two")
	b.visit("/r/" + record)
	b.use("button", "^Revert$")
	b.sees("It can be merged")
	b.forgive("409")
	if b.script && !b.keyboard {
		b.axe("the dialogue of a merge")
		b.picture("merge-1280-light", 1280)
		b.picture("merge-360", 360)
	}
	b.goes("link", "^what you edited in notes.txt$")
	b.sees("line twenty, by hand")
	b.visit("/r/" + record)
	b.use("button", "^Revert$")
	b.sees("Edits that were made since stay, merged with it.")
	b.forgive("409")
	require.Equal(b, text, b.file(root, "notes.txt"), "nothing was changed")
	b.confirm("Merge")
	b.banner("Reverted")
	require.Equal(b, strings.Replace(text, "line two\n", "line 2\n", 1), b.file(root, "notes.txt"))
	b.undo()
	require.Equal(b, text, b.file(root, "notes.txt"))

	edit("line two\n", "line 2, by hand\n") // in the same place
	b.visit("/r/" + record)
	b.use("button", "^Revert$")
	b.sees("between <<<<<<< and >>>>>>>")
	b.forgive("409")
	b.confirm("Merge")
	b.banner("Conflicts written")
	require.Contains(b, b.file(root, "notes.txt"), "<<<<<<< now\nline 2, by hand\n=======\nline 2\n>>>>>>>")
	b.undo()
}

func seeNews(b *tab, root string) {
	b.visit("/")
	n := 0
	arrive := func() {
		n++
		decree(b.T, b.home, root, "checkpoint", "-d", fmt.Sprintf("News %d, %s", n, b.hand))
	}
	if !b.script {
		arrive()
		b.visit("/")
		b.sees("News 1, " + b.hand.String())
		return
	}
	b.until("news", func() bool { // the page may begin to listen after the first ones
		arrive()
		return b.try(`/^[0-9]+ new$/.test(document.querySelector('#newer a').textContent)`)
	})
	require.Equal(b, eval[string](b, `document.querySelector('#newer a').textContent`), eval[string](b, `document.getElementById('live').textContent`), "it is said, too")
	require.False(b, b.has("link", fmt.Sprintf("News %d", n)), "rows do not jump under somebody's hands")
	b.goes("link", "^[0-9]+ new$")
	b.sees(fmt.Sprintf("News %d, %s", n, b.hand))
}
