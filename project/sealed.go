package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"decree/disk"
	"decree/tree"
)

// chattr(1) can make what is in .decree immutable or append-only, for root too. Where a
// person did that, commands that need it are refused and name it. What a run's command
// sealed of decree's own is decree's again when the command has ended.

// chattrFlags are what chattr calls what [disk.Sealed] names.
var chattrFlags = map[string]string{"immutable": "i", "append-only": "a"}

// SealedAdvice says what is sealed, and what takes that away, where err is that something
// may not be changed for that; "" for other errors.
func SealedAdvice(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(pe.Err, fs.ErrPermission) || !filepath.IsAbs(pe.Path) {
		return ""
	}
	for _, at := range maybeSealed(pe.Path) {
		if word := disk.Sealed(at); word != "" {
			return fmt.Sprintf("%s is %s; 'sudo chattr -R -%s %s' takes that away", at, word, chattrFlags[word], tree.ShellWord(at))
		}
	}
	return ""
}

// maybeSealed are the paths that an error at path may be about, those above it first, and of
// a rename in .decree the directory that it went to.
func maybeSealed(path string) (list []string) {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		list = append([]string{path}, list...)
		if filepath.Base(path) == dirName {
			return append(list, filepath.Join(path, RunsDir), filepath.Join(path, InboxDir))
		}
	}
	return list
}

// RefuseSealed refuses where .decree or its tmp is append-only: what is made there could
// not be removed. An immutable one refuses by itself whatever needs it.
func (p *Project) RefuseSealed() error {
	if p.Decree == nil {
		return nil
	}
	for _, at := range []string{p.Decree.Path(), filepath.Join(p.Decree.Path(), TmpDir)} {
		if word := disk.Sealed(at); word == "append-only" {
			return &Error{Kind: Refused, Msg: fmt.Sprintf("%s is %s", at, word), Advice: fmt.Sprintf("'sudo chattr -R -%s %s' takes that away", chattrFlags[word], tree.ShellWord(at))}
		}
	}
	return nil
}

// Unseal takes away what seals decree's own in .decree, of the record id, after a command:
// it was not there before, or the command could not have begun. So with the paths below .decree
// that also names, which lie in directories that were written to. It returns what was sealed.
func (p *Project) Unseal(id string, also ...string) (unsealed []string) {
	if disk.Unseal(p.Dir, dirName) {
		unsealed = append(unsealed, dirName)
	}
	decree, err := p.Dir.OpenDir(dirName)
	if err != nil {
		return unsealed
	}
	defer decree.Close()
	for _, at := range append([]string{RunsDir}, also...) {
		dir, err := disk.OpenPath(p.Dir, path.Join(dirName, path.Dir(at)))
		if err != nil {
			continue
		}
		if disk.Unseal(dir, path.Base(at)) {
			unsealed = append(unsealed, path.Join(dirName, at))
		}
		dir.Close()
	}
	unsealed = append(unsealed, unsealAll(decree, TmpDir, path.Join(dirName, TmpDir))...)
	if runs, err := decree.OpenDir(RunsDir); err == nil {
		defer runs.Close()
		unsealed = append(unsealed, unsealAll(runs, id, path.Join(dirName, RunsDir, id))...)
	}
	return unsealed
}

// unsealAll takes away what seals name, which is at the path at, and all below it, and returns what was sealed.
func unsealAll(d disk.Dir, name, at string) (unsealed []string) {
	whole := disk.Unseal(d, name)
	if sub, err := d.OpenDir(name); err == nil {
		defer sub.Close()
		list, _ := sub.List() // what cannot be listed cannot be sealed either, or is told by the first step that needs it
		for _, e := range list {
			unsealed = append(unsealed, unsealAll(sub, e.Name, at+"/"+e.Name)...)
		}
	}
	if whole {
		return []string{at}
	}
	return unsealed
}
