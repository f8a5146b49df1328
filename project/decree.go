package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"decree/disk"
	"decree/tree"
)

// gitignore keeps a user's `git status` as it was: all in .decree but what a
// person writes there.
const gitignore = "# written by decree: what it makes is nobody's to commit\n/*\n!/config.yml\n!/routines/\n!/cron/\n"

// openDecree opens .decree if it is there and a directory; nothing else in its place is followed. After an error the
// handle is the one from before.
func (p *Project) openDecree() error {
	st, err := p.Dir.Stat(dirName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != disk.Directory {
		p.setDecree(nil) // refuseLink refuses a link, EnsureDecree puts aside what else is there
		return nil
	}
	if err != nil {
		return err
	}
	decree, err := p.Dir.OpenDir(dirName)
	if err != nil {
		return err
	}
	p.setDecree(decree)
	return nil
}

// refuseLink refuses a link in the place of .decree or of .decree/runs, which a person may have made on purpose. Where a
// run died whose command may have made it, EnsureDecree puts it aside, as at the end of a run and as it does with other
// things there: refused, the run would not be recorded. store is the one that was found, nil for none.
func (p *Project) refuseLink(w Where, store disk.Dir) error {
	link, err := p.linkInPlace()
	if link == "" || err != nil {
		return err
	}
	if store != nil && w.Died != nil {
		found := Project{Site: p.Site, Decree: p.Decree}
		found.Store = store
		if died, err := w.Died(&found); died || err != nil {
			return err
		}
	}
	return &Error{Kind: Refused, Msg: link + ": is a symbolic link, which decree does not follow",
		Advice: fmt.Sprintf("'mv %s %s' renames it; then move the directory that it leads to here, if that is decree's own, or let the next command make it anew, with the records from the store",
			tree.ShellWord(link), tree.ShellWord(link+".link"))}
}

// linkInPlace is the path of the link in the place of .decree or of its runs; "" for none.
func (p *Project) linkInPlace() (string, error) {
	for _, at := range []struct {
		in   disk.Dir
		name string
	}{{p.Dir, dirName}, {p.Decree, RunsDir}} {
		if at.in == nil {
			continue
		}
		st, err := at.in.Stat(at.name)
		if err == nil && st.Kind == disk.Symlink {
			return filepath.Join(at.in.Path(), at.name), nil
		}
		if disk.UnlessMissing(err) != nil {
			return "", err
		}
	}
	return "", nil
}

func (p *Project) setDecree(d disk.Dir) {
	if p.Decree != nil {
		p.Decree.Close()
	}
	p.Decree = d
}

// EnsureDecree makes .decree with its .gitignore, project.json, runs and tmp
// where they are missing, as after a command that deleted them, and opens
// Decree anew. A .gitignore that is there is left as it is; what else stands in
// the place of these is moved to .decree/aside.
//
// It needs no lock: what another process takes away meanwhile, such as a draft that this one
// is writing, which passes for one that a death has left, is made again.
func (p *Project) EnsureDecree() error {
	const most = 10 // processes, one after the other
	for n := 1; ; n++ {
		if err := p.ensureDecree(); !errors.Is(err, fs.ErrNotExist) || n == most {
			return err
		}
	}
}

func (p *Project) ensureDecree() error {
	made, err := p.makeDecree()
	if err != nil {
		return err
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	if err := p.fillDecree(); err != nil {
		return err
	}
	if made {
		return p.Dir.Sync()
	}
	return nil
}

// makeDecree makes .decree where it is missing, puts aside what a command made in
// its place, and gives decree's directory to its owner whatever the umask or a
// command took.
func (p *Project) makeDecree() (made bool, err error) {
	st, err := p.Dir.Stat(dirName)
	if err == nil && st.Kind != disk.Directory {
		if err = p.replaceDecree(); err == nil {
			st, err = p.Dir.Stat(dirName)
		}
		made = true
	}
	if errors.Is(err, fs.ErrNotExist) {
		made = true
		if st, err = p.newDecree(); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	if err = p.giveBackDecree(st); err == nil && made {
		err = disk.Inherit(p.Dir, dirName, st)
	}
	return made, err
}

// giveBackDecree gives the owner of .decree the rights to it again; st is what it is now.
func (p *Project) giveBackDecree(st disk.Info) error {
	if st.Kind != disk.Directory || st.Mode&0o700 == 0o700 {
		return nil
	}
	return p.Dir.Chmod(dirName, st, st.Mode|0o700)
}

// newDecree makes .decree, or takes the one that a death left on its way.
func (p *Project) newDecree() (disk.Info, error) {
	st, err := p.Dir.Stat(newDecree)
	switch {
	case err == nil && st.Kind == disk.Directory:
		err = p.Dir.RenameNew(newDecree, p.Dir, dirName)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = p.Dir.Mkdir(dirName, 0o755) // whatever the umask: what is in it decree executes
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return st, err
	}
	return p.Dir.Stat(dirName)
}

func (p *Project) fillDecree() error {
	if _, err := p.Decree.Stat(".gitignore"); errors.Is(err, fs.ErrNotExist) {
		if err := ReplaceFile(p.Decree, ".gitignore", []byte(gitignore), 0o644, true); err != nil {
			return err
		}
	}
	runs, err := p.OwnDir(p.Decree, RunsDir)
	if err != nil {
		return err
	}
	runs.Close()
	if err := p.ownTmp(); err != nil {
		return err
	}
	if err := p.clearConfig(); err != nil {
		return err
	}
	want := identity{Version: formatNow, ID: p.ID, Store: tree.Text(p.base)}
	has, err := readIdentity(p.Decree)
	if err == nil && has != nil && *has == want {
		return nil
	}
	if unusableIdentity(err) {
		err := p.PutAside(p.Decree, identityFile)
		if errors.Is(err, fs.ErrPermission) {
			return nil // the store that remembers the root is found without it, as take has said
		}
		if disk.UnlessMissing(err) != nil {
			return err
		}
	}
	return ReplaceJSON(p.Decree, identityFile, want, 0o644, true)
}

// Respell gives .decree its name again where the file system folds case and a command
// has spelled it otherwise.
func (p *Project) Respell() error {
	st, err := p.Dir.Stat(dirName)
	if err != nil {
		return err
	}
	list, err := p.Dir.List()
	if err != nil || slices.ContainsFunc(list, func(e disk.Entry) bool { return e.Name == dirName }) {
		return err
	}
	for _, e := range list {
		if !strings.EqualFold(e.Name, dirName) {
			continue
		}
		if now, err := p.Dir.Stat(e.Name); err != nil || !now.SameFile(st) {
			return err
		}
		if err := p.Dir.RenameNew(e.Name, p.Dir, newDecree); err != nil {
			return err
		}
		if err := p.Dir.RenameNew(newDecree, p.Dir, dirName); err != nil {
			return err
		}
		return p.Dir.Sync()
	}
	return nil
}

// FollowDecree makes p look for .decree by its name each time something in it is opened,
// so that one who looks for long sees a .decree that was deleted and made anew. Nothing
// that changes .decree works on p then.
func (p *Project) FollowDecree() {
	p.setDecree(nil)
	p.Decree = decreeByName{root: p.Dir}
}

// decreeByName is .decree as it is now: fs.ErrNotExist where there is none.
type decreeByName struct {
	disk.Dir // nil: what is not below is for those who change it
	root     disk.Dir
}

func (d decreeByName) Path() string { return filepath.Join(d.root.Path(), dirName) }

func (d decreeByName) Close() error { return nil }

func (d decreeByName) Self() (disk.Info, error) {
	now, err := d.root.OpenDir(dirName)
	if err != nil {
		return disk.Info{}, err
	}
	defer now.Close()
	return now.Self()
}

func (d decreeByName) OpenDir(name string) (disk.Dir, error) {
	now, err := d.root.OpenDir(dirName)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	return now.OpenDir(name)
}
