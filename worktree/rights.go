package worktree

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"decree/disk"
	"decree/tree"
)

// ownedBy says whether the file that st is of belongs to whom e says.
func ownedBy(e *tree.Entry, st disk.Info) bool {
	return e.Owner == tree.Owner{UID: st.UID, GID: st.GID, Known: true}
}

// Rights looks at the steps that bring a file with set-user-ID or set-group-ID. A
// file that gets such a mode and another owner than the recorded one would run
// with the wrong person's rights: where the recorded owner is not known or cannot
// be given, the step's To loses these bits. It looks at those, too, whose group may
// more than others: where the recorded group or access control list cannot be given,
// the step's To loses what the group alone could do. It returns what it took away, in
// words, by path. It makes a file in the staging directory and removes it.
func (t *Tree) Rights(steps []Step) (map[tree.Path]string, error) {
	taken := map[tree.Path]string{}
	can := map[tree.Owner]bool{}
	for i := range steps {
		s := &steps[i]
		if !s.To.MayOwn() || tree.SameEntry(s.From, s.To) && s.From.Owner.Known {
			continue
		}
		// Who has lost set-user-ID is asked about his group, too.
		to, reason := *s.To, ""
		for _, bits := range [...]uint32{to.Mode & tree.SpecialBits, to.GroupOnly()} {
			if bits == 0 {
				continue
			}
			why, err := t.withoutRights(&Step{Path: s.Path, From: s.From, To: &to}, can)
			if err != nil {
				return nil, err
			}
			if why != "" {
				to.Mode, reason = to.Mode&^bits, why
			}
		}
		if reason == "" {
			continue
		}
		taken[s.Path] = fmt.Sprintf("mode is %o instead of %o: %s", to.Mode, s.To.Mode, reason)
		if !to.MayOwn() {
			to.Owner = tree.Owner{}
		}
		s.To = &to
	}
	return taken, nil
}

// believes says whether a record that names the owner of a file with set-user-ID is believed.
func (t *Tree) believes(owner tree.Owner) bool { return t.opt.Only == nil || *t.opt.Only == owner }

// withoutRights says why the step cannot have its mode, "" if it can.
func (t *Tree) withoutRights(s *Step, can map[tree.Owner]bool) (string, error) {
	owner := s.To.Owner
	if !s.To.Special() {
		return t.withoutGroup(s, can)
	}
	if !owner.Known {
		return "the record does not say who owned the file", nil
	}
	if !t.believes(owner) {
		if !t.opt.Only.Known {
			return fmt.Sprintf("its owner was %s, says a record that came from elsewhere; where that is trusted, 'chown' and 'chmod u+s' or 'g+s' give it back", owner), nil
		}
		return fmt.Sprintf("its owner was %s, says a record that user %d could write", owner, t.opt.Only.UID), nil
	}
	if kindOf(s.From, s.To) == chmodFile {
		h := newHandles(t.root)
		defer h.close()
		have, err := look(h, s.Path, false)
		if err == nil && !ownedBy(s.To, have.info) {
			return fmt.Sprintf("its owner is %d:%d now, and was %s", have.info.UID, have.info.GID, owner), nil
		}
		return "", err
	}
	able, err := t.canGive(owner, can)
	if err == nil && !able {
		return fmt.Sprintf("it cannot be given to its owner %s", owner), nil
	}
	return "", err
}

// withoutGroup says why the step's file cannot have what its group alone may do, ""
// if it can. Who may do what by an access control list is known of the file that is there.
func (t *Tree) withoutGroup(s *Step, can map[tree.Owner]bool) (string, error) {
	owner := s.To.Owner
	if !owner.Known {
		return t.withoutUsualGroup(s)
	}
	if owner.GID == disk.NoGroup {
		kept, err := t.hasACL(s)
		if kept || err != nil {
			return "", err
		}
		return "its access control list is lost", nil
	}
	able, err := t.hasGroup(s, owner.GID, can)
	if err == nil && !able {
		return fmt.Sprintf("it cannot be given to its group %d", owner.GID), nil
	}
	return "", err
}

// usualAgain says whether to has rights for its group alone, which was the usual one (see disk.GroupOf), and from does not say that it has this group.
func usualAgain(from, to *tree.Entry) bool {
	return to.GroupOnly() != 0 && !to.Owner.Known && from != nil && (from.GroupOnly() == 0 || from.Owner.Known)
}

// usualGroup is the group that is not recorded of what is in a directory.
func usualGroup(h *handles, dir tree.Path) (uint32, error) {
	d, err := h.dir(dir)
	if err != nil {
		return 0, err
	}
	defer d.release()
	return disk.UsualGroup(d)
}

// withoutUsualGroup is withoutGroup of a file that had the usual group. What is made anew gets it; what is there and changes its mode alone may have another one by now.
func (t *Tree) withoutUsualGroup(s *Step) (string, error) {
	if kind := kindOf(s.From, s.To); kind != chmodFile && kind != chmodDir || !usualAgain(s.From, s.To) {
		return "", nil
	}
	h := newHandles(t.root)
	defer h.close()
	have, err := look(h, s.Path, false)
	if err != nil {
		return "", err
	}
	group, err := usualGroup(h, s.Path.Parent())
	if err != nil || have.info.GID == group {
		return "", err
	}
	return fmt.Sprintf("its group is %d now, and was %d", have.info.GID, group), nil
}

// hasGroup says whether what the step leaves has the group, or can be given it.
func (t *Tree) hasGroup(s *Step, group uint32, can map[tree.Owner]bool) (bool, error) {
	tmp, err := t.opt.Tmp.Self()
	if err != nil {
		return false, err
	}
	if kind := kindOf(s.From, s.To); kind == chmodFile || kind == chmodDir {
		h := newHandles(t.root)
		defer h.close()
		have, err := look(h, s.Path, false)
		return have.info.GID == group, err
	}
	return t.canGive(tree.Owner{UID: tmp.UID, GID: group, Known: true}, can)
}

// hasACL says whether the file that the step replaces has an access control list, and is the recorded owner's: that of a stranger's file says what
// this one may.
func (t *Tree) hasACL(s *Step) (bool, error) {
	if s.From == nil || s.From.Type != s.To.Type {
		return false, nil
	}
	h := newHandles(t.root)
	defer h.close()
	d, err := h.dir(s.Path.Parent())
	if errors.Is(err, errNoDir) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.release()
	is, err := d.Stat(s.Path.Name())
	if err != nil || is.UID != s.To.Owner.UID {
		return false, disk.UnlessMissing(err)
	}
	return disk.HasACL(d, s.Path.Name())
}

// canGive tries on an empty file whether it can be given to the owner, once; can are the answers.
func (t *Tree) canGive(owner tree.Owner, can map[tree.Owner]bool) (bool, error) {
	if able, asked := can[owner]; asked {
		return able, nil
	}
	able, err := t.tryGive(owner)
	if err == nil {
		can[owner] = able
	}
	return able, err
}

func (t *Tree) tryGive(owner tree.Owner) (bool, error) {
	tmp, probe := t.opt.Tmp, "owner-"+strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := tmp.Create(probe, 0o600)
	if err != nil {
		return false, err
	}
	st, err := f.Stat()
	able := err == nil
	if able && (st.UID != owner.UID || st.GID != owner.GID) {
		err = f.Chown(owner.UID, owner.GID)
		able = err == nil
		if refused(err) {
			err = nil
		}
	}
	return able, errors.Join(err, f.Close(), tmp.Remove(probe))
}
