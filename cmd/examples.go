package cmd

import (
	_ "embed"
	"errors"
	"io/fs"

	"decree/disk"
	"decree/project"
)

//go:embed examples/config.yml
var exampleConfig []byte

//go:embed examples/develop.sh
var exampleRoutine []byte

// writeExamples writes the examples that are not there yet and returns their paths
// below .decree. Nothing is overwritten.
func writeExamples(p *project.Project) ([]string, error) {
	if err := p.EnsureDecree(); err != nil {
		return nil, err
	}
	routines, err := project.MakeDir(p.Decree, "routines", 0o755)
	if err != nil {
		return nil, err
	}
	defer routines.Close()
	var written []string
	for _, e := range []struct {
		dir        disk.Dir
		name, path string
		data       []byte
		mode       uint32
	}{
		{p.Decree, "config.yml", "config.yml", exampleConfig, 0o644},
		{routines, "develop.sh", "routines/develop.sh", exampleRoutine, 0o755},
	} {
		if _, err := e.dir.Stat(e.name); err == nil {
			continue
		}
		err := project.WriteNew(e.dir, e.name, "."+e.name+".draft", e.data, e.mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return written, err
		}
		written = append(written, e.path)
	}
	return written, nil
}
