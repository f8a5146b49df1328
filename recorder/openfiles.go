package recorder

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"decree/disk"
	"decree/plan"
	"decree/runner"
	"decree/tree"
	"decree/worktree"
)

// stillOpen says, a line a path, which files the plan takes out of the tree while
// somebody has them open for writing, and whether any of these is not one of own:
// what is written through such a handle later goes to a file that nobody sees.
func stillOpen(p *plan.Plan, own []runner.Process) (lines []string, others bool) {
	list := p.Displaced()
	files := make([]runner.File, len(list))
	for i, it := range list {
		files[i] = runner.File(*it.Writing)
	}
	holders := runner.Writers(files)
	for i, it := range list {
		by := holders[files[i]]
		var words []string
		for _, h := range by {
			// A command that moves .decree to another name makes a run's open log
			// a file of the tree: what decree writes there later is in the record.
			if h.PID == os.Getpid() {
				continue
			}
			words = append(words, fmt.Sprintf("pid %d (%s)", h.PID, tree.Quote(h.Name)))
			others = others || !slices.Contains(own, h)
		}
		if len(by) > 0 && len(words) == 0 {
			continue
		}
		if len(by) == 0 {
			words, others = []string{"a process that decree cannot see"}, true
		}
		lines = append(lines, fmt.Sprintf("%s is still open by %s: what it writes from now on goes to the old file", tree.Quote(it.Path), strings.Join(words, ", ")))
	}
	return lines, others
}

// ownOutputs are the files into which decree writes what it says, and what the command says. Who redirects decree
// into a file of the tree wants to read there how the run ended, and not to have that put back.
func ownOutputs() []disk.Info { return infosOf(runner.Outputs()) }

func infosOf(files []runner.File) (out []disk.Info) {
	for _, f := range files {
		out = append(out, disk.Info{Dev: f.Dev, Ino: f.Ino})
	}
	return out
}

// leaveOutputs takes these out of a plan, and says so: they are no work to be taken back, and would be written on under no name.
func (r *Recorder) leaveOutputs(p *plan.Plan) []string {
	outputs := ownOutputs()
	if len(outputs) == 0 {
		return nil
	}
	dirs := r.tree.Dirs()
	defer dirs.Close()
	is := map[tree.Path]bool{}
	for _, it := range p.Items {
		if now, err := dirs.Stat(it.Path); err == nil && slices.ContainsFunc(outputs, now.SameFile) {
			is[it.Path] = true
		}
	}
	if len(is) == 0 {
		return nil
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s worktree.Step) bool { return is[s.Path] })
	p.Items = slices.DeleteFunc(p.Items, func(it plan.Item) bool { return is[it.Path] })
	return []string{fmt.Sprintf("decree's own output goes to %s, which is left as it is", some(slices.Sorted(maps.Keys(is))))}
}

// openFiles is the first of lines and how many more there are, for an error.
func openFiles(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}
