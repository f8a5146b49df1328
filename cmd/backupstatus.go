package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"decree/backup"
	"decree/message"
	"decree/project"
	"decree/queue"
)

func (s *session) backupStatus(ctx context.Context, o backupOptions, _ []string) error {
	status, found, err := s.statusOfBackups(ctx, o)
	if status == nil {
		return err
	}
	if s.global.json {
		err = s.printJSON(status)
	} else {
		err = s.print(func(w io.Writer) error { return s.writeBackupStatus(w, status) })
	}
	if status.Proof != nil && !status.Proof.OK {
		found = errFound{project.Integrity}
	}
	return cmp.Or(err, found)
}

// statusOfBackups is how the backups are. What keeps that from being known is found, which makes
// the exit status, unless there is no backup yet; without a status there is the error alone.
func (s *session) statusOfBackups(ctx context.Context, o backupOptions) (status *backup.Status, found, err error) {
	rec, place, done, err := s.placeOf(ctx, o)
	if rec == nil {
		return nil, nil, err
	}
	p := rec.Project()
	if err == nil {
		defer done()
		status, err = place.Status(ctx, p, s.env.Now())
		if gone := place.Gone(p); gone != nil {
			found = errFound{project.KindOf(gone)}
		} else if status != nil && status.Last != nil && !status.Last.Provable || place.Damage != "" {
			found = errFound{project.Integrity}
		}
	}
	if err != nil {
		if s.noBackupYet(rec, o, err) {
			err = nil
		} else {
			found = errFound{project.KindOf(backup.Explain(err))}
		}
		status = backup.Unreached(p, s.targetName(o.to, p), p.BackupName(s.where()), err, s.env.Now())
	}
	status.Aside = s.aside(ctx, o, rec)
	status.Problems = append(status.Problems, scheduleProblems(p)...)
	return status, found, nil
}

// scheduleProblems says why nothing will make the backups that the config has a time for.
func scheduleProblems(p *project.Site) []string {
	text := p.Config.Backup.Schedule
	if text == "" {
		return nil
	}
	if err := badSchedule(text); err != nil {
		return []string{err.Error()}
	}
	if p.Store == nil || queue.Daemon(p).PID == 0 {
		return []string{"backup.schedule is set, but no daemon is running that would make the backups: start 'decree daemon'"}
	}
	return nil
}

// badSchedule says what is wrong with a backup.schedule; nil: nothing is.
func badSchedule(text string) error {
	if text == "" {
		return nil
	}
	if _, err := message.ParseCron(text); err != nil {
		return fmt.Errorf("backup.schedule: %w", err)
	}
	return nil
}

// writeBackupStatus leads with the proof. Only what has no problem is green.
func (s *session) writeBackupStatus(w io.Writer, st *backup.Status) error {
	paint, t := s.paint(s.env.Stdout), s.fits(&table{}, s.env.Stdout)
	switch p := st.Proof; {
	case p == nil:
		t.add("proof", paint.in(red, "nothing was proven yet"))
	case !p.OK:
		t.add("proof", paint.in(red, "FAILED")+", "+s.ago(p.At)+": "+p.Text)
	case len(st.Problems) > 0:
		t.add("proof", p.Text+", "+s.ago(p.At))
	default:
		t.add("proof", paint.in(green, p.Text)+", "+s.ago(p.At))
	}
	if st.Last == nil {
		t.add("last", "there is no backup yet; 'decree backup' makes one")
	} else {
		t.add("last", fmt.Sprintf("%s, %s", st.Last.Generation, s.ago(st.Last.Timestamp)))
	}
	disk := ""
	if st.SameDisk {
		disk = ", on the same disk as the store"
	}
	t.add("target", quoteWord(st.Target)+disk)
	t.add("name", st.Name)
	if st.Generations > 0 {
		t.add("holds", fmt.Sprintf("%s, %s", count(st.Generations, "generation"), size(st.Bytes)))
	}
	if len(st.NextToGo) > 0 {
		t.add("next to go", list(st.NextToGo))
	}
	if len(st.Aside) > 0 {
		t.add("aside", fmt.Sprintf("what restores have replaced, in %s: %s", project.DefaultBackupTo, list(st.Aside)))
	}
	if len(st.Lost) > 0 {
		t.add("lost", "older generations of which a part is missing or damaged: "+list(st.Lost))
	}
	for _, p := range st.Problems {
		t.add("problem", oneLine(p))
	}
	return t.write(w)
}
