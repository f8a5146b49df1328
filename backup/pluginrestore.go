package backup

import (
	"errors"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// restoredDir is where a restore puts the plugins' files of a generation, in .decree: a directory for each.
const restoredDir = "restored"

// RestorePluginFiles puts the files of the plugins of a generation, which was restored, into .decree/restored/NAME, and
// returns the names of these plugins. Where something else is in .decree/restored, which people work in, the whole of it
// is moved out of the way: kept is where it is then, from the root on.
func RestorePluginFiles(p *project.Project, m *Manifest) (names []string, kept string, err error) {
	if kept, err = makeWay(p, m); err != nil {
		return nil, "", err
	}
	names, err = writePluginFiles(p, m)
	return names, kept, err
}

// makeWay moves .decree/restored to .decree/aside, unless it has what is to be there, and nothing else.
func makeWay(p *project.Project, m *Manifest) (kept string, err error) {
	_, err = p.Decree.Stat(restoredDir)
	if isMissing(err) {
		return "", nil
	}
	want := map[string]tree.Hash{}
	for name, f := range m.Files {
		if rest, ok := strings.CutPrefix(string(name), pluginsPart); ok && strings.Contains(rest, "/") {
			want[path.Join(restoredDir, rest)] = f.SHA256
		}
	}
	if err == nil {
		if found, same := countSame(p.Decree, restoredDir, want); same && found == len(want) {
			return "", nil
		}
		kept, err = p.KeepAside(p.Decree, restoredDir)
	}
	if err != nil {
		err = &project.Error{Kind: project.KindOf(err), Err: err, Msg: ".decree/restored could not be moved to .decree/aside, and the plugins' files are not restored; all else is",
			Advice: "unmount or move away what is there, then repeat the restore"}
	}
	return kept, err
}

// countSame counts the files at and below name in dir, which is at that path in want, and says whether each is wanted as it is,
// and nothing is there but files, and directories with files.
func countSame(dir disk.Dir, at string, want map[string]tree.Hash) (found int, same bool) {
	name := path.Base(at)
	st, err := dir.Stat(name)
	if err != nil {
		return 0, false
	}
	if sum, wanted := want[at]; wanted {
		return 1, st.Kind == disk.Regular && hasContent(dir, name, sum)
	}
	if st.Kind != disk.Directory {
		return 0, false
	}
	below, err := dir.OpenDir(name)
	if err != nil {
		return 0, false
	}
	defer below.Close()
	list, err := below.List()
	if err != nil {
		return 0, false
	}
	for _, e := range list {
		n, same := countSame(below, path.Join(at, e.Name), want)
		if found += n; !same {
			return found, false
		}
	}
	return found, found > 0 || at == restoredDir
}

func hasContent(dir disk.Dir, name string, sum tree.Hash) bool {
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	has, err := tree.SumOf(f)
	return err == nil && has == sum
}

func writePluginFiles(p *project.Project, m *Manifest) (names []string, err error) {
	s, err := store.Open(p.Store, store.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, name := range sortedFiles(m) {
		rest, ok := strings.CutPrefix(string(name), pluginsPart)
		plugin, _, below := strings.Cut(rest, "/")
		if !ok || !below {
			continue
		}
		if !slices.Contains(names, plugin) {
			names = append(names, plugin)
		}
		err := into(p.Decree, path.Join(restoredDir, rest), func(dir disk.Dir, base string) error {
			return disk.Replace(dir, base, disk.Replacement{Perm: project.PrivateFile, Flush: true}, func(f disk.File) error {
				return copyContent(f, s, m.Files[name].SHA256)
			})
		})
		if err != nil {
			return nil, errors.Join(errors.New(string(name)), err)
		}
	}
	return names, nil
}
