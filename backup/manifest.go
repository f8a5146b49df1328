package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// Version is the version of manifest.json and of the marker that this package writes.
const Version = 1

// maxManifest is the largest manifest.json that is read or written, in bytes.
const maxManifest = 64 << 20

// The names below a project's directory in a target.
const (
	markerFile   = project.BackupMarker
	manifestFile = project.BackupManifest
	proofsFile   = "proofs.jsonl"
	keyFile      = target.KeyFile
	currentDir   = "current"
	archivesDir  = "archives"
	packsDir     = project.BackupPacks
)

// Marker is decree-backup.json: whose directory this is.
type Marker struct {
	Version  int       `json:"version"`
	Project  string    `json:"project"`  // 32 hex digits
	Manifest tree.Hash `json:"manifest"` // of manifest.json as a reader gets it; may be that of the one before
}

// Manifest is manifest.json. The one in the directory of a project is of the newest generation,
// and alone says which others there are; the one in a zip is of that zip's generation.
type Manifest struct {
	Version   int                   `json:"version"`
	Timestamp time.Time             `json:"timestamp"` // UTC, whole seconds
	Decree    string                `json:"decree_version"`
	Name      string                `json:"name"`
	Project   string                `json:"project"`
	Host      string                `json:"host"`
	Root      string                `json:"root"` // as tree.Quote writes it
	From      *string               `json:"from"` // the project that this one was restored from
	Counts    Counts                `json:"counts"`
	Tree      tree.Hash             `json:"tree"`
	Files     Files                 `json:"files"`
	Packs     map[tree.Hash]int64   `json:"packs"` // that this generation needs, with their lengths
	Others    map[string]Generation `json:"generations"`
	Condemned map[tree.Hash]string  `json:"condemned"` // RFC 3339: since when no generation names the pack
	// Lengths are those of the packs that other generations need and this one does not.
	Lengths map[tree.Hash]int64 `json:"lengths,omitempty"`
	// Going are condemned packs that somebody may be deleting: what a generation needs of them is sent again.
	Going []tree.Hash `json:"going,omitempty"`
	// Missing are contents that the records name and the project's store had lost before.
	Missing []tree.Hash `json:"missing,omitempty"`
	// Forgotten are contents that the records name and that were forgotten before: packs of earlier generations may
	// have them yet, and a restore takes them out.
	Forgotten []tree.Hash `json:"forgotten,omitempty"`
	// Held is what had come from elsewhere and was not let go when the generation was made: what waits in it waits on where it is restored.
	Held *project.Held `json:"held,omitempty"`
	// UnderWay are the messages in the inbox that were being done when the generation was made, or whose end was not noted yet, as
	// tree.Quote writes the names of their files: the tree has a part of their work, or all.
	UnderWay []string `json:"under_way,omitempty"`
	// DoneSpecs are the specs that are done and that no list in the tree names, as where their directory was put away, or the list is ignored, in the form of the queue's state.
	DoneSpecs json.RawMessage `json:"done_specs,omitempty"`
	// Previous is the hash of the manifest.json that this one has replaced, which the marker names until it is
	// written anew; zero for the first. nil: an earlier decree has written it.
	Previous *tree.Hash `json:"previous,omitempty"`
}

// MadeFrom tells whether the backup was made of this directory of this machine, whichever project was in it then.
func (m *Manifest) MadeFrom(host, root string) bool {
	return m.Host == host && m.Root == tree.Quote(root)
}

// Counts are a generation's figures.
type Counts struct {
	Records     int      `json:"records"`
	Contents    int      `json:"contents"`
	Bytes       int64    `json:"bytes"` // of all contents, as they are when they are read
	NewBytes    int64    `json:"new_bytes"`
	TreeBytes   int64    `json:"tree_bytes"` // of the tree's files, each as often as it is there
	ConfigFiles int      `json:"config_files"`
	Messages    int      `json:"messages"` // that are pending
	Plugins     []string `json:"plugins"`
}

