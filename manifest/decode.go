package manifest

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"decree/tree"
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
// below a file, paths that [tree.Path.Check] refuses, repeated or missing fields, and
// facts spelled in another way than the Encoder's. That no path is both a file and a
// directory is not checked; [Compare] finds what contradicts.
type Decoder struct {
	t       *tokens
	section int // those below
	partial bool
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
func NewDecoder(r io.Reader) *Decoder { return &Decoder{t: newTokens(r)} }

// Next returns the next path: all files and symlinks, then all directories (Type Dir,
// only their mode), each in byte order. After the last it returns io.EOF, once all of the
// input has been read and found to be right. Other errors are the reader's, or a
// *[SyntaxError], which may wrap a *[VersionError], a *[tree.PathError] or [tree.ErrOrder].
func (d *Decoder) Next() (path tree.Path, e tree.Entry, err error) {
	if d.err != nil {
		return "", tree.Entry{}, d.err
	}
	path, e, err = d.step()
	if d.t.err != nil {
		err = d.t.err
	}
	if err != nil {
		d.err = err
		return "", tree.Entry{}, err
	}
	return path, e, nil
}

// All returns the rest of the manifest as a sequence, to be read once.
func (d *Decoder) All() tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		for {
			path, e, err := d.Next()
			if err == io.EOF {
				return
			}
			if !yield(tree.Item{Path: path, Entry: e}, err) || err != nil {
				return
			}
		}
	}
}

func (d *Decoder) step() (tree.Path, tree.Entry, error) {
	for d.t.err == nil {
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
			return "", tree.Entry{}, d.finish()
		}
	}
	return "", tree.Entry{}, d.t.err
}

// header takes all that stands before the first file.
func (d *Decoder) header() {
	version := false
	if !d.t.begin() {
		return
	}
	for {
		name, ok := d.t.member()
		if !ok {
			d.missing("files")
			return
		}
		switch name {
		case "version":
			d.once(version, name)
			version = true
			if n := d.t.number(); d.t.err == nil && n != Version {
				d.t.fail(&VersionError{n})
			}
		case "partial":
			d.once(d.partial, name)
			d.partial = d.t.boolean()
		case "files":
			if !version {
				d.missing("version")
			}
			d.begin(inFiles)
			return
		case "dirs":
			d.t.fail(errors.New("dirs before files"))
		default:
			d.t.skip()
		}
	}
}

func (d *Decoder) once(seen bool, field string) {
	if seen {
		d.t.failf("field %q repeated", field)
	}
}

func (d *Decoder) missing(field string) { d.t.failf("field %q is missing", field) }

func (d *Decoder) begin(section int) {
	d.t.begin()
	d.section = section
	d.path.reset(section == inFiles)
}

// until takes the fields of the outer object up to the one called want; "" is its end.
func (d *Decoder) until(want string, section int) {
	for {
		name, ok := d.t.member()
		switch {
		case !ok && want != "":
			d.missing(want)
			return
		case !ok:
			d.t.end()
			return
		case name == want:
			d.begin(section)
			return
		}
		switch name {
		case "version", "partial", "files", "dirs":
			d.t.failf("field %q repeated or out of place", name)
			return
		}
		d.t.skip()
	}
}

func (d *Decoder) finish() error {
	d.until("", afterDirs)
	if d.t.err != nil {
		return d.t.err
	}
	return io.EOF
}

// key checks a path as it stands in JSON and returns the raw one.
func (d *Decoder) key(text string) tree.Path {
	path := tree.Path(text)
	if !plain(text) || text == "" {
		raw, err := tree.Unquote(text)
		if err != nil {
			d.t.failf("path %q: %w", clip(text), err)
			return ""
		}
		path = tree.Path(raw)
	}
	if _, err := d.path.nextChecked(path); err != nil {
		d.t.fail(err)
	}
	return path
}

func (d *Decoder) file() (tree.Path, tree.Entry, bool) {
	name, ok := d.t.member()
	if !ok {
		d.section = betweenSections
		return "", tree.Entry{}, false
	}
	path := d.key(name)
	if d.t.err != nil {
		return "", tree.Entry{}, false
	}
	e := d.facts(path)
	return path, e, d.t.err == nil
}

// facts takes the object that describes a file or symlink.
func (d *Decoder) facts(path tree.Path) (e tree.Entry) {
	if !d.t.begin() {
		return e
	}
	var seen facts
	for {
		name, ok := d.t.member()
		if !ok {
			break
		}
		field := fieldOf(name)
		if field == 0 {
			d.t.skip()
			continue
		}
		if seen&field != 0 {
			d.t.failf("%s: a field is repeated", tree.Quote(path))
		}
		seen |= field
		d.fact(field, &e)
	}
	if d.t.err != nil {
		return e
	}
	if reason := seen.check(&e); reason != "" {
		d.t.failf("%s: %s", tree.Quote(path), reason)
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

func fieldOf(name string) facts {
	switch name {
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

func (d *Decoder) fact(field facts, e *tree.Entry) {
	if field == factSize {
		e.Size = d.t.number()
		return
	}
	text := d.t.text()
	if d.t.err != nil {
		return
	}
	ok := true
	switch field {
	case factHash:
		ok = e.SHA256.UnmarshalText([]byte(text)) == nil
	case factMode:
		e.Mode, ok = tree.ParseMode(text)
	case factType:
		e.Type = tree.Symlink
		ok = text == "symlink"
	case factTarget:
		var err error
		e.Target, err = tree.Unquote(text)
		ok = err == nil
	case factOwner:
		e.Owner, ok = tree.ParseOwner(text)
	}
	if !ok {
		d.t.failf("%q is not a valid %s", clip(text), [...]string{factHash: "sha256", factMode: "mode", factType: "type", factTarget: "target", factOwner: "owner"}[field])
	}
}

// check returns what is wrong with the facts as a whole.
func (f facts) check(e *tree.Entry) string {
	const all = factHash | factSize | factMode
	switch {
	case f&all != all:
		return "sha256, size or mode is missing"
	case (f&factType != 0) != (f&factTarget != 0):
		return "type and target are only for a symbolic link, and only together"
	case e.Owner.Known && !e.MayOwn():
		return "an owner is only for what has set-user-ID or set-group-ID, or whose group may more than others"
	case e.Type != tree.Symlink:
		return ""
	case e.Target == "":
		return "empty symlink target"
	case e.Mode != 0o777:
		return `the mode of a symlink is not "777"`
	case e.Size != int64(len(e.Target)) || e.SHA256 != tree.Sum([]byte(e.Target)):
		return "sha256 or size is not the target's"
	}
	return ""
}

func (d *Decoder) dir() (tree.Path, tree.Entry, bool) {
	name, ok := d.t.member()
	if !ok {
		d.section = afterDirs
		return "", tree.Entry{}, false
	}
	path := d.key(name)
	if d.t.err != nil {
		return "", tree.Entry{}, false
	}
	text := d.t.text()
	if d.t.err != nil {
		return "", tree.Entry{}, false
	}
	e := tree.Entry{Type: tree.Dir}
	mode, owner, owned := strings.Cut(text, " ")
	ok = true
	if owned {
		e.Owner, ok = tree.ParseOwner(owner)
	}
	var isMode bool
	e.Mode, isMode = tree.ParseMode(mode)
	if !ok || !isMode || owned && !e.MayOwn() {
		d.t.failf("%q is not a valid mode", clip(text))
		return "", tree.Entry{}, false
	}
	return path, e, true
}
