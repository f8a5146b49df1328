package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"decree/backup/target"
	"decree/project"
	"decree/tree"
)

// Place is the directory of one project in a target, as it was when it was read.
type Place struct {
	Target   target.Target
	Name     string
	Marker   *Marker   // nil: there is none
	Manifest *Manifest // nil: no generation was acknowledged
	sum      tree.Hash // of manifest.json
	version  target.Version
}

// At is the name in the target of something in the project's directory.
func (p *Place) At(parts ...string) string { return path.Join(append([]string{p.Name}, parts...)...) }

// Refused is an error of kind project.Refused.
func refused(advice, format string, args ...any) error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf(format, args...), Advice: advice}
}

func damaged(err error, format string, args ...any) error {
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf(format, args...), Err: err}
}

// Find finds the project's directory: called name, or name-2 and so on where others have that name.
// Where it has none, the one returned has neither marker nor manifest and a name that is free.
func Find(ctx context.Context, t target.Target, name, id string) (*Place, error) {
	for n := 1; ; n++ {
		p := &Place{Target: t, Name: name}
		if n > 1 {
			p.Name = fmt.Sprintf("%s-%d", name, n)
		}
		if err := p.Read(ctx); err != nil {
			return nil, err
		}
		whose := ""
		switch {
		case p.Marker != nil:
			whose = p.Marker.Project
		case p.Manifest != nil:
			whose = p.Manifest.Project
		}
		if whose == "" || whose == id {
			return p, nil
		}
		if n == 1000 {
			return nil, refused("give it a name of its own: backup.name in .decree/config.yml", "%s: a thousand other projects are called %s", t, name)
		}
	}
}

// Read reads the marker and the manifest anew.
func (p *Place) Read(ctx context.Context) error {
	data, _, err := p.Target.Read(ctx, p.At(MarkerFile), 1<<20)
	if err != nil {
		return p.about(MarkerFile, err)
	}
	if p.Marker = nil; data != nil {
		m, err := ParseMarker(data)
		if err != nil {
			return damaged(err, "%s/%s", p.Target, p.Name)
		}
		p.Marker = &m
	}
	data, version, err := p.Target.Read(ctx, p.At(ManifestFile), MaxManifest)
	if err != nil {
		return p.about(ManifestFile, err)
	}
	p.Manifest, p.version = nil, version
	if data == nil {
		return nil
	}
	if p.Manifest, err = ParseManifest(data); err != nil {
		return damaged(err, "%s/%s", p.Target, p.Name)
	}
	p.sum = tree.Sum(data)
	return nil
}

func (p *Place) about(name string, err error) error {
	return fmt.Errorf("%s: %s: %w", p.Target, p.At(name), err)
}

// commit replaces manifest.json, which is the moment at which it counts, and then the marker.
func (p *Place) commit(ctx context.Context, m *Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	version, err := p.Target.Swap(ctx, p.At(ManifestFile), data, p.version)
	if errors.Is(err, target.ErrConflict) {
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s: another machine or command was faster", p.Target), Err: err,
			State: "its generation stands, this one was not made", Advice: "run 'decree backup' again"}
	}
	if err != nil {
		return p.about(ManifestFile, err)
	}
	p.Manifest, p.version, p.sum = m, version, tree.Sum(data)
	return p.mark(ctx)
}

// mark writes the marker, if it does not say what it should.
func (p *Place) mark(ctx context.Context) error {
	want := Marker{Version: Version, Project: p.Manifest.Project, Manifest: p.sum}
	data, version, err := p.Target.Read(ctx, p.At(MarkerFile), 1<<20)
	if err == nil {
		if has, perr := ParseMarker(data); perr == nil && has == want {
			p.Marker = &want
			return nil
		}
		_, err = p.Target.Swap(ctx, p.At(MarkerFile), want.Encode(), version)
	}
	if errors.Is(err, target.ErrConflict) {
		return nil // by the one who commits after us
	}
	p.Marker = &want
	return err
}

