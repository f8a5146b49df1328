package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"decree/backup"
	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/queue"
	"decree/recorder"
)

// backupOptions are backup's flags.
type backupOptions struct {
	to, from, name, into     string
	ping, bandwidth          string
	tree, runPlugins, dryRun bool
	whole                    bool
}

func (s *session) backupVerb() verb {
	var o backupOptions
	return verb{
		name: "backup", category: keepCategory, args: "[status|config|list|restore|drill|export|prune]", most: anyWords, interruptible: true,
		usage: "keep all that decree knows somewhere else, proven, and bring it back",
		about: `Makes a backup: a generation of all that decree knows of the project, the records with every content that they name, the config, routines, messages, and the present state of the tree, in a directory that backup.to in .decree/config.yml names, or --to. A generation costs what the ones before do not have. Until it is acknowledged the one before is whole, whatever happens. First the commands of backup.plugins run, whose files are in it; in the end a sample of it is restored to scratch and compared by hash, what the retention does not keep is removed, and the URL of backup.ping or --ping is fetched if all of that succeeded.

"backup drill" restores a sample of the newest generation, another one each time, or with --whole all of it; so does a backup when the last whole proof is older than backup.drill. A proof that fails is told by every command until one succeeds. "backup status" says how the last proof and the last backup stand and what is wrong, "backup list" which generations there are, "backup config" which settings are in force and where each comes from, -1 being for ever.

"backup restore" replaces the store, .decree/runs, config, routines and inbox by those of a generation, the newest unless it is named: by its name or any unique part of it, "current", or the path of a FILE.zip. It is read whole and proven first, and what is here is kept as pre-restore-TIME.zip. The files of the tree are left alone, unless --tree is given, which makes a record that 'decree revert last' takes back. With --into DIR, an empty directory, tree and history are made there: so a project comes to another machine.

With backup.encrypt all but a marker is encrypted to age recipients; what reads, a drill, a rotation and a restore, needs backup.identity, or DECREE_BACKUP_IDENTITY naming such a file where there is no config yet, or DECREE_BACKUP_PASSPHRASE. The credentials of s3:// are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or of ~/.aws/credentials; sftp:// uses the keys of the ssh agent and of ~/.ssh, and knows hosts by ~/.ssh/known_hosts.

"backup export GENERATION FILE.zip" writes one zip that needs nothing else; with --json it prints {"generation","file","bytes"}; "backup restore" prints {"generation","counts","before","held","record","notes"} then. "backup prune" removes what the retention no longer keeps, but nothing while the newest backup or proof is older than backup.warn, or a generation lies in the future.`,
		examples: []example{
			{"decree backup", "to where backup.to says"},
			{"decree backup --to ~/backups", "somewhere else, this time"},
			{"decree backup status", "is it safe?"},
			{"decree backup drill --whole", "prove that all of it can be restored"},
			{"decree backup restore --dry-run", "read and prove the newest, change nothing"},
			{"decree backup restore --from ~/backups --into ~/work/tool", "tree and history on a new machine"},
			{"decree backup export current tool.zip", "one file to hand on"},
		},
		exits: []exit{{"1", "it failed, or a plugin did, or what was read is malformed; the backup before stands"}, {"2", "wrong usage; or the target has several projects, and --name says which"}, {"3", "no such generation"}, {"4", "refused; nothing was changed"}, {"5", "a generation is damaged, or a proof failed; nothing was changed"}},
		flags: append([]cli.Flag{
			stringFlag(&o.to, "the target is `TARGET`, this time", "to"),
			stringFlag(&o.from, "restore: read from `TARGET`", "from"),
			stringFlag(&o.name, "restore: the project is called `NAME` there", "name"),
			stringFlag(&o.into, "restore: make tree and history in `DIR`, which is empty", "into"),
			boolFlag(&o.tree, "restore: the files of the tree too", "tree"),
			boolFlag(&o.runPlugins, "restore: run the plugins' restore commands", "run-plugins"),
			boolFlag(&o.whole, "drill: all of the newest generation, not a sample", "whole"),
			stringFlag(&o.ping, "fetch `URL` after success, this time", "ping"),
			stringFlag(&o.bandwidth, "a target on another machine gets and gives at most `SIZE` a second, such as 2MB", "bandwidth"),
			boolFlag(&o.dryRun, "restore, prune: change nothing, say what would be done", "dry-run", "n"),
		}, s.jsonFlag(), s.yesFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag()),
		action: func(ctx context.Context) error { return backup.Explain(s.backup(ctx, o)) },
	}
}

