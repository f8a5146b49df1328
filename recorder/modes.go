package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"decree/disk"
	"decree/history"
	"decree/tree"
)

// The modes of the root, of .decree and of what lies in .decree are part of no manifest, and
// 'chmod -R' by a command changes them all.

// extraModes is the place in an open record of the modes that the command found.
const extraModes = "modes"

// ownModes are modes by path below the root: "." is the root's, the others are those of .decree
// and of what decree itself made in it.
type ownModes map[string]uint32

// lookModes notes the modes as a command begins.
func (r *Recorder) lookModes() (ownModes, error) {
	root, err := r.project.Dir.Self()
	if err != nil {
		return nil, err
	}
	decree, err := r.project.Decree.Self()
	if err != nil {
		return nil, err
	}
	modes := ownModes{".": root.Mode, ".decree": decree.Mode}
	list, err := r.project.Decree.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if !notOwn[e.Name] {
			continue
		}
		st, err := r.project.Decree.Stat(e.Name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if err == nil && (st.Kind == disk.Directory || st.Kind == disk.Regular) {
			modes[".decree/"+e.Name] = st.Mode
		}
	}
	return modes, nil
}

// modesOf are those of a run that is open.
func modesOf(o *history.Opened) (modes ownModes) {
	if json.Unmarshal(o.Extra[extraModes], &modes) != nil {
		return nil // of an older decree
	}
	return modes
}

// takeBackRights takes from .decree, and from what decree and the user have in it, the rights for others that a
// command has given. It gives none. What was done is in words.
func (r *Recorder) takeBackRights(before ownModes, own []ownFile) (words []string, err error) {
	var done, barred []string
	var cause error
	n := &narrower{root: r.project.Dir}
	defer n.close()
	take := func(at string, mode, bits uint32, kinds ...disk.Kind) error {
		took, err := n.take(at, bits&^mode, kinds)
		switch {
		case errors.Is(err, fs.ErrPermission):
			barred, cause = append(barred, at), err
		case err != nil && !isMissing(err) && !errors.Is(err, disk.ErrReplaced) && !disk.OtherKind(err):
			return fmt.Errorf("%s: %w", at, err)
		case took:
			done = append(done, at)
		}
		return nil
	}
	for _, at := range slices.Sorted(maps.Keys(before)) { // .decree is the first of them
		if at == "." {
			continue
		}
		if err := take(at, before[at], 0o077, disk.Directory, disk.Regular); err != nil {
			return nil, err
		}
	}
	for _, f := range own {
		if f.Path == "." || f.Target != "" {
			continue
		}
		bits, kind := uint32(0o066), disk.Regular // what a command makes executable is so
		if f.Dir {
			bits, kind = 0o077, disk.Directory
		}
		if err := take(".decree/"+f.Path, f.Mode, bits, kind); err != nil {
			return nil, err
		}
	}
	if len(done) > 0 {
		words = append(words, fmt.Sprintf("the command had given other users rights on %s; they are taken away again", some(done)))
	}
	if len(barred) > 0 {
		words = append(words, fmt.Sprintf("the command has given other users rights on %s, which could not be taken away (%v); 'chmod -R go-w .decree' by its owner does", some(barred), cause))
	}
	return words, nil
}

// narrower takes rights away below the root. Neighbours are looked at through one handle.
type narrower struct {
	root, dir disk.Dir
	at        string // dir's path; dir is nil: none is open
}

func (n *narrower) close() {
	if n.dir != nil {
		n.dir.Close()
	}
	n.dir = nil
}

// open makes dir the directory at a path.
func (n *narrower) open(at string) error {
	if n.dir != nil && n.at == at {
		return nil
	}
	n.close()
	dir, err := disk.OpenPath(n.root, at)
	if err == nil {
		n.dir, n.at = dir, at
	}
	return err
}

// take takes bits of the mode away from what of these kinds is at a path, no link followed, and says whether
// it had any of them.
func (n *narrower) take(at string, bits uint32, kinds []disk.Kind) (bool, error) {
	in, name := n.root, path.Base(at)
	if up := path.Dir(at); up != "." {
		if err := n.open(up); err != nil {
			return false, err
		}
		in = n.dir
	}
	st, err := in.Stat(name)
	if err != nil || st.Mode&bits == 0 || !slices.Contains(kinds, st.Kind) {
		return false, err
	}
	if self, err := in.Self(); err != nil || self.Dev != st.Dev {
		return false, err // what is mounted there is not the file
	}
	return true, in.Chmod(name, st, st.Mode&^bits)
}

// rootChanged says whether the root's own mode is another one than a command found.
func (r *Recorder) rootChanged(before ownModes) (was, now uint32, changed bool) {
	was, known := before["."]
	self, err := r.project.Dir.Self()
	return was, self.Mode, err == nil && known && self.Mode != was
}

// bringRootMode gives the root its own mode again, for a failed run.
func (u *run) bringRootMode() {
	was, now, changed := u.r.rootChanged(u.modes)
	if !changed {
		return
	}
	if err := u.r.project.ChmodRoot(was); err != nil {
		u.say("the root's own mode could not be changed back: %v", err)
		return
	}
	u.say("the command had changed the root's own mode to %o; it is %o again", now, was)
}

// rootMode says in words that the root's own mode is another one than a command found; "": it is not.
func (r *Recorder) rootMode(before ownModes) string {
	was, now, changed := r.rootChanged(before)
	if !changed {
		return ""
	}
	return fmt.Sprintf("the root's own mode is %o now, was %o; no record has it, so that no revert changes it back: 'chmod %o %s' does",
		now, was, was, tree.ShellWord(r.project.Root))
}
