package project

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/tree"
)

// A swap replaces what a project has, in its store and in .decree, by what was built beside it:
// all of it or nothing, whenever the process dies. It lies in the store:
//
//	swap/store/     what comes into the store
//	swap/old/       what was there
//	swap/journal    {"version":1,"store":{"new":[names],"gone":[names]},"decree":{...},"tmp":"<name>","config":"<sha256>","plain":{"<name>":"<sha256>"}}: from here on it is finished;
//	                with "then" this becomes IntoFile
//
// and what comes into .decree lies in .decree/tmp/<tmp>/new, beside the file began, since the two may be on different
// disks: the hashes of the files in the directories of .decree, as they were when the swap began. For each name what is there is moved to old, and then the new is moved in: that the new
// is not where it was built any more says that this was done.
const (
	swapDir     = "swap"
	swapJournal = "journal"
	swapNew     = "store"
	swapOld     = "old"
	maxJournal  = 4 << 20 // bytes: what is decided can be read
	swapBegan   = "began" // in .decree/tmp/<tmp>: {"<path below .decree>":"<sha256>"}; what is not as it says was written since
	maxBegan    = 256 << 20
)

// Swap is a replacement that is being built. The caller has the project's lock.
type Swap struct {
	p      *Project
	dir    disk.Dir    // swap
	Store  disk.Dir    // what comes into the store is built in it
	Decree disk.Dir    // what comes into .decree
	above  [2]disk.Dir // the directories that Decree lies in, below .decree
	// Then is what is to be done when all is in its place, and which a death does not make forgotten; nil: nothing.
	Then   *Into
	tmp    string
	config string            // the hash of config.yml as it was at the beginning, in hex; "": there was none
	plain  map[string]string // the same of the other files at the top of .decree, by their quoted names
}

// swapPlan is the journal.
type swapPlan struct {
	Version int       `json:"version"`
	Store   swapNames `json:"store"`
	Decree  swapNames `json:"decree"`
	Tmp     string    `json:"tmp"` // of the directory in .decree/tmp
	// From is the project whose history it is, if that is not this one.
	From string `json:"from,omitempty"`
	// Config is the hash of .decree/config.yml as it was when the swap began, in hex; "": there was none.
	Config string `json:"config,omitempty"`
	// Plain are those of the other files at the top of .decree; nil: an earlier decree has begun it.
	Plain map[string]string `json:"plain"` // names as tree.Quote writes them
	Then  *Into             `json:"then,omitempty"`
}

// swapNames are names in one directory: those that get a new content, and those that get none.
type swapNames struct {
	New  []tree.Text `json:"new"`
	Gone []tree.Text `json:"gone"`
}

func swapNamesOf(fresh disk.Dir, names []string) (out swapNames, err error) {
	for _, name := range names {
		there, err := disk.Has(fresh, name)
		switch {
		case err != nil:
			return out, err
		case there:
			out.New = append(out.New, tree.Text(name))
		default:
			out.Gone = append(out.Gone, tree.Text(name))
		}
	}
	return out, nil
}