func (s *session) backup(ctx context.Context, o backupOptions) error {
	if err := s.backupClock(); err != nil {
		return err
	}
	if o.bandwidth != "" {
		n, err := humanize.ParseBytes(o.bandwidth)
		if err != nil || n == 0 || n > math.MaxInt64 {
			return usagef("--bandwidth %s is not a size", oneLine(o.bandwidth)).Hintf("write it like 500kB or 2MB")
		}
		s.bandwidth = int64(n)
	}
	words := s.words()
	if len(words) == 0 || slices.Contains([]string{"restore", "prune", "drill"}, words[0]) {
		if err := s.configIsFile(o); err != nil {
			return err
		}
	}
	if len(words) == 0 {
		return s.makeBackup(ctx, o)
	}
	most := map[string]int{"restore": 1, "export": 2}
	if do := map[string]func(context.Context, backupOptions, []string) error{
		"status": s.backupStatus, "config": s.backupConfig, "list": s.listBackups, "prune": s.pruneBackups,
		"restore": s.restoreBackup, "export": s.exportBackup, "drill": s.drillBackup,
	}[words[0]]; do != nil {
		if n := most[words[0]]; len(words)-1 > n {
			return usagef("backup %s takes no %s", words[0], quoteWord(words[n+1]))
		}
		return do(ctx, o, words[1:])
	}
	return usagef("backup has no subcommand %s", quoteWord(words[0])).Hintf("'decree backup' makes one; status, config, list, restore, drill, export and prune look at them and use them")
}

// configIsFile refuses to work on backups where config.yml is a link, which is not followed: other commands put it aside, and
// backups would go to another place than it says, without a key, and by other rules.
func (s *session) configIsFile(o backupOptions) error {
	root, err := s.rootOf()
	if err != nil || o.into != "" || o.dryRun || !project.ConfigLinked(disk.OS, root) {
		return nil //nolint:nilerr // the command itself says it
	}
	return refusedf("%s is no regular file and is not read, so it is not known where backups belong; nothing was changed", quoteWord(filepath.Join(root, ".decree", "config.yml"))).
		Hintf("put the file itself there in place of the link; what it leads to may be changed by others")
}

// backupClock sets the clock to DECREE_NOW, which tests use.
func (s *session) backupClock() error {
	text := s.env.get("DECREE_NOW")
	if text == "" {
		return nil
	}
	now, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return usagef("DECREE_NOW=%s: not a time", oneLine(text)).Hintf("write it like 2026-11-20T14:30:00Z, or unset it")
	}
	s.env.Now = func() time.Time { return now }
	return nil
}

// targetOptions are what opens the target that --to or the config names.
func (s *session) targetOptions(to string, p *project.Site, create bool) backup.OpenOptions {
	o := backup.OpenOptions{To: to, Home: s.env.get("HOME"), Cwd: s.env.Cwd, Disk: disk.OS, Create: create, Getenv: s.env.get, Bandwidth: s.bandwidth}
	if p != nil {
		o.Root = p.Root
		o.Config, o.Store, o.StorePath = p.Config.Backup, p.Store, p.StorePath
		if to == "" {
			o.To = p.Config.Backup.To
		}
	}
	return o
}

// openTarget opens the target that --to or the config names.
func (s *session) openTarget(ctx context.Context, to string, p *project.Site, create bool) (target.Target, error) {
	o := s.targetOptions(to, p, create)
	if err := s.apartFromDecree(o); err != nil {
		return nil, err
	}
	return backup.Open(ctx, o)
}

// targetName is what the store remembers that target by, also where it cannot be opened.
func (s *session) targetName(to string, p *project.Site) string {
	return target.Shown(s.targetOptions(to, p, false).Place())
}

// backupOf puts together what works on the backups of a project.
func (s *session) backupOf(rec *recorder.Recorder, t target.Target) backup.Options {
	return backup.Options{
		Recorder: rec, Target: t, Where: s.where(), Version: Version(), Host: s.env.Host, Now: s.env.Now, Yes: s.global.yes, Tell: s.note, Queue: queue.Backup{Recorder: rec},
		Progress: func(phase string, done, total int64) {
			s.meter.update(recorder.Progress{Phase: phase, Done: done, Total: total})
		},
	}
}

// placeOf is the project's directory in the target, for looking.
func (s *session) placeOf(ctx context.Context, o backupOptions) (*recorder.Reader, *backup.Place, func(), error) {
	rec, err := s.forLooking()
	if err != nil {
		return nil, nil, nil, err
	}
	if !rec.HasProject() { // nothing of it is anywhere
		return rec, nil, nil, fmt.Errorf("%s: %w", rec.Project().Root, target.ErrGone)
	}
	t, err := s.openTarget(ctx, o.to, rec.Project(), false)
	if err != nil {
		return rec, nil, nil, err
	}
	place, err := backup.FindOwn(ctx, t, rec.Project(), s.where(), s.env.Host)
	if err != nil {
		t.Close()
		return rec, nil, nil, err
	}
	return rec, place.ToRead(), func() { t.Close() }, nil
}

