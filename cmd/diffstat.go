package cmd

import (
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
	moved bool // another one was created with its content
}

// readStat counts the sections of wanted paths.
func readStat(diff io.Reader, wanted []tree.Path) (diffstat, error) {
	stat := diffstat{Files: []fileStat{}}
	var changes []tree.Change
	err := patch.EachSection(diff, wanted, func(sec *patch.Section) error {
		stat.add(sec)
		changes = append(changes, tree.Change{Path: sec.Path, Old: sec.Old, New: sec.New})
		return nil
	})
	from, moved := renames(changes)
	for i := range stat.Files {
		f, path := &stat.Files[i], changes[i].Path
		switch {
		case f.Op == patch.OpCreate && from[path] != "":
			f.From = manifestPath(from[path])
		case f.Op == patch.OpDelete:
			f.moved = moved[path]
		}
	}
	return stat, err
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

// writeStat prints a diffstat's table for stdout.
func (s *session) writeStat(w io.Writer, d diffstat) error {
	return d.write(w, s.fits(&table{gap: 1}, s.env.Stdout, 1), s.paint(s.env.Stdout))
}

// write prints the table with its bars and the sum below it.
func (d diffstat) write(w io.Writer, t *table, p paint) error {
	longest := barWidth
	if t.most > 0 {
		longest = min(barWidth, max(leastBar, t.most/4))
		t.end = len("| 12345 ") + longest
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
			t.add(" renamed", shownQuoted(f.Path), "| from "+shownQuoted(f.From))
			continue
		}
		if what == "" {
			what = fmt.Sprintf("%5d %s", f.Added+f.Removed, f.bar(most, longest, p))
		}
		t.add(" "+view.OpWord(f.Op), shownQuoted(f.Path), "| "+what)
	}
	if err := t.write(w); err != nil {
		return err
	}
	total := " " + d.total() + "\n"
	if t.most > 0 && width(total) > t.most {
		total = wrap(d.total(), t.most, " ")
	}
	_, err := io.WriteString(w, total)
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
