package message

// Kind is what a routine is written in.
type Kind string

// The kinds of routines.
const (
	Script   Kind = "script"   // NAME.sh, run by bash
	Notebook Kind = "notebook" // NAME.ipynb
)

// Routine is what is known of a routine without running it.
type Routine struct {
	Name        string
	Kind        Kind
	Description string  // the first comment block or markdown cell; lines end in LF, none at the end
	Params      []Param // the declared ones with their defaults, in order
	// Declares is false for a notebook without a parameters cell: it takes none.
	Declares bool
	Language string // a notebook's; "python" where it says none
}

// Dir is a directory of routines, as List and Find need it.
type Dir interface {
	Path() string                     // for messages
	Names() ([]string, error)         // the names in it, in any order; none where it does not exist
	Read(name string) ([]byte, error) // a regular file's bytes; fs.ErrNotExist where there is none
}

// Found is a routine and where it is.
type Found struct {
	Routine
	Dir  Dir
	File string // its name in Dir
	Data []byte
	Err  error // why it cannot be read or understood; the Routine has then only a name and a kind
}

// List returns the routines of dirs in order of name; of several of one name the first
// dir's counts, in a dir the script before the notebook.
func List(dirs ...Dir) ([]Found, error) { return list(dirs) }

// Find returns the routine called name, from the first of dirs that has it. Errors: *Error
// for a name that cannot be one, is unknown (its Reason says so and names those there
// are), or a routine that cannot be understood.
func Find(name string, dirs ...Dir) (Found, error) { return find(name, dirs) }

// CheckRoutineName is nil for text that can be a routine's name: one component of a path,
// not hidden, without control characters, at most 200 bytes.
func CheckRoutineName(name string) error { return checkRoutineName(name) }

// ReadRoutine reads the routine in a file called file (NAME.sh or NAME.ipynb). Errors are *Error.
func ReadRoutine(file string, data []byte) (Routine, error) { return readRoutine(file, data) }

// Place is where a message stands when its routine runs.
type Place struct {
	File string // absolute: the message's file
	Dir  string // absolute: the run's directory
	Root string // absolute
}

// Arguments returns what r gets for m: message_file, message_id, message_dir, spec_file,
// input_file, chain and seq always, in this order, then each of m's parameters that r
// declares and that is none of these. spec_file is input_file where the type is Spec, else
// "". They are the environment of a script and the parameters of a notebook.
func Arguments(r Routine, m *Message, at Place) []Param { return arguments(r, m, at) }

// Inject returns the notebook with its parameters set by a new code cell, tagged
// "injected-parameters" as papermill does, after the cell tagged "parameters"; an older
// injected one is replaced. Values are text; where the declared default is a Python number
// or truth value and the text is one too, it is written as such. Without a parameters cell
// the bytes come back as they were. Errors: *Error, also for a language but Python.
func Inject(file string, data []byte, args []Param) ([]byte, error) { return inject(file, data, args) }
