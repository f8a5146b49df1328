//go:build unix

package queue

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testNotebook = `{"cells":[
{"cell_type":"markdown","id":"a","metadata":{},"source":["Counts."]},
{"cell_type":"code","id":"b","metadata":{"tags":["parameters"]},"execution_count":null,"outputs":[],"source":["message_id = ''\nn = 1\nend = ''"]},
{"cell_type":"code","id":"c","metadata":{},"execution_count":null,"outputs":[],"source":["import os, time\nopen('made.txt', 'w').write(f'{n + 1} {message_id} {os.getcwd()}')\nprint('n is', n)"]},
{"cell_type":"code","id":"d","metadata":{},"execution_count":null,"outputs":[],"source":["if end == 'bad': raise ValueError('as asked')\nif end == 'slow': time.sleep(600)"]},
{"cell_type":"code","id":"e","metadata":{},"execution_count":null,"outputs":[],"source":["open('last.txt', 'w').write('last')"]}],
"metadata":{"kernelspec":{"name":"python3","display_name":"Python 3","language":"python"},"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}
`

// notebookBench has a notebook, and skips where nothing can execute it.
func notebookBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	if exec.Command("jupyter", "nbconvert", "--version").Run() != nil {
		t.Skip("jupyter nbconvert is not installed")
	}
	files[".decree/routines/develop.ipynb"] = testNotebook
	b := newBench(t, files)
	b.more = func(o *Options) {
		// Not papermill, also where it is installed.
		o.LookPath = func(string) (string, error) { return "", exec.ErrNotFound }
	}
	return b
}

func (b *bench) ofRun(res *Result, name string) string {
	return b.read(filepath.Join(".decree/runs", res.Record.ID, name))
}

func TestNotebook(t *testing.T) {
	b := notebookBench(t, map[string]string{".decree/inbox/a.md": "---\nn: 41\n---\ndo it\n"})
	res := b.process()
	require.Equal(t, []string{"a.md done"}, names2(res), b.ofRun(res[0], "routine.log"))
	require.Equal(t, "42 "+res[0].ID+" "+b.root, b.read("made.txt"), "its parameters, and the root it runs in")
	require.Contains(t, b.ofRun(res[0], "output.ipynb"), "n is 41")
	require.Contains(t, b.ofRun(res[0], "papermill.log"), "NbConvertApp")
	require.Contains(t, b.ofRun(res[0], "message.md"), "do it")
}

// TestNotebookWithAFailingCell: the attempt failed, and what was executed is kept.
func TestNotebookWithAFailingCell(t *testing.T) {
	b := notebookBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "---\nend: bad\n---\n"})
	res := b.process()
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Empty(t, b.tree(), "put back, and the cells after the failing one are not executed")
	require.Contains(t, b.ofRun(res[0], "output.ipynb"), "n is 1")
	require.Contains(t, b.ofRun(res[0], "output.ipynb"), "as asked")
	require.Contains(t, b.ofRun(res[0], "papermill.log"), "ValueError")
}

// TestNotebookTimeout: what was executed until then is kept.
func TestNotebookTimeout(t *testing.T) {
	b := notebookBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "---\nend: slow\n---\n"})
	more := b.more
	b.more = func(o *Options) { more(o); o.Timeout, o.Grace = 30*time.Second, 20*time.Second }
	res := b.process()
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Contains(t, res[0].Reason, "timed out")
	require.Empty(t, b.tree())
	require.True(t, strings.Contains(b.ofRun(res[0], "output.ipynb"), "n is 1"))
}

// TestNotebookCommand: the config's own command line, with quoted paths.
func TestNotebookCommand(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":             "notebook: |\n  cp {input} {output} && grep -q '\"n\": \"7\"' {params}\n",
		".decree/routines/develop.ipynb": testNotebook,
		".decree/inbox/a.md":             "---\nn: 7\n---\n",
	})
	res := b.process()
	require.Equal(t, []string{"a.md done"}, names2(res), b.ofRun(res[0], "routine.log"))
	require.Contains(t, b.ofRun(res[0], "output.ipynb"), "injected-parameters")
}

// TestPapermill is what is called where it is on the PATH.
func TestPapermill(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.ipynb": testNotebook, ".decree/inbox/a.md": "\n", ".decree/config.yml": "max_attempts: 1\n"})
	b.more = func(o *Options) {
		o.Environ = append(o.Environ, "PATH="+b.base)
		o.LookPath = func(string) (string, error) { return "papermill", nil }
	}
	res := b.process()
	require.Equal(t, "papermill", res[0].Record.Command[0])
	require.Equal(t, []string{"--cwd", b.root}, res[0].Record.Command[1:3])
}
