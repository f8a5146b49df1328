package message

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// front is a front matter as it stands in the file.
type front struct {
	data []byte     // the whole file
	head []byte     // up to the fields: a byte-order mark and the first line; nil: there is no front matter
	text []byte     // the fields
	tail []byte     // the line that ends it
	root *yaml.Node // a mapping; nil: no fields
}

var bom = []byte("\xef\xbb\xbf")

// split finds the front matter and the body of a file.
func split(data []byte) (front, []byte, error) {
	f := front{data: data}
	first, rest := cutLine(bytes.TrimPrefix(data, bom))
	if !isFence(first) {
		return f, data, nil
	}
	f.head = data[:len(data)-len(rest)]
	for at := rest; len(at) > 0; {
		line, after := cutLine(at)
		if isFence(line) {
			f.text, f.tail = rest[:len(rest)-len(at)], line
			return f, after, nil
		}
		if len(rest)-len(after) > MaxFront {
			return f, nil, fmt.Errorf("the front matter is over %d bytes, or its end (--- alone in a line) is missing", MaxFront)
		}
		at = after
	}
	return f, nil, &lineError{1, "the front matter has no end (--- alone in a line)"}
}

// cutLine returns the first line with its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		n = len(b)
	}
	return b[:n], b[n:]
}

// isFence says whether a line is "---", blanks behind it aside.
func isFence(line []byte) bool {
	after, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && len(bytes.Trim(after, " \t\r\n")) == 0
}

// with returns the file with fields set, and everything else as it was.
func (f *front) with(fields []Param, body []byte) ([]byte, error) {
	if f.root != nil && f.root.Style&yaml.FlowStyle != 0 {
		return f.rebuilt(fields, body)
	}
	end := "\n"
	if first, _ := cutLine(f.data); bytes.HasSuffix(first, []byte("\r\n")) {
		end = "\r\n"
	}
	lines := bytes.SplitAfter(f.text, []byte("\n"))
	indent := ""
	if f.root != nil {
		indent = strings.Repeat(" ", f.root.Column-1)
	}
	var added []byte
	for _, set := range fields {
		line := indent + scalar(set.Name) + ": " + scalar(set.Value)
		k, v := f.find(set.Name)
		if k == nil {
			added = append(added, line+end...)
			continue
		}
		if v.LineComment != "" {
			line += " " + v.LineComment
		}
		if k.Line > len(lines) {
			return f.rebuilt(fields, body)
		}
		lines[k.Line-1] = []byte(line + end)
	}
	head, tail := f.head, f.tail
	if head == nil {
		head, tail = []byte("---"+end), []byte("---"+end)
	}
	return bytes.Join([][]byte{head, bytes.Join(lines, nil), added, tail, body}, nil), nil
}

// rebuilt is with for a front matter that lines cannot be put into: its YAML is
// written anew.
func (f *front) rebuilt(fields []Param, body []byte) ([]byte, error) {
	root := yaml.Node{Kind: yaml.MappingNode}
	if f.root != nil {
		root.Content = slices.Clone(f.root.Content)
	}
	for _, set := range fields {
		value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: set.Value}
		found := false
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == set.Name {
				root.Content[i+1], found = value, true
			}
		}
		if !found {
			root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: set.Name}, value)
		}
	}
	text, err := yaml.Marshal(&root)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return bytes.Join([][]byte{f.head, text, f.tail, body}, nil), nil
}

// find is the field called key, nil where there is none.
func (f *front) find(key string) (k, v *yaml.Node) {
	if f.root == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		if f.root.Content[i].Value == key {
			return f.root.Content[i], f.root.Content[i+1]
		}
	}
	return nil, nil
}

// keeps says whether f has the fields of old but for those set, which have their new
// values, and no others.
func (f *front) keeps(old *front, set []Param) bool {
	got := map[string]string{}
	for _, p := range f.values() {
		got[p.Name] = p.Value
	}
	want := map[string]string{}
	for _, p := range append(old.values(), set...) {
		want[p.Name] = p.Value
	}
	return maps.Equal(got, want)
}

// values are all fields as text.
func (f *front) values() []Param {
	var out []Param
	if f.root != nil {
		for i := 0; i+1 < len(f.root.Content); i += 2 {
			value, _ := paramValue(f.root.Content[i+1]) // it was read once
			out = append(out, Param{f.root.Content[i].Value, value})
		}
	}
	return out
}

// scalar is text as YAML that reads as the same text: plain where nothing in it can be
// mistaken, else in quotes.
func scalar(text string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	if text != "" && strings.Trim(text, letters+".-/") == "" && strings.Contains(letters, text[:1]) {
		return text
	}
	return quoteJSON(text)
}
