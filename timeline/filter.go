package timeline

import (
	"path"
	"slices"
	"strings"
	"time"

	"decree/history"
	"decree/project"
	"decree/tree"
	"decree/view"
)

// Filter says which rows are wanted. The zero value wants all, and tells times in UTC.
type Filter struct {
	Words        []string // each must occur somewhere in a row, whatever the case of its letters
	Reasons      []string // lower case; one of them, or "outside"
	Paths        []tree.Path
	Since, Until time.Time

	// Now and Location are the moment and the zone that rows say their time from.
	Now      time.Time
	Location *time.Location
}

// FilterHelp says what a filter may hold.
const FilterHelp = "words, reason:run, path:src/, since:yesterday, until:14:30"

// ParseFilter reads what a person typed: words, and reason:R, path:P, since:TIME and
// until:TIME among them; what has spaces stands between quotes. An error is of kind Usage.
func ParseFilter(text string, loc *time.Location, now time.Time) (Filter, error) {
	f := Filter{Now: now, Location: loc}
	for _, word := range split(text) {
		key, value, ok := strings.Cut(word, ":")
		if !ok || value == "" {
			f.Words = append(f.Words, strings.ToLower(word))
			continue
		}
		var err error
		switch strings.ToLower(key) {
		case "reason":
			err = f.addReason(strings.ToLower(value))
		case "path":
			f.Paths = append(f.Paths, tree.Path(strings.TrimPrefix(path.Clean("/"+value), "/")))
		case "since":
			f.Since, err = history.ParseTime(value, now, loc)
		case "until":
			f.Until, err = history.ParseTime(value, now, loc)
		default:
			f.Words = append(f.Words, strings.ToLower(word))
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *Filter) addReason(reason string) error {
	known := append(slices.Clone(project.Reasons), string(view.OutsideReason))
	if !slices.Contains(known, reason) {
		return &project.Error{Kind: project.Usage, Msg: "reason:" + view.OneLine(reason) + ": no record has this reason",
			Advice: "it is one of " + strings.Join(known, ", ")}
	}
	f.Reasons = append(f.Reasons, reason)
	return nil
}

// empty says whether all rows are wanted.
func (f *Filter) empty() bool {
	return len(f.Words)+len(f.Reasons)+len(f.Paths) == 0 && f.Since.IsZero() && f.Until.IsZero()
}

// split takes a text apart at its spaces; those between quotes are part of a word.
func split(text string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range text + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun { // a quote that was not closed
		words = append(words, strings.TrimSuffix(word.String(), " "))
	}
	return words
}

// inTime says whether a record began when it had to.
func (f *Filter) inTime(r *history.Record) bool {
	return (f.Since.IsZero() || !r.Started.Before(f.Since)) && (f.Until.IsZero() || !r.Started.After(f.Until))
}

// wantsRecord and wantsOutside say whether a record, or what it found, is to be a row.
func (f *Filter) wantsRecord(r *history.Record, labels []string) bool {
	return f.inTime(r) && f.hasReason(string(r.Reason)) && f.speaks(func() []string {
		texts := []string{r.ID, string(r.Reason), view.StatusWords(r), r.Description, strings.Join(r.Command, " "), r.Actor.Agent, r.Actor.Session, strings.Join(labels, " ")}
		if r.Turn != nil {
			texts = append(texts, r.Turn.Prompt)
		}
		if r.Draft != nil {
			texts = append(texts, r.Draft.Name)
		}
		return texts
	})
}

func (f *Filter) wantsOutside(r *history.Record) bool {
	_, found := r.Outside()
	return found && f.inTime(r) && f.hasReason(string(view.OutsideReason)) && f.speaks(func() []string { return []string{"changed outside", r.ID} })
}

func (f *Filter) hasReason(reason string) bool {
	return len(f.Reasons) == 0 || slices.Contains(f.Reasons, reason)
}

func (f *Filter) speaks(of func() []string) bool {
	if len(f.Words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join(of(), "\n"))
	return !slices.ContainsFunc(f.Words, func(w string) bool { return !strings.Contains(text, w) })
}
