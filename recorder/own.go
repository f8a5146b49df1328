package recorder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// ownFile is what a person put into .decree: the config, a routine, a message, a
// link, a directory.
type ownFile struct {
	Path   string    `json:"path"` // below .decree; "." is .decree itself
	Mode   uint32    `json:"mode"`
	Hash   tree.Hash `json:"sha256"`
	Target string    `json:"target,omitempty"` // of a link
	Dir    bool      `json:"dir,omitempty"`
	Ino    uint64    `json:"ino,omitempty"`   // 0: noted by an older decree
	Mtime  int64     `json:"mtime,omitempty"` // of a file, in ns since 1970: a message's place in the queue; 0: not known

	act    int64 // where the log of acts has its content, and 1; 0: the store has it
	beside bool  // another file was put in its place, and it is to lie beside that one
}

// extraOwn is the place of the user's own files in an open record.
const extraOwn = "own"

// extraDeleted is the place there of those that its command, which has ended, has deleted.
const extraDeleted = "deleted"

// notOwn is what decree makes itself in .decree.
var notOwn = map[string]bool{".gitignore": true, "project.json": true, "runs": true, "tmp": true, "store": true, "aside": true, "backup": true, "restored": true,
	project.DoneDir: true} // each message that was done is in its run's directory

// uncopiedDirs are the directories in .decree that decree fills for the user, and has no copy of elsewhere.
var uncopiedDirs = []string{"aside", "backup", "restored"}

// lacks says whether .decree has nothing of that name.
func (r *Recorder) lacks(name string) bool {
	_, err := r.project.Decree.Stat(name)
	return isMissing(err)
}

// ownSet are the user's own files in .decree as they were when a run began.
type ownSet struct {
	files []ownFile // all but those that are in large; a directory comes before what it holds
	large []*largeDir
	acts  *int64 // where the log of acts goes on from there; nil: it is not known
	began int64  // what changed later, in ns since 1970, changed in the run; 0: not known
}

// ownCache is what a process knows of the user's own files from one run to the next.
type ownCache struct {
	stamps map[string]ownStamp  // files as they were read last, by path
	large  map[string]*largeDir // by path
	log    ownLog
	packs  map[string]disk.Info // of the store, when all was flushed
	aside  sync.Mutex           // held to put aside what stands in the place of one
}

// forget ends the watches: what they know was not made durable.
func (c *ownCache) forget() {
	for _, d := range c.large {
		d.watch.Close()
	}
	c.large = nil
	c.log.close()
}

// quoted is the file for an open record, its names quoted as in the manifest: JSON
// holds no bytes that are not UTF-8.
func (f ownFile) quoted() ownFile {
	f.Path, f.Target = tree.Quote(f.Path), tree.Quote(f.Target)
	return f
}

// unquoted undoes quoted. Names from before they were quoted stand as they are.
func (f ownFile) unquoted() ownFile {
	f.Path, f.Target = tree.Unquoted(f.Path), tree.Unquoted(f.Target)
	return f
}

// encodeOwn is files for an open record.
func encodeOwn(files []ownFile) (json.RawMessage, error) {
	out := make([]ownFile, 0, len(files))
	for _, f := range files {
		out = append(out, f.quoted())
	}
	return json.Marshal(out)
}

// decodeOwn undoes encodeOwn.
func decodeOwn(raw json.RawMessage) (files []ownFile, err error) {
	if raw == nil {
		return nil, nil
	}
	err = json.Unmarshal(raw, &files)
	for i, f := range files {
		files[i] = f.unquoted()
	}
	return files, err
}

