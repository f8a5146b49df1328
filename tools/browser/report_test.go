package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReports opens reports as files, as who gets one does: nothing is refused by their own policy, nothing
// of the tree runs, and axe finds nothing.
func TestReports(t *testing.T) {
	s, root := demo(t)
	decree(t, s.home, root, "run", "-q", "--keep", "--", "sh", "-c", `mkdir 'a<b>&'; echo '<img src=x onerror="document.title=1">' >'a<b>&/<script>.html'; printf '\033[31m</pre><script>document.title=1</script>\n'`)
	for _, c := range []struct{ name, subject, sees string }{
		{"report-hostile", "last", `<img src=x onerror="document.title=1">`},
		{"report-range", "start..last", "every content was compared"},
		{"report-race", "greet", "greet.3"},
		{"report-session", "5f0c2a7e-demo", "Write a test for empty input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.html")
			decree(t, s.home, root, "report", c.subject, "-o", file)
			page := &site{T: t, home: s.home, address: "file://" + file}
			b := page.open(t, hand{script: true})
			b.sees(c.sees)
			require.Zero(t, eval[int](b, `document.querySelectorAll('script, img, iframe, object, [style], [onerror]').length`))
			require.Equal(t, "rgb(247, 247, 245)", eval[string](b, `getComputedStyle(document.body).backgroundColor`), "the stylesheet is not allowed")
			require.NotEqual(t, "1", eval[string](b, "document.title"))
			b.looked(c.name)
		})
	}
}

// TestLargeReport opens a report of 60,000 lines: most of them are folded, and all are there.
func TestLargeReport(t *testing.T) {
	s, root := demo(t)
	decree(t, s.home, root, "run", "-q", "--", "sh", "-c", `seq 60000 | sed 's/$/ some text/' >large.txt`)
	file := filepath.Join(t.TempDir(), "report.html")
	decree(t, s.home, root, "report", "-o", file)
	b := (&site{T: t, home: s.home, address: "file://" + file}).open(t, hand{script: true})
	require.Less(t, eval[int](b, `document.querySelectorAll('tr').length`), 25000)
	require.True(t, eval[bool](b, `document.querySelector('details.rest pre').textContent.includes('+60000 some text')`))
	info, err := os.Stat(file)
	require.NoError(t, err)
	t.Log(fmt.Sprintf("%d bytes", info.Size()))
}
