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
// be given, the step's To loses these bits. It returns what it took away, in
// words, by path. It makes a file in the staging directory and removes it.
func (t *Tree) Rights(steps []Step) (map[tree.Path]string, error) {
	taken := map[tree.Path]string{}
	can := map[tree.Owner]bool{}
	for i := range steps {
		s := &steps[i]
		if !s.To.Special() || same(s.From, s.To) && s.From.Owner.Known {
			continue
		}
		why, err := t.withoutRights(s, can)
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		taken[s.Path] = fmt.Sprintf("mode is %o instead of %o: %s", s.To.Mode&^tree.SpecialBits, s.To.Mode, why)
		to := *s.To
		to.Mode, to.Owner = to.Mode&^tree.SpecialBits, tree.Owner{}
		s.To = &to
	}
	return taken, nil
}

// believes says whether a record that names the owner of a file with set-user-ID is believed.
func (t *Tree) believes(owner tree.Owner) bool { return t.opt.Only == nil || *t.opt.Only == owner }

// withoutRights says why the step cannot have its mode, "" if it can.
func (t *Tree) withoutRights(s *Step, can map[tree.Owner]bool) (string, error) {
	owner := s.To.Owner
	if !owner.Known {
		return "the record does not say who owned the file", nil
	}
	if !t.believes(owner) {
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
	able, asked := can[owner]
	if !asked {
		var err error
		if able, err = t.canGive(owner); err != nil {
			return "", err
		}
		can[owner] = able
	}
	if !able {
		return fmt.Sprintf("it cannot be given to its owner %s", owner), nil
	}
	return "", nil
}

// canGive tries on an empty file whether it can be given to the owner.
func (t *Tree) canGive(owner tree.Owner) (bool, error) {
	tmp, probe := t.opt.Tmp, "owner-"+strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := tmp.Create(probe, 0o600)
	if err != nil {
		return false, err
	}
	st, err := f.Stat()
	err = errors.Join(err, f.Close())
	able := err == nil
	if able && (st.UID != owner.UID || st.GID != owner.GID) {
		err = tmp.Chown(probe, owner.UID, owner.GID)
		able = err == nil
		if refused(err) {
			err = nil
		}
	}
	return able, errors.Join(err, tmp.Remove(probe))
}
