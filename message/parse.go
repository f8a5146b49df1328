package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"decree/tree"
)

// The bounds of what is read, in bytes. A field of a front matter fits into an environment.
const (
	MaxSize  = 16 << 20 // a message, a script, a notebook
	MaxFront = 64 << 10 // a front matter
)

// maxNesting bounds the lists and mappings of a parameter.
const maxNesting = 32

// Parse reads a message from a file called name. Errors are *Error with the line:
// a front matter that does not end or is no YAML mapping, a field of a wrong form, a file
// above MaxSize or a front matter above MaxFront. What Complete can decide, it leaves.
func Parse(name string, data []byte) (*Message, error) {
	m := &Message{Name: name, Seq: -1}
	err := m.parse(data)
	if err == nil {
		return m, nil
	}
	e := &Error{Name: name, Reason: err.Error()}
	if at, ok := errors.AsType[*lineError](err); ok {
		e.Line, e.Reason = at.line, at.reason
	}
	return nil, e
}

func (m *Message) parse(data []byte) error {
	if len(data) > MaxSize {
		return fmt.Errorf("over %d bytes", MaxSize)
	}
	var err error
	if m.front, m.Body, err = split(data); err != nil {
		return err
	}
	root, err := m.front.yaml()
	if err != nil || root == nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return atLine(root, "the front matter is not a list of fields (name: value)")
	}
	if err := plain(root); err != nil {
		return err
	}
	m.front.root = root
	return eachField(root, m.set)
}

// set takes one field.
func (m *Message) set(key string, k, v *yaml.Node) error {
	texts := map[string]*string{
		"id": &m.ID, "chain": &m.Chain, "type": &m.Type,
		"input_file": &m.InputFile, "routine": &m.Routine, "cron": &m.Cron, "cron_job": &m.CronJob,
	}
	field, known := texts[key]
	if !known && !slices.Contains([]string{"seq", "depth", "catch_up", "isolated"}, key) {
		value, err := paramValue(v)
		m.Params = append(m.Params, Param{key, value})
		return err
	}
	if v.Kind != yaml.ScalarNode {
		return atLine(v, "%s must be text", key)
	}
	if strings.ContainsRune(v.Value, 0) {
		return atLine(v, "%s holds a NUL byte", key)
	}
	if field != nil {
		*field = v.Value
	}
	switch key {
	case "seq":
		return setNumber(v, key, &m.Seq)
	case "depth":
		return setNumber(v, key, &m.Depth)
	case "chain":
		return refuse(v, v.Value, checkChain)
	case "routine":
		return refuse(v, v.Value, CheckRoutineName)
	case "input_file":
		return m.setInputFile(v)
	case "type":
		if v.Value != "" && v.Value != Task && v.Value != Spec {
			return atLine(v, "type is %q; it can be %s or %s", v.Value, Spec, Task)
		}
	case "catch_up":
		on, err := truth(v, key)
		m.CatchUp = on != nil && *on
		return err
	case "isolated":
		var err error
		m.Isolated, err = truth(v, key)
		return err
	}
	return nil
}

// setInputFile takes a path as text, or, where it is none, as manifests write it.
func (m *Message) setInputFile(v *yaml.Node) error {
	name, err := tree.Unquote(v.Value)
	if err != nil || name == v.Value {
		if v.Value != "" {
			m.InputFile = path.Clean(v.Value)
		}
		return refuse(v, v.Value, checkInputFile)
	}
	if strings.ContainsRune(name, 0) {
		return atLine(v, "input_file holds a NUL byte")
	}
	m.InputFile = path.Clean(name)
	return refuse(v, name, below)
}

func setNumber(v *yaml.Node, key string, to *int) error {
	if v.Value == "" {
		return nil
	}
	n, ok := number(v.Value)
	if !ok {
		return atLine(v, "%s is %q; it must be a whole number, at least 0", key, v.Value)
	}
	*to = n
	return nil
}

// truth is what a field says: nil for nothing.
func truth(v *yaml.Node, key string) (*bool, error) {
	on, ok := yesOrNo(v.Value)
	if !ok && v.Value != "" {
		return nil, atLine(v, "%s is %q; it can be true or false", key, v.Value)
	}
	if v.Value == "" {
		return nil, nil
	}
	return &on, nil
}

// yesOrNo reads true or false; ok is false for all else.
func yesOrNo(text string) (on, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes":
		return true, true
	case "false", "no":
		return false, true
	}
	return false, false
}

// refuse puts the line of n to what check says about a value that is there.
func refuse(n *yaml.Node, value string, check func(string) error) error {
	if value == "" {
		return nil
	}
	if err := check(value); err != nil {
		return atLine(n, "%s", err)
	}
	return nil
}

// number reads a whole number from 0 with at most nine digits.
func number(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// paramValue is a parameter's text: a scalar as it stands, a list or a mapping as JSON.
func paramValue(v *yaml.Node) (string, error) {
	value := v.Value
	if v.Kind != yaml.ScalarNode {
		var b strings.Builder
		if err := writeJSON(&b, v, 0); err != nil {
			return "", err
		}
		value = b.String()
	}
	if strings.ContainsRune(value, 0) {
		return "", atLine(v, "a value holds a NUL byte, which no environment variable can hold")
	}
	return value, nil
}

func writeJSON(b *strings.Builder, v *yaml.Node, depth int) error {
	if depth > maxNesting {
		return atLine(v, "nested deeper than %d", maxNesting)
	}
	switch v.Kind {
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range v.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.MappingNode:
		b.WriteByte('{')
		first := true
		err := eachField(v, func(key string, k, item *yaml.Node) error {
			if !first {
				b.WriteByte(',')
			}
			first = false
			b.WriteString(quoteJSON(key))
			b.WriteByte(':')
			return writeJSON(b, item, depth+1)
		})
		if err != nil {
			return err
		}
		b.WriteByte('}')
	default:
		b.WriteString(quoteJSON(v.Value))
	}
	return nil
}

// quoteJSON is s as a JSON string, which YAML reads as the same text.
func quoteJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string and a buffer cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// plain refuses what can make a small text large, or another thing than it looks.
func plain(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return atLine(n, "an alias (*%s); write the value again", n.Value)
	case n.Anchor != "":
		return atLine(n, "an anchor (&%s)", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		return atLine(n, "a tag (%s)", n.Tag)
	}
	for _, c := range n.Content {
		if err := plain(c); err != nil {
			return err
		}
	}
	return nil
}

// eachField calls f for each key of a mapping.
func eachField(n *yaml.Node, f func(key string, k, v *yaml.Node) error) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.Value == "":
			return atLine(k, "a field's name must be plain text")
		case k.Tag == "!!merge":
			return atLine(k, "a merge key (<<)")
		case seen[k.Value]:
			return atLine(k, "field %q is given twice", k.Value)
		}
		seen[k.Value] = true
		if err := f(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

// lineError is a mistake at a line of the file.
type lineError struct {
	line   int
	reason string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.reason) }

// atLine is a mistake at n. The line before a front matter's first is "---".
func atLine(n *yaml.Node, format string, args ...any) error {
	return &lineError{n.Line + 1, fmt.Sprintf(format, args...)}
}

// yaml returns the top node, nil where there are no fields.
func (f *front) yaml() (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(f.text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, yamlError(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, atLine(&more, "a second YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func yamlError(err error) error {
	if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
		line, _ := strconv.Atoi(at[1])
		return &lineError{line + 1, "the front matter is not YAML: " + strings.TrimPrefix(err.Error(), at[0])}
	}
	return errors.New("the front matter is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
}
