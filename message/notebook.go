package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The tags of the cells that papermill knows, too.
const (
	parametersTag = "parameters"
	injectedTag   = "injected-parameters"
)

// notebook is an .ipynb file of nbformat 4, as far as decree looks into it; everything
// else is carried along.
type notebook struct {
	top   map[string]json.RawMessage
	cells []cell
	minor int
	lang  string
}

// cell is one cell, with its text as it was.
type cell struct {
	raw    json.RawMessage
	kind   string // code, markdown, raw
	id     string // from nbformat 4.5 on
	tags   []string
	source string
}

// parseNotebook reads an .ipynb file.
func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{}
	if err := decode(data, &nb.top); err != nil {
		return nil, err
	}
	var head struct {
		Format   int `json:"nbformat"`
		Minor    int `json:"nbformat_minor"`
		Metadata struct {
			Kernel   struct{ Language string } `json:"kernelspec"`
			Language struct{ Name string }     `json:"language_info"`
		} `json:"metadata"`
		Cells *[]json.RawMessage `json:"cells"`
	}
	if err := decode(data, &head); err != nil {
		return nil, err
	}
	if head.Format != 4 {
		return nil, fmt.Errorf("not a notebook of format 4 (nbformat is %d); 'jupyter nbconvert --to notebook' makes it one", head.Format)
	}
	if head.Cells == nil {
		return nil, errors.New("a notebook without cells")
	}
	nb.minor = head.Minor
	nb.lang = head.Metadata.Kernel.Language
	if nb.lang == "" {
		nb.lang = head.Metadata.Language.Name
	}
	for i, raw := range *head.Cells {
		c, err := parseCell(raw)
		if err != nil {
			return nil, fmt.Errorf("cell %d: %w", i+1, err)
		}
		nb.cells = append(nb.cells, c)
	}
	return nb, nil
}

// decode reads JSON; a mistake in it has its line.
func decode(data []byte, into any) error {
	data = bytes.TrimPrefix(data, bom)
	err := json.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset), 0), len(data))
		return fmt.Errorf("line %d: no JSON: %w", 1+bytes.Count(data[:at], []byte("\n")), err)
	case errors.As(err, &typed):
		return fmt.Errorf("no notebook: %s is of another kind", cmp.Or(typed.Field, "the whole"))
	}
	return err
}

func parseCell(raw json.RawMessage) (cell, error) {
	var c struct {
		Kind     string `json:"cell_type"`
		ID       string `json:"id"`
		Metadata struct {
			Tags []string `json:"tags"`
		} `json:"metadata"`
		Source json.RawMessage `json:"source"`
	}
	if err := decode(raw, &c); err != nil {
		return cell{}, err
	}
	out := cell{raw: raw, kind: c.Kind, id: c.ID, tags: c.Metadata.Tags}
	var lines []string
	switch {
	case len(c.Source) == 0:
	case c.Source[0] == '[':
		if err := decode(c.Source, &lines); err != nil {
			return cell{}, errors.New("its source is not a list of lines")
		}
		out.source = strings.Join(lines, "")
	default:
		if err := decode(c.Source, &out.source); err != nil {
			return cell{}, errors.New("its source is not text")
		}
	}
	return out, nil
}

// description is the text of the first markdown cell.
func (nb *notebook) description() string {
	for _, c := range nb.cells {
		if c.kind == "markdown" {
			return strings.TrimSpace(strings.ReplaceAll(c.source, "\r\n", "\n"))
		}
	}
	return ""
}

// tagged is the first code cell with a tag, or -1.
func (nb *notebook) tagged(tag string) int {
	return slices.IndexFunc(nb.cells, func(c cell) bool { return c.kind == "code" && slices.Contains(c.tags, tag) })
}

// variable is an assignment of the parameters cell.
type variable struct {
	name string
	raw  string // its value as Python, without a comment
}

