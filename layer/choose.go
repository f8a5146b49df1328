package layer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"decree/disk"
	"decree/layer/overlay"
	"decree/runner/userns"
)

// A Refusal says why a mechanism cannot be used here, and what would help.
type Refusal struct {
	Mechanism Mechanism
	Reason    string
	Advice    string // "" where nothing helps
	Err       error  // the system's; nil where nothing was tried
}

// OrClone ends the advice of a refused overlay where a clone may do.
const OrClone = ", or say --clone"

func (r *Refusal) Error() string {
	if r.Err == nil {
		return fmt.Sprintf("%s: %s", r.Mechanism, r.Reason)
	}
	return fmt.Sprintf("%s: %s (%v)", r.Mechanism, r.Reason, r.Err)
}
func (r *Refusal) Unwrap() error { return r.Err }

const (
	worksName = "works"
	mostWorks = 1 << 16 // bytes of it that are read
)

// apart refuses a place that lies in the root: a clone would clone itself, and an overlay
// cannot have its upper in its lower.
func (p *Place) apart(m Mechanism) error {
	root, err := filepath.EvalSymlinks(p.Root.Path())
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(p.Dir.Path())
	if err != nil {
		return err
	}
	if dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/") {
		return &Refusal{Mechanism: m, Reason: dir + ", where layers are kept, lies in the root itself",
			Advice: "keep the store outside of the root (DECREE_STORE for a new project)"}
	}
	return nil
}

// TryOverlay makes a scratch overlay over the root for real, unless it worked before on this
// boot and these devices. It changes nothing that anybody else sees. An error is a
// *Refusal, or that of the disk.
func (p *Place) TryOverlay() error { return p.tryOnce(Overlay, p.unfit, p.tryMount) }

// TryClone shares a block between a scratch file on the root's file system and one in the
// layers' place, unless that worked before.
func (p *Place) TryClone() error {
	return p.tryOnce(Clone, func() error { return nil }, p.tryShare)
}

// tryOnce tries a mechanism in a scratch directory, unless that worked before. What unfit
// finds can change without a restart, so it is asked each time.
func (p *Place) tryOnce(m Mechanism, unfit func() error, try func(disk.Dir) error) error {
	if err := p.apart(m); err != nil {
		return err
	}
	key, err := p.key(m)
	if err != nil {
		return err
	}
	if err := unfit(); err != nil || p.remembered(key) {
		return err
	}
	if err := p.inScratch(try); err != nil {
		return err
	}
	p.remember(key)
	return nil
}

// scratchMark begins the name of a file or directory with which something is tried.
const scratchMark = "probe-"

func probeName() string { return scratchMark + strconv.FormatUint(rand.Uint64(), 36) }

// inUse says whether a directory of the place is one in which something is being tried.
func (p *Place) inUse(name string) bool {
	if !strings.HasPrefix(name, scratchMark) {
		return false
	}
	dir, err := p.Dir.OpenDir(name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close()
	locked, err := dir.Locked()
	return err == nil && locked
}

// inScratch tries something in a directory that is then removed. A death leaves one that is
// like a layer that was not made to the end. It is locked meanwhile: who only looks, as doctor
// does, tries beside a process that removes such layers, which then passes it over.
func (p *Place) inScratch(try func(disk.Dir) error) error {
	name := probeName()
	if err := p.Dir.Mkdir(name, 0o700); err != nil {
		return err
	}
	scratch, err := p.Dir.OpenDir(name)
	if err == nil {
		if unlock, lerr := scratch.TryLock(); lerr == nil {
			defer unlock() //nolint:errcheck // nothing was written through it
		}
		err = try(scratch)
		scratch.Close()
	}
	if rerr := disk.RemoveTree(p.Dir, name); err == nil {
		err = rerr
	}
	return err
}

// tryShare makes a file where the root's are and shares its content with one in scratch.
func (p *Place) tryShare(scratch disk.Dir) error {
	from, err := p.besideRoot(scratch)
	if err != nil {
		return err
	}
	name := probeName()
	f, err := from.Create(name, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(make([]byte, 4096))
	if err == nil {
		err = scratch.Mkdir(treeName, 0o700)
	}
	if err == nil {
		var to disk.Dir
		if to, err = scratch.OpenDir(treeName); err == nil {
			_, err = share(f, to, name)
			to.Close()
		}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = &Refusal{Mechanism: Clone, Reason: "the files of the root cannot share their blocks with files in " + p.Dir.Path(),
			Advice: "--copy makes a full copy"}
	}
	if rerr := from.Remove(name); err == nil {
		err = rerr
	}
	return err
}

// besideRoot is where a file can be made on the root's file system.
func (p *Place) besideRoot(scratch disk.Dir) (disk.Dir, error) {
	root, err := p.Root.Self()
	if err != nil {
		return nil, err
	}
	for _, d := range append([]disk.Dir{scratch}, p.Clocks...) {
		if self, err := d.Self(); err == nil && self.Dev == root.Dev {
			return d, nil
		}
	}
	return scratch, nil
}

// key is what a success is remembered by.
func (p *Place) key(m Mechanism) (string, error) {
	root, err := p.Root.Self()
	if err != nil {
		return "", err
	}
	self, err := p.Dir.Self()
	return fmt.Sprintf("%s %s %d %d %d\n", m, p.Boot, root.UID, root.Dev, self.Dev), err
}

// remembered says whether a mechanism has worked. What cannot be read is not remembered.
func (p *Place) remembered(key string) bool {
	if p.Boot == "" {
		return false
	}
	b, err := readFile(p.Dir, worksName, mostWorks)
	return err == nil && strings.Contains("\n"+string(b), "\n"+key)
}

// remember notes what worked; of an earlier boot nothing is kept. A failure only costs
// another try.
func (p *Place) remember(key string) {
	if p.Boot == "" {
		return
	}
	var kept []byte
	b, _ := readFile(p.Dir, worksName, mostWorks)
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte(" "+p.Boot+" ")) && bytes.HasSuffix(line, []byte("\n")) {
			kept = append(kept, line...)
		}
	}
	_ = writeFile(p.Dir, worksName, append(kept, key...), false)
}

// explain says why the system has refused an overlay, where policy is that of the machine
// and mounts are those below the root.
func explain(policy userns.Policy, mounts []overlay.Mounted, err error) *Refusal {
	r := &Refusal{Mechanism: Overlay, Err: err}
	if len(mounts) > 0 {
		r.Reason, r.Advice = "something is mounted below the root, at "+mounts[0].At, "unmount it for the run"+OrClone
		return r
	}
	r.Reason, r.Advice = policy.Reason()
	switch {
	case r.Reason != "":
	case errors.Is(err, errors.ErrUnsupported):
		r.Reason = "the system has no overlays"
	default:
		r.Reason = "the system refuses it"
	}
	return r
}
