package backup

import (
	"context"
	"fmt"
	"strings"

	"decree/backup/target"
	"decree/tree"
)

// shown compares current/ with the generation: the whole proof all of its files, a sample all but those of records and logs. It is for people, and no
// restore depends on it: what is wrong there is named, the proof does not fail by it, and the next backup makes current/ anew.
func (d *drill) shown(ctx context.Context) error {
	if _, ok := d.o.Target.(target.Shelf); !ok {
		return nil
	}
	if key, _, err := d.o.Target.Read(ctx, d.place.At(KeyFile), 1<<20); err != nil || key != nil {
		return err // it is encrypted, and has no current/
	}
	wrong, err := d.wrongShown(ctx)
	if err != nil || wrong == "" {
		return err
	}
	d.proof.Damaged = append(d.proof.Damaged, currentDir)
	d.o.Tell(fmt.Sprintf("%s is not what generation %s has: %s; no restore depends on it, and the next backup makes it anew", d.place.At(currentDir), d.m.Generation(), wrong))
	return nil
}

// wrongShown names what is wrong in current/; "" for nothing.
func (d *drill) wrongShown(ctx context.Context) (string, error) {
	m, err := d.place.shown(ctx)
	switch {
	case err != nil && !unusable(err):
		return "", err
	case err != nil:
		return fmt.Sprintf("%s: %v", ManifestFile, err), nil
	case !m.Timestamp.Equal(d.m.Timestamp):
		return "it is that of " + m.Generation(), nil
	}
	for _, name := range sortedFiles(d.m) {
		f := d.m.Files[name]
		if f.Size > plainSize || !d.proof.Whole && (strings.HasPrefix(string(name), recordsPart) || strings.HasPrefix(string(name), storePart)) {
			continue
		}
		data, err := readAll(ctx, d.o.Target, d.place.At(currentDir, string(name)), plainSize)
		lost := unusable(err)
		if err != nil && !lost {
			return "", err
		}
		if lost || tree.Sum(data) != f.SHA256 {
			return tree.Quote(string(name)) + " was changed, or is missing", nil
		}
	}
	return "", nil
}
