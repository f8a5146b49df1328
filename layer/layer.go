package layer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"decree/disk"
	"decree/layer/overlay"
)

// A Mechanism is how a layer comes to have what the root has.
type Mechanism string

const (
	Overlay Mechanism = "overlay"
	Clone   Mechanism = "clone"
)

// ErrUnfinished is returned by Open for a layer that was not made to the end.
var ErrUnfinished = errors.New("the layer was not made to the end")

// ErrDamaged is returned by Open for a layer that somebody else has changed: what it told is
// unreadable, or something else is in the place of its directories.
var ErrDamaged = errors.New("the layer is not as decree made it")

// A Place is where the layers of one root lie. It is safe for concurrent use.
type Place struct {
	Dir  disk.Dir // private, outside the root, on the system's disk; its Path is absolute
	Root disk.Dir // the same
	// Clocks are directories in which a file may be made to read the clock of the root's
	// file system; Dir is asked before them. Without any that is on that file system nothing
	// of the root ever counts as settled.
	Clocks []disk.Dir
	Boot   string // names this boot of the system; "": what works is not remembered
}

// A Layer is one run's view of the root. It is not safe for concurrent use.
type Layer struct {
	place *Place
	dir   disk.Dir
	name  string
	facts facts
	again *again      // it was entered; nil: it was not
	aside bool        // MountAside was called, and LeaveAside not since
	watch *clockWatch // since it was made, by who made it
	names *nameWatch  // the same, of the root's
}

const (
	factsName = "layer.json"
	upperName = "upper"
	workName  = "work"
	asideName = "aside"
	treeName  = "tree"
	cloneName = "clone" // has tree, and nothing else: a command writes beside its root
	namesName = "names"
	version   = 2
	// besideFacts is the version of an earlier decree, which made tree beside the layer's facts.
	besideFacts = 1
)

// facts are what layer.json says. Times are change times, in nanoseconds since 1970.
type facts struct {
	Version   int       `json:"version"`
	Mechanism Mechanism `json:"mechanism"`
	moment
	// Ahead is how far the clock was ahead of the one that nobody can set.
	Ahead int64 `json:"ahead,omitempty"`
	// Cloned is the last moment of the cloning; what has a later change time was touched.
	Cloned int64 `json:"cloned,omitempty"`
	// Boot names the boot of the system in which the layer was made.
	Boot string `json:"boot,omitempty"`
}

// A moment is one by the clock that stamps the root's files, as far as their times tell.
type moment struct {
	// Settled: what changed in the root at this time or later is not known to be from before the
	// moment. 0: nothing is.
	Settled int64 `json:"settled"`
	// Last: what changed from Settled up to this time may be from before the moment or from after it,
	// as the clock is too coarse to tell; there contents decide. 0: nothing of that counts as from before.
	Last int64 `json:"last,omitempty"`
}

// timeless is the moment of a file system whose times tell nothing.
var timeless = moment{Last: math.MaxInt64}

// Make makes the layer called name. After an error nothing is left of it where that can
// be removed. A name that is taken is an error with fs.ErrExist in its chain; a place
// in the root is a *Refusal.
func (p *Place) Make(name string, how Mechanism, o CloneOptions) (*Layer, error) {
	if err := p.apart(how); err != nil {
		return nil, err
	}
	if err := p.Dir.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	dir, err := p.Dir.OpenDir(name)
	if err == nil {
		l := &Layer{place: p, dir: dir, name: name, facts: facts{Version: version, Mechanism: how, Boot: p.Boot}, watch: watchClock(), names: watchNames(p.Root)}
		if err = l.fill(o); err == nil {
			return l, nil
		}
		l.Close()
	}
	_ = disk.RemoveTree(p.Dir, name)
	return nil, err
}

