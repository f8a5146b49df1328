package recorder

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"decree/disk"
	"decree/layer"
	"decree/project"
	"decree/tree"
)

// The overlay of a layer is volatile: whatever git flushes in it, a power failure before the layer was read may leave
// objects and refs of it torn, empty or missing. None of them may come into the tree's
// repository, which was sound.

// errGitTorn is about a file of .git that is not as git wrote it, errGitMissing about one that is not there.
var (
	errGitTorn    = &project.Error{Kind: project.Integrity, Msg: "it is damaged, as a power failure leaves it"}
	errGitMissing = &project.Error{Kind: project.Integrity, Msg: "it is missing: a power failure has lost it, or 'git gc' has pruned it in the tree since the run began",
		Advice: "where another repository has it, 'git fetch' it from there, and publish again; the .git in the layer of a copy or clone is one"}
)

// gitTorn refuses a file of a layer's .git that no git has written.
func gitTorn(name string) error {
	return &project.Error{Kind: project.Integrity, State: project.Unchanged, Err: fmt.Errorf("%s of the draft: %w", tree.Quote(path.Join(gitDir, name)), errGitTorn),
		Advice: "publish the files alone; 'decree enter DRAFT -- git fsck' tells what is whole"}
}

// soundLines says whether a text ends where a line does, and has no zeros in it.
func soundLines(text []byte) bool {
	return bytes.HasSuffix(text, []byte("\n")) && bytes.IndexByte(text, 0) < 0
}

// soundPacked says whether packed-refs is as git writes it, which it does also without any ref. Of
// the names parsePacked judges.
func soundPacked(text []byte) bool {
	for line := range bytes.Lines(text) {
		value, _, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("^")), []byte(" "))
		if line[0] != '#' && !isGitValue(string(value)) {
			return false
		}
	}
	return soundLines(text)
}

// soundIndex says whether git's index ends with the hash of all before.
func soundIndex(text []byte) bool {
	for _, h := range []hash.Hash{gitHash(""), sha256.New()} {
		if n := len(text) - h.Size(); n > 0 {
			h.Write(text[:n])
			if bytes.Equal(text[n:], h.Sum(nil)) {
				return true
			}
		}
	}
	return false
}

// spareDeleted has refs be left that the layer of another boot lacks.
func (g *gitWork) spareDeleted() (notes []string) {
	var names []string
	g.refs = slices.DeleteFunc(g.refs, func(ref gitRef) bool {
		if ref.is == "" {
			names = append(names, ref.name)
		}
		return ref.is == ""
	})
	if len(names) > 0 {
		notes = append(notes, fmt.Sprintf("not deleted: %s in .git, as the machine went down since the draft's layer was made, and may have forgotten them there; 'git branch -D' or 'git tag -d' does it", some(names)))
	}
	return notes
}

// gitHash is the hash by which a repository names its objects: the names' length tells it.
func gitHash(name string) hash.Hash {
	if len(name) == sha256.Size*2 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // git's own
}

// checkGitObject reads a file of objects, whose path is below .git, to its end: a loose object
// is what its name says, and what belongs to a pack ends with the hash of all before.
func checkGitObject(name string, f disk.File) error {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".pack", ".idx", ".rev", ".bitmap", ".mtimes":
		return checkGitTrailer(gitHash(strings.TrimPrefix(strings.TrimSuffix(base, path.Ext(base)), "pack-")), f)
	case ".keep", ".promisor":
		return nil
	}
	_, err := readGitObject(path.Base(path.Dir(name))+base, f, 0)
	return err
}

func checkGitTrailer(h hash.Hash, f disk.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size < int64(h.Size()) {
		return errGitTorn
	}
	if _, err := io.CopyN(h, f, st.Size-int64(h.Size())); err != nil {
		return err
	}
	trailer, err := io.ReadAll(io.LimitReader(f, int64(h.Size())))
	if err == nil && !bytes.Equal(trailer, h.Sum(nil)) {
		err = errGitTorn
	}
	return err
}

// readGitObject reads the loose object id to its end, and returns as much of it as most bytes.
func readGitObject(id string, f io.Reader, most int) ([]byte, error) {
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGitTorn, err)
	}
	h := gitHash(id)
	begin := bytes.NewBuffer(nil)
	_, err = io.Copy(begin, io.LimitReader(io.TeeReader(z, h), int64(most)))
	if err == nil {
		_, err = io.Copy(h, z)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGitTorn, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != id {
		return nil, errGitTorn
	}
	return begin.Bytes(), nil
}

// gitLinks are the objects that a loose one names.
func gitLinks(id string, text []byte) (out []string) {
	header, text, _ := bytes.Cut(text, []byte{0})
	kind, _, _ := strings.Cut(string(header), " ")
	switch kind {
	case "tree":
		return gitEntries(len(id)/2, text)
	case "commit", "tag":
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if key == "" {
				break
			}
			if slices.Contains([]string{"tree", "parent", "object"}, key) {
				out = append(out, value)
			}
		}
	}
	return out
}

// gitEntries are what a tree names: each entry is a mode, a name, NUL and size bytes.
func gitEntries(size int, text []byte) (out []string) {
	const submodule = "160000"
	for {
		head, rest, _ := bytes.Cut(text, []byte{0})
		if len(rest) < size {
			return out
		}
		if !bytes.HasPrefix(head, []byte(submodule)) {
			out = append(out, hex.EncodeToString(rest[:size]))
		}
		text = rest[size:]
	}
}

// promisor is what the file is called beside a pack of a partial clone.
const promisor = ".promisor"

