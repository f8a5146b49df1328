package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"decree/patch"
)

// VersionError refuses a manifest of another version.
type VersionError struct{ Version int64 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("manifest version %d is not supported (this decree reads version %d)", e.Version, Version)
}

// Decoder reads a manifest.json. It is not safe for concurrent use.
//
// It takes any JSON spelling, in which the fields come in the order version, partial,
// files, dirs; unknown fields are passed over. It refuses paths out of order, repeated or
// below a file, paths that [patch.CheckPath] refuses, repeated or missing fields, and
// facts spelled in another way than the Encoder's. That no path is both a file and a
// directory is not checked; [Compare] finds what contradicts.
type Decoder struct {
	s       *scanner
	section int // those below
	partial bool
	first   bool // nothing has come yet in the present object
	path    ordered
	err     error
}

const (
	atStart = iota
	inFiles
	betweenSections
	inDirs
	afterDirs
)

// NewDecoder returns a Decoder of r. It reads ahead of what Next returns.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{s: newScanner(r)} }

// Next returns the next path: all files and symlinks, then all directories (Type Dir,
// only their mode), each in byte order. After the last it returns io.EOF, once all of the
// input has been read and found to be right. Other errors are the reader's, or a
// *[SyntaxError], which may wrap a *[VersionError], a *[patch.PathError] or [ErrOrder].
func (d *Decoder) Next() (path string, e Entry, err error) {
	if d.err != nil {
		return "", Entry{}, d.err
	}
	path, e, err = d.step()
	if d.s.err != nil {
		err = d.s.err
	}
	if err != nil {
		d.err = err
		return "", Entry{}, err
	}
	return path, e, nil
}

// Partial reports whether the manifest holds only some paths of a tree. It is known
// after the first call of Next.
func (d *Decoder) Partial() bool { return d.partial }

// All returns the rest of the manifest as a sequence, to be read once.
func (d *Decoder) All() Seq {
	return func(yield func(Item, error) bool) {
		for {
			path, e, err := d.Next()
			if err == io.EOF {
				return
			}
			if !yield(Item{path, e}, err) || err != nil {
				return
			}
		}
	}
}

func (d *Decoder) step() (string, Entry, error) {
	for d.s.err == nil {
		switch d.section {
		case atStart:
			d.header()
		case inFiles:
			if path, e, ok := d.file(); ok {
				return path, e, nil
			}
		case betweenSections:
			d.until("dirs", inDirs)
		case inDirs:
			if path, e, ok := d.dir(); ok {
				return path, e, nil
			}
		case afterDirs:
			return "", Entry{}, d.finish()
		}
	}
	return "", Entry{}, d.s.err
}

// header takes all that stands before the first file.
func (d *Decoder) header() {
	d.first = true
	version := false
	if !d.s.take('{') {
		return
	}
	for {
		name, ok := d.s.field(&d.first)
		if !ok {
			d.missing("files")
			return
		}
		field := string(name)
		if !d.s.take(':') {
			return
		}
		switch field {
		case "version":
			d.once(version, field)
			version = true
			if n := d.s.number(); d.s.err == nil && n != Version {
				d.s.fail(&VersionError{n})
			}
		case "partial":
			d.once(d.partial, field)
			d.partial = d.boolean()
		case "files":
			if !version {
				d.missing("version")
			}
			d.begin(inFiles)
			return
		case "dirs":
			d.s.fail(errors.New("dirs before files"))
		default:
			d.s.skip()
		}
	}
}

func (d *Decoder) once(seen bool, field string) {
	if seen {
		d.s.failf("field %q repeated", field)
	}
}

func (d *Decoder) missing(field string) { d.s.failf("field %q is missing", field) }

func (d *Decoder) boolean() bool {
	w := d.s.word()
	if d.s.err == nil && string(w) != "true" && string(w) != "false" {
		d.s.failf("%q is neither true nor false", clip(w))
	}
	return string(w) == "true"
}

func (d *Decoder) begin(section int) {
	d.s.take('{')
	d.section, d.first = section, true
	d.path.reset(section == inFiles)
}

// end leaves files or dirs.
func (d *Decoder) end() {
	d.section++
	d.first = false
}

