package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// byHands tells a story once with each hand.
func byHands(t *testing.T, tell func(t *testing.T, h hand)) {
	for _, h := range hands {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			tell(t, h)
		})
	}
}

// plant makes a tree with a first record.
func plant(t *testing.T, files map[string]string) (home, root string) {
	t.Helper()
	home = t.TempDir()
	root = filepath.Join(home, "tree")
	require.NoError(t, os.Mkdir(root, 0o755))
	write(t, root, files)
	decree(t, home, root, "checkpoint", "-d", "as it came")
	return home, root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
}

// A read-only server has no page on which something can be written, and no route that writes.
func TestReadOnly(t *testing.T) {
	byHands(t, func(t *testing.T, h hand) {
		s, _ := demo(t, "--read-only")
		b := s.open(t, h)
		run := "/r/" + b.recordAbout("Format")
		for _, path := range []string{"/", run, "/f/docs/usage.md", "/drafts", "/race/greet", "/sessions/5f0c2a7e-demo", "/inbox", "/health"} {
			b.visit(path)
			b.sees("read-only")
			require.Empty(t, eval[string](b, `[...document.querySelectorAll('form[method=post], [name=mark], [formaction]')].map(e => e.outerHTML).join(' ')`), path)
			require.Empty(t, eval[string](b, `[...document.querySelectorAll('button')].map(e => e.textContent).filter(t => !/^(Show|Compare the two that are chosen)$/.test(t)).join(' ')`), path)
			if h.keyboard {
				for _, key := range []string{"R", "r", "a", "p", "x", "u", "c", "l", "y"} {
					b.key(key)
				}
				require.False(t, b.has("button", "^(Restore|Revert|Apply|Publish|Discard|Undo)"), path)
			}
		}
		b.visit("/")
		require.Equal(t, float64(404), eval[float64](b, `fetch(location.pathname + 'checkpoint', {method: 'POST'}).then(r => r.status)`))
		b.forgive("404")
		if h.script && !h.keyboard {
			b.looked("read-only")
		}
	})
}

// While a draft waits a tree whose config does not say otherwise is not restored, and no checkpoint made, by a click.
func TestADraftBars(t *testing.T) {
	byHands(t, func(t *testing.T, h hand) {
		home, root := plant(t, map[string]string{"a.txt": "a\n"})
		decree(t, home, root, "run", "--", "sh", "-c", "echo b >> a.txt")
		decree(t, home, root, "run", "--isolated", "--name", "try", "--", "sh", "-c", "echo c >> a.txt")
		s := serve(t, home, "-C", root)
		b := s.open(t, h)
		b.sees("Discard or publish your draft to restore")
		b.sees("Discard or publish your draft to create a checkpoint")
		off := func(name string) bool { return eval[bool](b, find("button", name)+`.disabled`) }
		require.True(t, off("^Create checkpoint$"))
		require.True(t, off("^Restore to before"))
		if h.keyboard {
			b.key("R")
			b.key("c")
			require.False(t, eval[bool](b, `!!document.querySelector('dialog[open]')`))
		}
		if h.script && !h.keyboard {
			b.looked("barred")
		}
		b.goes("link", "^Drafts$")
		b.use("button", "^Discard try$")
		b.confirm("Discard")
		b.banner("Discarded")
		b.goes("link", "^Timeline$")
		require.False(t, off("^Create checkpoint$"))
		b.use("button", "^Restore to before sh -c")
		b.confirm("Restore")
		b.banner("Restored")
		require.Equal(t, "a\n", b.file(root, "a.txt"))
	})
}

// Names and contents that would like to be markup are text on every page, and what would hide or turn is shown.
func TestHostileNames(t *testing.T) {
	script := `<script>document.title='owned'<` + "\u2044script>.txt" // a slash cannot be in a name
	image := `"><img src=x onerror=document.title='owned'>`
	turned, broken := "a\u202egpj.exe", "two\nlines"
	evil := `</code></pre></td></table><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`
	byHands(t, func(t *testing.T, h hand) {
		home, root := plant(t, map[string]string{script: "1\n", image: "1\n", turned: "1\n", broken: "1\n"})
		write(t, root, map[string]string{"go.sh": "for f in *[!h]; do printf %s \"$EVIL\" >> \"$f\"; done; printf '%s' \"$EVIL\"; printf '\\033]0;owned\\007\\033[31mred\\033[0m\\n'\n"})
		decree(t, home, root, "run", "-d", evil, "--", "env", "EVIL="+evil, "sh", "go.sh")
		s := serve(t, home, "-C", root)
		b := s.open(t, h)
		clean := func() {
			t.Helper()
			b.settled()
			require.NotEqual(t, "owned", eval[string](b, `document.title`))
			require.Empty(t, eval[string](b, `[...document.querySelectorAll('img, iframe, object, main script, [onerror], [onclick]')].map(e => e.outerHTML).join(' ')`))
			require.NotContains(t, b.text(), "\u202e")
		}
		clean()
		record := "/r/" + b.recordAbout("</code>")
		b.visit(record)
		b.sees(`a\342\200\256gpj.exe`)
		b.sees(`\n`)
		clean()
		if h.script && !h.keyboard {
			b.looked("hostile")
		}
		for _, name := range []string{"^<script>", "<img src=x", `^"a\\342\\200\\256gpj`, `^"two\\nlines"`} {
			b.visit(record)
			b.goes("file", name)
			clean()
		}
		b.visit(record)
		b.use("box", `^all of "two\\nlines"`)
		b.use("button", "^Revert what is marked$")
		b.sees("only what is marked: ")
		clean()
		b.confirm("Revert")
		b.banner("Reverted")
		require.Equal(t, "1\n", b.file(root, broken))
		require.NotEqual(t, "1\n", b.file(root, image))
		clean()
	})
}
