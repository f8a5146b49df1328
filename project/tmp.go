package project

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"decree/disk"
)

// What decree makes in .decree/tmp begins with a mark: a number that each process draws
// for itself and notes with the lock in the store. So what a process left that died there
// is told from whatever else has come into the directory, as what a command moved there:
// of that there is no copy anywhere.

// mostMarks bounds how many of them are noted: of processes that died one after the other
// before any could clean up.
const mostMarks = 16

// TmpName is the name of something of decree's own in .decree/tmp. The caller has the lock.
func (p *Project) TmpName(name string) string {
	if len(p.marks) == 0 {
		p.marks = []string{newMark()}
	}
	return p.marks[0] + name
}

// InTmp says whether what has this name in .decree/tmp was made by decree. The caller has
// the lock.
func (p *Project) InTmp(name string) bool {
	return slices.ContainsFunc(p.marks, func(m string) bool { return strings.HasPrefix(name, m) })
}

func newMark() string { return fmt.Sprintf("%016x-", rand.Uint64()) }

// gatherMarks returns this process's own mark and those that others have noted.
func (p *Project) gatherMarks() ([]string, error) {
	p.TmpName("")
	noted := holder(p.Store).Tmp
	err := eachLease(p.Store, func(_ disk.Dir, _ string, dir disk.Dir) error {
		h, err := readHolder(dir, leaseHolder)
		noted = append(noted, h.Tmp...)
		return err
	})
	for _, m := range noted {
		if len(m) == len(newMark()) && !slices.Contains(p.marks, m) && len(p.marks) < mostMarks {
			p.marks = append(p.marks, m)
		}
	}
	return p.marks, err
}

// leftInTmp are the marks that are still to be noted when the lock is given back, since
// something in .decree/tmp has them: not every command cleans up after dead processes.
func (p *Project) leftInTmp() (marks []string) {
	if p.Decree == nil {
		return nil
	}
	tmp, err := p.Decree.OpenDir(TmpDir)
	if err != nil {
		return nil
	}
	defer tmp.Close()
	list, err := tmp.List()
	if err != nil {
		return p.marks
	}
	for _, m := range p.marks {
		if slices.ContainsFunc(list, func(e disk.Entry) bool { return strings.HasPrefix(e.Name, m) }) {
			marks = append(marks, m)
		}
	}
	return marks
}