// File is one file of a generation.
type File struct {
	SHA256 tree.Hash `json:"sha256"`
	Size   int64     `json:"size"`
	Mode   string    `json:"mode,omitempty"` // in octal; "" is 600
	// Mtime is when a message that waits was written, in ns since 1970: its place among the others. 0: not known.
	Mtime int64 `json:"mtime,omitempty"`
}

// FileName is the path of a file in a generation: raw bytes, in JSON as tree.Quote writes them.
type FileName = tree.Text

// Files are those of a generation.
type Files map[FileName]File

// MarshalJSON writes the names as [tree.Quote] does.
func (f Files) MarshalJSON() ([]byte, error) {
	out := make(map[string]File, len(f))
	for name, file := range f {
		out[tree.Quote(name)] = file
	}
	return json.Marshal(out)
}

// Generation is what the newest manifest.json knows of another one, which has a zip.
type Generation struct {
	SHA256    tree.Hash   `json:"sha256"` // of the zip
	Packs     []tree.Hash `json:"packs"`
	Timestamp time.Time   `json:"timestamp"`
	Host      string      `json:"host"`
	Records   int         `json:"records"`
	Bytes     int64       `json:"bytes"`
	NewBytes  int64       `json:"new_bytes"`
	// Damaged: its zip was made of a manifest.json that was not what had been written there.
	Damaged bool `json:"damaged,omitempty"`
}

// timeForm is how a generation is called: its time in UTC.
const timeForm = "2006-01-02T150405Z"

// preRestore begins the names of what restores have replaced.
const preRestore = "pre-restore-"

// NameOf is the name of the generation of a time.
func NameOf(t time.Time) string { return t.UTC().Format(timeForm) }

// timeOf is the inverse of NameOf, also for pre-restore ones; not ok for any other name.
func timeOf(name string) (t time.Time, ok bool) {
	t, err := time.Parse(timeForm, strings.TrimPrefix(name, preRestore))
	return t, err == nil
}

// Generation is the name of m's own.
func (m *Manifest) Generation() string { return NameOf(m.Timestamp) }

// IsPreRestore says whether a generation is what a restore has replaced.
func IsPreRestore(name string) bool { return strings.HasPrefix(name, preRestore) }

// formatError says what is wrong with a manifest, a marker or a zip that was read.
type formatError struct{ What, Reason string }

func (e *formatError) Error() string { return e.What + ": " + e.Reason }

// newerError is that of what a newer decree has written.
type newerError struct{ *formatError }

func newer(what string, version int) error {
	return &newerError{&formatError{what, fmt.Sprintf("format version %d is newer than the newest that this decree can read (%d)", version, Version)}}
}

func (e *newerError) Unwrap() error { return e.formatError }

// Encode returns m as the bytes of manifest.json. It refuses what parseManifest would: nothing counts that nobody can read.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, &formatError{manifestFile, err.Error()}
	}
	b, err := json.MarshalIndent(m, "", " ")
	if err == nil && len(b) >= maxManifest {
		err = &formatError{manifestFile, fmt.Sprintf("larger than %d MiB", maxManifest>>20)}
	}
	return append(b, '\n'), err
}