// until takes the fields of the outer object up to the one called want.
func (d *Decoder) until(want string, section int) {
	for {
		name, ok := d.s.field(&d.first)
		if !ok {
			d.missing(want)
			return
		}
		field := string(name)
		if !d.s.take(':') {
			return
		}
		switch field {
		case want:
			d.begin(section)
			return
		case "version", "partial", "files", "dirs":
			d.s.failf("field %q repeated or out of place", field)
		default:
			d.s.skip()
		}
	}
}

func (d *Decoder) finish() error {
	for {
		name, ok := d.s.field(&d.first)
		if !ok {
			break
		}
		field := string(name)
		switch field {
		case "version", "partial", "files", "dirs":
			d.s.failf("field %q repeated or out of place", field)
		}
		if d.s.take(':') {
			d.s.skip()
		}
	}
	if d.s.peek(); d.s.err == nil && d.s.pos < d.s.end {
		d.s.unexpected("the end")
	}
	if d.s.err != nil {
		return d.s.err
	}
	return io.EOF
}

// key checks a path as it stands in JSON and returns the raw one.
func (d *Decoder) key(text []byte) string {
	path := string(text)
	if !plain(path) || path == "" {
		var err error
		if path, err = patch.Unquote(path); err != nil {
			d.s.failf("path %q: %w", clip(text), err)
			return ""
		}
	}
	if _, err := d.path.nextChecked(path); err != nil {
		d.s.fail(err)
	}
	return path
}

func (d *Decoder) file() (string, Entry, bool) {
	if path, e, ok := d.quickFile(); ok {
		return path, e, d.s.err == nil
	}
	text, ok := d.s.field(&d.first)
	if !ok {
		d.end()
		return "", Entry{}, false
	}
	path := d.key(text)
	if d.s.err != nil || !d.s.take(':') {
		return "", Entry{}, false
	}
	e := d.facts(path)
	return path, e, d.s.err == nil
}

// What the Encoder writes around a file's facts.
const (
	afterPath = `": {"sha256": "`
	afterHash = `", "size": `
	afterSize = `, "mode": "`
	hexLen    = 64
)

// quickFile reads a plain entry on one line as the Encoder writes it; it takes nothing
// unless all of it is that.
func (d *Decoder) quickFile() (string, Entry, bool) {
	if d.first {
		return "", Entry{}, false
	}
	s := d.s
	b := s.buf[s.pos:s.end]
	if len(b) < 8 || string(b[:7]) != ",\n    \"" {
		return "", Entry{}, false
	}
	n := bytes.IndexByte(b[2:], '\n')
	if n < 0 {
		if n = len(b) - 2; n > 4096 || !s.more() { // the line is cut by the buffer's end
			return "", Entry{}, false
		}
		return d.quickFile()
	}
	line := b[7 : n+2]
	end := bytes.IndexByte(line, '"')
	if end <= 0 || len(line) < end+len(afterPath)+hexLen+len(afterHash) {
		return "", Entry{}, false
	}
	for _, c := range line[:end] {
		if c < 0x20 || c == '\\' || c >= 0x7f {
			return "", Entry{}, false
		}
	}
	text := line[:end]
	e, ok := quickFacts(line[end:])
	if !ok {
		return "", Entry{}, false
	}
	s.line++
	s.pos += n + 2
	if line[len(line)-1] == ',' {
		s.pos-- // it belongs to the next entry
	}
	return d.key(text), e, true
}

// quickFacts reads `": {"sha256": "...", "size": 1, "mode": "644"}`, a comma behind it
// or not.
func quickFacts(b []byte) (e Entry, ok bool) {
	if string(b[:len(afterPath)]) != afterPath {
		return e, false
	}
	b = b[len(afterPath):]
	if !parseHex(&e.SHA256, b[:hexLen]) || string(b[hexLen:hexLen+len(afterHash)]) != afterHash {
		return e, false
	}
	b = b[hexLen+len(afterHash):]
	n := digits(b)
	if e.Size, ok = decimal(b[:n]); !ok || len(b) < n+len(afterSize)+3 || string(b[n:n+len(afterSize)]) != afterSize {
		return e, false
	}
	b = b[n+len(afterSize):]
	n = bytes.IndexByte(b, '"')
	if n < 0 || len(b) != n+2 && len(b) != n+3 || b[n+1] != '}' || len(b) == n+3 && b[n+2] != ',' {
		return e, false
	}
	e.Mode, ok = parseMode(b[:n])
	return e, ok
}

