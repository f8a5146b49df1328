package message

import (
	"errors"
	"time"
)

// The bounds of what is read.
const (
	MaxSize  = 16 << 20  // bytes of a message, a script or a notebook
	MaxFront = 256 << 10 // bytes of a front matter
)

// front is the front matter as it stands in the file.
type front struct{}

var errUnfinished = errors.New("not written yet")

// Parse reads a message from a file called name. Errors are *Error with the line:
// a front matter that does not end or is no YAML mapping, a field of a wrong form, a file
// above MaxSize or a front matter above MaxFront. What Complete can decide, it leaves.
func Parse(name string, data []byte) (*Message, error) { return nil, errUnfinished }

func complete(m *Message, d Defaults) (*Message, []byte, error)       { return nil, nil, errUnfinished }
func nameParts(name string, depth int) (chain string, n int, ok bool) { return "", 0, false }
func checkChain(string) error                                         { return errUnfinished }
func checkInputFile(string) error                                     { return errUnfinished }
func chooseRoutine(*Message, Choice) (string, error, error)           { return "", nil, errUnfinished }
func list([]Dir) ([]Found, error)                                     { return nil, errUnfinished }
func find(string, []Dir) (Found, error)                               { return Found{}, errUnfinished }
func checkRoutineName(string) error                                   { return errUnfinished }
func readRoutine(string, []byte) (Routine, error)                     { return Routine{}, errUnfinished }
func arguments(Routine, *Message, Place) []Param                      { return nil }
func inject(string, []byte, []Param) ([]byte, error)                  { return nil, errUnfinished }
func parseCron(string) (*Schedule, error)                             { return nil, errUnfinished }
func (s *Schedule) due(time.Time) bool                                { return false }
func (s *Schedule) next(time.Time) time.Time                          { return time.Time{} }
