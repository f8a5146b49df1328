package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// What others have put into a record's directory, as a command that moves an ignored file
// over one of decree's own, has no copy anywhere. decree overwrites and removes there only
// what it has written itself; what else is in its way goes to .decree/aside.

// beginnings are how decree begins the files of these names.
var beginnings = map[string]string{
	manifestJSON: "{\n  \"version\": ",
	ChangesFile:  "# decree changes ",
	OutsideFile:  "# decree changes ",
	failureFile:  "# Failed attempts\n",
}

// likeOwn says whether a file has the form that decree gives to files of its name. One of
// a name without a form, such as a log, has not.
func likeOwn(dir disk.Dir, name string) (bool, error) {
	f, err := dir.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begins, known := beginnings[name]
	most := int64(len(begins))
	if name == runJSON {
		most = maxRunJSON
	} else if !known {
		return false, nil
	}
	head, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil || len(head) == 0 {
		return err == nil, err
	}
	if known {
		return string(head) == begins, nil
	}
	_, err = ParseRecord(head)
	return err == nil || errors.As(err, new(*NewerError)), nil
}

// clearFile puts aside what lies where a file of tmp is to come, unless decree has written
// it or both are the same.
func (h *History) clearFile(tmp disk.Dir, name string, to disk.Dir, base string) error {
	st, err := to.Stat(base)
	if err != nil || st.Kind == disk.Directory {
		return unlessBarred(err)
	}
	if st.Kind == disk.Regular {
		own, err := likeOwn(to, base)
		if own || err != nil {
			return unlessBarred(err)
		}
		has, err := sumOf(to, base)
		if err != nil {
			return err
		}
		comes, err := sumOf(tmp, name)
		if err != nil || has == comes {
			return err
		}
	}
	return h.p.PutAside(to, base)
}

// unlessBarred is err but where a file is missing, or may not be read.
func unlessBarred(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func sumOf(dir disk.Dir, name string) (sum tree.Hash, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	return tree.SumOf(f)
}

// putOthersAside puts aside what is not a record's own in the directories of records that
// are about to be removed. What may not be read or moved is noted, and goes with them.
func (h *History) putOthersAside(ids []string) error {
	forgetting, err := h.forgetting()
	if err != nil {
		return err
	}
	for _, id := range ids {
		l, err := h.line(id)
		if err != nil {
			return err
		}
		dir, err := h.OpenRun(id)
		if l == nil || err != nil {
			continue // removeRun tells it
		}
		err = h.othersAside(dir, "", ownFiles{l.files, forgetting})
		dir.Close()
		if errors.Is(err, fs.ErrPermission) && h.note != nil {
			h.note(fmt.Sprintf("what else lies in the directory of record %s could not be moved to .decree/aside: %v", id, err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// forgetting says whether a forget is not done yet. A diff may then still be what it was before, which
// holds what is to be forgotten: no copy of it may stay.
func (h *History) forgetting() (bool, error) {
	list, err := store.ReadForgotten(h.p.Store)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return false, err
	case err != nil:
		return true, nil //nolint:nilerr // a list that makes no sense, which doctor tells, may have some
	}
	return len(list.Pending) > 0, nil
}

// ownFiles are the files of a record, and whether a forget may not have written all of them anew yet.
type ownFiles struct {
	sums       map[string]tree.Hash
	forgetting bool
}

// othersAside puts aside what is not the record's own in its directory, or in the one below at prefix ("attempts/1/").
func (h *History) othersAside(dir disk.Dir, prefix string, files ownFiles) error {
	list, err := dir.List()
	for _, e := range list {
		own, oerr := h.ofRecord(dir, e.Name, prefix, files)
		if oerr == nil && !own {
			oerr = h.p.PutAside(dir, e.Name)
		}
		err = errors.Join(err, oerr)
	}
	return err
}

// ofRecord says whether an entry of a record's directory is one of its files, or a
// directory of which what is not is put aside.
func (h *History) ofRecord(dir disk.Dir, name, prefix string, files ownFiles) (bool, error) {
	st, err := dir.Stat(name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), unlessBarred(err)
	}
	at := path.Join(prefix, name)
	switch st.Kind {
	case disk.Directory:
		if number, earlier := strings.CutPrefix(at, project.OutboxDir+"."); at == project.OutboxDir || earlier && digits(number) {
			return true, nil // retention has looked whether anything waits in it; those of earlier attempts were given up
		}
		sub, err := dir.OpenDir(name)
		if err != nil {
			return false, unlessBarred(err)
		}
		defer sub.Close()
		if prefix == "" && name != "attempts" && !holds(files.sums, at+"/") {
			list, err := sub.List()
			return len(list) == 0, err
		}
		return true, h.othersAside(sub, at, files)
	case disk.Regular:
		want, known := files.sums[at]
		if at == runJSON || at == manifestJSON || known && files.forgetting {
			own, err := likeOwn(dir, name)
			return own, unlessBarred(err)
		}
		if !known {
			return false, nil
		}
		has, err := sumOf(dir, name)
		return err == nil && has == want, unlessBarred(err)
	}
	return false, nil
}

func holds(files map[string]tree.Hash, prefix string) bool {
	for name := range files {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
