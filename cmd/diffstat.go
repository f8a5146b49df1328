package cmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"decree/patch"
	"decree/tree"
	"decree/view"
)

// diffstat is what `diff --stat` says of a diff.
type diffstat struct {
	Files        []fileStat `json:"files"`
	Created      int        `json:"created"`
	Modified     int        `json:"modified"`
	Deleted      int        `json:"deleted"`
	AddedLines   int64      `json:"added_lines"`
	RemovedLines int64      `json:"removed_lines"`
	Directories  int        `json:"-"` // created, deleted or of another mode
}

// fileStat is one section of it. Path is quoted as in the manifest.
type fileStat struct {
	Path    string   `json:"path"`
	Op      patch.Op `json:"op"`
	Change  string   `json:"change"` // the same word for the same thing in all JSON
	From    string   `json:"renamed_from,omitempty"`
	Added   int64    `json:"added_lines"`
	Removed int64    `json:"removed_lines"`
	Binary  bool     `json:"binary,omitempty"`

	facts string
	sum   tree.Hash // of a file with content that was created or deleted, else zero
	moved bool      // another one was created with its content
}

// readStat counts the sections of wanted paths.
func readStat(diff io.Reader, wanted []string) (diffstat, error) {
	stat := diffstat{Files: []fileStat{}}
	err := eachSection(diff, wanted, func(sec *patch.Section) error {
		stat.add(sec)
		return nil
	})
	stat.renames()
	return stat, err
}

// renames finds the files that were created with the content of a deleted one.
func (d *diffstat) renames() {
	gone := map[tree.Hash][]int{}
	for i, f := range d.Files {
		if f.Op == patch.OpDelete && !f.sum.IsZero() {
			gone[f.sum] = append(gone[f.sum], i)
		}
	}
	for i := range d.Files {
		f := &d.Files[i]
		if from := gone[f.sum]; f.Op == patch.OpCreate && len(from) > 0 {
			f.From, d.Files[from[0]].moved = d.Files[from[0]].Path, true
			gone[f.sum] = from[1:]
		}
	}
}

func (d *diffstat) add(sec *patch.Section) {
	f := fileStat{Path: manifestPath(sec.Path), Op: sec.Op, Change: view.OpWord(sec.Op), Binary: sec.Binary, facts: sectionFacts(sec)}
	for i := range sec.Hunks {
		for line := range sec.Hunks[i].Lines() {
			switch line.Kind {
			case '+':
				f.Added++
			case '-':
				f.Removed++
			}
		}
	}
	switch e := cmp.Or(sec.Old, sec.New); {
	case sec.Op != patch.OpCreate && sec.Op != patch.OpDelete:
	case e.Type == tree.Regular && e.Size > 0:
		f.sum = e.SHA256
	}
	d.AddedLines += f.Added
	d.RemovedLines += f.Removed
	switch sec.Op {
	case patch.OpCreate:
		d.Created++
	case patch.OpDelete:
		d.Deleted++
	case patch.OpModify, patch.OpMode:
		d.Modified++
	case patch.OpMkdir, patch.OpRmdir, patch.OpDirMode:
		d.Directories++
	}
	d.Files = append(d.Files, f)
}

// barWidth is the longest bar, in columns; on a narrow terminal it is shorter, down to leastBar.
const (
	barWidth = 40
	leastBar = 8
)

// writeStat prints a diffstat's table on stdout.
func (s *session) writeStat(w io.Writer, d diffstat) error {
	return d.write(s.fits(tabbed(w, 1), s.env.Stdout, 1), s.paint(s.env.Stdout))
}

// write prints the table with its bars and the sum below it.
func (d diffstat) write(tw *table, p paint) error {
	longest := barWidth
	if tw.most > 0 {
		longest = min(barWidth, max(leastBar, tw.most/4))
		tw.end = len("| 12345 ") + longest
	}
	most := int64(1)
	for _, f := range d.Files {
		most = max(most, f.Added+f.Removed)
	}
	for _, f := range d.Files {
		if f.moved {
			continue // the one with its content says so
		}
		what := f.facts
		if f.From != "" {
			fmt.Fprintf(tw, " renamed\t%s\t| from %s\n", shownQuoted(f.Path), shownQuoted(f.From))
			continue
		}
		if what == "" {
			what = fmt.Sprintf("%5d %s", f.Added+f.Removed, f.bar(most, longest, p))
		}
		fmt.Fprintf(tw, " %s\t%s\t| %s\n", view.OpWord(f.Op), shownQuoted(f.Path), what)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	total := " " + d.total() + "\n"
	if tw.most > 0 && width(total) > tw.most {
		total = wrap(d.total(), tw.most, " ")
	}
	_, err := io.WriteString(tw.to, total)
	return err
}

// bar is "+++--", scaled so that the largest change has longest columns; what
// is there at all has at least one.
func (f fileStat) bar(most int64, longest int, p paint) string {
	scale := func(n int64) int {
		if n == 0 || most <= int64(longest) {
			return int(n)
		}
		return max(1, int(n*int64(longest)/most))
	}
	out := ""
	if n := scale(f.Added); n > 0 {
		out += p.in(green, strings.Repeat("+", n))
	}
	if n := scale(f.Removed); n > 0 {
		out += p.in(red, strings.Repeat("-", n))
	}
	return out
}

// total counts what the table lists, and the directories by themselves.
func (d diffstat) total() string {
	files := changeWords(d.Created, d.Modified, d.Deleted, d.AddedLines, d.RemovedLines)
	if d.Directories == 0 {
		return files
	}
	dirs := count(d.Directories, "directory")
	if d.Created+d.Modified+d.Deleted == 0 {
		return dirs
	}
	counts, lines, _ := strings.Cut(files, ";")
	if lines != "" {
		lines = ";" + lines
	}
	return counts + ", " + dirs + lines
}

// changeWords is "2 created, 9 modified, 1 deleted; +120 -33 lines".
func changeWords(created, modified, deleted int, added, removed int64) string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{created, "created"}, {modified, "modified"}, {deleted, "deleted"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "no file changed"
	}
	if added > 0 || removed > 0 {
		text += fmt.Sprintf("; +%d -%d lines", added, removed)
	}
	return text
}
