package page

import (
	"errors"
	"html/template"
	"io"

	"decree/patch"
	"decree/tree"
	"decree/view"
)

// File is a path that a diff changes.
type File struct {
	Path           tree.Path
	Op             patch.Op
	Word           string // "created", "modified", "deleted", "mode"
	Added, Removed int64  // lines
	Index          int    // of its section in the diff, from 0
	Note           string // what changed where it is not lines
}

// Total is how many paths a diff changes.
type Total struct{ Files, Directories int }

// All is the number of both.
func (t Total) All() int { return t.Files + t.Directories }

// String is "12 files and 3 directories".
func (t Total) String() string { return view.PathsIn(t.Files, t.Directories) }

// Files reads the sections of a diff and returns at most so many, from the one at begin on; 0: all.
// The list is a part of total.
func Files(diff io.Reader, begin, most int) (list []File, total Total, err error) {
	s := NewScanner(diff)
	var file *File // that the lines are of; nil: one that is not listed
	for {
		l, err := s.Next()
		if errors.Is(err, io.EOF) {
			return list, total, nil
		}
		if err != nil {
			return list, total, err
		}
		switch l.Kind {
		case SectionLine:
			file = nil
			total.take(l.Section.Op)
			if total.All() > begin && (most == 0 || len(list) < most) {
				sec := l.Section
				list = append(list, File{Path: sec.Path, Op: sec.Op, Word: view.OpWord(sec.Op), Index: l.Index, Note: sectionNote(sec)})
				file = &list[len(list)-1]
			}
		case Added:
			if file != nil {
				file.Added++
			}
		case Removed:
			if file != nil {
				file.Removed++
			}
		}
	}
}

func (t *Total) take(op patch.Op) {
	if op == patch.OpMkdir || op == patch.OpRmdir || op == patch.OpDirMode {
		t.Directories++
	} else {
		t.Files++
	}
}

// FileList draws files as a list of links to their sections; link gives a file's address,
// nil: its section on the same page.
func FileList(list []File, link func(File) string) template.HTML {
	if link == nil {
		link = func(f File) string { return "#" + SectionID("", f.Index) }
	}
	b := []byte(`<ul class="files">`)
	for _, f := range list {
		b = append(b, `<li><span class="op `+f.Word+`">`+f.Word+`</span> <a href="`...)
		b = append(append(appendAttribute(b, link(f)), `">`...), Path(f.Path)...)
		b = append(b, "</a> "...)
		switch {
		case f.Added+f.Removed > 0:
			b = appendCounts(b, f.Added, f.Removed)
		case f.Note != "":
			b = append(appendText(append(b, "<small>"...), f.Note), "</small>"...)
		}
		b = append(b, "</li>\n"...)
	}
	return template.HTML(append(b, "</ul>"...))
}
