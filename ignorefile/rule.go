package ignorefile

// Rule is one rule of an ignore file. It is immutable.
type Rule struct {
	file       *File
	lineNumber uint32
	start, end uint32 // the raw line in file.text
	// keyStart, keyEnd are the part of the line that the rule is looked up by in
	// its table, see parser.store.
	keyStart, keyEnd uint32
	negated, dirOnly bool
}

// Source returns the ignore file's name as given to Parse.
func (r *Rule) Source() string { return r.file.source }

// Line returns the line's number in the file, from 1.
func (r *Rule) Line() int { return int(r.lineNumber) }

// Text returns the raw line, without its line ending.
func (r *Rule) Text() string { return r.file.text[r.start:r.end] }

func (r *Rule) key() string { return r.file.text[r.keyStart:r.keyEnd] }
