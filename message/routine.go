package message

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a routine is written in.
type Kind string

// The kinds of routines.
const (
	Script   Kind = "script"   // NAME.sh, run by bash
	Notebook Kind = "notebook" // NAME.ipynb
)

// suffixes are the kinds' file names, in the order in which they are looked for.
var suffixes = []struct {
	suffix string
	kind   Kind
}{{".sh", Script}, {".ipynb", Notebook}}

// Routine is what is known of a routine without running it.
type Routine struct {
	Name        string
	Kind        Kind
	Description string  // the first comment block or markdown cell; lines end in LF, none at the end
	Params      []Param // the declared ones with their defaults, in order
	Isolated    *bool   // what its head says of isolated; nil: nothing
	HeadEnd     int     // the line of a script's first statement that is no assignment; 0: there is none
}

// Declares says whether r takes a parameter called name.
func (r *Routine) Declares(name string) bool {
	return slices.ContainsFunc(r.Params, func(p Param) bool { return p.Name == name })
}

// ReadRoutine reads the routine in a file called file: NAME.sh or NAME.ipynb. Errors are
// *Error; the Routine has a name and a kind even then, where the file's name says them.
func ReadRoutine(file string, data []byte) (Routine, error) {
	name, kind, ok := routineName(file)
	if !ok {
		return Routine{}, &Error{Name: file, Reason: "no routine: its name is not NAME.sh or NAME.ipynb"}
	}
	r := Routine{Name: name, Kind: kind}
	if len(data) > MaxSize {
		return r, &Error{Name: file, Reason: fmt.Sprintf("over %d bytes", MaxSize)}
	}
	if kind == Script {
		r.readScript(data)
		if err := r.readIsolated(comments(data, r.HeadEnd)); err != nil {
			return r, &Error{Name: file, Reason: err.Error()}
		}
		return r, nil
	}
	nb, err := parseNotebook(data)
	if err != nil {
		return r, &Error{Name: file, Reason: err.Error()}
	}
	r.Description = nb.description()
	if err := r.readIsolated(strings.Split(r.Description, "\n")); err != nil {
		return r, &Error{Name: file, Reason: err.Error()}
	}
	for _, p := range nb.declared() {
		r.Params = append(r.Params, Param{p.name, p.text()})
	}
	return r, nil
}

// readIsolated finds the line "isolated: true", or false, among the comments of a head, and
// takes it out of the description. Prose that begins so says nothing.
func (r *Routine) readIsolated(lines []string) error {
	for _, line := range lines {
		word, ok := strings.CutPrefix(strings.TrimSpace(line), "isolated:")
		word = strings.TrimSpace(word)
		if !ok || strings.ContainsAny(word, " \t") {
			continue
		}
		on, known := yesOrNo(word)
		if !known {
			return fmt.Errorf("isolated is %q; it can be true or false", word)
		}
		r.Isolated = &on
		kept := slices.DeleteFunc(strings.Split(r.Description, "\n"), func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(line) })
		r.Description = strings.TrimSpace(strings.Join(kept, "\n"))
	}
	return nil
}

// Isolates says whether a message's run is isolated: as it says itself, or else its routine,
// or else usually.
func Isolates(m *Message, r *Routine, usually bool) bool {
	for _, says := range []*bool{m.Isolated, r.Isolated} {
		if says != nil {
			return *says
		}
	}
	return usually
}

// routineName takes a file's name apart.
func routineName(file string) (name string, kind Kind, ok bool) {
	for _, s := range suffixes {
		if name, found := strings.CutSuffix(file, s.suffix); found && CheckRoutineName(name) == nil {
			return name, s.kind, true
		}
	}
	return "", "", false
}