// ownFiles stores the user's own files in .decree: the tree's manifest leaves
// .decree out, and a command may delete it. brief: a large directory is passed over, as
// for an agent that waits.
func (r *Recorder) ownFiles(x *writeSession, brief bool) (own ownSet, err error) {
	self, err := r.project.Decree.Self()
	if err != nil {
		return own, err
	}
	if err := r.lookForLost(x); err != nil {
		return own, err
	}
	acts, err := r.project.BeginActs(brief)
	if err != nil {
		return own, err
	}
	own.acts = &acts
	own.began = time.Now().UnixNano() - int64(disk.CoarseTick)
	l := &ownLook{r: r, x: x, brief: brief, large: map[string]*largeDir{}}
	own.files = []ownFile{{Path: ".", Mode: self.Mode, Dir: true, Ino: self.Ino}}
	err = eachOwn(r.project.Decree, "", l.list, func(dir disk.Dir, name, at string, info disk.Info) error {
		f, ok, err := l.look(dir, name, at, info)
		switch d := l.large[path.Dir(at)]; {
		case d != nil && (f.Dir || !ok):
			d.again[name] = true
		case d != nil && err == nil:
			d.put(f, info)
			return nil
		}
		if ok && err == nil {
			own.files = append(own.files, f)
		}
		return err
	})
	if err != nil {
		return own, err
	}
	if len(l.barred) > 0 {
		r.note("not stored, as you may not read it: %s; if the command deletes it, it cannot be written again", some(l.barred))
	}
	if len(l.above) > 0 {
		r.note("not stored, as it is larger than capture.max_file: %s; if the command deletes it, it cannot be written again", some(l.above))
	}
	for at, d := range r.own.large {
		if l.large[at] != d {
			d.watch.Close()
			r.own.log.stale = true
		}
	}
	r.own.large = l.large
	for _, at := range slices.Sorted(maps.Keys(l.large)) {
		own.large = append(own.large, l.large[at])
	}
	return own, nil
}

// note puts the set but for what is in large into an open record.
func (s ownSet) note(extra map[string]json.RawMessage) (err error) {
	if extra[extraOwn], err = encodeOwn(s.files); err == nil {
		extra[extraActs], err = json.Marshal(s.acts)
	}
	return err
}

// lookForLost has files of large directories looked at again whose contents the store has
// lost with a pack: between two runs no record names them, so another process that frees
// space may have freed them.
func (r *Recorder) lookForLost(x *writeSession) error {
	now, err := packsOf(r.project.Store)
	if err != nil {
		return err
	}
	if lostPacks(r.own.packs, now) > 0 {
		for _, d := range r.own.large {
			d.lost(x.w.Has)
		}
	}
	return nil
}

// ownLook is a look at the user's own files before a run.
type ownLook struct {
	r      *Recorder
	x      *writeSession
	brief  bool
	barred []string
	above  []string             // larger than capture.max_file
	large  map[string]*largeDir // by path
}

// list are the names in a directory that have to be looked at.
func (l *ownLook) list(dir disk.Dir, prefix string) ([]disk.Entry, error) {
	at := path.Dir(prefix + "any")
	if d := l.r.own.large[at]; d != nil && len(d.files) >= largeFrom/2 && d.see(dir) {
		l.large[at] = d
		return d.due(), nil
	}
	list, err := dir.List()
	if err != nil || len(list) < largeFrom {
		return list, err
	}
	if l.brief {
		return nil, nil
	}
	d := watchLarge(dir, at)
	if d == nil {
		return list, nil
	}
	l.large[at] = d
	l.r.own.log.stale = true
	return dir.List() // again: what changed before it was watched left no event
}

// look stores one entry that list named; ok is false if it is not there any more, or may not
// be read.
func (l *ownLook) look(dir disk.Dir, name, at string, info disk.Info) (own ownFile, ok bool, err error) {
	own = ownFile{Path: at, Mode: info.Mode, Dir: info.Kind == disk.Directory, Ino: info.Ino}
	if info.Kind != disk.Directory && ofEditor.MatchString(name) {
		return own, false, nil
	}
	switch info.Kind {
	case disk.Symlink:
		own.Target, err = dir.Readlink(name)
	case disk.Regular:
		own.Mtime = info.Mtime
		if most := l.r.project.Config.MaxFile; most > 0 && info.Size > most {
			l.above = append(l.above, ".decree/"+at)
			return own, false, nil
		}
		own.Hash, err = l.r.putOwn(l.x, dir, name, at, info)
	case disk.Directory:
		if derr := tryLooking(dir, name); errors.Is(derr, fs.ErrPermission) { // it can be made again, what it holds not
			l.barred = append(l.barred, ".decree/"+at)
		}
	}
	switch {
	case isMissing(err):
		return own, false, nil // a person has just taken it away
	case errors.Is(err, fs.ErrPermission):
		l.barred = append(l.barred, ".decree/"+at)
		return own, false, nil
	}
	return own, err == nil, err
}

// ofEditor are the names of what vim and Emacs keep beside a file that is open in them, and remove when it is closed: whoever deletes such a file, it is
// not written again.
var ofEditor = regexp.MustCompile(`^(\..*\.sw[a-p]|\.#.*|#.*#)$`)

