package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// replaced are the zips of what restores have replaced, where no manifest.json lists them. They need nothing else
	// and have no hash here: their contents have.
	replaced map[string]Generation
	// badMarker is that the marker cannot be read, and the next commit writes it anew; nil: it can.
	badMarker error
	sum       tree.Hash // of manifest.json
	version   target.Version
	// Apart says that another copy of the project goes on in the directory that it had, and where its own backups go;
	// "": none does. other is that directory.
	Apart string
	other *Place
	// agreed says that the manifest is what was written there: the marker says so, or a copy of it does.
	agreed bool
	// Damage says what is wrong with manifest.json, in whose place a copy is taken, and how that ends; "": nothing is. had are the
	// generations that it listed.
	Damage string
	had    []string
	passed []string                  // newer generations, of whose zips that copy could not be read
	sealed bool                      // it is encrypted, as far as that was asked
	note   func(sum tree.Hash) error // is called before a manifest.json of that hash is written; nil: nobody
}

// At is the name in the target of something in the project's directory.
func (p *Place) At(parts ...string) string { return path.Join(append([]string{p.Name}, parts...)...) }

// spelled is how a message names something of the project's in the target, so that its user finds it with the tools for it: a path in a
// directory, or in a bucket the object's URL, of which what follows the target's own path is no part.
func (p *Place) spelled(parts ...string) string {
	at := p.Target.String()
	if strings.Contains(at, "://") {
		at, _, _ = strings.Cut(at, "?")
	}
	return strings.TrimSuffix(at, "/") + "/" + p.At(parts...)
}

// find finds the project's directory, which own knows: called name, or name-2 and so on where others have that name.
// Where it has none, the one returned has neither marker nor manifest and a name that is free.
func find(ctx context.Context, t target.Target, name string, own func(*Place) bool) (*Place, error) {
	const most = 1000
	for n := 1; n <= most; n++ {
		numbered := name
		if n > 1 {
			numbered = fmt.Sprintf("%s-%d", name, n)
		}
		p, err := readPlace(ctx, t, numbered)
		if err != nil {
			return nil, err
		}
		if p.whose() == "" || own(p) {
			return p, nil
		}
	}
	return nil, refused("give it a name of its own: backup.name in .decree/config.yml", "%s: a thousand other projects are called %s", t, name)
}

