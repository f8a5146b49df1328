package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"decree/history"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// Fact is one thing to say of a record. Value is HTML; a Wide one may be long.
type Fact struct {
	Name  string
	Value template.HTML
	Wide  bool
}

// Clock is how times are told.
type Clock struct {
	Now      time.Time
	Location *time.Location
}

// Time is t as an element that machines read too: the time in words, with the whole of it
// as its title.
func (c Clock) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	in := t.In(c.Location)
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		t.UTC().Format(time.RFC3339), in.Format("2006-01-02 15:04:05 -07:00"), c.Words(t)))
}

// Words is a time as people say it: "today 14:02".
func (c Clock) Words(t time.Time) string { return timeline.When(t, c.Now, c.Location) }

// FactOptions are what Facts needs beside the record.
type FactOptions struct {
	Labels []string
	Clock  Clock
	// Link gives the address of another record's page; nil: there is none.
	Link func(id string) string
}

// Facts are what is to say of a record, the important things first; what is not known or
// goes without saying is left out.
func Facts(r *history.Record, o FactOptions) []Fact {
	f := &facts{o: o}
	f.text("About", view.OneLine(strings.ReplaceAll(r.Description, "\n", " ")))
	if r.Reason == history.Run {
		f.code("Command", tree.ShellWords(r.Command))
		if r.Cwd != "." {
			f.code("In", view.ShownPath(r.Cwd))
		}
		f.text("Ended", ended(r))
	}
	f.turn(r)
	if j := r.Judge; j != nil {
		f.text("Judged", fmt.Sprintf("%s, with exit status %d, by: %s", view.Judged(r), j.ExitCode, view.OneLine(j.Command)))
	}
	f.add("When", o.Clock.Time(r.Started))
	f.text("Took", view.Took(r))
	if r.Fence != "" {
		f.text("Fence", map[string]string{"landlock": "its writes were kept to the root", "partly": "its writes were kept to the root, with a gap"}[r.Fence])
	}
	if r.NoNet {
		f.text("Network", "none")
	}
	f.states(r)
	f.text("By", actor(r.Actor))
	f.text("Labels", strings.Join(o.Labels, ", "))
	f.record("Of", r.Parent)
	f.record("Inside", r.Inside)
	undone := "Undone by"
	if r.Status != history.StatusUndone {
		undone = "Undone in part by"
	}
	f.record(undone, r.UndoneBy)
	for _, p := range r.Unrecorded {
		f.add("Unrecorded", Path(p))
	}
	f.code("Record", r.ID)
	return f.list
}

type facts struct {
	o    FactOptions
	list []Fact
}

func (f *facts) add(name string, value template.HTML) {
	if value != "" {
		f.list = append(f.list, Fact{Name: name, Value: value, Wide: name == "About" || name == "Command" || name == "Prompt" || name == "Judged"})
	}
}

func (f *facts) text(name, value string) { f.add(name, Text(value)) }

func (f *facts) code(name, value string) {
	if value != "" {
		f.add(name, "<code>"+Text(value)+"</code>")
	}
}

func (f *facts) record(name, id string) {
	switch {
	case id == "":
	case f.o.Link == nil:
		f.code(name, id)
	default:
		f.add(name, `<a href="`+template.HTML(appendAttribute(nil, f.o.Link(id)))+`"><code>`+Text(id)+`</code></a>`)
	}
}

// turn says what a coding agent's turn has beside other records.
func (f *facts) turn(r *history.Record) {
	t := r.Turn
	if t == nil {
		return
	}
	if t.Prompt != "" {
		value := `<q class="prompt">` + Text(strings.TrimSpace(t.Prompt)) + "</q>"
		if t.PromptSize > 0 {
			value += Text(fmt.Sprintf(" (the beginning of %s)", view.Size(t.PromptSize)))
		}
		f.add("Prompt", value)
	}
	f.text("Stopped", view.OneLine(t.Stop))
	f.text("Tools", view.OneLine(view.List(t.Tools)))
	f.record("Continues", t.Continues)
	for _, id := range t.Overlaps {
		f.record("Overlaps", id)
	}
}

// states says what the record did to the tree.
func (f *facts) states(r *history.Record) {
	if r.Draft != nil {
		words := view.DraftState(r.Draft)
		if r.Draft.Name != "" {
			words = view.OneLine(r.Draft.Name) + ", " + words
		}
		f.text("Draft", words)
		for _, id := range r.Draft.By {
			f.record("Published by", id)
		}
	}
	if !view.IsCheckpoint(r) && r.Status != history.StatusOpen {
		f.text("Changed", Changes(r.Changes))
	}
	if found, ok := r.Outside(); ok {
		f.text("Outside", Changes(found.Changes)+", between the record before and this one, by no record")
	}
	if r.Isolated == "" && r.Files > 0 {
		name := "Tree before"
		if view.IsCheckpoint(r) {
			name = "Tree"
		}
		f.text(name, view.Count(r.Files, "file")+", "+view.Size(r.Bytes))
	}
}

// Changes is what a record changed, with the minus sign that pages have everywhere, and without the lines that there are none of.
func Changes(c history.Changes) string { return changeWords.Replace(view.ChangesInWords(c)) }

var changeWords = strings.NewReplacer(" -0 lines", " lines", "; +0 -", "; −", " -", " −")

func ended(r *history.Record) string {
	if r.ExitCode == nil {
		return ""
	}
	text := fmt.Sprintf("with exit status %d", *r.ExitCode)
	if r.Attempts > 1 {
		text += fmt.Sprintf(", after %d attempts", r.Attempts)
	}
	return text
}

func actor(a history.Actor) string {
	text := a.User + "@" + a.Host
	for _, part := range []struct{ name, value string }{{"", a.Agent}, {"model ", a.Model}, {"session ", a.Session}} {
		if part.value != "" {
			text += ", " + part.name + part.value
		}
	}
	if a.Turn > 0 {
		text += fmt.Sprintf(", turn %d", a.Turn)
	}
	return view.OneLine(text)
}

// FactList draws facts as a list.
func FactList(list []Fact) template.HTML {
	var b strings.Builder
	b.WriteString(`<dl class="facts">`)
	for _, f := range list {
		class := ""
		if f.Wide {
			class = ` class="wide"`
		}
		fmt.Fprintf(&b, "<div%s><dt>%s</dt><dd>%s</dd></div>", class, Text(f.Name), f.Value)
	}
	b.WriteString("</dl>")
	return template.HTML(b.String())
}

// Badge is what kind of record a row is about: "Run", "Turn". Its class is the word in
// small letters.
func Badge(word string) template.HTML {
	return `<span class="badge ` + template.HTML(appendAttribute(nil, strings.ToLower(word))) + `">` + Text(word) + "</span>"
}
