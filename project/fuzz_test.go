package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// FuzzIdentity reads arbitrary project.json, store.json and lock.json files:
// an id is a plain name, a store's place a clean absolute path, and nothing else
// gets in; a lock's holder is only ever something to print.
func FuzzIdentity(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 2)
	for _, s := range []string{
		"", "{}", "null", `{"version":1}`, `{"version":2,"id":"` + id + `","store":"/s"}`, `{"version":1,"id":"` + id + `","store":"/s","more":[1]}`,
		`{"version":1,"id":"` + id + `","store":"` + inTree + `"}`, `{"version":1,"id":"` + id + `","store":"/s/../../etc"}`, `{"version":1,"id":"` + id + `","store":"s"}`,
		`{"version":1,"id":"../../../../../../../../../etc/x","store":"/s"}`, `{"version":1,"id":"` + strings.ToUpper(id) + `","store":"/s"}`, `{"version":1,"id":"` + id + `","store":"/a\u0000b"}`,
		`{"version":1,"id":"` + id + `","root":"/r","dev":18446744073709551615,"ino":1}`, `{"version":1,"id":"` + id + `","root":"","dev":-1}`,
		`{"pid":1,"host":"h","start":"2026-11-21T07:01:59Z","command":["a","\u001b[2J"]}`, `{"pid":1e400}`, strings.Repeat("[", 20000),
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	d, err := disk.OS.OpenRoot(dir)
	require.NoError(f, err)
	defer d.Close()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{identityFile, memoryFile, lockFile} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		if who, err := readIdentity(d); err == nil && who != nil {
			require.True(t, validID(who.ID))
			require.True(t, who.Store == inTree || filepath.IsAbs(string(who.Store)) && filepath.Clean(string(who.Store)) == string(who.Store))
		}
		if m, err := readMemory(d); err == nil {
			require.True(t, validID(m.ID))
		}
		h := (&Site{Store: d}).Holder()
		_ = (&HeldError{Holder: h}).Error()
	})
}
