package report

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"

	"decree/history"
	"decree/page"
	"decree/timeline"
	"decree/view"
)

// The bounds of what is drawn: a browser has to hold it.
const (
	drawnLines  = 20000     // of all diffs together; the rest is plain text
	listedFiles = 1000      // of one diff
	wholeLog    = 512 << 10 // bytes; of a longer log both ends
)

// HTML writes the page. An error may come behind a part of it.
func HTML(ctx context.Context, w io.Writer, s *Subject, o Options) error {
	out := bufio.NewWriterSize(w, 64<<10)
	d := &document{Options: o, s: s, w: out, lines: drawnLines}
	return errors.Join(d.write(ctx), out.Flush())
}

// document is a page that is being written.
type document struct {
	Options
	s     *Subject
	w     *bufio.Writer
	lines int // that may still be drawn
	err   error
}

// put writes HTML; the first error stays.
func (d *document) put(parts ...template.HTML) {
	for _, p := range parts {
		if _, err := d.w.WriteString(string(p)); d.err == nil {
			d.err = err
		}
	}
}

func (d *document) write(ctx context.Context) error {
	name := page.Text(title(d.s))
	d.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src `, template.HTML(page.StyleHash()), `; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>`, page.Text(title(d.s)), ` · decree</title>
<style>`, template.HTML(page.Style), `</style>
</head>
<body>
<main>
`)
	first := d.s.Records[0]
	switch {
	case d.s.ranged():
		d.put(`<h1>`, name, "</h1>\n<h2>From</h2>\n", d.facts(first), "<h2>To</h2>\n", d.facts(d.s.To.Record))
		d.changes(d.between(ctx, d.s), "", "h2")
	case d.s.Kind == timeline.Race:
		d.put(`<h1>`, name, "</h1>\n", d.candidates())
		d.records()
	case d.s.Kind == timeline.Session:
		d.put(`<h1>`, name, "</h1>\n<p>", page.Text(page.Changes(sum(d.s.Records))), ", all records counted.</p>\n")
		d.records()
	default:
		d.put(`<h1>`, name, "</h1>\n", d.status(first), d.facts(first))
		d.details(first, "", "h2")
	}
	d.put(`</main>
<footer class="made"><p>Made `, d.Clock.Time(d.Clock.Now), ` by `, page.Text(d.By), `. The same on a terminal: <code>`, page.Text(command(d.s)), "</code></p></footer>\n</body>\n</html>\n")
	return d.err
}

func (d *document) facts(r *history.Record) template.HTML {
	return page.FactList(page.Facts(r, page.FactOptions{Labels: d.Labels[r.ID], Clock: d.Clock})) + "\n"
}

// status is the line with the badge.
func (d *document) status(r *history.Record) template.HTML {
	tone := template.HTML(timeline.ToneOf(r)) //nolint:gosec // a word of ours
	line := `<p class="standing">` + page.Badge(timeline.Badge(r))
	if !view.IsCheckpoint(r) {
		line += ` <span class="status ` + tone + `">` + page.Text(view.StatusWords(r)) + "</span>"
	}
	return line + ` <span class="soft">` + d.Clock.Time(r.Started) + "</span></p>\n"
}

// records draws each of several records.
func (d *document) records() {
	for i, r := range d.s.Records {
		id := fmt.Sprintf("r%d-", i)
		d.put(`<article class="record" id="`, template.HTML(id), `record"><h2>`, page.Text(clip(view.Called(r))), "</h2>\n", d.status(r), d.facts(r)) //nolint:gosec // digits
		d.details(r, id, "h3")
		d.put("</article>\n")
	}
}

// candidates is the table of a race.
func (d *document) candidates() template.HTML {
	var b strings.Builder
	b.WriteString(`<table class="list"><thead><tr><th scope="col">Candidate<th scope="col">Judged<th scope="col">Ended<th scope="col">Took<th scope="col">Changed<th scope="col">Now</thead><tbody>` + "\n")
	for i, r := range d.s.Records {
		now := view.StatusWords(r)
		if r.Draft != nil {
			now = view.DraftState(r.Draft)
		}
		judged := cmp.Or(view.Judged(r), "not")
		ended := "goes on"
		if r.ExitCode != nil {
			ended = fmt.Sprintf("exit status %d", *r.ExitCode)
		}
		fmt.Fprintf(&b, `<tr><td><a href="#r%d-record">%s</a>`, i, page.Text(view.Called(r)))
		for _, text := range []string{judged, ended, view.Took(r), page.Changes(r.Changes), now} {
			b.WriteString("<td>" + string(page.Text(text)))
		}
		b.WriteByte('\n')
	}
	return template.HTML(b.String() + "</tbody></table>\n") //nolint:gosec // made of HTML alone
}

// details draws what a record changed and printed.
func (d *document) details(r *history.Record, id, heading string) {
	d.changes(d.changesOf(r), id, heading)
	d.log(r, history.RoutineLog, "Log", heading)
	d.log(r, history.JudgeLog, "What the judge printed", heading)
}

// changes draws the files of a diff, the diff and its proof.
func (d *document) changes(s source, id, heading string) {
	if d.err != nil {
		return
	}
	h := func(text string) template.HTML {
		return template.HTML("<" + heading + ">" + text + "</" + heading + ">\n")
	} //nolint:gosec // words of ours
	d.put(h("Files"))
	if s.none != "" {
		d.put(`<p class="soft">`, page.Text(s.none), "</p>\n")
		return
	}
	list, total, err := s.files(listedFiles)
	if d.err = err; err != nil {
		return
	}
	if total.All() == 0 {
		d.put(`<p class="soft">Nothing differs.</p>` + "\n")
		return
	}
	d.put(page.FileList(list, func(f page.File) string { return "#" + page.SectionID(id, f.Index) }), "\n")
	if more := total.All() - len(list); more > 0 {
		d.put(`<p class="soft">and `, page.Text(view.Count(more, "path")), " more, which are below.</p>\n")
	}
	d.put(h("Changes"))
	d.err = s.read(func(r io.Reader) error {
		_, lines, err := page.Diff(d.w, r, page.DiffOptions{Plain: max(1, d.lines), Name: id})
		d.lines -= lines
		return err
	})
	if d.err == nil {
		d.put(`<p class="proof">`, page.Text(total.String()+", verified by hash "), d.Clock.Time(d.Clock.Now), page.Text(": "+s.proof), ".</p>\n")
	}
}

// log draws what a record's command printed, or nothing where there is no such log.
func (d *document) log(r *history.Record, name, heading, h string) {
	if d.err != nil {
		return
	}
	size, err := d.logSize(r, name)
	if err != nil || size == 0 {
		d.err = err
		return
	}
	d.put(template.HTML("<" + h + ">" + heading + "</" + h + ">\n")) //nolint:gosec // words of ours
	if size <= wholeLog {
		d.part(r, name, page.LogOptions{})
		return
	}
	d.part(r, name, page.LogOptions{Bytes: wholeLog / 2})
	d.put(`<p class="note">`, page.Text(view.Size(size-wholeLog)), ` are left out here: <code>decree show --log `, page.Text(r.ID), "</code> prints all of it. Its end:</p>\n")
	d.part(r, name, page.LogOptions{Begin: size - wholeLog/2})
}

func (d *document) part(r *history.Record, name string, o page.LogOptions) {
	f, err := d.openLog(r, name)
	if err != nil || f == nil {
		d.err = err
		return
	}
	defer f.Close()
	d.put(`<pre class="log" tabindex="0">`)
	_, err = page.Log(d.w, f, o)
	if d.err == nil {
		d.err = err
	}
	d.put("</pre>\n")
}

// openLog opens a file of a record; nil where it has none.
func (d *document) openLog(r *history.Record, name string) (io.ReadCloser, error) {
	f, err := d.Reader.History().OpenFile(r.ID, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func (d *document) logSize(r *history.Record, name string) (int64, error) {
	f, err := d.openLog(r, name)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(io.Discard, f)
}
