package web

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"decree/history"
	"decree/page"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// draftCard is a draft as a page shows it.
type draftCard struct {
	Frame
	Record       *history.Record
	Name, What   string
	When, Status string
	Files        []page.File
	More         int // files that are not shown
	Shared       []string
	Conflicts    conflicts
	Unknown      string // why the conflicts are not known
	Waits        bool
	Race         string
	Why          string // it cannot be published now
}

// raceOf takes the name of a candidate apart: "race.2".
func raceOf(name string) (race string, number int, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(name[i+1:])
	if err != nil || number < 1 {
		return "", 0, false
	}
	return name[:i], number, true
}

// cardFiles is how many files a card names, candidateRows how many lines of each diff are compared.
const (
	cardFiles     = 40
	candidateRows = 300
)

// card is a draft's, with the files of its diff.
func (s *Server) card(rec *recorder.Reader, f Frame, r *history.Record) draftCard {
	c := draftCard{Frame: f, Record: r, What: cmp.Or(view.What(r), r.ID), When: timeline.When(r.Started, s.Now(), s.Location), Status: view.StatusWords(r)}
	if r.Draft != nil {
		c.Name, c.Waits = r.Draft.Name, r.Draft.Waits()
		c.Race, _, _ = raceOf(r.Draft.Name)
	}
	c.Files, c.More = filesOf(rec, r.ID, cardFiles)
	return c
}

// filesOf are the first files of a record's diff, and how many more it has; none where that cannot be opened.
func filesOf(rec *recorder.Reader, id string, most int) (files []page.File, more int) {
	diff, err := rec.History().OpenFile(id, history.ChangesFile)
	if err != nil {
		return nil, 0
	}
	defer diff.Close()
	files, total, _ := page.Files(diff, 0, most)
	return files, total.All() - len(files)
}

// drafts is the page of the drafts that wait.
func (s *Server) drafts(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	f := s.frame(r, "Drafts", "drafts")
	if !s.begin(w, http.StatusOK, "drafts-begin", f, nil) {
		return
	}
	defer s.end(w, "end", f, nil)
	waiting, err := rec.WaitingDraftsNow(r.Context())
	var barred map[string]string
	if err == nil {
		barred, err = timeline.Barred(rec)
	}
	if err != nil {
		s.say(w, "failure", "The drafts cannot be listed: "+err.Error())
		return
	}
	if len(waiting) == 0 {
		s.say(w, "empty", "No draft waits. 'decree run --isolated -- COMMAND' makes one: its work is looked at before it is brought into your files.")
	}
	for _, d := range waiting {
		c := s.card(rec, f, d.Record)
		c.Why = barred["publish"]
		s.compared(&c, d)
		s.end(w, "draft", f, c)
	}
}