// parseManifest reads a manifest.json and refuses what no writer of this version has written:
// paths that leave the directory, sizes below zero, names of generations that are none.
func parseManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if len(data) > maxManifest {
		return nil, &formatError{manifestFile, fmt.Sprintf("larger than %d MiB", maxManifest>>20)}
	}
	if target.IsEncrypted(data) {
		return nil, target.Lacks(nil)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, &formatError{manifestFile, "malformed: " + err.Error()}
	}
	if v.Version > Version {
		return nil, newer(manifestFile, v.Version)
	}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, &formatError{manifestFile, "malformed: " + err.Error()}
	}
	if err := m.check(); err != nil {
		return nil, &formatError{manifestFile, err.Error()}
	}
	return m, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Version < 1:
		return errors.New("no version")
	case m.Timestamp.IsZero() || !m.Timestamp.Equal(m.Timestamp.Truncate(time.Second)):
		return errors.New("no timestamp in whole seconds")
	case !isProjectID(m.Project):
		return errors.New("project is not 32 hex digits")
	case m.From != nil && !isProjectID(*m.From):
		return errors.New("from is not 32 hex digits")
	case m.Tree.IsZero(): // an empty tree has a hash too
		return errors.New("no tree")
	}
	var files, packs total
	for name, f := range m.Files {
		if err := checkFile(string(name)); err != nil {
			return err
		}
		if f.Size < 0 || f.SHA256.IsZero() || !files.add(f.Size) {
			return fmt.Errorf("%q: no size or hash, or more bytes than any disk has", name)
		}
		if _, err := f.mode(); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	for h, size := range m.Packs {
		if size <= 0 || h.IsZero() || !packs.add(size) {
			return fmt.Errorf("pack %s: no length or hash, or more bytes than any disk has", h)
		}
	}
	for h, size := range m.Lengths {
		if size <= 0 || h.IsZero() {
			return fmt.Errorf("pack %s: no length or hash", h)
		}
	}
	for name := range m.Others {
		if _, ok := timeOf(name); !ok {
			return fmt.Errorf("%q is no generation's name", name)
		}
	}
	return nil
}

// total is a sum of sizes that somebody else has written, which may be made to wrap: bytes beyond any disk are not added.
type total int64

func (t *total) add(size int64) bool {
	const most = 1 << 60
	if size < 0 || size > most-int64(*t) {
		return false
	}
	*t += total(size)
	return true
}

// mode is the file's permission bits.
func (f File) mode() (uint32, error) {
	if f.Mode == "" {
		return project.PrivateFile, nil
	}
	n, err := strconv.ParseUint(f.Mode, 8, 32)
	if err != nil || n > 0o777 {
		return 0, fmt.Errorf("mode %q is not permission bits in octal", f.Mode)
	}
	return uint32(n), nil
}

// sortedFiles are the names of a generation's files.
func sortedFiles(m *Manifest) []FileName { return slices.Sorted(maps.Keys(m.Files)) }

// sortedPacks are the packs that a generation needs. None is an empty list, not nil, which JSON tells apart.
func sortedPacks(m *Manifest) []tree.Hash {
	out := slices.AppendSeq(make([]tree.Hash, 0, len(m.Packs)), maps.Keys(m.Packs))
	slices.SortFunc(out, compareHash)
	return out
}

func compareHash(a, b tree.Hash) int { return bytes.Compare(a[:], b[:]) }

// setOf is the set of what lists have.
func setOf[T comparable](lists ...[]T) map[T]bool {
	out := map[T]bool{}
	for _, list := range lists {
		for _, one := range list {
			out[one] = true
		}
	}
	return out
}

// checkFile refuses a name that cannot be a file's of a generation.
func checkFile(name string) error {
	if err := target.CheckName(name); err != nil {
		return err
	}
	if path.Clean(name) != name || slices.Contains(strings.Split(name, "/"), "..") {
		return fmt.Errorf("%q: not a clean relative path", name)
	}
	return nil
}

// isProjectID says whether s can be a project's id.
func isProjectID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// Encode returns the bytes of decree-backup.json.
func (m Marker) Encode() []byte {
	b, _ := json.Marshal(m) // there is nothing in it that cannot be
	return append(b, '\n')
}

// parseMarker reads a decree-backup.json.
func parseMarker(data []byte) (m Marker, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, &formatError{markerFile, "malformed: " + err.Error()}
	}
	switch {
	case m.Version > Version:
		return m, newer(markerFile, m.Version)
	case m.Version < 1 || !isProjectID(m.Project):
		return m, &formatError{markerFile, "not a marker of decree's"}
	}
	return m, nil
}

const day = 24 * time.Hour
