package recorder

import (
	"io"

	"decree/history"
	"decree/project"
)

// mend writes again what the command deleted of .decree: the run's own files,
// the other records from the store, the config.
func (u *run) mend() error {
	h := u.r.history
	dir, err := h.EnsureRun(u.rec.ID)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := u.log.Sync(); err != nil {
		return err
	}
	held, err := u.log.Stat()
	if err != nil {
		return err
	}
	if now, err := dir.Stat(logFile); err != nil || !now.SameFile(held) {
		if err := h.ReplaceFile(u.rec.ID, logFile, func(w io.Writer) error { return copyFile(w, u.log) }); err != nil {
			return err
		}
	}
	if _, err := dir.Stat("manifest.json"); isMissing(err) {
		err = h.ReplaceFile(u.rec.ID, "manifest.json", func(w io.Writer) error { return h.WriteManifest(u.before, w) })
		if err != nil {
			return err
		}
	}
	return u.mendOthers()
}

// mendOthers does nothing unless .decree/runs is another directory than before.
func (u *run) mendOthers() error {
	decree := u.r.project.Decree
	now, err := decree.Stat("runs")
	if err != nil {
		return err
	}
	if now.SameFile(u.runs) {
		return nil
	}
	u.runs = now
	n, err := u.r.bringBack()
	if err != nil {
		return err
	}
	if n > 0 {
		u.say("the command deleted .decree/runs; %d records were written again", n)
	}
	if _, err := decree.Stat("config.yml"); isMissing(err) && u.config != nil {
		return project.ReplaceFile(decree, "config.yml", u.config, 0o644, true)
	}
	return nil
}

// bringBack writes again the run directories that are gone, and returns how
// many there were. Plain manifests come back for the newest records only.
func (r *Recorder) bringBack() (int, error) {
	list, err := r.history.List(history.ListOptions{})
	if err != nil {
		return 0, err
	}
	newest := map[string]bool{}
	for i, rec := range list.Records {
		newest[rec.ID] = i < history.PlainManifests
	}
	for _, id := range list.Missing {
		if _, err := r.history.RestoreRun(id, newest[id]); err != nil {
			return 0, err
		}
	}
	return len(list.Missing), nil
}
