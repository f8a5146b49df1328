package recorder

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/project"
)

// What a run commits lies in the .git of its layer: objects, which are only ever added, and
// refs that name them. A publish with git copies the objects first, and moves the refs last,
// when the files are in the tree; the layer is marked in between, so that a recovery moves
// them where the process died, and leaves alone what has come to them since. Nothing of .git that
// could execute something, as its hooks and its config, is brought. What a run did in another
// repository below the root, or in what is no object and no ref, as a merge under way, stays in the layer, and
// so does the layer; only what git makes anew itself (gitOwn) goes without a word. No git program is run.

// gitWork is what the layer of a draft has in .git that a publish can bring.
type gitWork struct {
	objects map[string]bool   // paths below .git
	refs    []gitRef          // HEAD too, in byte order of their names
	logs    map[string][]byte // the logs of refs, by their paths below .git
	index   []byte            // what git has staged; nil: as it is in the tree
	staged  bool              // the layer's index stages other things than the tree's
	left    []string          // what is not brought and can be done without, below .git
	kept    []string          // what is not brought and is nowhere but in the layer, from the root on
	shallow bool              // other commits than in the tree have parents that are not there
	whole   bool              // and in the draft all have them: the tree lacks what its run has fetched
}

// stays says whether the run has made something that comes with git alone, or not at all.
func (g *gitWork) stays() bool { return len(g.refs) > 0 || len(g.kept) > 0 }

// keep notes something that only the layer has.
func (g *gitWork) keep(what string) {
	if !slices.Contains(g.kept, what) {
		g.kept = append(g.kept, what)
	}
}

// gitRef is a ref that the run has moved.
type gitRef struct {
	name    string // "HEAD", "refs/heads/main"
	was, is string // in the tree now, and in the layer; "" for none
	moved   bool   // it may not be in the tree what it was for the run
}

const (
	gitDir    = ".git"
	stashRef  = "refs/stash"
	stashLog  = "logs/" + stashRef
	mostOfGit = 256 << 20 // bytes of a log, an index or packed-refs
)

var (
	gitObject = regexp.MustCompile(`^objects/(?:[0-9a-f]{2}/[0-9a-f]{38}(?:[0-9a-f]{24})?|pack/pack-[0-9a-f]+\.(?:pack|idx|rev|bitmap|mtimes|keep|promisor))$`)
	gitID     = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	// gitRefName is what git takes for a ref's name, by which it is a file below refs.
	gitRefName = regexp.MustCompile(`^refs(?:/[^./\x00-\x20\x7f~^:?*\[\\][^/\x00-\x20\x7f~^:?*\[\\]*)+$`)
	gitNoRef   = regexp.MustCompile(`\.\.|\.lock(?:/|$)`)
	// gitOwn are files of which nothing is said and nothing lost.
	gitOwn = regexp.MustCompile("^(?:" + strings.Join([]string{
		`objects/info/(?:packs|commit-graph|commit-graphs/.*)`, `objects/pack/multi-pack-index.*`, `info/refs`, // git makes them of the objects and refs
		`objects/(?:[0-9a-f]{2}/|pack/)?(?:tmp_|\.tmp-|incoming-).*`, `.*\.lock`, // what a git that died was writing, which no git reads
		`[A-Z]+_EDITMSG`,  // the text of the last commit or tag, which that has; git overwrites it
		`ORIG_HEAD`,       // what HEAD was before, which its log has too; git overwrites it
		`AUTO_MERGE`,      // what git made of a merge by itself, for looking at
		`gc\.(?:log|pid)`, // of a gc that is over
	}, "|") + ")$")
	// gitSetting are files that hold no work of a run, or what is had again where it came from: they are named.
	gitSetting = regexp.MustCompile(`^(?:(?:hooks|info|branches|logs|rr-cache)/.*|config(?:\.worktree)?|description|index|sharedindex\..*|fsmonitor--daemon.*|FETCH_HEAD|MERGE_RR)$`)
	// gitMust are the places of which a repository consists: what is no file there leads elsewhere. A ref that is none is refused.
	gitMust = regexp.MustCompile(`^(?:refs|objects(?:/.*)?)$`)
)