// fill makes what is in the layer; its facts come last.
func (l *Layer) fill(o CloneOptions) (err error) {
	l.facts.Ahead = ahead()
	if l.facts.moment, err = l.settled(); err != nil {
		return err
	}
	if l.facts.Mechanism == Clone {
		err = l.clone(o)
	} else {
		err = makeUpper(l.dir, l.place.Root)
	}
	if err != nil {
		return err
	}
	return disk.Replace(l.dir, factsName, disk.Replacement{Perm: 0o600}, func(f disk.File) error {
		return json.NewEncoder(f).Encode(l.facts)
	})
}

// Coarse says that the times of the root's file system do not tell what was changed in the seconds before
// a layer was made from what was changed since: they are whole seconds, or no change time is kept,
// or the clock is not known, or files have other devices than their directories, as on an overlay over several file systems. Who makes a layer then has to know from elsewhere what the files are.
func (p *Place) Coarse() bool {
	m, err := p.now(p.Dir)
	return err != nil || m.Last != 0
}

// now reads the clock of the root's file system; a file can be made in own.
func (p *Place) now(own disk.Dir) (moment, error) {
	root, err := p.Root.Self()
	if err != nil {
		return moment{}, err
	}
	for _, d := range append([]disk.Dir{own}, p.Clocks...) {
		m, err := momentOf(d, root.Dev)
		if err != nil && d == own {
			return moment{}, err
		}
		if err == nil && m != timeless {
			return m, nil
		}
	}
	return timeless, nil
}

// settled is now. If the root was changed within the last tick of a fine clock, as by a shell that has just made a file
// in it for the command's output, nothing in the root could have a base; so it waits until the tick is over.
func (l *Layer) settled() (m moment, err error) {
	root, err := l.place.Root.Self()
	if err != nil {
		return m, err
	}
	m, err = l.place.now(l.dir)
	for err == nil && m.Last == 0 && root.Ctime >= m.Settled && root.Ctime-m.Settled <= int64(disk.FineTick) {
		time.Sleep(time.Duration(root.Ctime + 1 - m.Settled))
		m, err = l.place.now(l.dir)
	}
	return m, err
}

// momentOf is now, by the clock that stamps the files of d; timeless where that is not the one of
// the file system dev.
func momentOf(d disk.Dir, dev uint64) (moment, error) {
	self, err := d.Self()
	if err != nil || self.Dev != dev {
		return timeless, err
	}
	if keeps, err := disk.KeepsTimes(d); err != nil || !keeps {
		return timeless, err
	}
	in, err := disk.Stamp(d)
	if err != nil {
		return timeless, err
	}
	if in.Dev != dev { // an overlay over several file systems, whose files have devices of their own
		return timeless, nil
	}
	tick := disk.TickOf(in.Ctime)
	m := moment{Settled: in.Ctime - int64(tick)}
	if tick == disk.CoarseTick {
		m.Last = in.Ctime
	}
	return m, nil
}

// setBack says whether the clock was set back since the layer was made: then change times tell
// nothing. Of one that was set forward again meanwhile it is known only to who made the layer, and of one that was set
// while the system was down to nobody.
func (l *Layer) setBack() bool {
	return l.facts.Ahead != 0 && min(ahead(), l.watch.leastAhead()) < l.facts.Ahead-int64(disk.FineTick)
}

// makeUpper makes the upper directory in dir: its owner, mode and ACL are seen as the root's,
// and are those of like.
func makeUpper(dir, like disk.Dir) error {
	self, err := like.Self()
	if err != nil {
		return err
	}
	if err := dir.Mkdir(upperName, 0o700); err != nil {
		return err
	}
	up, err := dir.Stat(upperName)
	if err != nil {
		return err
	}
	if up.UID != self.UID || up.GID != self.GID {
		if err := dir.Chown(upperName, up, self.UID, self.GID); err != nil {
			return err
		}
	}
	made, err := dir.OpenDir(upperName)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := copyAttributes(like, made); err != nil {
		return err
	}
	return dir.Chmod(upperName, up, self.Mode)
}