// readPlace reads the marker and the manifest of the directory called name.
func readPlace(ctx context.Context, t target.Target, name string) (*Place, error) {
	p := &Place{Target: t, Name: name}
	if err := p.readMarker(ctx); err != nil {
		return nil, err
	}
	if err := p.readManifest(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Place) readMarker(ctx context.Context) error {
	data, _, err := p.Target.Read(ctx, p.At(markerFile), 1<<20)
	if err != nil {
		return p.about(markerFile, err)
	}
	if data == nil {
		return nil
	}
	m, err := parseMarker(data)
	if p.Marker = &m; err != nil {
		p.badMarker = p.broken(err, "if "+manifestFile+" beside it is sound, remove it")
	}
	return nil
}

// readManifest reads manifest.json, or finds what takes its place where it is missing, damaged or not what the marker says.
func (p *Place) readManifest(ctx context.Context) error {
	data, version, err := p.Target.Read(ctx, p.At(manifestFile), maxManifest)
	if err != nil && !errors.Is(err, target.ErrDamaged) {
		return p.about(manifestFile, err)
	}
	p.version = version
	switch missing := data == nil && err == nil; {
	case p.badMarker != nil && p.Marker.Version > Version:
		return p.badMarker
	case missing && p.Marker == nil:
		if has, _, err := p.newestCopy(ctx); has == nil && len(p.passed) == 0 && err == nil {
			return nil // nothing is there, or nothing of ours
		}
		err = errNoManifest // the marker is made before anything else: both are lost
	case missing && p.badMarker == nil && p.Marker.Manifest.IsZero():
		return p.readReplaced(ctx)
	case missing:
		err = errNoManifest
	case errors.Is(err, target.ErrDamaged):
		err = fmt.Errorf("%s: %w", manifestFile, err)
	case err == nil:
		p.Manifest, err = parseManifest(data)
	}
	if errors.Is(err, target.ErrNoIdentity) {
		key, _, _ := p.Target.Read(ctx, p.At(keyFile), 1<<20) // it says what would open them
		return p.about(manifestFile, target.Lacks(key))
	}
	if err == nil {
		p.sum = tree.Sum(data)
	}
	if p.badMarker != nil { // as where it is lost, the generation's own manifest has to say the same
		p.Marker = &Marker{Version: Version}
		if p.Manifest != nil {
			p.Marker.Project = p.Manifest.Project
		}
	}
	if err != nil || !p.marked() {
		return p.confirm(ctx, err)
	}
	p.agreed = true
	return nil
}

// broken is the error of a marker or a manifest.json that cannot be read as one.
func (p *Place) broken(err error, advice string) error {
	if errors.As(err, new(*newerError)) {
		return refused("use the decree that made these backups, or a newer one", "%s/%s: %v", p.Target, p.Name, err)
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s/%s", p.Target, p.Name), Err: err, State: project.Unchanged, Advice: advice}
}

// about is an error of reading one of the place's files.
func (p *Place) about(name string, err error) error {
	if notAFile(err) {
		return &project.Error{Kind: project.Failed, Msg: p.spelled(name) + " is no regular file, and no link in a target is followed", Err: err, State: project.Unchanged, Advice: notAFileNext}
	}
	if strings.HasPrefix(err.Error(), p.At(name)+": ") { // as the target says it
		return fmt.Errorf("%s: %w", p.Target, err)
	}
	return fmt.Errorf("%s: %s: %w", p.Target, p.At(name), err)
}

// commit replaces manifest.json, which is the moment at which it counts, and then the marker.
func (p *Place) commit(ctx context.Context, m *Manifest) error {
	previous := p.sum
	m.Previous = &previous
	data, err := m.Encode()
	if err == nil && p.note != nil {
		err = p.note(tree.Sum(data))
	}
	if err != nil {
		return err
	}
	version, err := p.Target.Swap(ctx, p.At(manifestFile), data, p.version)
	if errors.Is(err, target.ErrConflict) {
		state, advice := "its generation stands, this one was not made", "run 'decree backup' again"
		if _, alone := p.Target.(target.Locker); !alone { // it may have been faster than the answer to us
			state, advice = "its generation stands, and this one may stand before it", "'decree backup list' says whether it does; else run 'decree backup' again"
		}
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s: another machine or command was faster", p.Target), Err: err, State: state, Advice: advice}
	}
	if err != nil {
		return p.about(manifestFile, err)
	}
	p.Manifest, p.version, p.sum, p.agreed, p.Damage, p.had, p.passed = m, version, tree.Sum(data), true, "", nil, nil
	return p.mark(ctx)
}

// mark writes the marker, if it does not say what it should.
func (p *Place) mark(ctx context.Context) error {
	want := Marker{Version: Version, Project: p.Manifest.Project, Manifest: p.sum}
	data, version, err := p.Target.Read(ctx, p.At(markerFile), 1<<20)
	if err == nil {
		if has, perr := parseMarker(data); perr == nil && has == want {
			p.Marker = &want
			return nil
		}
		_, err = p.Target.Swap(ctx, p.At(markerFile), want.Encode(), version)
	}
	if errors.Is(err, target.ErrConflict) {
		return nil // by the one who commits after us
	}
	p.Marker = &want
	return err
}

// projects are the names of the directories that have a marker, and closed says why one could not be looked into, such as a disk's lost+found.
func projects(ctx context.Context, t target.Target) (names []string, closed, err error) {
	top, err := t.Top(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range top {
		_, err := sizeOf(ctx, t, path.Join(name, markerFile))
		switch {
		case err == nil:
			names = append(names, name)
		case isMissing(err):
		case errors.Is(err, target.ErrGone) || ctx.Err() != nil:
			return nil, nil, err
		default:
			closed = err
		}
	}
	return names, closed, nil
}

// Directories are the paths of the place and of the other projects' directories in its target, where that lies in this machine's file system: they are
// no part of any tree that the target lies in.
func (p *Place) Directories(ctx context.Context) ([]string, error) {
	placed, ok := p.Target.(target.Placed)
	if !ok {
		return nil, nil
	}
	names, _, err := projects(ctx, p.Target)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, p.Name) { // its marker is lost
		names = append(names, p.Name)
	}
	at, _, _, err := placed.Place()
	for i := range names {
		names[i] = path.Join(at, names[i])
	}
	return names, err
}

// unmarkedProjects are the names of the directories that have a manifest.json, or a generation's copy of it, for a message.
func unmarkedProjects(ctx context.Context, t target.Target) (names []string) {
	top, _ := t.Top(ctx)
	for _, dir := range top {
		p := &Place{Target: t, Name: dir}
		there, _ := p.archives(ctx)
		for _, name := range []string{p.At(manifestFile), p.At(currentDir, manifestFile)} {
			_ = t.List(ctx, name, func(o target.Object) error {
				if o.Name == name {
					there[name] = true
				}
				return nil
			})
		}
		if len(there) > 0 {
			names = append(names, dir)
		}
	}
	return names
}

// One is the directory called name, or the only one that the target has; for who has no
// project yet.
func One(ctx context.Context, t target.Target, name string) (*Place, error) {
	if name == "" {
		var err error
		if name, err = only(ctx, t); err != nil {
			return nil, err
		}
	}
	p, err := readPlace(ctx, t, name)
	if err != nil {
		return nil, err
	}
	if p.Manifest == nil && len(p.replaced) == 0 {
		return nil, notFound("'decree backup list --to "+tree.ShellWord(t.String())+"' lists what it has", "%s has no backup called %s", t, name)
	}
	return p, nil
}

// only is the name of the only directory that a target has.
func only(ctx context.Context, t target.Target) (string, error) {
	if data, _, err := t.Read(ctx, markerFile, 1<<20); err == nil && data != nil {
		dir, base := path.Split(t.String())
		return "", notFound(fmt.Sprintf("name the target, and in it the project: --from %s --name %s", strings.TrimSuffix(dir, "/"), base),
			"%s is the directory of one project in a target, and no target", t)
	}
	names, closed, err := projects(ctx, t)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", t, err)
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%s has backups of several projects: %s", t, strings.Join(names, ", ")), Advice: "say which with --name"}
	}
	if names := unmarkedProjects(ctx, t); len(names) > 0 {
		return "", notFound("if that is a backup, name it: --name "+names[0],
			"%s has no backups of decree's that %s marks, but what may be some in %s", t, markerFile, strings.Join(names, ", "))
	}
	return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s has no backups of decree's", t), Err: closed, Advice: "name another target with --from"}
}

// Generations are the names of all generations, oldest first; the newest is the manifest's own.
func (p *Place) Generations() (names []string) {
	if p.Manifest != nil {
		names = []string{p.Manifest.Generation()}
	}
	for name := range p.zips() {
		if p.Manifest == nil || name != names[0] {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		ta, _ := timeOf(a)
		tb, _ := timeOf(b)
		return cmp.Or(ta.Compare(tb), strings.Compare(a, b))
	})
	return names
}

// Resolve finds the one generation whose name has ref as a part; "" and "current" are the newest. What restores have
// replaced is meant only by what no other name has: a date is that of a backup.
func (p *Place) Resolve(ref string) (string, error) {
	ref = strings.TrimSuffix(ref, ".zip")
	names := p.Generations()
	if len(names) == 0 {
		return "", notFound("'decree backup' makes the first", "%s has no backup of this project", p.Target)
	}
	if ref == "" || ref == currentDir {
		if p.Manifest == nil {
			return "", notFound("name one of these", "%s has no backup of this project, but what restores have replaced: %s", p.Target, strings.Join(names, ", "))
		}
		if len(p.passed) > 0 {
			return "", &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: fmt.Sprintf("%s/%s: %s is damaged, and so is the newest generation there, %s", p.Target, p.Name, manifestFile, p.passed[0]),
				Advice: "name an older one: " + p.Manifest.Generation()}
		}
		return p.Manifest.Generation(), nil
	}
	if slices.Contains(names, ref) {
		return ref, nil
	}
	found := slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, ref) })
	if made := slices.DeleteFunc(slices.Clone(found), IsPreRestore); len(made) > 0 {
		found = made
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", notFound("'decree backup list' lists them", "no generation is called %s", ref)
	}
	return "", notFound("give more of the name", "several generations have %s in their names: %s", ref, strings.Join(found, ", "))
}