// gitReach looks whether all is there that the refs of a layer name. Where the machine has gone down since, it may not
// be: git has written objects before refs, but not every disk in this order. And what the run has built on
// may have been pruned in the tree.
type gitReach struct {
	live  disk.Dir
	layer *layer.Layer
	work  *gitWork
	packs []disk.File // the indexes of packs, of the tree and of the layer
	// promised: objects that are missing can be had from where the repository was cloned from.
	promised bool
}

// checkReach says what is missing of what the refs of a layer name.
func (r *Recorder) checkReach(l *layer.Layer, work *gitWork) error {
	if len(work.refs) == 0 {
		return nil
	}
	live, err := r.project.Dir.OpenDir(gitDir)
	if err != nil {
		return err
	}
	defer live.Close()
	reach := &gitReach{live: live, layer: l, work: work}
	defer reach.close()
	for _, name := range []string{"objects/info/alternates", "shallow"} { // objects lie in other repositories too, or nowhere
		if there, err := reach.inTree(name); there || err != nil {
			return err
		}
	}
	if err := reach.openPacks(); err != nil || reach.promised {
		return err
	}
	return reach.walk()
}

// walk looks at all that the refs name.
func (g *gitReach) walk() error {
	seen := map[string]bool{}
	var next []string
	for _, ref := range g.work.refs {
		next = append(next, ref.is)
	}
	for len(next) > 0 {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[id] || len(id) < sha1.Size*2 || strings.HasPrefix(id, "ref: ") {
			continue
		}
		seen[id] = true
		links, err := g.links(id)
		if err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		}
		next = append(next, links...)
	}
	return nil
}

// links are those of an object that the layer has as a file of its own, or the tree has from since the layer was
// made: a publish that died may have brought it before what it names. Another one that the tree has,
// or a pack, is there with all that it names.
func (g *gitReach) links(id string) ([]string, error) {
	name := "objects/" + id[:2] + "/" + id[2:]
	if g.work.objects[name] {
		f, err := g.layer.OpenGit(name)
		if err != nil {
			return nil, err
		}
		return linksIn(id, f)
	}
	if has, links, err := g.linksInTree(id, name); has || err != nil {
		return links, err
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	for _, pack := range g.packs {
		if has, err := packHas(pack, raw); has || err != nil {
			return nil, err
		}
	}
	return nil, errGitMissing
}

// linksInTree are links where the tree's .git has the object as a file.
func (g *gitReach) linksInTree(id, name string) (has bool, links []string, err error) {
	p, err := placeOf(g.live, name, false)
	if err != nil {
		return false, nil, disk.UnlessMissing(err)
	}
	defer p.close()
	st, err := p.Stat(p.base)
	if err != nil {
		return false, nil, disk.UnlessMissing(err)
	}
	if old, err := g.layer.Old(st); old || err != nil {
		return true, nil, err
	}
	f, err := p.Open(p.base)
	if err != nil {
		return true, nil, err
	}
	links, err = linksIn(id, f)
	return true, links, err
}

// linksIn are the links of the object that f is, which it closes.
func linksIn(id string, f disk.File) ([]string, error) {
	defer f.Close()
	text, err := readGitObject(id, f, mostOfGit)
	return gitLinks(id, text), err
}

// inTree says whether the tree's .git has a file.
func (g *gitReach) inTree(name string) (bool, error) {
	p, err := placeOf(g.live, name, false)
	if err == nil {
		defer p.close()
		_, err = p.Stat(p.base)
	}
	return err == nil, disk.UnlessMissing(err)
}

// openPacks opens the indexes of all packs.
func (g *gitReach) openPacks() error {
	for name := range g.work.objects {
		g.promised = g.promised || path.Ext(name) == promisor
		if path.Ext(name) == ".idx" {
			f, err := g.layer.OpenGit(name)
			if err != nil {
				return err
			}
			g.packs = append(g.packs, f)
		}
	}
	dir, err := disk.OpenPath(g.live, "objects/pack")
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	list, err := dir.List()
	for _, e := range list {
		g.promised = g.promised || path.Ext(e.Name) == promisor
		if path.Ext(e.Name) != ".idx" {
			continue
		}
		f, err := dir.Open(e.Name)
		if err != nil {
			return err
		}
		g.packs = append(g.packs, f)
	}
	return err
}

func (g *gitReach) close() {
	for _, f := range g.packs {
		f.Close()
	}
}

// packHas looks for an object in a pack's index of version 2: 8 bytes, how many names begin with
// at most each byte, and the names in order. The index of version 1, which no git has written for
// long, is asked for nothing.
func packHas(index disk.File, id []byte) (bool, error) {
	const names = 8 + 256*4
	head := make([]byte, names)
	if _, err := index.ReadAt(head, 0); err != nil {
		return false, fmt.Errorf("%w: %w", errGitTorn, err)
	}
	if !bytes.HasPrefix(head, []byte("\xfftOc\x00\x00\x00\x02")) {
		return false, nil
	}
	upTo := func(b int) int64 {
		if b < 0 {
			return 0
		}
		return int64(binary.BigEndian.Uint32(head[8+4*b:]))
	}
	low, high := upTo(int(id[0])-1), upTo(int(id[0]))
	name := make([]byte, len(id))
	var err error
	_, has := sort.Find(int(high-low), func(i int) int {
		if err == nil {
			_, err = index.ReadAt(name, names+(low+int64(i))*int64(len(id)))
		}
		return bytes.Compare(id, name)
	})
	if err != nil {
		return false, fmt.Errorf("%w: %w", errGitTorn, err)
	}
	return has, nil
}