// Open opens the layer called name; ErrUnfinished if it was not made to the end, ErrDamaged if
// it is not as it was made, an error with fs.ErrNotExist in its chain if there is none.
func (p *Place) Open(name string) (*Layer, error) {
	dir, err := p.Dir.OpenDir(name)
	if disk.OtherKind(err) {
		return nil, fmt.Errorf("%s is no directory: %w", filepath.Join(p.Dir.Path(), name), ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	l := &Layer{place: p, dir: dir, name: name}
	err = l.readFacts()
	if err == nil {
		err = l.checkPlaces()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Rebooted says whether the system was started anew since the layer was made. Where it had gone down
// at once, files of the layer may be torn or missing, however the command flushed them: the
// kernel passes that on to no disk.
func (l *Layer) Rebooted() bool {
	return l.facts.Boot != "" && l.place.Boot != "" && l.facts.Boot != l.place.Boot
}

// top is the name of the directory that has what the command wrote.
func (l *Layer) top() string {
	switch {
	case l.facts.Mechanism == Overlay:
		return upperName
	case l.facts.Version == besideFacts:
		return treeName
	}
	return cloneName + "/" + treeName
}

// Top opens the directory that has what the command wrote: of a clone all of it, of an overlay what
// is another than the root's.
func (l *Layer) Top() (disk.Dir, error) { return disk.OpenPath(l.dir, l.top()) }

// TopPath is the path of that directory.
func (l *Layer) TopPath() string { return l.Path() + "/" + l.top() }

// OpenWorkspace opens Workspace of a clone, link by link of the way from the layer on: who may write in the layer's
// directory could put a link into the place of what the path names.
func (l *Layer) OpenWorkspace() (disk.Dir, error) {
	if l.aside {
		return disk.OpenPath(l.dir, asideName+"/"+treeName)
	}
	return l.Top()
}

// checkPlaces looks whether the directory that has what the command wrote is one.
func (l *Layer) checkPlaces() error {
	name := l.top()
	in, err := disk.StatPath(l.dir, name)
	if disk.UnlessMissingOrOther(err) != nil {
		return err
	}
	if err != nil || in.Kind != disk.Directory {
		return fmt.Errorf("%s/%s is no directory: %w", l.Path(), name, ErrDamaged)
	}
	return nil
}

func (l *Layer) readFacts() error {
	in, err := l.dir.Stat(factsName)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", l.Path(), ErrUnfinished)
	}
	if err != nil {
		return err
	}
	if in.Kind != disk.Regular {
		return fmt.Errorf("%s/%s is no file: %w", l.Path(), factsName, ErrDamaged)
	}
	text, err := readFile(l.dir, factsName, 1<<12)
	if err != nil {
		return err
	}
	if len(bytes.Trim(text, "\x00")) == 0 {
		return fmt.Errorf("%s/%s is empty, as a power failure leaves what was not on the disk yet: %w", l.Path(), factsName, ErrDamaged)
	}
	if err := json.Unmarshal(text, &l.facts); err != nil {
		return fmt.Errorf("%s/%s: %w: %w", l.Path(), factsName, ErrDamaged, err)
	}
	if l.facts.Version != version && l.facts.Version != besideFacts || l.facts.Mechanism != Overlay && l.facts.Mechanism != Clone {
		return fmt.Errorf("%s/%s: version %d, mechanism %q: made by another version of decree", l.Path(), factsName, l.facts.Version, l.facts.Mechanism)
	}
	return nil
}

// readFile reads a file, or its first bytes where it has more than most.
func readFile(dir disk.Dir, name string, most int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// writeFile puts a file in the place of the one that is there.
func writeFile(dir disk.Dir, name string, data []byte, flush bool) error {
	return disk.Replace(dir, name, disk.Replacement{Perm: 0o600, Flush: flush}, disk.Content(data))
}

// Names lists the layers in no order, and what dead processes left or somebody put in a layer's
// place: Open refuses that.
func (p *Place) Names() (names []string, err error) {
	list, err := p.Dir.List()
	for _, e := range list {
		asLayer := e.Kind == disk.Directory || '0' <= e.Name[0] && e.Name[0] <= '9' // runs' ids; decree's other files have none
		if asLayer && !p.inUse(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// Remove removes the layer called name, whole or not. Nobody may see its mount any more.
// If the process dies in it, what is left is one that Open refuses.
func (p *Place) Remove(name string) error {
	dir, err := p.Dir.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if disk.OtherKind(err) { // somebody put it in the layer's place
		return p.Dir.Remove(name)
	}
	if err != nil {
		return err
	}
	err = dir.Remove(factsName)
	dir.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A process that waits to become a command can outlive its caller by some milliseconds,
	// and be in the middle of the mount, which makes directories in work.
	for pause := time.Millisecond; ; pause *= 2 {
		err := disk.RemoveTree(p.Dir, name)
		if !errors.Is(err, syscall.ENOTEMPTY) || pause > longestPause {
			return err
		}
		time.Sleep(pause)
	}
}

// longestPause is the last of the pauses in which Remove waits; together they are a second.
const longestPause = 512 * time.Millisecond

// Path is the layer's absolute path.
func (l *Layer) Path() string { return l.dir.Path() }

// Mechanism is how the layer was made.
func (l *Layer) Mechanism() Mechanism { return l.facts.Mechanism }

// Settled is the moment, by the clock that stamps the root's files, in nanoseconds since 1970,
// from which on a change of the root may be younger than the layer; 0 where that clock is not
// known.
func (l *Layer) Settled() int64 { return l.facts.Settled }

// Workspace is the absolute path at which the command sees the tree; between MountAside and
// LeaveAside the one at which it is looked at.
func (l *Layer) Workspace() string {
	switch {
	case l.facts.Mechanism == Overlay:
		return l.place.Root.Path()
	case l.aside:
		return filepath.Join(l.Path(), asideName, treeName)
	}
	return filepath.Join(l.Path(), l.top())
}

// Lock takes the layer's lock, which who works in it holds; disk.ErrLocked when another
// has it.
func (l *Layer) Lock() (unlock func() error, err error) { return l.dir.TryLock() }

// Look makes it known, until done is called or the process ends, that the run's process looks at the root to learn what is in it.
func (l *Layer) Look() (done func() error, err error) {
	dir, err := l.dir.OpenDir(l.lookedFrom())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.TryLock()
}

// AwaitLook waits until nobody has the layer's Look, or ctx ends.
func (l *Layer) AwaitLook(ctx context.Context) {
	dir, err := l.dir.OpenDir(l.lookedFrom())
	if err != nil {
		return
	}
	defer dir.Close()
	for ctx.Err() == nil {
		if looks, err := dir.Locked(); !looks || err != nil {
			return
		}
		time.Sleep(lookPause)
	}
}

const lookPause = 2 * time.Millisecond

// lookedFrom is the directory of the layer whose lock is that of Look.
func (l *Layer) lookedFrom() string {
	first, _, _ := strings.Cut(l.top(), "/")
	return first
}

// Close lets go of the layer and leaves it as it is.
func (l *Layer) Close() {
	l.watch.stop()
	l.names.stop()
	l.dir.Close()
}

// MountName is what the mount of the layer called name is called in the list of mounts.
func (p *Place) MountName(name string) string {
	return overlay.NamePrefix + filepath.Join(p.Dir.Path(), name)
}

// Mount is what the command's process mounts; nil for a clone. It makes work anew, of
// which the kernel would know that another mount had it: nobody may see that any more.
func (l *Layer) Mount() (*overlay.Mount, error) {
	if l.facts.Mechanism == Clone {
		return nil, nil
	}
	if err := disk.RemoveTree(l.dir, workName); err != nil {
		return nil, err
	}
	if err := l.dir.Mkdir(workName, 0o700); err != nil {
		return nil, err
	}
	return l.mountOf(l.Path())
}

// mountOf is a mount whose upper and work are in the directory at path.
func (l *Layer) mountOf(path string) (*overlay.Mount, error) {
	root, err := l.place.Root.Self()
	if err != nil {
		return nil, err
	}
	return &overlay.Mount{
		Root: l.place.Root.Path(), Layer: path, Name: l.place.MountName(l.name), Dev: root.Dev, Ino: root.Ino,
	}, nil
}
