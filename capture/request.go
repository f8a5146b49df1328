package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"decree/disk"
	"decree/tree"
)

// Hash is the SHA-256 of a content.
type Hash = tree.Hash

// LargeFile is the size in bytes above which a file is named in Result.Large.
const LargeFile = 100 << 20

// Objects says what the store holds; *store.Store is one.
type Objects interface{ Has(Hash) bool }

// Writer stores contents; *store.Writer is one. It is used by many walkers at once.
type Writer interface {
	// PutFile reads f to its end, stores it, and returns the hash and the length read.
	PutFile(f io.Reader, size int64) (Hash, int64, error)
	PutBytes(b []byte) (Hash, error)
	// PutTree stores a directory's object.
	PutTree(b []byte) (Hash, error)
}

// OuterRules is an ignore file outside the tree. Its path is absolute, or the one of git's
// own in the root's repository: .git/info/exclude.
type OuterRules struct {
	Path string
	Data []byte
}

// gitExclude is the path of the only ignore file in .git.
const gitExclude = ".git/info/exclude"

// RuleFile is an ignore file that a walk has read: its path from the root
// ("src/.gitignore") and the hash of its bytes.
type RuleFile struct {
	Path   string `json:"path"`
	SHA256 Hash   `json:"sha256"`
}

// Request says what to capture and how. The zero value of each optional field is the
// default.
type Request struct {
	Root disk.Dir // the tree

	// Writer takes the bytes of new files and of ignore files. Leave it nil (not a nil
	// pointer in it) to read only: then nothing is written anywhere, and the result
	// cannot be committed.
	Writer Writer
	// CacheDir holds the file "cache", the stat cache; nil: none is used.
	CacheDir disk.Dir
	// Store, with CheckStore, is asked for every hash that the cache knows; what it
	// lacks is read again. For a capture after the store was damaged or cleaned up.
	Store      Objects
	CheckStore bool

	Exclude []disk.Info // directories left out wherever they are met, by device and inode

	// Outer are ignore files from outside the tree, in rising precedence; their rules count
	// below those of all others. With Frozen they come from there.
	Outer []OuterRules

	// Frozen are the ignore files of an earlier walk; then none is read from the tree.
	// Nil: the tree's own count; for a run that had none, give an empty slice.
	// RuleData gives the bytes of a frozen file.
	Frozen   []RuleFile
	RuleData func(Hash) ([]byte, error)

	Full           bool // read every file, whatever the cache says
	SkipUnreadable bool // list in Unrecorded what cannot be read, instead of an error
	AfterRun       bool // the same, and what cannot be read keeps its entries of the cache

	// Outputs are, with AfterRun, files by device and inode into which the caller itself writes what it says, as a log of
	// its own output: each has its entry of the cache, as what cannot be read has, and is in Result.Outputs.
	Outputs []disk.Info

	// Ended is when the command ended, in nanoseconds since 1970; what was written
	// later is in Result.Late. Zero: not asked.
	Ended int64

	Workers int    // walkers; 0: chosen
	Limits  Limits // a first capture of more is refused with a *LimitError, before a file is read
	// MaxFile is the size above which a file is not read, unless the cache has it with
	// such a size: before a run that is a *LimitError; after one, for reading only and
	// with SkipUnreadable it is listed in Unrecorded and TooLarge. Zero is no bound.
	MaxFile int64

	// Progress is called now and then, never twice at once, with the files looked at
	// and the bytes read so far.
	Progress func(files int, bytes int64)

	start *threshold // set by tests, instead of a measured one
}

// Result is a captured tree. All lists are in byte order of the paths.
type Result struct {
	Tree  Hash  // the tree id: the name of the root's object
	Files int   // regular files and symlinks
	Dirs  int   // without the root
	Bytes int64 // sum of the sizes of regular files and symlinks

	Base Hash // the tree that the cache knew; zero: there was none
	// RuleOnly are the paths that joined or left the tree since Base only because the ignore
	// rules are others than those of Base.
	RuleOnly []tree.Path

	Rules []RuleFile // every ignore file read; under Frozen, those; never nil
	// Hidden is, under Frozen, how many recorded files the tree's own ignore files
	// would leave out that the frozen ones do not.
	Hidden int

	Special []tree.Path // sockets, pipes and devices, not recorded
	// Unrecorded are paths that could not be read or kept changing; a directory stands
	// for all below it. With AfterRun they have their entries of Base, if any, in the
	// tree; without, they are missing from it (of a directory, all below).
	Unrecorded []tree.Path
	Outputs    []tree.Path // files of Request.Outputs that have changed
	TooLarge   []Unread    // those of Unrecorded that are larger than Request.MaxFile
	Large      []Large     // files above LargeFile bytes
	Late       []tree.Path // files that were read and written after Request.Ended
	Rewritten  []tree.Path // with AfterRun: files of Base that were written, replaced or touched since, and have their bytes

	// Lost are, with AfterRun, paths deeper than the root's own entries that were left out of Base and are not
	// there any more; a directory stands for all below it. Each .git and .decree comes first. MoreLost is
	// how many others there are.
	Lost     []tree.Path
	MoreLost int
	NewGit   []tree.Path // with AfterRun: each .git below the root's own that was not there in Base

	// Read is the number of bytes that were read and hashed.
	Read int64

	cache     *cache
	root      ref
	owner     bool
	committed bool
	objects   *objects
}