// assignmentLine is what papermill takes for a parameter: name = value, name: type = value.
var assignmentLine = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\s*(?::[^=]+)?=([^=].*|)$`)

// declared are the assignments of the parameters cell that begin a line.
func (nb *notebook) declared() []variable {
	at := nb.tagged(parametersTag)
	if at < 0 {
		return nil
	}
	var vars []variable
	for _, line := range strings.Split(nb.cells[at].source, "\n") {
		m := assignmentLine.FindStringSubmatch(strings.TrimRight(line, " \t\r"))
		if m == nil || slices.ContainsFunc(vars, func(v variable) bool { return v.name == m[1] }) {
			continue
		}
		vars = append(vars, variable{m[1], beforeComment(strings.TrimSpace(m[2]))})
	}
	return vars
}

// beforeComment is a line of Python without the comment that may end it.
func beforeComment(s string) string {
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}

// text is the default for people: a simple string without its quotes, else as it stands.
func (v variable) text() string {
	if n := len(v.raw); n >= 2 && (v.raw[0] == '"' || v.raw[0] == '\'') && v.raw[n-1] == v.raw[0] {
		if inner := v.raw[1 : n-1]; !strings.ContainsAny(inner, `"'\`) {
			return inner
		}
	}
	return v.raw
}

var (
	pyInt   = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)
	pyFloat = regexp.MustCompile(`^[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// python is value as Python, of the kind that the declared default has, if the text can
// be one; else a string.
func (v variable) python(value string) string {
	switch {
	case pyInt.MatchString(v.raw) && pyInt.MatchString(value):
		return value
	case pyFloat.MatchString(v.raw) && !pyInt.MatchString(v.raw) && (pyInt.MatchString(value) || strings.ContainsAny(value, ".eE") && pyFloat.MatchString(value)):
		return value
	case v.raw == "True" || v.raw == "False":
		switch strings.ToLower(value) {
		case "true":
			return "True"
		case "false":
			return "False"
		}
	}
	return quotePython(value)
}

// quotePython is text as a Python string. Bytes that are no UTF-8 become the surrogates
// by which Python means them in names of files.
func quotePython(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\udc%02x`, text[i])
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// Inject returns the notebook with its parameters set by a new code cell, tagged
// "injected-parameters" as papermill does, after the cell tagged "parameters"; an older
// one behind it is replaced. Values are text; where the declared default is a Python number
// or truth value and the text is one too, it is written as such. Without a parameters cell
// the bytes come back as they were. Errors: *Error, also for a language but Python.
func Inject(file string, data []byte, args []Param) ([]byte, error) {
	nb, err := parseNotebook(data)
	if err != nil {
		return nil, &Error{Name: file, Reason: err.Error()}
	}
	if nb.tagged(parametersTag) < 0 {
		return data, nil
	}
	if nb.lang != "" && !strings.EqualFold(nb.lang, "python") {
		return nil, &Error{Name: file, Reason: fmt.Sprintf("a notebook in %s; parameters can be set only in Python notebooks", nb.lang)}
	}
	vars := nb.declared()
	source := []string{"# Parameters\n"}
	for _, a := range args {
		v := variable{name: a.Name}
		if i := slices.IndexFunc(vars, func(v variable) bool { return v.name == a.Name }); i >= 0 {
			v = vars[i]
		}
		source = append(source, a.Name+" = "+v.python(a.Value)+"\n")
	}
	last := len(source) - 1
	source[last] = strings.TrimSuffix(source[last], "\n")
	return nb.with(source)
}

// with is the notebook with one injected cell, of these lines.
func (nb *notebook) with(source []string) ([]byte, error) {
	at := nb.tagged(parametersTag)
	kept := nb.cells[: at+1 : at+1]
	for _, c := range nb.cells[at+1:] {
		if !slices.Contains(c.tags, injectedTag) {
			kept = append(kept, c)
		}
	}
	nb.cells = kept
	injected := map[string]any{
		"cell_type": "code", "execution_count": nil, "outputs": []any{}, "source": source,
		"metadata": map[string]any{"tags": []string{injectedTag}},
	}
	if nb.minor >= 5 {
		injected["id"] = nb.freeID()
	}
	var cells []any
	for i, c := range nb.cells {
		cells = append(cells, c.raw)
		if i == at {
			cells = append(cells, injected)
		}
	}
	top := map[string]any{"cells": cells}
	for k, v := range nb.top {
		if k != "cells" {
			top[k] = v
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(top)
	return b.Bytes(), err
}

// freeID is an id that no other cell has.
func (nb *notebook) freeID() string {
	id := injectedTag
	for n := 2; slices.ContainsFunc(nb.cells, func(c cell) bool { return c.id == id }); n++ {
		id = injectedTag + "-" + strconv.Itoa(n)
	}
	return id
}