// facts takes the object that describes a file or symlink.
func (d *Decoder) facts(path string) (e Entry) {
	s := d.s
	if !s.take('{') {
		return e
	}
	var seen facts
	first := true
	for {
		name, ok := s.field(&first)
		if !ok {
			break
		}
		field := fieldOf(name)
		if !s.take(':') {
			return e
		}
		if field == 0 {
			s.skip()
			continue
		}
		if seen&field != 0 {
			s.failf("%s: a field is repeated", patch.Quote(path))
		}
		seen |= field
		d.fact(field, &e)
	}
	if s.err != nil {
		return e
	}
	if reason := seen.check(&e); reason != "" {
		s.failf("%s: %s", patch.Quote(path), reason)
	}
	return e
}

// facts is a set of an entry's fields.
type facts uint8

const (
	factHash facts = 1 << iota
	factSize
	factMode
	factType
	factTarget
	factOwner
)

func fieldOf(name []byte) facts {
	switch string(name) {
	case "sha256":
		return factHash
	case "size":
		return factSize
	case "mode":
		return factMode
	case "type":
		return factType
	case "target":
		return factTarget
	case "owner":
		return factOwner
	}
	return 0
}

func (d *Decoder) fact(field facts, e *Entry) {
	s := d.s
	if field == factSize {
		e.Size = s.number()
		return
	}
	text := s.str()
	if s.err != nil {
		return
	}
	ok := true
	switch field {
	case factHash:
		ok = parseHex(&e.SHA256, text)
	case factMode:
		e.Mode, ok = parseMode(text)
	case factType:
		e.Type = Symlink
		ok = string(text) == "symlink"
	case factTarget:
		var err error
		e.Target, err = patch.Unquote(string(text))
		ok = err == nil
	case factOwner:
		e.Owner, ok = patch.ParseOwner(string(text))
	}
	if !ok {
		s.failf("%q is not a valid %s", clip(text), [...]string{factHash: "sha256", factMode: "mode", factType: "type", factTarget: "target", factOwner: "owner"}[field])
	}
}

// check returns what is wrong with the facts as a whole.
func (f facts) check(e *Entry) string {
	const all = factHash | factSize | factMode
	switch {
	case f&all != all:
		return "sha256, size or mode is missing"
	case (f&factType != 0) != (f&factTarget != 0):
		return "type and target are only for a symbolic link, and only together"
	case e.Owner.Known && !e.Special():
		return "an owner is only for set-user-ID and set-group-ID files"
	case e.Type != Symlink:
		return ""
	case e.Target == "":
		return "empty symlink target"
	case e.Mode != 0o777:
		return `the mode of a symlink is not "777"`
	case e.Size != int64(len(e.Target)) || e.SHA256 != patch.Sum([]byte(e.Target)):
		return "sha256 or size is not the target's"
	}
	return ""
}

func (d *Decoder) dir() (string, Entry, bool) {
	text, ok := d.s.field(&d.first)
	if !ok {
		d.end()
		return "", Entry{}, false
	}
	path := d.key(text)
	if d.s.err != nil || !d.s.take(':') {
		return "", Entry{}, false
	}
	text = d.s.str()
	if d.s.err != nil {
		return "", Entry{}, false
	}
	mode, ok := parseMode(text)
	if !ok {
		d.s.failf("%q is not a valid mode", clip(text))
		return "", Entry{}, false
	}
	return path, Entry{Type: Dir, Mode: mode}, true
}

func parseMode(b []byte) (uint32, bool) {
	switch string(b) {
	case "644":
		return 0o644, true
	case "755":
		return 0o755, true
	}
	return patch.ParseMode(string(b))
}

// hexValues holds the value of each lower-case hex digit, 0xff for other bytes.
var hexValues = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()

func parseHex(h *Hash, b []byte) bool {
	if len(b) != 2*len(h) {
		return false
	}
	bad := byte(0)
	for i := range h {
		hi, lo := hexValues[b[2*i]], hexValues[b[2*i+1]]
		bad |= hi | lo
		h[i] = hi<<4 | lo
	}
	return bad&0xf0 == 0
}