// tryLooking is the error of looking into a directory: one may be listed that may not be
// searched (mode 600).
func tryLooking(dir disk.Dir, name string) error {
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	if _, err = sub.Stat("any"); isMissing(err) {
		return nil
	}
	return err
}

// ownStamp is what was known of a file when it was stored.
type ownStamp struct {
	info disk.Info
	hash tree.Hash
}

// putOwn stores a file. In a process that records many runs over a full inbox a
// file that is as it was is not read again.
func (r *Recorder) putOwn(x *writeSession, dir disk.Dir, name, path string, info disk.Info) (tree.Hash, error) {
	c := &r.own
	if s, ok := c.stamps[path]; ok && s.info == info && x.w.Has(s.hash) {
		return s.hash, nil
	}
	old := time.Now().UnixNano() - int64(disk.CoarseTick) // what changed since may have changed after the reading, unseen
	sum, err := putFile(x, dir, name, info.Size)
	if err == nil && info.Ctime < old && info.Mtime < old {
		if c.stamps == nil || len(c.stamps) > maxOwned {
			c.stamps = map[string]ownStamp{}
		}
		c.stamps[path] = ownStamp{info, sum}
	}
	return sum, err
}

// maxOwned bounds what putOwn remembers; above it, it begins anew.
const maxOwned = 200000

func putFile(x *writeSession, dir disk.Dir, name string, size int64) (tree.Hash, error) {
	f, err := dir.Open(name)
	if err != nil {
		return tree.Hash{}, err
	}
	defer f.Close()
	sum, _, err := x.w.Put(f, size)
	return sum, err
}

// allOf are all names in a directory.
func allOf(dir disk.Dir, _ string) ([]disk.Entry, error) { return dir.List() }