// marked says whether the marker names the manifest that was read. After a death between the two
// it does not.
func (p *Place) marked() bool { return p.Marker != nil && p.Marker.Manifest == p.sum }

// Projects lists the names of the directories that have a marker.
func Projects(ctx context.Context, t target.Target) (names []string, err error) {
	err = t.List(ctx, "", func(o target.Object) error {
		if dir, ok := strings.CutSuffix(o.Name, "/"+MarkerFile); ok && !strings.Contains(dir, "/") {
			names = append(names, dir)
		}
		return nil
	})
	return names, err
}

// One is the directory called name, or the only one that the target has; for who has no
// project yet.
func One(ctx context.Context, t target.Target, name string) (*Place, error) {
	if name == "" {
		names, err := Projects(ctx, t)
		if err != nil {
			return nil, err
		}
		switch len(names) {
		case 0:
			return nil, &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s has no backups of decree's", t), Advice: "name another target with --from"}
		case 1:
			name = names[0]
		default:
			return nil, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%s has backups of several projects: %s", t, strings.Join(names, ", ")), Advice: "say which with --name"}
		}
	}
	p := &Place{Target: t, Name: name}
	if err := p.Read(ctx); err != nil {
		return nil, err
	}
	if p.Manifest == nil {
		return nil, &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s has no backup called %s", t, name), Advice: "'decree backup list --to " + t.String() + "' lists what it has"}
	}
	return p, nil
}

// Generations are the names of all generations, oldest first; the newest is the manifest's own.
func (p *Place) Generations() (names []string) {
	if p.Manifest == nil {
		return nil
	}
	names = []string{p.Manifest.Generation()}
	for name := range p.Manifest.Others {
		if name != names[0] {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		ta, _ := TimeOf(a)
		tb, _ := TimeOf(b)
		if c := ta.Compare(tb); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return names
}

// Resolve finds the one generation whose name has ref as a part; "" and "current" are the newest.
func (p *Place) Resolve(ref string) (string, error) {
	ref = strings.TrimSuffix(ref, ".zip")
	names := p.Generations()
	if len(names) == 0 {
		return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s has no backup of this project", p.Target), Advice: "'decree backup' makes the first"}
	}
	if ref == "" || ref == currentDir {
		return p.Manifest.Generation(), nil
	}
	var found []string
	for _, name := range names {
		if name == ref {
			return name, nil
		}
		if strings.Contains(name, ref) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("no generation is called %s", ref), Advice: "'decree backup list' lists them"}
	}
	return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("several generations have %s in their names: %s", ref, strings.Join(found, ", ")), Advice: "give more of the name"}
}

// proofs reads proofs.jsonl, oldest first; a line that is none is passed over.
func (p *Place) proofs(ctx context.Context) (list []Proof, version target.Version, data []byte, err error) {
	data, version, err = p.Target.Read(ctx, p.At(ProofsFile), MaxManifest)
	if err != nil {
		return nil, "", nil, p.about(ProofsFile, err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		var proof Proof
		if json.Unmarshal([]byte(line), &proof) == nil && !proof.At.IsZero() {
			list = append(list, proof)
		}
	}
	return list, version, data, nil
}

// Proofs are the proofs that the place has, oldest first.
func (p *Place) Proofs(ctx context.Context) ([]Proof, error) {
	list, _, _, err := p.proofs(ctx)
	return list, err
}

// AddProof appends a line to proofs.jsonl.
func (p *Place) AddProof(ctx context.Context, proof Proof) error {
	line, err := json.Marshal(proof)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		_, version, data, err := p.proofs(ctx)
		if err != nil {
			return err
		}
		_, err = p.Target.Swap(ctx, p.At(ProofsFile), append(append(data, line...), '\n'), version)
		if !errors.Is(err, target.ErrConflict) || try == 5 {
			return err
		}
	}
}

// readAll reads a content of the target that is small.
func readAll(ctx context.Context, t target.Target, name string, limit int64) ([]byte, error) {
	r, size, err := t.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, &FormatError{name, fmt.Sprintf("larger than %d bytes", limit)}
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err == nil && int64(len(data)) != size {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
