package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// The names of a generation's files: what is in .decree under its own name, and
//
//	records/<id>/<name>          a record's files, run.json among them
//	store/records/<n>.jsonl      the log, in pieces
//	store/audit/<n>.jsonl        the audit, in pieces
//	store/labels.json, store/forgotten.json
//	specs/processed-spec.md
//	plugins/<plugin>/<path>
//	aside/<path>                 what is in .decree under a name that a generation or its zips have for something else
const (
	recordsPart = "records/"
	logPart     = "store/records/"
	auditPart   = "store/audit/"
	storePart   = "store/"
	specsPart   = "specs/"
	pluginsPart = "plugins/"
	asidePart   = "aside/"
)

// isTaken says whether a name at the top of a generation, or of its zips, is of something else than what people have in
// .decree; also where the target's disk does not tell large letters from small ones.
func isTaken(top string) bool {
	return slices.ContainsFunc([]string{manifestFile, "records", "specs", "plugins", "tree", "contents"}, func(name string) bool { return strings.EqualFold(name, top) })
}

// fileOf is the name in a generation of what is at a path in .decree. People have nothing in .decree/aside that would be in a backup.
func fileOf(at string) string {
	if top, _, _ := strings.Cut(at, "/"); isTaken(top) {
		return asidePart + at
	}
	return at
}

// placeOf is where in .decree a file of a generation belongs; not ok for what is not from there. An earlier decree has
// written all under their own names.
func placeOf(name FileName) (at string, ok bool) {
	if at, aside := strings.CutPrefix(string(name), asidePart); aside {
		return at, fileOf(at) == string(name)
	}
	top, _, _ := strings.Cut(string(name), "/")
	return string(name), !slices.Contains(ownNames, top) && !slices.Contains([]string{manifestFile, "records", "specs", "plugins"}, top)
}

// pieceSize is about how long the pieces of the logs are, in bytes. Both are only appended to: all pieces but the last
// stay what they are from one generation to the next.
const pieceSize = 256 << 10

// ownNames are what decree keeps in .decree itself, or makes anew.
var ownNames = []string{".gitignore", "project.json", "runs", "tmp", "store", "aside", "backup", restoredDir, project.IntoFile}

// IsOwnName says whether a name in .decree is of what decree keeps there itself.
func IsOwnName(name string) bool { return slices.Contains(ownNames, name) }

// putter stores a content.
type putter func(r io.Reader, size int64) (tree.Hash, int64, error)

// gathering collects the files of a generation.
type gathering struct {
	files map[FileName]File
	put   putter
	tell  func(string)
}

func (g *gathering) add(name string, mode uint32, r io.Reader, size int64) error {
	h, n, err := g.put(r, size)
	if err == nil {
		f := File{SHA256: h, Size: n}
		if mode != project.PrivateFile {
			f.Mode = fmt.Sprintf("%o", mode)
		}
		g.files[FileName(name)] = f
	}
	return err
}

// all collects what the project has in the store and in .decree. The caller has the lock.
func (g *gathering) all(p *project.Project, h *history.History) error {
	if err := g.records(h); err != nil {
		return err
	}
	for _, f := range []struct{ file, as string }{{"records.jsonl", logPart}, {"audit.jsonl", auditPart}} {
		if err := g.pieces(p.Store, f.file, f.as); err != nil {
			return err
		}
	}
	for _, name := range []string{"labels.json", "forgotten.json"} {
		if err := g.file(p.Store, name, storePart+name); err != nil {
			return err
		}
	}
	if p.Decree != nil {
		if err := g.directory(p.Decree, ""); err != nil {
			return err
		}
	}
	return g.specs(p)
}

// records collects each record's run.json; its other files are in the store already.
func (g *gathering) records(h *history.History) error {
	list, err := h.Logged()
	if err != nil {
		return err
	}
	for _, rec := range list {
		data := rec.JSON(nil)
		if err := g.add(recordsPart+rec.ID+"/run.json", project.PrivateFile, bytes.NewReader(data), int64(len(data))); err != nil {
			return err
		}
	}
	return nil
}

// pieces collects a file that is only appended to.
func (g *gathering) pieces(in disk.Dir, name, as string) error {
	f, err := in.Open(name)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		piece, err := readPiece(r)
		if err != nil || len(piece) == 0 {
			return err
		}
		if err := g.add(fmt.Sprintf("%s%06d.jsonl", as, n), project.PrivateFile, bytes.NewReader(piece), int64(len(piece))); err != nil {
			return err
		}
	}
}

// readPiece reads whole lines, as many as make a piece.
func readPiece(r *bufio.Reader) (piece []byte, err error) {
	for len(piece) < pieceSize {
		line, err := r.ReadBytes('\n')
		piece = append(piece, line...)
		if errors.Is(err, io.EOF) {
			return piece, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return piece, nil
}

// file collects one file, if it is there.
func (g *gathering) file(in disk.Dir, name, as string) error {
	f, err := in.Open(name)
	if isMissing(err) {
		return nil
	}
	if disk.OtherKind(err) || errors.Is(err, disk.ErrNotRegular) {
		g.tell(fmt.Sprintf("%s is no regular file and is not in the backup", tree.Quote(path.Join(in.Path(), name))))
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	err = g.add(as, st.Mode&0o777, f, st.Size)
	if err == nil && isMessage(as) {
		message := g.files[FileName(as)]
		message.Mtime = st.Mtime
		g.files[FileName(as)] = message
	}
	return err
}

// draftDirs are where decree builds its messages: what is called like a draft elsewhere is somebody's own.
var draftDirs = []string{project.InboxDir, project.DeadDir, project.DoneDir}

// directory collects what people have in .decree.
func (g *gathering) directory(in disk.Dir, at string) error {
	list, err := in.List()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		if at == "" && slices.Contains(ownNames, e.Name) || slices.Contains(draftDirs, at) && strings.HasPrefix(e.Name, project.InboxDraft) {
			continue
		}
		if err := target.CheckName(e.Name); err != nil {
			g.tell(fmt.Sprintf("%s is not in the backup: %v", tree.Quote(path.Join(in.Path(), e.Name)), err))
			continue
		}
		st, err := in.Stat(e.Name)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		name := path.Join(at, e.Name)
		if st.Kind != disk.Directory {
			if err := g.file(in, e.Name, fileOf(name)); err != nil {
				return err
			}
			continue
		}
		sub, err := in.OpenDir(e.Name)
		if err != nil {
			return err
		}
		err = g.directory(sub, name)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// specs collects the list of the specs that are done, which is a file of the tree.
func (g *gathering) specs(p *project.Project) error {
	const name = "processed-spec.md"
	dir, err := disk.OpenPath(p.Dir, path.Clean(p.Config.SpecDir))
	if isMissing(err) || disk.OtherKind(err) || errors.Is(err, disk.ErrName) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return g.file(dir, name, specsPart+name)
}

// isMessage says whether a file is a message that waits.
func isMessage(name string) bool {
	rest, ok := strings.CutPrefix(name, project.InboxDir+"/")
	return ok && !strings.Contains(rest, "/") && strings.HasSuffix(rest, ".md")
}

// isConfig says whether a file is one that people configure decree with.
func isConfig(name string) bool {
	return name == "config.yml" || strings.HasPrefix(name, "routines/") || strings.HasPrefix(name, "cron/")
}
