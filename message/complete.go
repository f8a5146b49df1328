package message

// Defaults is what a message that leaves something open is completed with.
type Defaults struct {
	Chain    string // where neither front matter nor name say one
	Seq      int    // goes with Chain: 0, or the next one of the chain that a follow-up joins
	Routine  string // see ChooseRoutine
	MaxDepth int    // seq must be below
}

// Complete returns m with all of id, chain, seq, type and routine, and its bytes. Chain and
// seq are the front matter's, else the name's (NameParts), else the defaults'; the id is
// always <chain>-<seq>, and the type Spec when input_file ends in ".spec.md", else Task,
// whatever the front matter says; the routine is d.Routine where it is not "". If that is
// what the file said already, the bytes are those given to Parse. Errors are *Error: the
// depth is reached, a chain or input_file that cannot be. m is not changed.
func Complete(m *Message, d Defaults) (*Message, []byte, error) { return complete(m, d) }

// NameParts takes a name of the form <chain>-<seq>.md apart. A chain is 16 digits, as
// decree gives them. Another one is believed only with a seq below maxDepth: people call
// files 2026-11-20.md and step-117.md and mean no chain by it.
func NameParts(name string, maxDepth int) (chain string, seq int, ok bool) {
	return nameParts(name, maxDepth)
}

// CheckChain is nil for text that can be a chain: 1 to 100 letters, digits, '_', '-' and
// '.', not beginning with '-' or '.'.
func CheckChain(chain string) error { return checkChain(chain) }

// CheckInputFile is nil for a clean path relative to the root, below it and not below
// .git or .decree: what may stand as input_file. Whether it is there, and no link leads
// out, is the caller's to see.
func CheckInputFile(path string) error { return checkInputFile(path) }

// Choice is what decides on a message's routine.
type Choice struct {
	Spec    *Message               // the spec that input_file names, or nil
	Router  func() (string, error) // asks the router; nil: there is none. Called only if it decides
	Default string                 // default_routine
	Known   func(name string) bool // whether there is such a routine
}

// ChooseRoutine returns the message's routine, else its spec's, else the router's answer
// (its first line, trimmed) when that is a known name, else the default. The one that is
// named must be known: an *Error otherwise. A router that fails is passed over; its error
// comes back beside the routine as routerErr, to be told.
func ChooseRoutine(m *Message, c Choice) (name string, routerErr, err error) {
	return chooseRoutine(m, c)
}
