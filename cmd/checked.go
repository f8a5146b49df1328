package cmd

import (
	"crypto/sha256"
	"fmt"
	"io"

	"decree/project"
	"decree/tree"
)

// copyChecked copies a diff of the record id and compares its hash with the recorded one.
// What is damaged has been copied when it is found out; the error says so in time
// for whoever acts on the result.
func copyChecked(w io.Writer, diff io.Reader, id, name string, want tree.Hash) error {
	sum := sha256.New()
	if _, err := io.Copy(w, io.TeeReader(diff, sum)); err != nil {
		return err
	}
	if want.IsZero() || tree.Hash(sum.Sum(nil)) == want {
		return nil
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf(".decree/runs/%s/%s: not what was recorded", id, name),
		Advice: "'decree doctor --repair' writes it again from the store"}
}
