package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// document is an agent's file of settings: JSON, which may have comments and trailing commas.
type document struct {
	root    hujson.Value
	newline string
	unit    string // one step of indentation
}

func readDocument(text []byte) (*document, error) {
	d := &document{newline: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	if len(bytes.TrimSpace(text)) == 0 {
		d.root = hujson.Value{Value: &hujson.Object{}, AfterExtra: hujson.Extra(d.newline)}
		return d, nil
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errors.New("malformed JSON: " + strings.TrimPrefix(err.Error(), "hujson: "))
	}
	d.root = root
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	if len(top.Members) > 0 {
		if indent, ok := lineOf(top.Members[0].Name.BeforeExtra); ok && indent != "" {
			d.unit = indent
		}
	}
	return d, nil
}

// lineOf returns what stands in front of a value on its line; not ok: it is not the first there.
func lineOf(extra hujson.Extra) (string, bool) {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 || len(bytes.TrimLeft(extra[i+1:], " \t")) > 0 {
		return "", false
	}
	return string(extra[i+1:]), true
}

// container is an object or an array of a document, and how deep the line is indented that it begins on.
type container struct {
	object *hujson.Object
	array  *hujson.Array
	indent string
}

func (d *document) top() container { return container{object: d.root.Value.(*hujson.Object)} }

func (c container) len() int {
	if c.object != nil {
		return len(c.object.Members)
	}
	return len(c.array.Elements)
}

// first is the value whose surroundings are in front of the i-th child.
func (c container) first(i int) *hujson.Value {
	if c.object != nil {
		return &c.object.Members[i].Name
	}
	return &c.array.Elements[i]
}

// last is the value whose surroundings are behind the i-th child.
func (c container) last(i int) *hujson.Value {
	if c.object != nil {
		return &c.object.Members[i].Value
	}
	return &c.array.Elements[i]
}

func (c container) after() *hujson.Extra {
	if c.object != nil {
		return &c.object.AfterExtra
	}
	return &c.array.AfterExtra
}

// lines says whether the container has each child on a line of its own, and how that is indented.
func (d *document) lines(c container) (indent string, ok bool) {
	if c.len() > 0 {
		indent, ok = lineOf(c.first(0).BeforeExtra)
		return indent, ok || bytes.Contains(*c.after(), []byte("\n"))
	}
	top := d.top()
	if top.len() > 0 && c.object != top.object {
		if _, ok := lineOf(top.first(0).BeforeExtra); !ok {
			return "", false
		}
	}
	return c.indent + d.unit, true
}

// child returns the object or array that the member called name is, nil if there is no such member.
// It is an error if it is something else, or stands there twice.
func (d *document) child(c container, name string) (*container, error) {
	var found *container
	for i := range c.object.Members {
		if textOf(c.object.Members[i].Name) != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%q stands twice in it", name)
		}
		found = d.inside(c, i)
		if found == nil {
			return nil, fmt.Errorf("%q in it is neither an object nor a list", name)
		}
	}
	return found, nil
}

// inside returns the i-th child of c as a container; nil if it is none.
func (d *document) inside(c container, i int) *container {
	indent, ok := lineOf(c.first(i).BeforeExtra)
	if !ok {
		indent = c.indent
	}
	switch v := c.last(i).Value.(type) {
	case *hujson.Object:
		return &container{object: v, indent: indent}
	case *hujson.Array:
		return &container{array: v, indent: indent}
	}
	return nil
}

func textOf(v hujson.Value) string {
	if lit, ok := v.Value.(hujson.Literal); ok && lit.Kind() == '"' {
		return lit.String()
	}
	return ""
}

// add puts text, JSON on one line, as a child behind the last one: a member of that name, or an element.
// Comments behind the last one stay behind it.
func (d *document) add(c container, name, text string) {
	indent, lines := d.lines(c)
	after := c.after()
	n := afterComments(*after)
	before, rest := bytes.Clone((*after)[:n]), bytes.Clone((*after)[n:])
	trailing := c.len() > 0 && c.last(c.len()-1).AfterExtra != nil
	if lines {
		before = append(before, d.newline+indent...)
		if !bytes.Contains(rest, []byte("\n")) {
			rest = []byte(d.newline + c.indent)
		}
	}
	value, err := hujson.Parse([]byte(text))
	if err != nil {
		panic(err) // it was made by this package
	}
	if trailing {
		value.AfterExtra = hujson.Extra{}
	}
	if c.object != nil {
		if lines {
			value.BeforeExtra = hujson.Extra(" ")
		}
		c.object.Members = append(c.object.Members, hujson.ObjectMember{
			Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: value,
		})
	} else {
		value.BeforeExtra = before
		c.array.Elements = append(c.array.Elements, value)
	}
	*after = rest
}

// remove takes out the i-th child. Comments around it stay.
func (d *document) remove(c container, i int) {
	before, behind := c.first(i).BeforeExtra, c.last(i).AfterExtra
	kept := append(bytes.Clone(before[:afterComments(before)]), behind[:afterComments(behind)]...)
	wasLast, trailing := i == c.len()-1, behind != nil
	if c.object != nil {
		c.object.Members = append(c.object.Members[:i], c.object.Members[i+1:]...)
	} else {
		c.array.Elements = append(c.array.Elements[:i], c.array.Elements[i+1:]...)
	}
	if !wasLast {
		next := c.first(i)
		next.BeforeExtra = append(kept, next.BeforeExtra...)
		return
	}
	if i > 0 {
		// What stood in front of a comma that goes stands behind the last value.
		last := c.last(i - 1)
		if trailing {
			last.AfterExtra = append(hujson.Extra{}, last.AfterExtra...)
		} else {
			kept = append(bytes.Clone(last.AfterExtra), kept...)
			last.AfterExtra = nil
		}
	}
	*c.after() = append(kept, *c.after()...)
}

// afterComments returns where the white space behind the last comment of extra begins. The
// end of a line comment's line is not a part of it.
func afterComments(extra []byte) int {
	end := 0
	for i := 0; i < len(extra); {
		switch {
		case bytes.HasPrefix(extra[i:], []byte("//")):
			n := bytes.IndexByte(extra[i:], '\n')
			if n < 0 {
				return len(extra)
			}
			i += n
			end = i
			if i > 0 && extra[i-1] == '\r' {
				end--
			}
		case bytes.HasPrefix(extra[i:], []byte("/*")):
			i += len("/*") + bytes.Index(extra[i+2:], []byte("*/")) + len("*/")
			end = i
		default:
			i++
		}
	}
	return end
}
