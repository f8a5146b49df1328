package project

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/gcfg/v2"

	"decree/disk"
)

// GitExclude is a file with ignore rules of git's that lies outside of the tree.
type GitExclude struct {
	Path string // .git/info/exclude, or absolute
	Data []byte
}

const (
	infoExclude = ".git/info/exclude"
	maxExclude  = 64 << 20 // as an ignore file of the tree
	maxGitFile  = 16 << 20
)

// IsGitExclude says whether path can be a GitExclude's: what decree has frozen of one
// is found by its hash, and no file is opened by this path.
func IsGitExclude(path string) bool { return path == infoExclude || filepath.IsAbs(path) }

// GitExcludes are the rules that git applies to this tree besides those of its
// .gitignore files, in rising precedence: the user's global excludes, and info/exclude
// of the repository. There are none where the root has no .git or the config leaves
// them out. What cannot be read is an error: a rule must not be guessed at.
func (p *Project) GitExcludes(w Where) ([]GitExclude, error) {
	if !p.Config.GitExcludes {
		return nil, nil
	}
	self, err := p.Dir.Self()
	if err != nil {
		return nil, err
	}
	list, err := gitFiles{disk: p.Disk, w: w.forOwner(self.UID), owner: self.UID, note: p.note}.excludes(p.Root)
	if err != nil {
		return nil, &Error{Kind: Failed, Msg: "git's own excludes", Err: err,
			Advice: fmt.Sprintf("correct that file, or ignore git's excludes: 'git_excludes: false' below 'capture:' in %s/%s", dirName, configFile)}
	}
	return list, nil
}

// gitFiles reads git's files as plain files.
type gitFiles struct {
	disk  disk.Disk
	w     Where
	owner uint32 // of the root
	note  func(format string, args ...any)
}

// read returns a file, nil if there is none; links are followed, as git does.
func (g gitFiles) read(path string, limit int64) ([]byte, error) {
	f, real, err := g.open(path)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, real, limit)
}

// open opens a file by its real path; it is nil if there is none.
func (g gitFiles) open(path string) (f disk.File, real string, err error) {
	if real, err = g.w.real(path); err != nil {
		return nil, "", unlessAbsent(err)
	}
	dir, err := g.disk.OpenSearch(filepath.Dir(real))
	if err != nil {
		return nil, "", unlessAbsent(err)
	}
	defer dir.Close()
	f, err = dir.Open(filepath.Base(real))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	return f, real, err
}

// readExclude is read for a file that is kept in the store. Root in another user's tree, whose store that user can read,
// takes none that this user could not read himself: his git config or a link may lead to any file of root's.
func (g gitFiles) readExclude(path string) ([]byte, error) {
	if os.Geteuid() != 0 || g.owner == 0 {
		return g.read(path, maxExclude)
	}
	f, real, err := g.open(path)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.UID != g.owner && st.Mode&0o004 == 0 || !g.reached(real) {
		g.note("git's excludes in %s are left out: %s may not read that file, and could read in the store what root records", real, userName(g.owner))
		return nil, nil
	}
	return readOpen(f, real, maxExclude)
}

// reached says whether the root's owner may pass all directories above a real path.
func (g gitFiles) reached(real string) bool {
	for up := filepath.Dir(real); up != filepath.Dir(up); up = filepath.Dir(up) {
		dir, err := g.disk.OpenSearch(up)
		if err != nil {
			return false
		}
		st, err := dir.Self()
		dir.Close()
		if err != nil || st.UID != g.owner && st.Mode&0o001 == 0 {
			return false
		}
	}
	return true
}

// repository finds the directories of the repository whose worktree root is: its own, and
// the one that it shares with other worktrees. Both are "" where there is none.
func (g gitFiles) repository(root string) (own, common string, err error) {
	own = filepath.Join(root, ".git")
	dir, err := g.disk.OpenSearch(own)
	switch {
	case err == nil:
		dir.Close()
	case !errors.Is(err, syscall.ENOTDIR):
		return "", "", unlessAbsent(err)
	default: // a file: a worktree's or a submodule's
		data, err := g.read(own, maxIdentity)
		if errors.Is(err, ErrTooLarge) { // no path is that long: git does not take it for a repository either
			return "", "", nil
		}
		if err != nil {
			return "", "", err
		}
		rest, ok := strings.CutPrefix(string(data), "gitdir: ")
		if !ok {
			return "", "", nil
		}
		own = joinBelow(root, strings.TrimRight(rest, "\r\n"))
	}
	data, err := g.read(filepath.Join(own, "commondir"), maxIdentity)
	if err != nil || data == nil {
		return own, own, err
	}
	return own, joinBelow(own, strings.TrimRight(string(data), "\r\n")), nil
}

func joinBelow(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func (g gitFiles) excludes(root string) (list []GitExclude, err error) {
	_, common, err := g.repository(root)
	if err != nil || common == "" {
		return nil, err
	}
	global, err := g.globalExcludes(root, common)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, path string }{{global, global}, {infoExclude, filepath.Join(common, "info", "exclude")}} {
		if f.name == "" {
			continue
		}
		data, err := g.readExclude(f.path)
		if err != nil {
			return nil, err
		}
		if data != nil {
			list = append(list, GitExclude{f.name, data})
		}
	}
	return list, nil
}

// globalExcludes is the user's file: core.excludesFile where a config of git's names one,
// else $XDG_CONFIG_HOME/git/ignore. Included configs are not looked at.
func (g gitFiles) globalExcludes(root, common string) (string, error) {
	home, config := g.w.Home, g.w.ConfigHome
	if g.w.Behind != nil {
		home, config = g.w.Behind.Home, ""
	}
	if !filepath.IsAbs(config) && home != "" {
		config = filepath.Join(home, ".config")
	}
	configs := []string{filepath.Join(common, "config")}
	if home != "" {
		configs = append(configs, filepath.Join(home, ".gitconfig"))
	}
	if config != "" {
		configs = append(configs, filepath.Join(config, "git", "config"))
	}
	configs = append(configs, "/etc/gitconfig")
	for _, path := range configs {
		file, ok, err := g.excludesFile(path)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		if rest, tilde := strings.CutPrefix(file, "~/"); tilde {
			return joinBelow(home, rest), nil
		}
		if file == "" {
			return "", nil
		}
		return joinBelow(root, file), nil
	}
	if config == "" {
		return "", nil
	}
	return filepath.Join(config, "git", "ignore"), nil
}

// excludesFile is core.excludesFile of one config; the last of several counts.
func (g gitFiles) excludesFile(path string) (file string, ok bool, err error) {
	data, err := g.read(path, maxGitFile)
	if err != nil || !bytes.Contains(bytes.ToLower(data), []byte("excludesfile")) {
		return "", false, err // what else is in it need not be understood
	}
	err = gcfg.ReadWithCallback(bytes.NewReader(data), func(section, sub, key, value string, _ bool) error {
		if strings.EqualFold(section, "core") && sub == "" && strings.EqualFold(key, "excludesFile") {
			file, ok = value, true
		}
		return nil
	})
	if err != nil {
		return "", false, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return file, ok, nil
}