// race is the page of a race: its candidates side by side, and with ?compare their diffs.
func (s *Server) race(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	name := r.PathValue("name")
	of := history.ListOptions{Known: true, Limit: 1, Of: []history.Mark{history.InRace(name)}, Keep: func(o *history.Record) bool {
		if o.Draft == nil {
			return false
		}
		race, _, ok := raceOf(o.Draft.Name)
		return ok && race == name
	}}
	// The newest candidate says that there is such a race: the head of the page goes out, and then all records are looked at.
	newest, err := rec.History().List(of)
	if err == nil && len(newest.Records) == 0 {
		err = &project.Error{Kind: project.NotFound, Msg: "there is no race " + view.OneLine(name) + " with drafts"}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	f := s.frame(r, "Race "+name, "drafts")
	if !s.begin(w, http.StatusOK, "race-begin", f, struct{ Name, What string }{name, cmp.Or(view.What(newest.Records[0]), name)}) {
		return
	}
	defer s.end(w, "end", f, nil)
	of.Limit = 0
	cards, err := s.candidates(r.Context(), rec, f, of)
	if err != nil {
		s.say(w, "failure", "Its candidates cannot be listed: "+err.Error())
		return
	}
	compare := r.URL.Query().Has("compare")
	s.end(w, "race", f, raceCards{cards, len(cards) <= 3, compare})
	if compare {
		s.candidateDiffs(w, rec, cards)
	}
}

// raceCards are a race's candidates. Few stand beside each other, others one below the other.
type raceCards struct {
	Cards   []draftCard
	Few     bool
	Compare bool // their diffs are shown
}

// Others are the candidates that wait beside one that was published, which one gives up at once.
func (r raceCards) Others() (waiting []draftCard) {
	published := false
	for _, c := range r.Cards {
		if c.taken() {
			published = true
		} else if c.Waits {
			waiting = append(waiting, c)
		}
	}
	if !published {
		return nil
	}
	return waiting
}

// taken says whether the draft was published, be it in part.
func (c draftCard) taken() bool { return c.Record.Draft != nil && len(c.Record.Draft.By) > 0 }

// candidates are the cards of a race, by number.
func (s *Server) candidates(ctx context.Context, rec *recorder.Reader, f Frame, of history.ListOptions) ([]draftCard, error) {
	list, err := rec.History().List(of)
	if err != nil {
		return nil, err
	}
	barred, err := timeline.Barred(rec)
	if err != nil {
		return nil, err
	}
	waiting, err := rec.WaitingDraftsNow(ctx)
	if err != nil {
		return nil, err
	}
	var cards []draftCard
	by := map[tree.Path]int{}
	for _, o := range list.Records {
		c := s.card(rec, f, o)
		c.Why = barred["publish"]
		if i := slices.IndexFunc(waiting, func(d recorder.WaitingDraft) bool { return d.ID == o.ID }); i >= 0 {
			s.compared(&c, waiting[i])
		}
		for _, file := range c.Files {
			by[file.Path]++
		}
		cards = append(cards, c)
	}
	published := map[string]string{}
	for _, c := range cards {
		for _, file := range c.Files {
			if c.taken() {
				published[view.ShownPath(file.Path)] = view.OneLine(c.Name)
			}
		}
	}
	for i := range cards {
		for k, it := range cards[i].Conflicts.List {
			if by := published[it.Path]; by != cards[i].Name {
				cards[i].Conflicts.List[k].By = by
			}
		}
	}
	slices.SortStableFunc(cards, func(a, b draftCard) int {
		_, x, _ := raceOf(a.Name)
		_, y, _ := raceOf(b.Name)
		return cmp.Compare(x, y)
	})
	for i := range cards {
		for _, file := range cards[i].Files {
			if by[file.Path] > 1 {
				cards[i].Shared = append(cards[i].Shared, view.ShownPath(file.Path))
			}
		}
	}
	return cards, nil
}

// compared adds what is known of a draft that was compared with the tree.
func (s *Server) compared(c *draftCard, d recorder.WaitingDraft) {
	c.Conflicts = s.conflictsOf("publish", d.ID, d.Conflicts)
	if d.Unknown != nil {
		c.Unknown = d.Unknown.Error()
	}
}

// candidateDiffs draws what each candidate would change, as far as one compares them at a glance.
func (s *Server) candidateDiffs(w io.Writer, rec *recorder.Reader, cards []draftCard) {
	for _, c := range cards {
		heading(w, "diff-"+c.Record.ID, "What "+c.Name+" would change")
		diff, err := rec.History().OpenFile(c.Record.ID, history.ChangesFile)
		if err != nil {
			s.say(w, "failure", "It cannot be shown: "+err.Error())
			continue
		}
		next, sections, err := page.Diff(w, diff, page.DiffOptions{Rows: candidateRows, Link: s.fileLink, Name: "c" + c.Record.ID + "-"})
		diff.Close()
		switch {
		case err != nil:
			s.say(w, "failure", "It is damaged: "+err.Error())
		case sections == 0:
			s.say(w, "soft", "Nothing.")
		case next != nil:
			fmt.Fprintf(w, "<p><a href=\"%s#changes\">All of it</a></p>\n", attribute(s.recordLink(c.Record.ID)))
		}
	}
}

// About is the draft's name, or what its run was about.
func (c draftCard) About() string { return view.OneLine(cmp.Or(c.Name, c.What)) }

// Took, and what else the table of candidates shows.
func (c draftCard) Took() string { return view.Took(c.Record) }

// Judged says what its judge said.
func (c draftCard) Judged() string { return view.Judged(c.Record) }

// Marks are the values of the check boxes of its files.
func (c draftCard) Marks() (out []markedFile) {
	for _, f := range c.Files {
		out = append(out, markedFile{page.Mark(f.Path, 0), view.ShownPath(f.Path), f.Word,
			c.Base + "/r/" + c.Record.ID + "?changes-at=" + page.Place{Section: f.Index}.String() + "#changes"})
	}
	return out
}

// markedFile is a file that can be marked.
type markedFile struct{ Value, Path, Word, Link string }