// CheckRoutineName is nil for text that can be a routine's name: one component of a path,
// not hidden and no flag, without control characters, at most 200 bytes.
func CheckRoutineName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a routine needs a name")
	case len(name) > 200, name[0] == '.', name[0] == '-', strings.ContainsAny(name, `/\`), control(name):
		return fmt.Errorf("%.200q is not the name of a routine", name)
	}
	return nil
}

// Dir is a directory of routines, as List and Find need it.
type Dir interface {
	Path() string                     // for people
	Names() ([]string, error)         // the names in it, in any order; none where it does not exist
	Read(name string) ([]byte, error) // a regular file's bytes; nil and no error where there is none
}

// Found is a routine and where it is.
type Found struct {
	Routine
	Dir  Dir
	File string // its name in Dir
	Data []byte
	Err  error // from List: why it cannot be read or understood
}

// List returns the routines of dirs in order of name; of several of one name the first
// dir's counts, and in a dir the script before the notebook. An error is a dir's.
func List(dirs ...Dir) ([]Found, error) {
	var all []Found
	seen := map[string]bool{}
	for _, dir := range dirs {
		files, err := dir.Names()
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for _, s := range suffixes {
			for _, file := range files {
				name, kind, ok := routineName(file)
				if !ok || kind != s.kind || seen[name] {
					continue
				}
				f, ok := read(dir, file)
				if ok {
					seen[name] = true
					all = append(all, f)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// read reads one routine; ok is false where no such file is.
func read(dir Dir, file string) (Found, bool) {
	f := Found{Dir: dir, File: file}
	f.Name, f.Kind, _ = routineName(file)
	if f.Data, f.Err = dir.Read(file); f.Err != nil {
		return f, true
	}
	if f.Data == nil {
		return f, false
	}
	f.Routine, f.Err = ReadRoutine(file, f.Data)
	return f, true
}

// Find returns the routine called name, from the first of dirs that has it. An error is
// an *Error for a name that cannot be one or is unknown (it names those there are) and
// for a routine that cannot be understood, else a dir's.
func Find(name string, dirs ...Dir) (Found, error) {
	if err := CheckRoutineName(name); err != nil {
		return Found{}, &Error{Reason: err.Error()}
	}
	if f, ok := lookUp(name, dirs); ok {
		return f, f.Err
	}
	return Found{}, unknown(name, dirs)
}

// Known says whether any of dirs has a routine of this name, understood or not.
func Known(name string, dirs ...Dir) bool {
	if CheckRoutineName(name) != nil {
		return false
	}
	_, ok := lookUp(name, dirs)
	return ok
}

// lookUp reads the first routine of this name; ok is false where there is none.
func lookUp(name string, dirs []Dir) (f Found, ok bool) {
	for _, dir := range dirs {
		for _, s := range suffixes {
			if f, ok := read(dir, name+s.suffix); ok {
				return f, true
			}
		}
	}
	return f, false
}

func unknown(name string, dirs []Dir) error {
	all, err := List(dirs...)
	if err != nil {
		return err
	}
	there := "there are none"
	if len(all) > 0 {
		names := make([]string, 0, len(all))
		for _, f := range all {
			names = append(names, f.Name)
		}
		there = "there are: " + strings.Join(names, ", ")
	}
	return &Error{Reason: fmt.Sprintf("no routine is called %q; %s", name, there)}
}

// Place is where a message stands when its routine runs.
type Place struct {
	File string // absolute: the message's file
	Dir  string // absolute: the run's directory
}

// given are the parameters that every routine gets.
var given = []string{"message_file", "message_id", "message_dir", "spec_file", "input_file", "chain", "seq"}

// Own are the parameters that r declares beside those that every routine gets.
func (r *Routine) Own() []Param {
	return slices.DeleteFunc(slices.Clone(r.Params), func(p Param) bool { return slices.Contains(given, p.Name) })
}

// Undeclared are the names of m's parameters that r does not declare, in the message's
// order: it does not get them.
func (r *Routine) Undeclared(m *Message) (names []string) {
	for _, p := range m.Params {
		if !slices.Contains(given, p.Name) && !r.Declares(p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Arguments returns what r gets for m: message_file, message_id, message_dir, spec_file,
// input_file, chain and seq always, in this order, then each of m's parameters that r
// declares and that is none of these. spec_file is input_file where the type is Spec, else
// "". They are the environment of a script and the parameters of a notebook.
func Arguments(r Routine, m *Message, at Place) []Param {
	spec := ""
	if m.Type == Spec {
		spec = m.InputFile
	}
	args := []Param{
		{"message_file", at.File}, {"message_id", m.ID}, {"message_dir", at.Dir},
		{"spec_file", spec}, {"input_file", m.InputFile}, {"chain", m.Chain}, {"seq", fmt.Sprint(m.Seq)},
	}
	for _, p := range m.Params {
		if !slices.Contains(given, p.Name) && r.Declares(p.Name) {
			args = append(args, p)
		}
	}
	return args
}
