package project

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"decree/disk"
	"decree/tree"
)

const (
	identityFile = "project.json" // in .decree
	memoryFile   = "store.json"   // in the store
	maxIdentity  = 64 << 10
	maxOpen      = 64 << 20 // of an open record, as in package history
	formatNow    = 1        // of project.json
	storeNow     = 2        // of the store
)

// identity is project.json: which store belongs to this tree.
type identity struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Store   tree.Text `json:"store"` // the base: absolute, or inTree
}

// memory is store.json: which root a store belongs to.
type memory struct {
	form
	ID   string    `json:"id"`
	Root tree.Text `json:"root"`
	Dev  uint64    `json:"dev"`
	Ino  uint64    `json:"ino"`
	Born int64     `json:"born,omitempty"` // when the root was made, in nanoseconds since 1970
	FS   uint64    `json:"fs,omitempty"`   // the id of its file system
}

// form is what the store says of itself. Version 1 had trees in another form.
type form struct {
	Version int `json:"version"`
	// Converting: what an earlier version wrote is still to be converted, in part or whole.
	Converting bool `json:"converting,omitempty"`
	// Machine is the id of the machine, 32 random hex digits; "" before it is asked for.
	Machine string `json:"machine,omitempty"`
	// Awaits: the store was made anew for a restore, which is not finished. Until then it counts as missing.
	Awaits bool `json:"awaits,omitempty"`
	// From is the id of the project whose history a restore has put here.
	From string `json:"from,omitempty"`
}

// rootFacts are what a store remembers of its root, as they are now.
type rootFacts struct {
	disk.Info
	disk.Origin
}

func factsOf(root disk.Dir) (f rootFacts, err error) {
	if f.Info, err = root.Self(); err == nil {
		f.Origin, err = root.Origin()
	}
	return f, err
}

func newMemory(id, path string, f rootFacts, as form) memory {
	return memory{form: as, ID: id, Root: tree.Text(path), Dev: f.Dev, Ino: f.Ino, Born: f.Born, FS: f.FS}
}

func (m *memory) origin() disk.Origin { return disk.Origin{Born: m.Born, FS: m.FS} }

// newID is 32 random hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return hex.EncodeToString(b[:])
}

func validID(s string) bool { return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" }

// readIdentity returns nil when there is no project.json. Anything but a
// version-1 identity is refused; a newer version is named.
func readIdentity(decree disk.Dir) (*identity, error) {
	if decree == nil {
		return nil, nil
	}
	data, err := ReadFile(decree, identityFile, maxIdentity)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	return parseIdentity(data)
}

// errNewer is in the chain of an error about a format of a later decree.
var errNewer = errors.New("newer than the newest that this decree can read")

// unusableIdentity says whether a project.json that gave this error can be done without where a
// store remembers the root: it says nothing, or nobody may read it.
func unusableIdentity(err error) bool {
	var step *fs.PathError
	return err != nil && !errors.Is(err, errNewer) && (barred(err) || !errors.As(err, &step))
}

func refusedIdentity(decree disk.Dir, err error) error {
	return &Error{Kind: Refused, Msg: filepath.Join(decree.Path(), identityFile), Err: reason(err),
		Advice: "remove the file: a store that belongs to this root is then used again"}
}

// parseIdentity is strict in what it knows; unknown fields are not errors.
func parseIdentity(data []byte) (*identity, error) {
	var v struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("not a project's identity: %w", err)
	}
	if v.Version == nil || *v.Version < formatNow {
		return nil, errors.New("not a project's identity: no version")
	}
	if *v.Version > formatNow {
		return nil, fmt.Errorf("format version %d is %w (%d)", *v.Version, errNewer, formatNow)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return nil, fmt.Errorf("not a project's identity: %w", err)
	}
	if !validID(id.ID) {
		return nil, errors.New("id is not 32 hex digits")
	}
	if id.Store != inTree && (!filepath.IsAbs(string(id.Store)) || filepath.Clean(string(id.Store)) != string(id.Store)) {
		return nil, fmt.Errorf("store %q is neither an absolute path nor %q", id.Store, inTree)
	}
	return &id, nil
}

// readMemory returns what the store in dir remembers of its root.
func readMemory(dir disk.Dir) (*memory, error) {
	data, err := ReadFile(dir, memoryFile, maxIdentity)
	if err != nil {
		return nil, err
	}
	var m memory
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, &fs.PathError{Op: "read", Path: filepath.Join(dir.Path(), memoryFile), Err: err}
	}
	if m.Version > storeNow {
		return &m, &Error{Kind: Refused, Msg: fmt.Sprintf("%s: format version %d is newer than the newest that this decree can read (%d)", filepath.Join(dir.Path(), memoryFile), m.Version, storeNow)}
	}
	if m.Version < 1 || !validID(m.ID) || m.Root == "" {
		return nil, &fs.PathError{Op: "read", Path: filepath.Join(dir.Path(), memoryFile), Err: errors.New("not a store's memory")}
	}
	return &m, nil
}

// bond is how a tree and the store that was found for it stand to each other.
type bond int

const (
	strangers bond = iota // no store knows this root
	bonded                // the store remembers this root
	moved                 // it remembers a root that is gone: this is the same one
	copied                // it remembers a root that is still there: this one is a copy
	orphaned              // no project.json, but a store remembers this root
)

// compare says how the store with memory m stands to the root at path with self.
func compare(d disk.Disk, m *memory, path string, self rootFacts) bond {
	if string(m.Root) == path {
		return bonded
	}
	old, err := d.OpenRoot(string(m.Root))
	if errors.Is(err, fs.ErrNotExist) {
		return moved
	}
	if err != nil {
		// What cannot be looked at may still be there: two trees on one store is worse.
		return copied
	}
	defer old.Close()
	then, err := old.Self()
	if err != nil {
		return copied
	}
	if then.Ino != 0 && then.SameFile(self.Info) {
		return bonded // another way to the same directory
	}
	if then.Ino == m.Ino && then.Ino != 0 || claims(old, m.ID) {
		return copied
	}
	return moved
}

// claims says whether the root old has a project.json with this id.
func claims(old disk.Dir, id string) bool {
	decree, err := old.OpenDir(dirName)
	if err != nil {
		return false
	}
	defer decree.Close()
	i, err := readIdentity(decree)
	return err != nil || i != nil && i.ID == id
}

// remembers says whether m is about the root at path with self, for a tree that
// lost its project.json. The device is not compared: its number may change with
// a reboot.
func (m *memory) remembers(path string, self rootFacts) bool {
	return string(m.Root) == path && m.Ino == self.Ino && !m.origin().Differs(self.Origin)
}
