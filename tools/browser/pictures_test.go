package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPictures makes the pictures of the README in DECREE_PICTURES: of the web face, and of the terminal face as
// tmux shows it and aha turns it into a page.
func TestPictures(t *testing.T) {
	dir := os.Getenv("DECREE_PICTURES")
	if dir == "" {
		t.Skip("DECREE_PICTURES names no directory: 'make pictures' does")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s, root := demo(t)
	b := s.open(t, hand{script: true})
	b.size(1280, 760)
	keep := func(name string) {
		// What changes with each run is left out.
		eval[bool](b, `(document.querySelectorAll('.root').forEach(e => { e.textContent = '~/tally' }), true)`)
		data := get(b, chromedp.CaptureScreenshot())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
	}
	b.sees("Before the agent")
	keep("web-timeline")
	b.size(1280, 1200)
	b.visit("/r/" + b.recordAbout("Leave out words"))
	b.sees("words/stop.go")
	keep("web-record")
	b.size(1280, 700)
	b.address(t, terminal(t, s.home, root))
	data := get(b, chromedp.CaptureScreenshot())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "terminal.png"), data, 0o644))
}

func (b *tab) address(t *testing.T, file string) {
	t.Helper()
	b.do(chromedp.Navigate("file://" + file))
}

// terminal is a page with what 'decree ui' shows in a tree after some keys.
func terminal(t *testing.T, home, root string) string {
	t.Helper()
	tmux := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-L", "decree-pictures", "-f", "/dev/null"}, args...)...)
		cmd.Dir = root
		cmd.Env = append(environ(home), "TERM=xterm-256color", "COLORTERM=truecolor", "TMUX_TMPDIR="+home, "DECREE_STORE="+filepath.Join(filepath.Dir(root), "store"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", args, out)
		return string(out)
	}
	tmux("new-session", "-d", "-x", "140", "-y", "36", program, "ui")
	t.Cleanup(func() { tmux("kill-server") })
	shows := func(text string) string {
		for until := time.Now().Add(patience); ; {
			screen := tmux("capture-pane", "-p", "-e")
			if strings.Contains(screen, text) {
				return screen
			}
			require.True(t, time.Now().Before(until), "no %q in:\n%s", text, screen)
		}
	}
	shows("Before the agent")
	tmux("send-keys", "G", "k", "k")
	screen := shows("bufio.ScanWords")
	aha := exec.Command("aha", "--black", "--title", "decree ui")
	aha.Stdin = strings.NewReader(screen)
	html, err := aha.Output()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ui.html")
	style := "<style>html{background:black}body{margin:14px 18px}pre{font:14.5px/1.32 'DejaVu Sans Mono',monospace;color:#e2e6e9}</style></head>"
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(html), "</head>", style, 1)), 0o600))
	return file
}
