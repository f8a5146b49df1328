package capture

import (
	"unsafe"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
)

// hidden counts the recorded files that the tree's own ignore files would leave out. It
// looks at the rules only if an ignore file is there that is not as it was frozen; one
// that cannot be read or used counts as none, for the next capture says so.
func (w *walk) hidden(r *Result) (int, error) {
	found := gather(w, func(k *worker) []tree.Path { return k.found })
	own := make(map[tree.Path]pair, len(found))
	changed := false
	for _, path := range found {
		dir, name := path.Parent(), path.Name()
		file := w.ownRules(path)
		if file == nil {
			continue
		}
		p := own[dir]
		p.set(name, file)
		own[dir] = p
		old := w.frozen[dir].git
		if name == decName {
			old = w.frozen[dir].dec
		}
		changed = changed || old == nil || old.hash != file.hash
	}
	if !changed {
		return 0, nil
	}
	return w.countHidden(r, own)
}

// ownRules reads one ignore file of the tree as it is now, nil if it cannot be.
func (w *walk) ownRules(path tree.Path) *ruleFile {
	var file *ruleFile
	err := disk.InDir(w.req.Root, string(path.Parent()), func(dir disk.Dir) (err error) {
		file, _, err = readRules(dir, string(path), path.Name())
		return err
	})
	if err != nil {
		return nil
	}
	return file
}

// countHidden goes through the recorded tree with other rules.
func (w *walk) countHidden(r *Result, own map[tree.Path]pair) (int, error) {
	type scope struct {
		rules *ignorefile.Rules
		path  int // length of the directory's path
	}
	rules, _ := own[""].enter(w.outer.rules, w.outer.print, "")
	scopes := []scope{{rules, 0}}
	count := 0
	err := w.cache.descend(r.root, "", func(path []byte, b block, i int) (bool, error) {
		kd := b.kind(i)
		if !kd.tracked() {
			return false, nil
		}
		up := len(path) - len(b.name(i)) - 1
		for scopes[len(scopes)-1].path > max(up, 0) {
			scopes = scopes[:len(scopes)-1]
		}
		rules := scopes[len(scopes)-1].rules
		if rules.Match(unsafe.String(&path[0], len(path)), kd == kDir).Ignored {
			if kd != kDir {
				count++
				return false, nil
			}
			below, err := w.cache.block(b.child(i))
			if err == nil && below != nil {
				count += int(below.sums().files)
			}
			return false, err
		}
		if kd == kDir {
			dir := tree.Path(path)
			rules, _ := own[dir].enter(rules, 0, dir)
			scopes = append(scopes, scope{rules, len(path)})
		}
		return true, nil
	})
	return count, err
}