// isGitRef says whether name can be that of a ref, which becomes a path in .git.
func isGitRef(name string) bool { return gitRefName.MatchString(name) && !gitNoRef.MatchString(name) }

// isGitValue says whether value can stand in a ref: an object's id, or another ref. One that leaves refs
// (refs/heads/../../x) would have git write where it leads.
func isGitValue(value string) bool {
	to, symbolic := strings.CutPrefix(value, "ref: ")
	return symbolic && isGitRef(to) || !symbolic && gitID.MatchString(value)
}

// gitWorkOf reads what the layer has in the root's .git, and names the other repositories that
// its run has changed.
func (r *Recorder) gitWorkOf(ctx context.Context, l *layer.Layer) (*gitWork, error) {
	o, err := r.layerOptions()
	if err != nil {
		return nil, err
	}
	tally, err := l.Changes(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	work := &gitWork{objects: map[string]bool{}, logs: map[string][]byte{}}
	live, err := r.project.Dir.OpenDir(gitDir)
	none := isMissing(err) || errors.Is(err, syscall.ENOTDIR) // what a file names lies elsewhere, and was changed there
	if err != nil && !none {
		return nil, err
	}
	for _, at := range tally.Repos {
		if none || at != gitDir {
			work.keep(string(at))
		}
	}
	if none {
		return work, nil
	}
	defer live.Close()
	g := &gitReader{live: live, layer: l, work: work, loose: map[string]string{}}
	if g.packed, g.packedAt, err = readPacked(live); err != nil {
		return nil, err
	}
	g.inLayer = g.packed
	nested := slices.Clone(work.kept)
	if err = l.GitChanges(ctx, g.visit); err == nil {
		err = g.refs()
	}
	if errors.Is(err, errNoGit) {
		return &gitWork{kept: append(nested, gitDir)}, nil
	}
	if err != nil {
		return nil, err
	}
	g.stash()
	work.leaveSplitIndex()
	return work, nil
}

// errNoGit is about a layer whose .git is no repository by itself: it has no HEAD, and what it lacks was not deleted one by
// one, or it has objects or refs elsewhere.
var errNoGit = errors.New("it is no repository by itself")

// gitReader reads a layer's .git beside the live one.
type gitReader struct {
	live     disk.Dir
	layer    *layer.Layer
	work     *gitWork
	packed   map[string]string // the live packed-refs
	packedAt *disk.Info        // nil: there are none
	inLayer  map[string]string // the layer's
	loose    map[string]string // of the refs whose files the run touched; "" for a deleted one
}

// visit takes one path of .git that the layer has otherwise.
func (g *gitReader) visit(c *layer.Change) error {
	name, in := strings.CutPrefix(string(c.Path), gitDir+"/")
	isDir := func(i *disk.Info) bool { return i == nil || i.Kind == disk.Directory }
	if isDir(c.Before) && isDir(c.After) { // what is in them comes by itself
		return nil
	}
	elsewhere := !isDir(c.After) && c.After.Kind != disk.Regular && gitMust.MatchString(name) || c.After != nil && name == "objects/info/alternates"
	if !in && !isDir(c.After) || elsewhere && !c.Equal {
		return errNoGit
	}
	if gitObject.MatchString(name) { // the tree's .git keeps what it has, whose name says what it is
		if c.Before == nil && !isDir(c.After) {
			g.work.objects[name] = true
		}
		return nil
	}
	var text []byte
	if c.After != nil && c.After.Kind == disk.Regular && !gitOwn.MatchString(name) {
		var err error
		if text, err = project.ReadFile(c.To(), c.Name(), mostOfGit); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	switch {
	case gitOwn.MatchString(name):
	case name == "packed-refs":
		if c.After != nil && !c.Equal && !soundPacked(text) {
			return gitTorn(name)
		}
		g.inLayer = parsePacked(text)
	case name == "index":
		return g.indexed(c, text)
	case name == "HEAD", strings.HasPrefix(name, "refs/"):
		g.loose[name] = trimLine(string(text))
		if c.After != nil && c.After.Kind != disk.Directory && !c.Equal && !isGitValue(g.loose[name]) {
			return gitTorn(name)
		}
	case strings.HasPrefix(name, "logs/") && isDir(c.After): // it goes with its ref
	case strings.HasPrefix(name, "logs/"):
		return g.logged(c, name, text)
	default:
		g.other(c, name)
	}
	return nil
}

// logged takes a ref's log of which the live one is the beginning.
func (g *gitReader) logged(c *layer.Change, name string, text []byte) error {
	if c.Equal {
		return nil
	}
	var has []byte
	if c.Before != nil {
		if c.Before.Kind != disk.Regular {
			g.other(c, name)
			return nil
		}
		var err error
		if has, err = project.ReadFile(c.From(), c.Name(), mostOfGit); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	switch {
	case soundLines(text) && bytes.HasPrefix(text, has):
		g.work.logs[name] = text
	case !soundLines(text) || !bytes.HasPrefix(has, text) || name == stashLog:
		g.other(c, name)
	}
	return nil
}

// stash has the stashes of the layer stay there if those of the tree are not their beginning: their
// log is the list of them, and git takes the ref for the last of it.
func (g *gitReader) stash() {
	_, follows := g.work.logs[stashLog]
	moved := func(ref gitRef) bool { return ref.name == stashRef && ref.is != "" }
	if other := slices.Contains(g.work.left, stashLog); other || !follows && slices.ContainsFunc(g.work.refs, moved) {
		g.work.left = slices.DeleteFunc(g.work.left, func(name string) bool { return name == stashLog })
		g.work.refs = slices.DeleteFunc(g.work.refs, moved)
		g.work.keep(path.Join(gitDir, stashRef))
	}
}

// leaveSplitIndex leaves an index whose larger part lies in another file, without which git reads none of it.
func (g *gitWork) leaveSplitIndex() {
	if g.index != nil && slices.ContainsFunc(g.left, func(name string) bool { return strings.HasPrefix(name, "sharedindex.") }) {
		g.index, g.left = nil, append(g.left, "index")
	}
}

// other notes what is not brought.
func (g *gitReader) other(c *layer.Change, name string) {
	if c.Equal {
		return
	}
	if gitSetting.MatchString(name) {
		g.work.left = append(g.work.left, name)
		return
	}
	first, _, below := strings.Cut(name, "/")
	switch {
	case first == "objects":
		first = name
	case c.After == nil && !below:
		first += " (deleted)"
	}
	g.work.keep(gitDir + "/" + first)
	if name == "shallow" {
		g.work.shallow, g.work.whole = true, c.After == nil
	}
}

// indexed takes the layer's index, unless the live one has been written since the run began:
// it may hold what somebody has staged.
func (g *gitReader) indexed(c *layer.Change, text []byte) error {
	if c.After == nil || c.Equal { // the tree keeps its own
		return nil
	}
	if text == nil || g.layer.Rebooted() && !soundIndex(text) {
		g.work.left = append(g.work.left, "index")
		return nil
	}
	if c.Before != nil {
		if old, err := g.layer.Old(*c.Before); err != nil || !old {
			g.work.left = append(g.work.left, "index")
			return err
		}
	}
	g.work.index, g.work.staged = text, layer.StagesOther(c.To(), c.From())
	return nil
}

// refs finds the refs that the run has moved.
func (g *gitReader) refs() error {
	names := slices.Collect(maps.Keys(g.loose))
	for name := range g.packed {
		if g.inLayer[name] != g.packed[name] {
			names = append(names, name)
		}
	}
	for name := range g.inLayer {
		if g.inLayer[name] != g.packed[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := g.ref(name); err != nil {
			return err
		}
	}
	return nil
}

// ref adds the ref if the layer has another value of it.
func (g *gitReader) ref(name string) error {
	was, at, err := readRef(g.live, name)
	if err != nil {
		return err
	}
	is, touched := g.loose[name]
	switch {
	case is == "" && (touched || at == nil):
		is = g.inLayer[name]
	case !touched: // its own file, which the layer shows, counts more than the packed ones
		return nil
	}
	if at == nil {
		was, at = g.packed[name], g.packedAt
	}
	if is == was {
		return nil
	}
	if is == "" && name == "HEAD" {
		return errNoGit
	}
	if is != "" && !isGitValue(is) {
		return gitTorn(name)
	}
	ref := gitRef{name: name, was: was, is: is}
	if was != "" && at != nil {
		old, err := g.layer.Old(*at)
		if err != nil {
			return err
		}
		ref.moved = !old && !g.descends(is, was)
	}
	g.work.refs = append(g.work.refs, ref)
	return nil
}

// descends says whether a commit comes after another one, as far as the objects tell that lie
// in files of their own, as new ones do.
func (g *gitReader) descends(from, ancestor string) bool {
	const most = 10_000
	seen := map[string]bool{}
	for next := []string{from}; len(next) > 0 && len(seen) < most; next = next[1:] {
		if seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		for _, parent := range g.parents(next[0]) {
			if parent == ancestor {
				return true
			}
			next = append(next, parent)
		}
	}
	return false
}

// parents are those of a commit; none where it cannot be read.
func (g *gitReader) parents(commit string) (out []string) {
	if len(commit) < 3 || !gitID.MatchString(commit) {
		return nil
	}
	name := "objects/" + commit[:2] + "/" + commit[2:]
	f, err := g.layer.OpenGit(name)
	if isMissing(err) {
		var p gitPlace
		if p, err = placeOf(g.live, name, false); err == nil {
			defer p.close()
			f, err = p.Open(p.base)
		}
	}
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil
	}
	const most = 1 << 16 // the parents stand before the message
	text, _ := io.ReadAll(io.LimitReader(z, most))
	header, text, _ := bytes.Cut(text, []byte{0})
	if !bytes.HasPrefix(header, []byte("commit ")) {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "parent" {
			out = append(out, value)
		}
		if key == "" {
			break
		}
	}
	return out
}

// gitPlace is where a file of .git lies.
type gitPlace struct {
	disk.Dir
	base  string
	close func()
}

// placeOf opens the directory of a path below a .git; with making, it is made.
func placeOf(git disk.Dir, name string, making bool) (p gitPlace, err error) {
	parent, base := path.Split(name)
	p = gitPlace{git, base, func() {}}
	for part := range strings.SplitSeq(strings.Trim(parent, "/"), "/") {
		if part == "" {
			break
		}
		var next disk.Dir
		if making {
			next, err = makeGitDir(p.Dir, part)
		} else {
			next, err = p.OpenDir(part)
		}
		if p.close(); err != nil {
			return gitPlace{}, err
		}
		p.Dir, p.close = next, func() { next.Close() }
	}
	return p, nil
}

// gitPerm is the mode of what is made in a directory of .git: who may write there may write it, too, as of a repository that a group
// shares (core.sharedRepository), and who may not read there need not read it. most is the mode where everybody may.
func gitPerm(in disk.Dir, most uint32) (uint32, error) {
	self, err := in.Self()
	return most & (self.Mode | 0o700) &^ 0o002, err
}

// makeGitDir is project.MakeDir, durably: no ref may outlive what it names.
func makeGitDir(dir disk.Dir, name string) (disk.Dir, error) {
	perm, err := gitPerm(dir, 0o777)
	if err != nil {
		return nil, err
	}
	_, missing := dir.Stat(name)
	made, err := project.MakeDir(dir, name, perm)
	if err != nil || !isMissing(missing) {
		return made, err
	}
	if err := dir.Sync(); err != nil {
		made.Close()
		return nil, err
	}
	return made, nil
}

// readRef reads a ref's own file, "" and nil for none.
func readRef(git disk.Dir, name string) (string, *disk.Info, error) {
	p, err := placeOf(git, name, false)
	if isMissing(err) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	defer p.close()
	st, err := p.Stat(p.base)
	if isMissing(err) || err == nil && st.Kind != disk.Regular {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	text, err := project.ReadFile(p.Dir, p.base, mostOfGit)
	return trimLine(string(text)), &st, err
}

func readPacked(dir disk.Dir) (map[string]string, *disk.Info, error) {
	text, at, err := readRef(dir, "packed-refs")
	return parsePacked([]byte(text)), at, err
}

// trimLine takes the end of a line away, as git does: a ref's name may end with what is a blank in Unicode alone.
func trimLine(line string) string { return strings.TrimRight(line, " \t\r\n") }

// parsePacked reads packed-refs: a line "HASH NAME" each; others begin with "#" or "^". What
// cannot be the name of a ref is passed over: the command may have written anything there,
// and a name becomes a path in .git.
func parsePacked(text []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if hash, name, ok := strings.Cut(trimLine(line), " "); ok && gitID.MatchString(hash) && isGitRef(name) {
			out[name] = hash
		}
	}
	return out
}

// conflict refuses refs that somebody else may have moved, and commits whose parents would be missing.
func (g *gitWork) conflict(rec *history.Record) error {
	if g.whole {
		return &project.Error{Kind: project.Refused, State: project.Unchanged,
			Msg:    "the run has fetched parents of commits that the tree does not have: .git/shallow is gone in the draft, and is there in the tree",
			Advice: fmt.Sprintf("publish the files alone with 'decree publish %[1]s', or get the parents into the tree first: 'git fetch --unshallow' there", draftName(rec))}
	}
	if g.shallow {
		return &project.Error{Kind: project.Refused, State: project.Unchanged,
			Msg:    "the run has fetched commits without all their parents: .git/shallow of the draft is another one than the tree's",
			Advice: fmt.Sprintf("publish the files alone with 'decree publish %[1]s', or get the parents first: 'decree enter %[1]s -- git fetch --unshallow'", draftName(rec))}
	}
	var moved []string
	for _, ref := range g.refs {
		if ref.moved {
			moved = append(moved, ref.name)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    fmt.Sprintf("in .git somebody else has moved since the run began: %s", some(moved)),
		Advice: fmt.Sprintf("publish the files alone with 'decree publish %[1]s', or bring the commits onto the new ones in 'decree enter %[1]s'", draftName(rec))}
}

// names are the refs' names, for people.
func (g *gitWork) names() string {
	var names []string
	for _, ref := range g.refs {
		name := ref.name
		if ref.is == "" {
			name += " (deleted)"
		}
		names = append(names, name)
	}
	return some(names)
}

// gitPublish is what a publish does with .git.
type gitPublish struct {
	r     *Recorder
	l     *layer.Layer
	work  *gitWork // nil: nothing is brought
	stays bool     // the layer has commits that are not brought
	notes []string
}

// planGit looks what of .git there is to be published, and refuses where it cannot be.
func (r *Recorder) planGit(ctx context.Context, rec *history.Record, l *layer.Layer, o PublishOptions) (*gitPublish, error) {
	p := &gitPublish{r: r, l: l}
	if rec.Draft.Git == 0 && (l == nil || !o.WithGit) { // an index that stages nothing else is not counted
		return p, nil
	}
	if l == nil {
		if o.WithGit {
			e := layerGone(rec)
			e.Msg = fmt.Sprintf("the layer of draft %s is gone, and what it had in .git with it", draftName(rec))
			return nil, e
		}
		return p, nil
	}
	g, err := r.gitWorkOf(ctx, l)
	if err != nil && !o.WithGit && ctx.Err() == nil { // that of the files has nothing to do with it
		p.stays, p.notes = true, []string{fmt.Sprintf("what the run did in .git is not known, and stays in the layer: %v", err)}
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if len(g.kept) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("not published, and nowhere but in the layer of draft %[1]s, which stays: %[2]s; 'decree enter %[1]s' shows it", draftName(rec), some(g.kept)))
	}
	if !o.WithGit {
		p.stays = g.stays()
		if len(g.refs) > 0 {
			p.notes = append(p.notes, fmt.Sprintf("not published: %s in .git; 'decree publish --with-git %s' brings the commits too", g.names(), draftName(rec)))
		}
		if g.staged && !p.stays {
			p.notes = append(p.notes, "what the run has staged in .git is not published, and goes with the layer")
		}
		return p, nil
	}
	p.stays = len(g.kept) > 0
	if l.Rebooted() {
		p.notes = append(p.notes, g.spareDeleted()...)
	}
	if err := g.conflict(rec); err != nil {
		return nil, err
	}
	p.work = g
	if len(g.refs) > 0 {
		p.notes = append(p.notes, "in .git too: "+g.names())
	}
	p.notes = append(p.notes, g.leftNotes()...)
	return p, nil
}

// leftNotes tell what a publish with git leaves behind, though the layer goes.
func (g *gitWork) leftNotes() (notes []string) {
	if slices.Contains(g.left, "index") {
		notes = append(notes, "the index of .git is left as it is, as it was written since the run began, or the draft's cannot be brought: 'git reset' makes it that of HEAD")
	}
	if left := slices.DeleteFunc(slices.Clone(g.left), func(name string) bool { return name == "index" }); len(left) > 0 {
		notes = append(notes, "not published of .git: "+some(left))
	}
	return notes
}

// bring brings the objects.
func (p *gitPublish) bring(ctx context.Context) error {
	if p.work == nil {
		return nil
	}
	err := p.r.checkReach(p.l, p.work)
	if err == nil {
		err = p.r.bringObjects(ctx, p.l, p.work)
	}
	if err != nil {
		return &project.Error{Kind: project.KindOf(err), Err: fmt.Errorf("the objects of .git: %w", err), State: project.Unchanged}
	}
	return nil
}

// mark marks the layer; before is the mark's.
func (p *gitPublish) mark(before int) error {
	if p.work == nil {
		return nil
	}
	note, err := encodeMark(before, p.work.refs)
	if err != nil {
		return err
	}
	return p.l.MarkGit(note)
}

// move moves the refs; the files are in the tree. It says whether all are as they are to be.
func (p *gitPublish) move() (notes []string, whole bool) {
	if p.work == nil {
		return nil, true
	}
	return p.r.bringRefs(p.l, p.work, false)
}

// end takes away the mark.
func (p *gitPublish) end() error {
	if p.work == nil {
		return nil
	}
	return p.l.UnmarkGit()
}

// gitStays says whether the draft's layer has commits that are in the tree's .git not.
func (r *Recorder) gitStays(rec *history.Record) bool {
	if rec.Draft.Git == 0 {
		return false
	}
	l, free, err := r.holdLayer(rec)
	if err != nil || l == nil {
		return err != nil
	}
	defer free()
	g, err := r.gitWorkOf(context.Background(), l)
	return err != nil || g.stays()
}

// bringObjects copies the objects that the tree's .git lacks, durably.
func (r *Recorder) bringObjects(ctx context.Context, l *layer.Layer, g *gitWork) error {
	if len(g.objects) == 0 {
		return nil
	}
	live, err := r.project.Dir.OpenDir(gitDir)
	if err != nil {
		return err
	}
	defer live.Close()
	for _, indexes := range []bool{false, true} { // git finds a pack by its index
		err := l.GitChanges(ctx, func(c *layer.Change) error {
			name := strings.TrimPrefix(string(c.Path), gitDir+"/")
			if !g.objects[name] || (path.Ext(name) == ".idx") != indexes {
				return nil
			}
			to, err := placeOf(live, name, true)
			if err != nil {
				return err
			}
			defer to.close()
			return copyGitObject(c, name, to)
		})
		if err != nil {
			return err
		}
	}
	objects, err := live.OpenDir("objects")
	if err != nil {
		return err
	}
	defer objects.Close()
	return objects.Sync() // a directory in it may be one that a dead process made
}

// copyGitObject copies one file, if there is none of the name, and it is what git wrote.
func copyGitObject(c *layer.Change, name string, to gitPlace) error {
	if _, err := to.Stat(to.base); !isMissing(err) {
		return err
	}
	from, err := c.To().Open(c.Name())
	if err != nil {
		return err
	}
	defer from.Close()
	if err := checkGitObject(name, from); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	perm, err := gitPerm(to.Dir, 0o444)
	if err != nil {
		return err
	}
	return disk.Replace(to.Dir, to.base, disk.Replacement{Perm: perm, Flush: true, Temp: "tmp_obj_" + to.base}, func(f disk.File) error { return disk.Copy(f, from) })
}

// A gitMark is what a layer is marked with while a publish brings what it has in .git: a recovery
// moves the refs by it, and not by what the tree and the layer have by then.
type gitMark struct {
	// Before is how many records had published of the draft before, by which it is known whether the
	// publish is one; -1: it is none, as there was no file to be moved.
	Before int       `json:"before"`
	Refs   []gitMove `json:"refs"`
}

// A gitMove is a gitRef. A name may be any bytes.
type gitMove struct {
	Name []byte `json:"name"`
	Was  []byte `json:"was"`
	Is   []byte `json:"is"`
}

// encodeMark is the mark of a publish of refs.
func encodeMark(before int, refs []gitRef) ([]byte, error) {
	m := gitMark{Before: before}
	for _, ref := range refs {
		m.Refs = append(m.Refs, gitMove{[]byte(ref.name), []byte(ref.was), []byte(ref.is)})
	}
	return json.Marshal(m)
}

func decodeMark(note []byte) (before int, refs []gitRef, err error) {
	var m gitMark
	err = json.Unmarshal(note, &m)
	for _, ref := range m.Refs {
		refs = append(refs, gitRef{name: string(ref.Name), was: string(ref.Was), is: string(ref.Is)})
	}
	return m.Before, refs, err
}

// finishGit moves the refs of each publish whose decree died when the files were in the tree.
func (c *recovery) finishGit(ctx context.Context) error {
	return c.r.eachLayer(func(place *layer.Place, name string) error {
		l, err := place.Open(name)
		if diskTrouble(err) {
			return err
		}
		if err != nil {
			return nil //nolint:nilerr // tidyLayers looks at it
		}
		defer l.Close()
		note, marked, err := l.GitMark()
		if err != nil || !marked {
			return err
		}
		rec, err := c.r.history.Get(name)
		if err != nil || rec.Draft == nil {
			return nil //nolint:nilerr // the same
		}
		if err := c.finishGitOf(ctx, l, rec, note); err != nil {
			return err
		}
		return l.UnmarkGit()
	})
}

// finishGitOf is finishGit for one draft. What cannot be finished stays in its layer.
func (c *recovery) finishGitOf(ctx context.Context, l *layer.Layer, rec *history.Record, note []byte) error {
	before, refs, err := decodeMark(note)
	if rec.Draft.Waits() && (err != nil || before >= 0 && len(rec.Draft.By) <= before) {
		return nil //nolint:nilerr // the publish was not made
	}
	if err != nil {
		c.add(nil, "the publish of draft %[1]s was not finished in .git, as its mark cannot be read (%[2]v): its layer stays, and 'decree publish --with-git %[1]s' does it", draftName(rec), err)
		return c.r.publishedInPart(rec)
	}
	work, err := c.r.gitWorkOf(ctx, l)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	notes := []string{}
	if err != nil { // that of the refs has nothing to do with it
		work, notes = &gitWork{}, []string{fmt.Sprintf("its logs and its index are left as they are: %v", err)}
	}
	notes = append(notes, work.leftNotes()...)
	work.refs = refs
	moved, whole := c.r.bringRefs(l, work, true)
	notes = slices.Concat([]string{fmt.Sprintf("the publish of draft %s was finished in .git: %s", draftName(rec), work.names())}, notes, moved)
	if !whole {
		notes = append(notes, fmt.Sprintf("the layer of draft %s stays", draftName(rec)))
	}
	c.add(nil, "%s", strings.Join(notes, "; "))
	if whole || rec.Draft.Waits() {
		return nil
	}
	return c.r.publishedInPart(rec)
}

// publishedInPart has a draft wait whose files are published, and of whose .git something is left.
func (r *Recorder) publishedInPart(rec *history.Record) error {
	return r.history.SetDrafts([]string{rec.ID}, history.DraftPartly)
}