func (s *session) listBackups(ctx context.Context, o backupOptions, _ []string) error {
	rec, place, done, err := s.placeOf(ctx, o)
	out := []backup.Listed{}
	if err == nil {
		defer done()
		s.sayDamage(place)
		if older := place.Older(rec.Project()); older != "" {
			s.note(older)
		}
		if place.Apart != "" {
			s.note(place.Apart)
		}
		if why := backup.Unreadable(ctx, place.Target, place.Name); why != nil {
			s.note(fmt.Sprintf("these can be neither proven nor restored from here: %v: %s", why, project.HintOf(why)))
		}
		if err = place.Gone(rec.Project()); err == nil {
			out, err = place.List(ctx, rec.Project().Config.Backup.Retention)
		}
	} else if s.noBackupYet(rec, o, err) {
		err = nil
	}
	if err != nil {
		return err
	}
	if names := s.aside(ctx, o, rec); len(names) > 0 {
		s.note(fmt.Sprintf("what restores have replaced and the target did not take is in %s: %s; 'decree backup list --to %[1]s' lists it", project.DefaultBackupTo, list(names)))
	}
	var found error
	if newest := backup.Newest(out); newest != nil && !newest.Provable || place != nil && place.Damage != "" {
		found = errFound{project.Integrity}
	}
	if s.global.json {
		return cmp.Or(s.printJSON(out), found)
	}
	if len(out) == 0 {
		s.say("decree: there is no backup yet; 'decree backup' makes one")
		return nil
	}
	return cmp.Or(s.printBackups(out), found)
}

// sayDamage says that a copy is read in the place of manifest.json.
func (s *session) sayDamage(place *backup.Place) {
	if place.Damage != "" {
		s.note(place.Damage + "; 'decree backup' in the project itself writes it anew")
	}
}

// printBackups prints generations as a table.
func (s *session) printBackups(out []backup.Listed) error {
	return s.print(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout)
		for _, l := range out {
			kept := strings.Join(l.KeptBy, ", ")
			if kept == "" {
				kept = "the next prune removes it"
			}
			if !l.Provable {
				kept += "; cannot be restored: a part of it is missing or damaged"
			}
			t.add(l.Generation, s.ago(l.Timestamp), l.Host, count(l.Records, "record"), size(l.Bytes), size(l.NewBytes)+" new", kept)
		}
		return t.write(w)
	})
}

// aside are what restores have replaced and the default target has, which takes it where the target does not; none where that is the target.
func (s *session) aside(ctx context.Context, o backupOptions, rec *recorder.Reader) (names []string) {
	if !rec.HasProject() {
		return nil
	}
	p := rec.Project()
	o.to = cmp.Or(o.to, p.Config.Backup.To)
	if o.to == "" || o.to == project.DefaultBackupTo {
		return nil
	}
	t, err := s.openTarget(ctx, project.DefaultBackupTo, p, false)
	if err != nil {
		return nil // it is not there
	}
	defer t.Close()
	place, err := backup.FindOwn(ctx, t, p, s.where(), s.env.Host)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(place.Generations(), func(name string) bool { return !backup.IsPreRestore(name) })
}

// noBackupYet says whether an error is that the default target, which the first backup makes, is not
// there.
func (s *session) noBackupYet(rec *recorder.Reader, o backupOptions, err error) bool {
	return rec != nil && isGone(err) && (!rec.HasProject() || o.to == "" && rec.Project().Config.Backup.To == "")
}

func (s *session) backupConfig(_ context.Context, o backupOptions, _ []string) error {
	rec, err := s.openReader(true)
	if err != nil {
		return err
	}
	out := backup.Settings(&rec.Project().Config, rec.Project().BackupName(s.where()), s.env.get("HOME"))
	if o.to != "" {
		out[0] = backup.Setting{Key: "to", Value: target.Shown(o.to), From: "--to"}
	}
	if s.global.json {
		return s.printJSON(out)
	}
	return s.print(func(w io.Writer) error {
		t := &table{}
		for _, l := range out {
			t.add(l.Key, l.Words(), l.From)
		}
		return t.write(w)
	})
}

func (s *session) pruneBackups(ctx context.Context, o backupOptions, _ []string) error {
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	t, err := s.openTarget(ctx, o.to, &rec.Project().Site, false)
	if err != nil {
		return err
	}
	defer t.Close()
	out, err := s.backupOf(rec, t).Prune(ctx, rec.Project().Config.Backup.Retention, o.dryRun)
	if err != nil {
		return err
	}
	if out.Held != "" && !o.dryRun {
		return &project.Error{Kind: project.Refused, Msg: "nothing is removed now: " + out.Held, State: project.Unchanged,
			Advice: "in an outage, or with a clock that lies, the rules would take good generations; make a backup first: 'decree backup'"}
	}
	if s.global.json {
		return s.printJSON(out)
	}
	done := "were removed"
	switch {
	case o.dryRun:
		done = "would be removed"
	case len(out.Removed) == 1:
		done = "was removed"
	}
	switch {
	case len(out.Removed) > 0:
		s.tell("%s %s: %s", count(len(out.Removed), "generation"), done, list(out.Removed))
	default:
		s.tell("every generation is kept")
	}
	if out.Freed > 0 {
		s.tell("%s freed", size(out.Freed))
	}
	if out.Held != "" {
		s.note("nothing is removed now: " + out.Held)
	}
	if out.Unread != "" {
		s.note(unreadArchive(out))
	}
	return nil
}

// isGone says whether a target is not there.
func isGone(err error) bool { return backup.IsGone(err) }
