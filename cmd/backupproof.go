package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"decree/backup"
	"decree/project"
)

// alarm says that backups are not as they should be: one line, once, from what the store knows. "decree
// backup" itself says more.
func (s *session) alarm(p *project.Site) {
	if s.alarmed || p == nil || p.Store == nil || s.line.verb == "__complete" {
		return
	}
	s.alarmed = true
	if s.line.verb != "backup" || !s.arriving {
		s.sayArriving(p.Root)
	}
	if s.line.verb == "backup" {
		return
	}
	if text := backup.Alarm(p.Store, &p.Config, s.targetName("", p), s.env.Now()); text != "" {
		s.say("decree: backup: %s", oneLine(text))
	}
}

// makeBackup makes a generation with all that belongs to it, and says what came of each part.
func (s *session) makeBackup(ctx context.Context, o backupOptions) error {
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	p := rec.Project()
	if err := backupInLayer(p); err != nil {
		return err
	}
	s.clearScratch()
	t, err := s.openTarget(ctx, o.to, &p.Site, true)
	if err != nil {
		if rerr := backup.RememberFailure(p.Store, s.targetName(o.to, &p.Site), s.env.Now(), err); rerr != nil {
			s.note(rerr.Error())
		}
		return err
	}
	defer t.Close()
	out, err := backup.Run(ctx, s.backupOf(rec, t), backup.RunOptions{Environ: s.env.Environ, Ping: cmp.Or(o.ping, p.Config.Backup.Ping), Prove: true})
	if err != nil {
		return err
	}
	s.meter.stop()
	if s.global.json {
		list, err := out.Place.List(ctx, p.Config.Backup.Retention)
		if err == nil {
			err = s.printJSON(list[0])
		}
		if err != nil {
			return err
		}
	}
	c := out.Manifest.Counts
	s.say("decree: backup %s to %s: %s, %s of contents; %s sent", out.Manifest.Generation(), quoteWord(t.String()), count(c.Records, "record"), size(c.Bytes), size(out.NewBytes))
	if out.Proof != nil {
		s.sayProof(out.Proof)
	}
	s.sayPruned(out.Pruned)
	if err := badSchedule(p.Config.Backup.Schedule); err != nil {
		s.note(err.Error() + "; no backup is made by itself until that is mended")
	}
	switch {
	case backup.InTree(t, p.Root):
		s.note("it is inside the tree, where 'git clean -xfd' deletes it and a broken disk takes both: name another disk with backup.to in .decree/config.yml, or --to")
	case backup.SameDisk(t, &p.Site):
		s.note("it is on the same disk as the store: a broken disk takes both")
	}
	return s.backupOutcome(out)
}

// backupInLayer refuses to back up, or to replace, what a command of an isolated run sees.
func backupInLayer(p *project.Project) error {
	if !p.InLayer {
		return nil
	}
	return refusedf("this command is a part of an isolated run, and what it sees goes with the run; nothing was changed").
		Hintf("'decree backup' outside of the run backs up and restores the project")
}

// unreadArchive says why contents stay in a target that no generation needs.
func unreadArchive(p *backup.Prune) string {
	return fmt.Sprintf("contents that no generation names any more stay there: generation %s cannot be read, or was made of a damaged manifest.json, and may need them; they go once a sound copy of archives/%[1]s.zip is put back there, or no rule of backup.retention keeps that generation any more", p.Unread)
}

// sayPruned tells of a rotation where there is something to tell.
func (s *session) sayPruned(p *backup.Prune) {
	if p != nil && p.Unread != "" {
		s.note(unreadArchive(p))
	}
	switch {
	case p == nil:
	case len(p.Removed) > 0:
		s.say("decree: removed %s, which no rule of backup.retention keeps: %s", count(len(p.Removed), "generation"), list(p.Removed))
	case p.Held != "":
		s.say("decree: nothing was removed: %s", p.Held)
	}
}

// backupOutcome is the error of a backup that was made, but not as it should be: what matters most.
func (s *session) backupOutcome(out *backup.Outcome) error {
	for _, text := range slices.Concat(out.Lost, out.Failed) {
		s.note(text)
	}
	switch {
	case out.Proof != nil && !out.Proof.OK:
		return proofFailed(out.Proof)
	case out.Older != "":
		return &project.Error{Kind: project.Integrity, Msg: out.Older, State: "this backup was made, and nothing was removed",
			Advice: "see to what has changed the target, a tool that copies it perhaps; 'decree backup drill --whole' proves what is there"}
	case len(out.Lost) > 0:
		return &project.Error{Kind: project.Integrity, Msg: "the store is damaged, and what it has lost is not in the backup",
			State: "all else is", Advice: "'decree doctor --repair' mends what can be mended; 'decree verify --all' names what is lost; 'decree backup list' lists older generations, which may have it"}
	case len(out.Failed) > 0:
		return &project.Error{Kind: project.Failed, Msg: out.Failed[0], State: "the backup was made, with all else", Advice: "mend it and run 'decree backup' again; until then 'decree backup status' says so"}
	}
	return nil
}

// proofFailed is the error of a proof that failed.
func proofFailed(p *backup.Proof) error {
	return &project.Error{Kind: project.Integrity, Msg: "the proof of " + p.Generation + " failed", State: "the project itself is as it was",
		Advice: "'decree backup' sends again what is damaged, from here, and proves the whole; where that fails too, the disk or the line may be broken"}
}

// sayProof tells what a proof has found.
func (s *session) sayProof(p *backup.Proof) {
	s.say("decree: proof: %s", p.Result())
	for _, problem := range p.Problems {
		s.say("  %s", oneLine(problem))
	}
}

// drillBackup restores to scratch and says what came of it.
func (s *session) drillBackup(ctx context.Context, o backupOptions, _ []string) error {
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	t, err := s.openTarget(ctx, o.to, &rec.Project().Site, false)
	if err != nil {
		return err
	}
	defer t.Close()
	proof, err := backup.Drill(ctx, s.backupOf(rec, t), o.whole)
	if err != nil {
		return err
	}
	s.meter.stop()
	if s.global.json {
		if err := s.printJSON(proof); err != nil {
			return err
		}
	} else {
		s.sayProof(proof)
	}
	if !proof.OK {
		return proofFailed(proof)
	}
	return nil
}