// BeginSwap makes the places where the new is built. What an earlier one that was never
// decided has left is removed.
func (p *Project) BeginSwap() (*Swap, error) {
	if err := disk.RemoveTree(p.Store, swapDir); err != nil {
		return nil, err
	}
	s := &Swap{p: p, tmp: p.TmpName("swap")}
	tmp, err := p.OwnDir(p.Decree, TmpDir)
	if err != nil {
		return nil, err
	}
	s.above[0] = tmp
	if err = disk.RemoveTree(tmp, s.tmp); err == nil {
		s.dir, err = MakeDir(p.Store, swapDir, PrivateDir)
	}
	if err == nil {
		s.Store, err = MakeDir(s.dir, swapNew, PrivateDir)
	}
	if err == nil {
		s.above[1], err = MakeDir(tmp, s.tmp, PrivateDir)
	}
	if err == nil {
		s.Decree, err = MakeDir(s.above[1], "new", PrivateDir)
	}
	if err == nil {
		err = s.noteFiles()
	}
	if err == nil {
		s.config, err = configSum(p.Decree, configFile)
	}
	if err == nil {
		s.plain, err = plainSums(p.Decree)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// noteFiles notes what the directories of .decree hold by their hashes: times would not tell what was written since, where the clock
// was set back or somebody sets them. The files at the top are in the journal.
func (s *Swap) noteFiles() error {
	list, err := s.p.Decree.List()
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, e := range list {
		if e.Name == TmpDir || e.Name == RunsDir { // decree's own
			continue
		}
		if err := sumsBelow(s.p.Decree, e.Name, e.Name, sums); err != nil {
			return err
		}
	}
	data, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return ReplaceFile(s.above[1], swapBegan, data, PrivateFile, true)
}

// unreadableSum is noted for a file or directory that could not be read when the swap began.
const unreadableSum = ""

// sumsBelow adds the hashes of the files in a directory to sums, by their quoted paths below .decree.
func sumsBelow(above disk.Dir, name, at string, sums map[string]string) error {
	dir, err := above.OpenDir(name)
	if errors.Is(err, fs.ErrPermission) {
		sums[tree.Quote(at)], err = unreadableSum, nil
		return err
	}
	if err != nil {
		return disk.UnlessMissingOrOther(err)
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		below := at + "/" + e.Name
		st, err := dir.Stat(e.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was taken away meanwhile
			err = nil
		case err == nil && st.Kind == disk.Directory:
			err = sumsBelow(dir, e.Name, below, sums)
		case err == nil:
			sums[tree.Quote(below)], err = plainSum(dir, e.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close lets go of the directories; what was built stays for Commit's journal, or is removed by the
// next command.
func (s *Swap) Close() {
	for _, d := range []disk.Dir{s.dir, s.Store, s.Decree, s.above[0], s.above[1]} {
		if d != nil {
			d.Close()
		}
	}
}

// Drop removes what was built. Nothing was changed.
func (s *Swap) Drop() error {
	s.Close()
	return s.p.dropSwap(s.tmp)
}

// Decide writes the journal for names in the store and in .decree, whose new content, all that was
// built, is durable: those without one are taken away. From then on FinishSwap does the rest, now or in
// a later process. from is the project whose history this is, if it is not this one's own.
func (s *Swap) Decide(store, decree []string, from string) error {
	plan := swapPlan{Version: 1, Tmp: s.tmp, From: from, Config: s.config, Plain: s.plain, Then: s.Then}
	var err error
	if plan.Store, err = swapNamesOf(s.Store, store); err != nil {
		return err
	}
	if plan.Decree, err = swapNamesOf(s.Decree, decree); err != nil {
		return err
	}
	for _, d := range []disk.Dir{s.Store, s.Decree, s.above[0], s.above[1], s.dir, s.p.Store, s.p.Decree} {
		if err := d.Sync(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(plan)
	if len(data) >= maxJournal {
		err = &Error{Kind: Refused, Msg: dirName + " and the backup have too many names at the top for one restore", State: Unchanged,
			Advice: "put what does not belong there into one directory"}
	}
	if err == nil {
		err = ReplaceFile(s.dir, swapJournal, append(data, '\n'), PrivateFile, true)
	}
	return err
}

// Swapping says whether a swap was decided and is not finished.
func (s *Site) Swapping() bool {
	if s.Store == nil {
		return false
	}
	dir, err := s.Store.OpenDir(swapDir)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Stat(swapJournal)
	return err == nil
}

// FinishSwap does the rest of a swap that was decided, and removes one that was not. then is called when
// all is in its place and may be called again after a death. finished says that there was one. The
// caller has the project's lock.
func (p *Project) FinishSwap(then func() error) (finished bool, err error) {
	dir, err := p.Store.OpenDir(swapDir)
	if err != nil {
		return false, disk.UnlessMissingOrOther(err)
	}
	defer dir.Close()
	data, err := ReadFile(dir, swapJournal, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return false, p.dropSwap("")
	}
	if err != nil {
		return false, err
	}
	var plan swapPlan
	if err := json.Unmarshal(data, &plan); err != nil || plan.Version != 1 {
		return false, &Error{Kind: Refused, Msg: path.Join(p.StorePath, swapDir, swapJournal) + ": a restore that a newer decree has begun, or a damaged one", Err: err,
			Advice: "let the decree finish it that has begun it"}
	}
	if err := p.swapIn(dir, plan); err != nil {
		return false, err
	}
	if err := p.keepEdited(plan); err != nil {
		return false, err
	}
	if p.form.Awaits || plan.From != "" && plan.From != p.form.From {
		p.form.From, p.form.Awaits = plan.From, false
		if err := p.remember(); err != nil {
			return false, err
		}
	}
	if err := p.treeFollows(plan.Then); err != nil {
		return false, err
	}
	if then != nil {
		if err := then(); err != nil {
			return false, err
		}
	}
	return true, p.endSwap(dir, plan)
}

// swapIn moves everything to its place.
func (p *Project) swapIn(dir disk.Dir, plan swapPlan) error {
	fresh, err := MakeDir(dir, swapNew, PrivateDir)
	if err != nil {
		return err
	}
	defer fresh.Close()
	old, err := MakeDir(dir, swapOld, PrivateDir)
	if err != nil {
		return err
	}
	defer old.Close()
	if err := moveAll(fresh, p.Store, old, plan.Store); err != nil {
		return err
	}
	return p.swapDecree(plan)
}

func moveAll(fresh, to, old disk.Dir, names swapNames) error {
	for _, name := range names.New {
		if err := moveIn(fresh, to, old, string(name)); err != nil {
			return err
		}
	}
	for _, name := range names.Gone {
		if err := moveAway(to, old, string(name)); err != nil {
			return err
		}
	}
	for _, d := range []disk.Dir{to, fresh, old} {
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) swapDecree(plan swapPlan) error {
	if err := p.EnsureDecree(); err != nil {
		return err
	}
	tmp, err := p.OwnDir(p.Decree, TmpDir)
	if err != nil {
		return err
	}
	defer tmp.Close()
	in, err := MakeDir(tmp, plan.Tmp, PrivateDir)
	if err != nil {
		return err
	}
	defer in.Close()
	fresh, err := MakeDir(in, "new", PrivateDir)
	if err != nil {
		return err
	}
	defer fresh.Close()
	old, err := MakeDir(in, swapOld, PrivateDir)
	if err != nil {
		return err
	}
	defer old.Close()
	return moveAll(fresh, p.Decree, old, plan.Decree)
}

// keepEdited keeps what a person has written since the swap began, as after the death of the process that made it, and what
// the archive of what was here cannot hold; what was there otherwise goes: a message waits in the inbox that is there now, anything else lies in .decree/aside.
func (p *Project) keepEdited(plan swapPlan) error {
	in, err := disk.OpenPath(p.Decree, path.Join(TmpDir, plan.Tmp))
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer in.Close()
	var began map[string]string // nil: an earlier decree has begun it, so nobody knows what is newer
	data, err := ReadFile(in, swapBegan, maxBegan)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return disk.UnlessMissing(err)
	}
	_ = json.Unmarshal(data, &began)
	old, err := in.OpenDir(swapOld)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer old.Close()
	list, err := old.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		name := plan.nameOf(e.Name)
		st, err := old.Stat(e.Name)
		if err != nil {
			return err
		}
		switch {
		case name == RunsDir: // decree's own
		case st.Kind != disk.Regular && st.Kind != disk.Directory:
			err = p.keepUnheld(old, e.Name, name)
		case name == configFile:
			err = p.keepConfig(old, e.Name, plan.Config)
		case st.Kind == disk.Regular:
			err = p.keepPlain(old, e.Name, name, plan.Plain)
		default:
			err = p.keepNewer(old, e.Name, name, began)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepConfig keeps a config.yml that is not the one with this hash.
func (p *Project) keepConfig(old disk.Dir, name, was string) error {
	now, err := configSum(old, name)
	if err != nil || now == "" || now == was {
		return err
	}
	return p.keepChanged(old, name, configFile)
}

// nameOf is the name that something in old had in .decree: one that was made there since has got more.
func (s *swapPlan) nameOf(moved string) string {
	end := strings.LastIndex(moved, ".1")
	if end < 0 || slices.Contains(s.Decree.New, tree.Text(moved)) || slices.Contains(s.Decree.Gone, tree.Text(moved)) {
		return moved
	}
	return moved[:end]
}

// keepPlain keeps another file at the top of .decree that is not as it was. Its own move may have given it a change time: its hash says.
func (p *Project) keepPlain(old disk.Dir, moved, name string, was map[string]string) error {
	if was == nil {
		return nil
	}
	now, err := plainSum(old, moved)
	if err != nil || now == "" || now == was[tree.Quote(name)] {
		return err
	}
	return p.keepChanged(old, moved, name)
}

// plainSums are the hashes of the files at the top of .decree, in hex, that are not decree's own.
func plainSums(decree disk.Dir) (map[string]string, error) {
	list, err := decree.List()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range list {
		if e.Name == configFile || e.Name == identityFile || e.Name == IntoFile {
			continue
		}
		sum, err := plainSum(decree, e.Name)
		if err != nil {
			return nil, err
		}
		if sum != "" {
			out[tree.Quote(e.Name)] = sum
		}
	}
	return out, nil
}

// plainSum is the hash of a file, in hex; "" where there is none that can be read.
func plainSum(dir disk.Dir, name string) (string, error) {
	f, err := dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, disk.ErrNotRegular) || disk.OtherKind(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := tree.SumOf(f)
	return sum.String(), err
}

// keepNewer keeps what is not as it was in a directory, below .decree/at, by the hashes of noteFiles, and what no archive holds. Where
// these are not known all is kept aside: a message of before must not come into the inbox that is there now. So it is where the directory
// could not be read then.
func (p *Project) keepNewer(above disk.Dir, name, at string, was map[string]string) error {
	dir, err := above.OpenDir(name)
	if err != nil {
		if disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return err
	}
	defer dir.Close()
	if unreadable(was, at) {
		was = nil
	}
	list, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		st, err := dir.Stat(e.Name)
		switch {
		case err != nil:
		case st.Kind == disk.Directory:
			err = p.keepNewer(dir, e.Name, at+"/"+e.Name, was)
		case st.Kind != disk.Regular:
			err = p.keepUnheld(dir, e.Name, at+"/"+e.Name)
		default:
			err = p.keepUnlessSame(dir, e.Name, at, was)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepUnlessSame keeps a file that is not as it was: a message in the inbox, where that is known for sure, anything else aside.
func (p *Project) keepUnlessSame(dir disk.Dir, name, at string, was map[string]string) error {
	if inHand(at + "/" + name) {
		return p.keepUnheld(dir, name, at+"/"+name)
	}
	now, err := plainSum(dir, name)
	if err != nil || now != "" && now == was[tree.Quote(at+"/"+name)] {
		return err
	}
	if at == InboxDir && now != "" && was != nil && !unreadable(was, at+"/"+name) {
		return p.keepMessage(dir, name)
	}
	return p.keepChanged(dir, name, at+"/"+name)
}

// unreadable says whether what is at a path below .decree could not be read when the hashes were noted.
func unreadable(was map[string]string, at string) bool {
	sum, noted := was[tree.Quote(at)]
	return noted && sum == unreadableSum
}

// inHand says whether a file below .decree is one of the inbox that a process had in its hands, such as a message on its way out or one that
// changed places with another. A new message that is not whole yet is none.
func inHand(at string) bool {
	name, ok := strings.CutPrefix(at, InboxDir+"/"+InboxDraft)
	return ok && !strings.HasPrefix(name, wholeDraft)
}

// keepMessage moves a message into the inbox, or aside where that has one of its name.
func (p *Project) keepMessage(from disk.Dir, name string) error {
	inbox, err := p.OwnDir(p.Decree, InboxDir)
	if err != nil {
		return err
	}
	defer inbox.Close()
	err = from.RenameNew(name, inbox, name)
	if errors.Is(err, fs.ErrExist) {
		return p.keepChanged(from, name, InboxDir+"/"+name)
	}
	if err != nil {
		return err
	}
	p.note("%s/%s/%s was written while a restore of a backup was not finished, and waits there", dirName, InboxDir, name)
	return inbox.Sync()
}

// keepUnheld moves a link, a message that a process had in its hands, or whatever else no archive of a backup holds, aside.
func (p *Project) keepUnheld(from disk.Dir, name, was string) error {
	to, err := p.toAside(from, name, was)
	if err == nil {
		have := "files and directories"
		if inHand(was) {
			have = "whole messages"
		}
		p.note("%s/%s is in no archive, which have %s alone; it is now %s/%s/%s", dirName, was, have, dirName, asideDir, to)
	}
	return err
}

// keepChanged moves aside what was changed at a path below .decree.
func (p *Project) keepChanged(from disk.Dir, name, was string) error {
	to, err := p.toAside(from, name, was)
	if err == nil {
		p.note("%s/%s was changed while a restore of a backup was not finished; what was written there is now %s/%s/%s", dirName, was, dirName, asideDir, to)
	}
	return err
}

// configSum is the hash of a config.yml, in hex; "" where there is none that is a config.
func configSum(dir disk.Dir, name string) (string, error) {
	data, err := ReadFile(dir, name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTooLarge) || errors.Is(err, fs.ErrPermission) || disk.OtherKind(err) {
		return "", nil
	}
	return tree.Sum(data).String(), err
}

// moveIn puts the new content of a name into its place: as long as it is not there yet,
// whatever is there is what was there before.
func moveIn(fresh, to, old disk.Dir, name string) error {
	if there, err := disk.Has(fresh, name); err != nil || !there {
		return err
	}
	if err := moveOut(to, old, name); err != nil {
		return err
	}
	return fresh.RenameNew(name, to, name)
}

// moveAway takes away a name that has no new content, once.
func moveAway(to, old disk.Dir, name string) error {
	if done, err := disk.Has(old, name); err != nil || done {
		return err
	}
	return moveOut(to, old, name)
}

// moveOut moves what is in a name's place to old, if anything is.
func moveOut(to, old disk.Dir, name string) error {
	there, err := disk.Has(to, name)
	if err != nil || !there {
		return err
	}
	taken, err := disk.Has(old, name) // something was made there since, as by a daemon that saw nothing
	if err != nil {
		return err
	}
	if taken {
		return to.RenameNew(name, old, name+aliasOf(old, name))
	}
	return to.RenameNew(name, old, name)
}

// aliasOf is what is added to a name that old has already.
func aliasOf(old disk.Dir, name string) string {
	for more := ".1"; ; more += "1" {
		if _, err := old.Stat(name + more); err != nil {
			return more
		}
	}
}

// endSwap removes the journal, which is the end of it, and then what was there before.
func (p *Project) endSwap(dir disk.Dir, plan swapPlan) error {
	if err := dir.Remove(swapJournal); err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	return p.dropSwap(plan.Tmp)
}

// dropSwap removes what a swap has built or put aside. tmp is "" where it is not known: then
// .decree/tmp is cleaned like after any dead process.
func (p *Project) dropSwap(tmp string) error {
	if tmp != "" && p.Decree != nil && !strings.Contains(tmp, "/") {
		if dir, err := p.Decree.OpenDir(TmpDir); err == nil {
			err = disk.RemoveTree(dir, tmp)
			dir.Close()
			if err != nil {
				return err
			}
		}
	}
	return disk.RemoveTree(p.Store, swapDir)
}
