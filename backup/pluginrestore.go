package backup

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/store"
)

// restoredDir is where a restore puts the plugins' files of a generation, in .decree: a directory for each.
const restoredDir = "restored"

// RestorePluginFiles puts the files of the plugins of a generation, which was restored, into .decree/restored/NAME, in the place
// of what an earlier restore has put there, and returns the names of these plugins.
func RestorePluginFiles(p *project.Project, m *Manifest) (names []string, err error) {
	if err := disk.RemoveTree(p.Decree, restoredDir); err != nil {
		return nil, err
	}
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
			r, _, err := s.Open(m.Files[name].SHA256)
			if err != nil {
				return err
			}
			defer r.Close()
			return disk.Replace(dir, base, disk.Replacement{Perm: project.PrivateFile, Flush: true}, func(f disk.File) error {
				_, err := io.Copy(f, r)
				return err
			})
		})
		if err != nil {
			return nil, errors.Join(errors.New(string(name)), err)
		}
	}
	return names, nil
}
