package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// merged is With for a file that has hooks of others, and other settings too.
func (f File) merged(old []byte) ([]byte, error) {
	doc, err := readDocument(old)
	if err != nil {
		return nil, err
	}
	if err := doc.install(f.agent); err != nil {
		return nil, err
	}
	return doc.root.Pack(), nil
}

// stripped is Without for such a file.
func (f File) stripped(old []byte) ([]byte, error) {
	doc, err := readDocument(old)
	if err != nil {
		return nil, err
	}
	if err := doc.uninstall(f.agent); err != nil {
		return nil, err
	}
	if doc.empty(f.agent) {
		return nil, nil
	}
	return doc.root.Pack(), nil
}

// install adds the hooks that are missing. One with another line, as an earlier version wrote it,
// gives place; one that the user has given another time limit stays.
func (d *document) install(a *adapter) error {
	if a.place.versioned && !slices.ContainsFunc(d.top().object.Members, func(m hujson.ObjectMember) bool { return textOf(m.Name) == "version" }) {
		d.add(d.top(), "version", "1")
	}
	hooks, err := d.child(d.top(), "hooks")
	if err != nil {
		return err
	}
	if hooks == nil {
		d.add(d.top(), "hooks", "{}")
		if hooks, err = d.child(d.top(), "hooks"); err != nil {
			return err
		}
	}
	if hooks.object == nil {
		return fmt.Errorf("%q in it is no object", "hooks")
	}
	for i := len(hooks.object.Members) - 1; i >= 0; i-- {
		if event := textOf(hooks.object.Members[i].Name); a.events[event] == Unknown {
			if err := d.takeOut(a, *hooks, i); err != nil {
				return err
			}
		}
	}
	for _, event := range a.order() {
		if err := d.installEvent(a, *hooks, event); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) installEvent(a *adapter, hooks container, event string) error {
	list, err := d.child(hooks, event)
	if err != nil {
		return err
	}
	if list == nil {
		d.add(hooks, event, "["+a.entryText(event)+"]")
		return nil
	}
	if list.array == nil {
		return fmt.Errorf("%q in its hooks is no list", event)
	}
	lines := d.lineOfHooks(a, *list, event)
	if slices.Contains(lines, a.command(event)) {
		return nil
	}
	d.dropFrom(a, *list, event)
	d.add(*list, "", a.entryText(event))
	return nil
}

// uninstall takes out what install added, and what is left empty by that.
func (d *document) uninstall(a *adapter) error {
	hooks, err := d.child(d.top(), "hooks")
	if err != nil || hooks == nil {
		return err
	}
	if hooks.object == nil {
		return nil
	}
	had := len(hooks.object.Members)
	for i := had - 1; i >= 0; i-- {
		if err := d.takeOut(a, *hooks, i); err != nil {
			return err
		}
	}
	if had > 0 && len(hooks.object.Members) == 0 && afterComments(hooks.object.AfterExtra) == 0 {
		i := slices.IndexFunc(d.top().object.Members, func(m hujson.ObjectMember) bool { return textOf(m.Name) == "hooks" })
		d.remove(d.top(), i)
	}
	return nil
}

// takeOut removes decree's hooks from the i-th event, and the event when they were all.
func (d *document) takeOut(a *adapter, hooks container, i int) error {
	list := d.inside(hooks, i)
	if list == nil || list.array == nil {
		return nil
	}
	if d.dropFrom(a, *list, textOf(hooks.object.Members[i].Name)) && list.len() == 0 && afterComments(list.array.AfterExtra) == 0 {
		d.remove(hooks, i)
	}
	return nil
}

// dropFrom removes decree's hooks from the list of an event, and says whether there were any.
func (d *document) dropFrom(a *adapter, list container, event string) (found bool) {
	for i := list.len() - 1; i >= 0; i-- {
		inner := d.group(a, list, i)
		if inner == nil {
			if isOurs(a, list.array.Elements[i], event) {
				d.remove(list, i)
				found = true
			}
			continue
		}
		had := inner.len()
		for j := had - 1; j >= 0; j-- {
			if isOurs(a, inner.array.Elements[j], event) {
				d.remove(*inner, j)
			}
		}
		if inner.len() < had {
			found = true
			if inner.len() == 0 {
				d.remove(list, i)
			}
		}
	}
	return found
}

// group returns the list of hooks that the i-th element of an event's list has; nil if it has none.
func (d *document) group(a *adapter, list container, i int) *container {
	element := d.inside(list, i)
	if !a.place.grouped || element == nil || element.object == nil {
		return nil
	}
	inner, err := d.child(*element, "hooks")
	if err != nil || inner == nil || inner.array == nil {
		return nil
	}
	return inner
}

// lineOfHooks returns the command lines of decree's hooks in the list of an event.
func (d *document) lineOfHooks(a *adapter, list container, event string) []string {
	var lines []string
	for i := range list.array.Elements {
		elements := list.array.Elements[i : i+1]
		if inner := d.group(a, list, i); inner != nil {
			elements = inner.array.Elements
		}
		for _, e := range elements {
			if isOurs(a, e, event) {
				lines = append(lines, lineOfHook(e))
			}
		}
	}
	return lines
}

// command is the line of decree's hook of an event; "" if there is none.
func (d *document) command(a *adapter, event string) string {
	hooks, err := d.child(d.top(), "hooks")
	if err != nil || hooks == nil || hooks.object == nil {
		return ""
	}
	list, err := d.child(*hooks, event)
	if err != nil || list == nil || list.array == nil {
		return ""
	}
	for _, line := range d.lineOfHooks(a, *list, event) {
		return line
	}
	return ""
}

// lineOfHook is the command line of a hook's object; "" if it is none.
func lineOfHook(v hujson.Value) string {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return ""
	}
	for _, m := range object.Members {
		if name := textOf(m.Name); name == "command" || name == "bash" {
			return textOf(m.Value)
		}
	}
	return ""
}

func isOurs(a *adapter, v hujson.Value, event string) bool {
	rest, ok := strings.CutPrefix(lineOfHook(v), "decree hook "+a.name+" "+event)
	return ok && (rest == "" || rest[0] == ' ')
}

// empty says whether nothing but what install makes of no file is left.
func (d *document) empty(a *adapter) bool {
	text := bytes.Join(bytes.Fields(d.root.Pack()), nil)
	return string(text) == "{}" || a.place.versioned && string(text) == `{"version":1}`
}
