package cmd

import (
	"crypto/sha256"
	"fmt"
	"io"

	"decree/history"
	"decree/patch"
	"decree/project"
)

// copyChecked copies a changes.diff and compares its hash with the record's.
// What is damaged has been copied when it is found out; the error says so in time
// for whoever acts on the result.
func copyChecked(w io.Writer, diff io.Reader, r *history.Record) error {
	sum := sha256.New()
	if _, err := io.Copy(w, io.TeeReader(diff, sum)); err != nil {
		return err
	}
	if r.DiffSHA256.IsZero() || patch.Hash(sum.Sum(nil)) == r.DiffSHA256 {
		return nil
	}
	return &failure{kind: project.Integrity, msg: fmt.Sprintf(".decree/runs/%s/changes.diff: not what was recorded", r.ID),
		advice: "'decree doctor --repair' writes it again from the store"}
}