// eachOwn calls each for the files, links and directories below dir that names lists;
// decree's own at the top are passed over, and directories that may not be read.
func eachOwn(dir disk.Dir, prefix string, names func(dir disk.Dir, prefix string) ([]disk.Entry, error), each func(dir disk.Dir, name, path string, info disk.Info) error) error {
	list, err := names(dir, prefix)
	if err != nil {
		return err
	}
	for _, e := range list {
		if notOwn[prefix+e.Name] {
			continue
		}
		info, err := dir.Stat(e.Name)
		if isMissing(err) || err == nil && info.Kind == disk.Special {
			continue
		}
		if err == nil {
			err = each(dir, e.Name, prefix+e.Name, info)
		}
		if err == nil && info.Kind == disk.Directory {
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = eachOwn(sub, prefix+e.Name+"/", names, each)
				sub.Close()
			}
			if errors.Is(err, fs.ErrPermission) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearOwn puts aside what a command made in the place of the user's own directories and
// of config.yml, so that these can be written again, and takes back the rights that
// decree needs to look into them. What it may not move stays. What stands in the place
// of other files is left to bringOne: they may have been moved, which missingOwn finds out.
func (r *Recorder) clearOwn(files []ownFile) error {
	for _, f := range files {
		if f.Path == "." || !f.Dir && (f.Path != configFile || f.Target != "") {
			continue
		}
		err := r.clearOne(f)
		if err != nil && !isMissing(err) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
	}
	return nil
}

const configFile = "config.yml"

func (r *Recorder) clearOne(f ownFile) error {
	dir, err := r.openOwn(path.Dir(f.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := path.Base(f.Path)
	st, err := dir.Stat(name)
	switch {
	case err != nil:
		return err
	case f.Dir && st.Kind != disk.Directory, !f.Dir && st.Kind != disk.Regular:
		return r.project.PutAside(dir, name)
	case f.Dir && st.Mode&0o700 != f.Mode&0o700:
		return dir.Chmod(name, st, st.Mode|f.Mode&0o700)
	}
	return nil
}

// numbered is the end of a message's name that it got beside another of its name.
var numbered = regexp.MustCompile(`\.[0-9]+(\.md)$`)

// has says whether a file was there under this path.
func (s ownSet) has(at string) bool {
	if slices.ContainsFunc(s.files, func(f ownFile) bool { return f.Path == at }) {
		return true
	}
	for _, d := range s.large {
		if _, known := d.files[path.Base(at)]; known && d.at == path.Dir(at) {
			return true
		}
	}
	return false
}

// missingOwn are those of own that are not there any more, or in whose place a
// directory, a pipe or a socket is. A message that lies elsewhere in the inbox now was
// moved and is not missing; the same holds of a routine below routines. blocked are the
// directories that cannot be read any more: nothing is known of what was in them.
func (r *Recorder) missingOwn(own ownSet) (missing []ownFile, blocked []string, err error) {
	dirs := ownDirs{r: r, kinds: map[string]map[string]disk.Kind{}, large: map[string]disk.Dir{}}
	defer dirs.close()
	files, err := r.asActed(own.acts, own.suspects(&dirs))
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		if !dirs.has(f) {
			missing = append(missing, f)
		}
	}
	if len(missing) > 0 {
		missing, err = r.withoutMoved(own, missing)
	}
	return missing, dirs.blocked, err
}

// suspectOwn are those of own that may not be as they were.
func (r *Recorder) suspectOwn(own ownSet) []ownFile {
	dirs := ownDirs{r: r, kinds: map[string]map[string]disk.Kind{}, large: map[string]disk.Dir{}}
	defer dirs.close()
	return own.suspects(&dirs)
}

// suspects are suspectOwn. dirs is told how to look for them.
func (s ownSet) suspects(dirs *ownDirs) []ownFile {
	files := slices.Clip(s.files)
	for _, d := range s.large {
		for _, name := range d.suspects(dirs) {
			if f, known := d.files[name]; known {
				files = append(files, f)
			}
		}
	}
	return files
}

// onlyDeadMessages says whether all that is missing are dead messages, of which no command was told
// while the run went on, and their directory is still there: people delete these while a daemon works, and they must not come back. A
// command that deletes the whole inbox also deletes the message that is being done, which
// tells the two apart even where something has made the directory again meanwhile.
func onlyDeadMessages(missing []ownFile) bool {
	return !slices.ContainsFunc(missing, func(f ownFile) bool { return f.act == 0 && path.Dir(f.Path) != project.DeadDir })
}

// displaced are those of missing in whose place something else is, and those that a person's
// command has put there while the run went on.
func (r *Recorder) displaced(missing []ownFile) []ownFile {
	return slices.DeleteFunc(missing, func(f ownFile) bool {
		if f.act != 0 {
			return false
		}
		dir, err := r.openOwn(path.Dir(f.Path))
		if err != nil {
			return true
		}
		defer dir.Close()
		_, err = dir.Stat(path.Base(f.Path))
		return err != nil
	})
}

// ownDirs are the names and kinds in the directories below .decree, each read at first
// use: a stat of each of 100,000 messages would take too long.
type ownDirs struct {
	r       *Recorder
	large   map[string]disk.Dir             // open; each of the few files that are asked for is looked at
	kinds   map[string]map[string]disk.Kind // by the path below .decree
	blocked []string
}

func (d *ownDirs) close() {
	for _, dir := range d.large {
		dir.Close()
	}
}

// has says whether the file is there, or nobody can tell.
func (d *ownDirs) has(f ownFile) bool {
	if f.Path == "." || f.beside {
		return !f.beside
	}
	at := path.Dir(f.Path)
	if dir := d.large[at]; dir != nil {
		now, err := dir.Stat(path.Base(f.Path))
		return !isMissing(err) && (err != nil || !f.displacedBy(now.Kind))
	}
	kinds, known := d.kinds[at]
	if !known {
		kinds = d.list(at)
		d.kinds[at] = kinds
	}
	if kind, there := kinds[path.Base(f.Path)]; there {
		return !f.displacedBy(kind)
	}
	return slices.ContainsFunc(d.blocked, func(b string) bool { return f.Path == b || strings.HasPrefix(f.Path, b+"/") })
}

// displacedBy says whether what is at the file's path now cannot be the file or a new
// version of it. A link may be a person's, to where the file is kept now.
func (f ownFile) displacedBy(now disk.Kind) bool {
	return !f.Dir && f.Target == "" && (now == disk.Directory || now == disk.Special)
}

// list are the names in a directory with their kinds; one that is missing has none.
func (d *ownDirs) list(at string) map[string]disk.Kind {
	dir, err := d.r.openOwn(at)
	if isMissing(err) {
		return nil
	}
	var list []disk.Entry
	if err == nil {
		list, err = dir.List()
		dir.Close()
	}
	if err != nil {
		d.blocked = append(d.blocked, at)
	}
	kinds := make(map[string]disk.Kind, len(list))
	for _, e := range list {
		kinds[e.Name] = e.Kind
	}
	return kinds
}

// openOwn opens a directory below .decree as it is now.
func (r *Recorder) openOwn(at string) (disk.Dir, error) {
	return disk.OpenPath(r.project.Dir, path.Join(".decree", at))
}

// sumOfFile hashes a file, which may be of any size.
func sumOfFile(dir disk.Dir, name string) (tree.Hash, error) {
	f, err := dir.Open(name)
	if err != nil {
		return tree.Hash{}, err
	}
	defer f.Close()
	return sumOf(context.Background(), f)
}

// withoutMoved leaves out of missing what lies somewhere else below the same
// directory of .decree: the same inode, with the same content. What the queue took for a
// message, a job or a routine by its old name, and does not by its new one, is missing.
//
// One that was written again in this run has another inode than the one that is noted. It is
// known by its name, where there was no such file when the run began: one that lay in done before is another, of which it is a copy.
func (r *Recorder) withoutMoved(own ownSet, missing []ownFile) ([]ownFile, error) {
	type key struct {
		top  string
		ino  uint64
		name string
	}
	wanted := map[key]int{}
	for i, f := range missing {
		if top, _, below := strings.Cut(f.Path, "/"); below && f.Ino != 0 {
			wanted[key{top: top, ino: f.Ino}] = i
			wanted[key{top: top, name: path.Base(f.Path)}] = i
		}
	}
	moved := map[int]bool{}
	look := func(dir disk.Dir, name, at string, info disk.Info) error {
		top, _, _ := strings.Cut(at, "/")
		if strings.HasPrefix(name, ownDraft) {
			return nil // what a death left of writing one again, and may have its inode
		}
		for _, k := range []key{{top: top, ino: info.Ino}, {top: top, name: name}, {top: top, name: numbered.ReplaceAllString(name, "$1")}} {
			i, ok := wanted[k]
			if !ok {
				continue
			}
			f := missing[i]
			if f.Dir != (info.Kind == disk.Directory) || !f.Dir && leftQueue(f.Path, at) || k.ino == 0 && (info.Kind != disk.Regular || own.has(at) || info.Ctime < own.began) {
				continue
			}
			if info.Kind == disk.Regular {
				sum, err := sumOfFile(dir, name)
				if err != nil || sum != f.Hash {
					continue // then it is another one
				}
			}
			moved[i] = true
			return nil
		}
		return nil
	}
	if err := r.eachOwnOrDone(look); err != nil {
		return nil, err
	}
	var left []ownFile
	for i, f := range missing {
		if !moved[i] {
			left = append(left, f)
		}
	}
	return left, nil
}

// leftQueue says whether the queue takes a file for a message, a job or a routine under the path was below .decree, and not
// under now. Another directory into which it was moved may be a person's, who wants it to wait there.
func leftQueue(was, now string) bool {
	if path.Dir(was) != path.Dir(now) {
		return false
	}
	top, _, _ := strings.Cut(was, "/")
	end := path.Ext(was)
	switch {
	case (top == project.InboxDir || top == "cron") && end == messageEnd, top == "routines" && (end == ".sh" || end == ".ipynb"):
		return path.Base(was)[0] != '.' && (path.Ext(now) != end || path.Base(now)[0] == '.')
	}
	return false
}

// eachOwnOrDone calls look for the user's own files in .decree, and for the messages that
// are done, which are not among them.
func (r *Recorder) eachOwnOrDone(look func(dir disk.Dir, name, at string, info disk.Info) error) error {
	decree, err := r.openOwn(".")
	if err != nil {
		return err
	}
	defer decree.Close()
	if err := eachOwn(decree, "", allOf, look); err != nil {
		return err
	}
	done, err := disk.OpenPathWritable(decree, project.DoneDir)
	if err == nil {
		err = eachOwn(done, project.DoneDir+"/", allOf, look)
		done.Close()
	}
	return notThere(err)
}

// goneWhileItRan takes apart what is missing after a run whose end nobody saw: what
// went while its command worked, and what a person may have deleted since, who did
// not want it any more. A directory that is gone, or was made anew, the command has
// deleted: nobody throws away a whole inbox to cancel one message. Of a directory
// that stands it is certain only if nothing changed there since the last output, or
// if it was noted when the command had ended.
func (r *Recorder) goneWhileItRan(o *history.Opened, own, missing []ownFile) (by, unclear []ownFile) {
	end, _ := r.lastOutput(o.Record.ID)
	noted, _ := decodeOwn(o.Extra[extraDeleted])
	dirs := map[string]bool{} // whether the command has deleted what is missing from a directory
	for _, f := range own {
		if f.Dir {
			dirs[f.Path] = r.isAnother(f, own) || r.unchangedSince(f.Path, end)
		}
	}
	for _, f := range missing {
		command, known := dirs[path.Dir(f.Path)]
		if command || !known || slices.ContainsFunc(noted, func(g ownFile) bool { return g.Path == f.Path }) {
			by = append(by, f)
		} else {
			unclear = append(unclear, f)
		}
	}
	return by, unclear
}

// aside are files under names that nothing takes for a message, a job or a routine.
func aside(files []ownFile) (out []ownFile) {
	const end = ".deleted"
	for _, f := range files {
		if f.Dir {
			continue
		}
		at, name := path.Split(strings.TrimSuffix(f.Path, end)) // it may have gone so before
		if len(name)+len(end) > longestName {
			sum := sha256.Sum256([]byte(name))
			mark := fmt.Sprintf("-%x", sum[:4]) // two names may differ in their ends alone
			name = strings.ToValidUTF8(name[:longestName-len(mark)-len(end)], "") + mark
		}
		f.Path = at + name + end
		out = append(out, f)
	}
	return out
}

// longestName is what every file system at hand takes as a name, in bytes.
const longestName = 255

// isAnother says whether a directory is gone, or is not the one that it was. The
// inode of one that was deleted may be given to its successor; but that holds
// nothing of what the first one held.
func (r *Recorder) isAnother(d ownFile, own []ownFile) bool {
	dir, err := r.openOwn(d.Path)
	if err != nil {
		return isMissing(err)
	}
	defer dir.Close()
	if self, err := dir.Self(); err != nil || d.Ino != 0 && self.Ino != d.Ino {
		return err == nil
	}
	files := 0
	for _, f := range own {
		if f.Path == "." || path.Dir(f.Path) != d.Path {
			continue
		}
		files++
		if info, err := dir.Stat(path.Base(f.Path)); err == nil && info.Ino == f.Ino {
			return false
		}
	}
	return files > 1 // one file alone may have been deleted by itself
}

// unchangedSince says whether nothing came into a directory or went since then.
func (r *Recorder) unchangedSince(at string, then int64) bool {
	dir, err := r.openOwn(at)
	if err != nil {
		return false
	}
	defer dir.Close()
	self, err := dir.Self()
	return err == nil && self.Mtime <= then
}

// ownNames are the paths of files, below the root, sorted; those of directories only if
// nothing in them is named.
func ownNames(files []ownFile) (names []string) {
	for i, f := range files {
		below := func(g ownFile) bool { return strings.HasPrefix(g.Path, f.Path+"/") }
		if !f.Dir || !slices.ContainsFunc(files[i+1:], below) {
			names = append(names, ".decree/"+f.Path)
		}
	}
	slices.Sort(names)
	return names
}

// bringOwn makes the user's own files in .decree again where they are missing, and
// returns them. One that another user's rights or a mount keep out, or that the store has lost, is noted.
// Directories get their modes last: they may forbid what is made in them. Of thousands of messages the
// flushes wait side by side.
func (r *Recorder) bringOwn(files []ownFile) (brought []ownFile, err error) {
	var made []ownFile
	var barred []string
	var cause error
	missing, errs := make([]bool, len(files)), make([]error, len(files))
	plain := func(f ownFile) bool { return !f.Dir && f.Target == "" && !f.beside }
	for i, f := range files { // directories before what they hold
		if !plain(f) {
			missing[i], errs[i] = r.bringOne(f)
		}
	}
	_ = sideBySide(context.Background(), flushers, len(files), func(i int) error {
		if plain(files[i]) {
			missing[i], errs[i] = r.bringOne(files[i])
		}
		return nil
	})
	dirs := map[string]bool{}
	for i, f := range files {
		if at := path.Dir(f.Path); errs[i] == nil && missing[i] && !dirs[at] {
			dirs[at] = true
			errs[i] = disk.InDir(r.project.Dir, path.Join(".decree", at), disk.Dir.Sync)
		}
	}
	for i, f := range files {
		err := errs[i]
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EBUSY) || lostContents(err) {
			barred, cause = append(barred, ".decree/"+f.Path), err
			continue
		}
		if err != nil {
			return brought, fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
		brought = append(brought, f)
		if missing[i] && f.Dir {
			made = append(made, f)
		}
	}
	if len(barred) > 0 {
		r.note("deleted or replaced while the command ran, and cannot be written again: %s (%v)", some(barred), cause)
	}
	for _, f := range slices.Backward(made) {
		dir, name, err := r.ownDir(f.Path)
		if err == nil {
			var is disk.Info
			if is, err = dir.Stat(name); err == nil {
				err = dir.Chmod(name, is, f.Mode&0o777)
			}
			dir.Close()
		}
		if err != nil {
			return brought, fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
	}
	return brought, nil
}

// ownDir opens the directory of a path below .decree, and makes what is missing of it.
func (r *Recorder) ownDir(path string) (disk.Dir, string, error) {
	parts := strings.Split(path, "/")
	dir, err := r.project.Dir.OpenDir(".decree")
	if err != nil {
		return nil, "", err
	}
	for _, p := range parts[:len(parts)-1] {
		next, err := dir.OpenDir(p)
		if isMissing(err) {
			next, err = project.MakeDir(dir, p, 0o755)
		}
		dir.Close()
		if err != nil {
			return nil, "", err
		}
		dir = next
	}
	return dir, parts[len(parts)-1], nil
}

// bringOne says whether there was nothing at the path, and it made the file,
// link or directory. What displaced a file is put aside.
func (r *Recorder) bringOne(f ownFile) (missing bool, err error) {
	dir, name, err := r.ownDir(f.Path)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	st, err := dir.Stat(name)
	for n := 2; err == nil && f.beside; n++ {
		name = besideName(path.Base(f.Path), n)
		st, err = dir.Stat(name)
	}
	switch {
	case isMissing(err):
	case err != nil || !f.displacedBy(st.Kind):
		return false, err
	default:
		r.own.aside.Lock()
		err = r.project.PutAside(dir, name)
		r.own.aside.Unlock()
		if err != nil {
			return false, err
		}
	}
	switch {
	case f.Dir:
		sub, err := project.MakeDir(dir, name, 0o755)
		if err == nil {
			sub.Close()
		}
		return true, err
	case f.Target != "":
		return true, makeLink(dir, f.Target, name)
	}
	draft := draftOf(f)
	err = disk.Replace(dir, name, disk.Replacement{Perm: f.Mode & 0o777, Temp: draft, Place: dir.RenameNew}, func(to disk.File) error {
		if err := r.writeOwn(to, f); err != nil {
			return err
		}
		is, err := to.Stat()
		if err == nil && f.Mtime != 0 {
			err = dir.SetMtime(draft, is, f.Mtime)
		}
		return cmp.Or(err, to.Sync())
	})
	if errors.Is(err, fs.ErrExist) { // somebody has made one meanwhile
		return false, nil
	}
	return true, err
}

// besideName is the n-th name of a file beside the one that has its own.
func besideName(name string, n int) string {
	end := fmt.Sprintf(".%d%s", n, path.Ext(name))
	name = strings.TrimSuffix(name, path.Ext(name))
	if len(name)+len(end) > longestName {
		name = strings.ToValidUTF8(name[:longestName-len(end)], "")
	}
	return name + end
}

// ownDraft is what the names of files begin with that are being written again. The files' own names may be too
// long, or another's. A death leaves one to the next recovery, which writes it anew.
const ownDraft = ".decree-draft"

// draftOf is the name that a file has until it is whole, another for each that is missing.
func draftOf(f ownFile) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", f.act, f.Path))
	return fmt.Sprintf("%s-%x", ownDraft, sum[:8])
}

// makeLink makes a link that belongs to the directory's owner, also under sudo.
func makeLink(dir disk.Dir, target, name string) error {
	if err := dir.Symlink(target, name); err != nil {
		return err
	}
	self, err := dir.Self()
	if err != nil {
		return err
	}
	st, err := dir.Stat(name)
	if err != nil || st.UID == self.UID {
		return err
	}
	return dir.Chown(name, st, self.UID, self.GID)
}
