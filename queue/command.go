package queue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"decree/message"
	"decree/recorder"
	"decree/tree"
)

// The files of a message in its run's directory.
const (
	messageFile = recorder.MessageFile
	inputFile   = "input.ipynb"
	outputFile  = "output.ipynb"
	paramsFile  = "params.json"
	configFile  = "nbconvert_config.py"
	contextFile = "failure-context.md" // of an isolated message's later attempts
)

// nbconvertConfig makes nbconvert keep the executed copy when a cell fails or
// when it is ended, and run the cells in the root: by itself it writes nothing
// then, and runs them where the input lies.
//
//go:embed nbconvert_config.py
var nbconvertConfig []byte

// commandFor is what executes a message's routine.
func (q *job) commandFor(m *message.Message, found *message.Found, p recorder.Place) (recorder.Composed, error) {
	args := message.Arguments(found.Routine, m, message.Place{File: filepath.Join(p.Dir, messageFile), Dir: p.Dir})
	c := recorder.Composed{Files: map[string][]byte{messageFile: q.text}}
	if q.u.Isolated && q.u.Spent > 0 {
		text := fmt.Sprintf("# Failed attempts\n\nThis is attempt %d of %d. It begins with the tree as it is now: nothing of the earlier ones is in it.\n\n%s", q.u.Spent+1, q.project().Config.MaxAttempts, q.earlier())
		c.Files[contextFile] = []byte(text)
		c.Env = append(c.Env, "DECREE_FAILURE_CONTEXT="+filepath.Join(p.Dir, contextFile))
	}
	if found.Kind == message.Script {
		for _, a := range args {
			c.Env = append(c.Env, a.Name+"="+a.Value)
		}
		c.Args = []string{"bash", q.script(found, p)}
		return c, nil
	}
	input, err := message.Inject(found.File, found.Data, args)
	if err != nil {
		return c, err
	}
	params := map[string]string{}
	for _, a := range args {
		params[a.Name] = a.Value
	}
	text, err := json.MarshalIndent(params, "", "  ")
	if err != nil {
		return c, err
	}
	c.Files[inputFile], c.Files[paramsFile] = input, append(text, '\n')
	in, out := filepath.Join(p.Dir, inputFile), filepath.Join(p.Dir, outputFile)
	look := q.o.LookPath
	if look == nil {
		look = exec.LookPath
	}
	switch _, err := look("papermill"); {
	case q.project().Config.Notebook != "":
		line := strings.NewReplacer("{input}", tree.ShellWord(in), "{output}", tree.ShellWord(out), "{params}", tree.ShellWord(filepath.Join(p.Dir, paramsFile))).Replace(q.project().Config.Notebook)
		c.Args = []string{"bash", "-c", line}
	case err == nil:
		c.Args = []string{"papermill", "--cwd", p.Root, in, out}
	default:
		c.Files[configFile] = nbconvertConfig
		c.Args = []string{"jupyter", "nbconvert", "--to", "notebook", "--execute", "--ExecutePreprocessor.timeout=-1",
			"--config", filepath.Join(p.Dir, configFile), "--output-dir", p.Dir, "--output", outputFile, in}
	}
	return c, nil
}

// script is a routine's path as it stands in the record: short where it is the
// project's own.
func (q *job) script(found *message.Found, p recorder.Place) string {
	path := filepath.Join(found.Dir.Path(), found.File)
	if rel, err := filepath.Rel(p.Root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
