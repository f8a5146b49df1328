package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"decree/project"
)

// LabelsFile is the file of the store that has the labels.
const LabelsFile = "labels.json"

const (
	maxLabels = 16 << 20
	latest    = "latest" // always the newest record
)

// labelsJSON is labels.json.
type labelsJSON struct {
	Version int               `json:"version"`
	Labels  map[string]string `json:"labels"`
}

var labelForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// CheckLabel refuses a name that cannot be a label: other than 1 to 64 of
// A-Za-z0-9._- beginning with a letter, digit or _; one with "..", which means a
// range; one that reads as an id, a chain, a prefix of them or a time; and last
// and latest, which name what they say.
func CheckLabel(name string) error {
	reason := ""
	switch {
	case !labelForm.MatchString(name):
		reason = "a label is 1 to 64 of the letters A-Z and a-z, digits, '.', '_' and '-', and begins with a letter, digit or '_'"
	case strings.Contains(name, ".."):
		reason = `".." means a range`
	case digits(strings.ReplaceAll(name, "-", "")):
		reason = "it looks like a record's id or a date"
	case name == "last" || name == latest:
		reason = "it always means the newest record"
	default:
		if _, err := ParseTime(name, time.Unix(0, 0), time.UTC); err != nil {
			return nil //nolint:nilerr // what is no TIME may be a label
		}
		reason = "it looks like a time"
	}
	return &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("label %q: %s", clip(name), reason), Advice: "for example before-upgrade"}
}

// Labels returns the labels by name, without latest.
func (h *History) Labels() (map[string]string, error) {
	data, err := project.ReadFile(h.p.Store, LabelsFile, maxLabels)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil && !errors.Is(err, project.ErrTooLarge) {
		return nil, err
	}
	var j labelsJSON
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		return nil, &project.Error{Kind: project.Failed, Msg: h.p.Store.Path() + "/" + LabelsFile, Err: err,
			Advice: "'decree doctor --repair' moves it aside; the labels in it are then lost, and nothing else"}
	}
	if j.Version > Version {
		return nil, &NewerError{LabelsFile, j.Version}
	}
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	return j.Labels, nil
}

// LabelsOf returns the labels of each record, sorted by name.
func (h *History) LabelsOf() (map[string][]string, error) {
	all, err := h.Labels()
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out[all[name]] = append(out[all[name]], name)
	}
	return out, err
}

// SetLabel makes name mean the record id, whatever it meant before.
func (h *History) SetLabel(name, id string) error {
	if err := CheckLabel(name); err != nil {
		return err
	}
	if _, err := h.Get(id); err != nil {
		return err
	}
	if foreign, err := h.Foreign(id); err != nil || foreign {
		return cmp.Or(err, error(&project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "record " + id + " is foreign (it came with a copy of the tree) and cannot be labelled", Advice: "use its id instead"}))
	}
	return h.moveLabels(map[string]string{name: id})
}

// DeleteLabel removes a label; an unknown one is an error of kind NotFound.
func (h *History) DeleteLabel(name string) error {
	all, err := h.Labels()
	if err != nil {
		return err
	}
	if _, ok := all[name]; !ok {
		return &project.Error{Kind: project.NotFound, Msg: "no label " + clip(name), Advice: didYouMean(name, all) + "'decree label' lists the labels"}
	}
	return h.moveLabels(map[string]string{name: ""})
}

// moveLabels sets labels, deletes those with an empty id, and writes nothing
// when all is so already.
func (h *History) moveLabels(moves map[string]string) error {
	if len(moves) == 0 {
		return nil
	}
	all, err := h.Labels()
	if err != nil {
		return err
	}
	was := maps.Clone(all)
	for name, id := range moves {
		if id == "" {
			delete(all, name)
			continue
		}
		if err := CheckLabel(name); err != nil {
			return err
		}
		all[name] = id
	}
	if maps.Equal(was, all) { // by a process that may have died before it flushed them
		return h.p.Store.Sync()
	}
	data, err := json.MarshalIndent(labelsJSON{Version, all}, "", "  ")
	if err != nil {
		return err
	}
	return project.ReplaceFile(h.p.Store, LabelsFile, append(data, '\n'), project.PrivateFile, true)
}