// UnreadableError is returned before a run for a file or directory that cannot be read.
type UnreadableError struct {
	Path tree.Path // from the root; "." is the root
	Err  error
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("%s: %v", tree.Quote(e.Path), e.Err) }
func (e *UnreadableError) Unwrap() error { return e.Err }

// Hint tells how to go on.
func (e *UnreadableError) Hint() string {
	if errors.Is(e.Err, fs.ErrPermission) {
		return fmt.Sprintf("let it be read ('chmod u+rX %s'), or ignore it in .decreeignore; %s", tree.ShellWord(string(e.Path)), withoutIt)
	}
	return "ignore it in .decreeignore; " + withoutIt
}

// ChangingError is returned before a run for a file that changed each time it was read.
type ChangingError struct{ Path tree.Path }

func (e *ChangingError) Error() string {
	return fmt.Sprintf("%s: kept changing while it was read (%d attempts)", tree.Quote(e.Path), readAttempts)
}

// Hint tells how to go on.
func (e *ChangingError) Hint() string { return "ignore it in .decreeignore; " + withoutIt }

// withoutIt is the way out where a file cannot be recorded.
const withoutIt = "'decree run' and 'decree checkpoint' can go on without it: --skip-unreadable"

// RuleError is returned for an ignore file that cannot be read or is over-long: what it
// leaves out must not be guessed at.
type RuleError struct {
	Path string
	Err  error
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s: this ignore file cannot be used: %v", tree.Quote(e.Path), e.Err)
}
func (e *RuleError) Unwrap() error { return e.Err }

// Capture records the tree. The new cache is not in force before Result.Commit; call
// Result.Close at the end, and before another Capture that writes to the same CacheDir
// unless this one was committed. On an error nothing but unused bytes in the store is
// left. Besides the error types of this package it returns errors of the Writer, of the
// cache's directory and of the context.
func Capture(ctx context.Context, req Request) (*Result, error) {
	c, err := openCache(&req)
	if err != nil {
		return nil, err
	}
	if (req.Limits != (Limits{}) || req.MaxFile > 0 && !req.leavesLarge()) && c.root.off == 0 {
		if err := checkLimits(ctx, req); err != nil {
			_ = c.close()
			return nil, err
		}
	}
	res, err := captureWith(ctx, &req, c)
	if err == errDamaged {
		// Nothing that a damaged cache said may stay: all is read again.
		_ = c.close()
		if c, err = freshCache(&req); err != nil {
			return nil, err
		}
		res, err = captureWith(ctx, &req, c)
	}
	if err != nil {
		_ = c.close()
		return nil, err
	}
	return res, nil
}

func captureWith(ctx context.Context, req *Request, c *cache) (*Result, error) {
	w, err := newWalk(req, c)
	if err != nil {
		return nil, err
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	if unread := w.unreadFiles(); len(unread) > 0 && !req.leavesLarge() {
		return nil, &LimitError{TooLarge: unread, MaxFile: req.MaxFile}
	}
	return w.result()
}

// Entries returns the whole tree in manifest order, streamed from the cache file. It can
// be read any number of times before Close, and, without Commit, until the next capture
// upon the same cache, which writes over what was not committed.
func (r *Result) Entries() tree.Seq { return r.cache.entries(r.root) }

// WriteManifest writes the tree's manifest.json to w.
func (r *Result) WriteManifest(w io.Writer) error { return r.cache.writeManifest(w, r.root) }

// Commit makes the new cache the current one. Call it once the bytes given to the Writer
// are durable: from then on they are not read again. A lost or torn cache only costs a
// rehash. It is an error without a Writer.
func (r *Result) Commit() error {
	if !r.owner {
		return fmt.Errorf("capture: a read-only capture cannot be committed")
	}
	err := r.cache.commit(r)
	r.committed = err == nil
	return err
}

// Pending says whether another Capture must not write to the same CacheDir yet: this one is
// neither committed nor closed.
func (r *Result) Pending() bool { return r.owner && !r.committed && r.cache.file != nil }

// Close releases the cache file.
func (r *Result) Close() error { return r.cache.close() }
