package capture

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
)

// The two ignore files of a directory, in rising precedence.
const (
	gitName = ".gitignore"
	decName = ".decreeignore"
)

// ruleNames are the two, with the flags of a block that say that they are there.
var ruleNames = [...]struct {
	name string
	flag uint32
}{{gitName, flagGit}, {decName, flagDec}}

// ruleFile is a read ignore file.
type ruleFile struct {
	file *ignorefile.File
	hash Hash
}

// pair is the ignore files of one directory.
type pair struct{ git, dec *ruleFile }

func (p *pair) set(name string, f *ruleFile) {
	if name == gitName {
		p.git = f
	} else {
		p.dec = f
	}
}

// parsed returns the file, nil for none.
func (f *ruleFile) parsed() *ignorefile.File {
	if f == nil {
		return nil
	}
	return f.file
}

// enter returns the rules in force in dir and their fingerprint, given those of its
// parent: two walks with one fingerprint at one path have the same rules there.
func (p pair) enter(parent *ignorefile.Rules, parentPrint uint64, dir tree.Path) (*ignorefile.Rules, uint64) {
	if p.git == nil && p.dec == nil {
		return parent, parentPrint
	}
	rules := parent.Enter(string(dir), p.git.parsed(), p.dec.parsed())
	if rules == parent {
		return parent, parentPrint
	}
	sum := sha256.New()
	var b [8]byte
	le.PutUint64(b[:], parentPrint)
	sum.Write(b[:])
	for _, f := range []*ruleFile{p.git, p.dec} {
		var h Hash
		if f != nil {
			h = f.hash
		}
		sum.Write(h[:])
	}
	return rules, le.Uint64(sum.Sum(nil))
}

// frozenRules parses the ignore files of an earlier walk, by directory.
func frozenRules(req *Request) (map[tree.Path]pair, error) {
	rules := make(map[tree.Path]pair, len(req.Frozen))
	for _, r := range req.Frozen {
		path := tree.Path(r.Path)
		dir, name := path.Parent(), path.Name()
		if isOuter(r.Path) {
			continue
		}
		if name != gitName && name != decName {
			return nil, &RuleError{r.Path, errors.New("not an ignore file's name")}
		}
		file, err := frozenFile(req, r)
		if err != nil {
			return nil, err
		}
		p := rules[dir]
		p.set(name, file)
		rules[dir] = p
	}
	return rules, nil
}

func frozenFile(req *Request, r RuleFile) (*ruleFile, error) {
	if req.RuleData == nil {
		return nil, &RuleError{r.Path, errors.New("the bytes recorded for it are missing")}
	}
	data, err := req.RuleData(r.SHA256)
	if err != nil {
		return nil, &RuleError{r.Path, err}
	}
	file, err := ignorefile.Parse(r.Path, data)
	if err != nil {
		return nil, &RuleError{r.Path, limitReason(err)}
	}
	return &ruleFile{file, r.SHA256}, nil
}

// outer is the rules of ignore files that lie outside the tree.
type outer struct {
	files []RuleFile
	rules *ignorefile.Rules
	print uint64
}

func isOuter(path string) bool { return path == gitExclude || filepath.IsAbs(path) }

// readOuter takes the rules from outside the tree: the request's, or the frozen ones.
func (w *walk) readOuter() error {
	var files []*ruleFile
	for _, f := range w.req.Outer {
		if w.frozen != nil {
			break
		}
		file, err := ignorefile.Parse(f.Path, f.Data)
		if err != nil {
			return &RuleError{f.Path, limitReason(err)}
		}
		hash := tree.Sum(f.Data)
		if w.req.Writer != nil {
			if hash, err = w.req.Writer.PutBytes(f.Data); err != nil {
				return err
			}
		}
		files = append(files, &ruleFile{file, hash})
		w.outer.files = append(w.outer.files, RuleFile{f.Path, hash})
	}
	// Of the frozen ones the repository's goes before the user's, as it did.
	for _, repository := range []bool{false, true} {
		for _, r := range w.req.Frozen {
			if !isOuter(r.Path) || (r.Path == gitExclude) != repository {
				continue
			}
			file, err := frozenFile(w.req, r)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
	}
	for _, f := range files {
		w.outer.rules, w.outer.print = pair{git: f}.enter(w.outer.rules, w.outer.print, "")
	}
	return nil
}

// readRules reads one ignore file of a directory. It returns nil if there is none: no
// such name, or it is no plain file. A link is not followed, as git does not either.
func readRules(h disk.Dir, path, name string) (*ruleFile, []byte, error) {
	data, err := readSmall(h, name)
	switch {
	case absent(err) || disk.OtherKind(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, &RuleError{path, bare(err)}
	}
	file, err := ignorefile.Parse(path, data)
	if err != nil {
		return nil, nil, &RuleError{path, limitReason(err)}
	}
	return &ruleFile{file, tree.Sum(data)}, data, nil
}

// limitReason drops the path that the message has already.
func limitReason(err error) error {
	var limit *ignorefile.LimitError
	if !errors.As(err, &limit) {
		return err
	}
	if limit.Line == 0 {
		return fmt.Errorf("longer than %d bytes", limit.Limit)
	}
	return fmt.Errorf("line %d is longer than %d bytes", limit.Line, limit.Limit)
}

// readSmall reads a file into memory, again while it changes.
func readSmall(h disk.Dir, name string) ([]byte, error) {
	for range readAttempts {
		data, same, err := readOnce(h, name)
		if err != nil || same {
			return data, err
		}
	}
	return nil, fmt.Errorf("kept changing while it was read (%d attempts)", readAttempts)
}

func readOnce(h disk.Dir, name string) (data []byte, same bool, err error) {
	f, before, err := openFile(h, name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if before.Size > ignorefile.MaxFile {
		return nil, false, fmt.Errorf("longer than %d bytes", ignorefile.MaxFile)
	}
	data = make([]byte, before.Size+1)
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, false, err
	}
	after, err := f.Stat()
	return data[:n], err == nil && int64(n) == before.Size && sameState(&before, &after), err
}

// openFile opens a regular file and says what it is.
func openFile(h disk.Dir, name string) (disk.File, disk.Info, error) {
	f, err := h.Open(name)
	if err != nil {
		return nil, disk.Info{}, err
	}
	in, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, in, err
	}
	return f, in, nil
}

func sameState(a, b *disk.Info) bool {
	return a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime && a.Mode == b.Mode && a.SameFile(*b)
}

// sortRules brings what walkers found into one order.
func sortRules(rules []RuleFile) {
	slices.SortFunc(rules, func(a, b RuleFile) int { return strings.Compare(a.Path, b.Path) })
}

// bare drops operation and path from an error: the message names the path in its own way.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// join is [tree.Path.Join] for a name as a block has it, in one allocation.
func join(dir tree.Path, name []byte) tree.Path {
	if dir == "" {
		return tree.Path(name)
	}
	return dir + "/" + tree.Path(name)
}
