package queue

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

const (
	// chainsDir is a directory of the store: an empty file for each chain that was
	// given lately, named so. Whoever makes the file has the chain, and needs no lock.
	chainsDir  = "chains"
	keptChains = 200
)

// NewChain gives a message that says none a chain of its own: no record has it, and
// it was given to no other message, wherever that lies now. It takes no lock.
func NewChain(rec *recorder.Recorder) (string, error) {
	id, err := rec.FreeID("")
	if err != nil {
		return "", err
	}
	chain, _, _ := history.ParseID(id)
	return giveChain(rec.Project(), chain)
}

// giveChain gives chain away, or the next one that nobody was given.
func giveChain(p *project.Project, chain string) (string, error) {
	chain, err := afterGiven(p, chain)
	if err != nil {
		return "", err
	}
	for ; ; chain = following(chain) {
		if ours, err := takeChain(p, chain); ours || err != nil {
			return chain, err
		}
	}
}

// afterGiven is chain, or the one after the last that was given in its moment. Of the
// others the names are forgotten.
func afterGiven(p *project.Project, chain string) (string, error) {
	dir, err := makeDir(p.Store, chainsDir, project.PrivateDir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(list))
	next := chain
	for _, e := range list {
		names = append(names, e.Name)
		if e.Name >= next && number(e.Name)-number(chain) < oneMoment {
			next = following(e.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-keptChains)] {
		if err := dir.Remove(name); err != nil && !isMissing(err) {
			return "", err
		}
	}
	return next, nil
}

// oneMoment is how near two chains are that may be given in the same moment: a minute,
// since more messages can be sent in a second than it has chains.
const oneMoment = 10000

// ReturnChain gives a chain back that no message has got after all.
func ReturnChain(p *project.Project, chain string) {
	if dir, err := p.Store.OpenDir(chainsDir); err == nil {
		_ = dir.Remove(chain)
		dir.Close()
	}
}

// takeChain says whether the chain was free, and is the caller's now.
func takeChain(p *project.Project, chain string) (bool, error) {
	for _, where := range []string{"", doneName, deadName} { // given by an older decree, or by a person
		if there, err := isThere(p, where, history.FormatID(chain, 0)+suffix); there || err != nil {
			return false, err
		}
	}
	dir, err := makeDir(p.Store, chainsDir, project.PrivateDir)
	var f disk.File
	if err == nil {
		defer dir.Close()
		f, err = disk.CreateFile(dir, chain, project.PrivateFile)
	}
	switch {
	case isExist(err):
		return false, nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return true, nil // a message can be sent also then; two of one moment may share an id
	case err != nil:
		return false, err
	}
	return true, f.Close()
}

// isThere says whether there is a file in the inbox (""), in done or in dead.
func isThere(p *project.Project, where, name string) (bool, error) {
	dir, err := openInbox(p.Dir, where)
	if err != nil {
		return false, unlessNoFile(err)
	}
	defer dir.Close()
	return disk.Has(dir, name)
}

// following is the chain after one that is taken.
func following(chain string) string { return fmt.Sprintf("%016d", number(chain)+1) }

// number is that of the 16 digits of a chain.
func number(chain string) (n int64) {
	_, _ = fmt.Sscan(chain, &n)
	return n
}
