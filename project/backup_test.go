package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

func TestBackupConfig(t *testing.T) {
	c := DefaultConfig()
	require.Equal(t, Backup{Retention: BackupRetention{10, 5, 4, -1}, Drill: 30 * 24 * time.Hour, Warn: 7 * 24 * time.Hour}, c.Backup)
	require.Equal(t, "default", c.From("backup.to"))
	require.Equal(t, DefaultBackupTo, c.BackupTo("/home/ann"))

	c, err := ParseConfig("config.yml", []byte(`
backup:
  to: ~/safe
  retention: {daily: 7, monthly: -1}
  plugins:
    - {name: beads, command: "bd backup --force", include: [".beads/backup/*"], timeout: 90s}
`))
	require.NoError(t, err)
	require.Equal(t, "/home/ann/safe", c.BackupTo("/home/ann"))
	require.Equal(t, ".decree/config.yml:3", c.From("backup.to"))
	require.Equal(t, "default", c.From("backup.warn"))
	require.Equal(t, BackupRetention{Daily: 7, Monthly: -1}, c.Backup.Retention)
	require.Equal(t, []Plugin{{Name: "beads", Command: "bd backup --force", Include: []string{".beads/backup/*"}, Timeout: 90 * time.Second}}, c.Backup.Plugins)
}

func TestBackupConfigIsStrict(t *testing.T) {
	for text, says := range map[string]string{
		"backup: {to: safe}":                                "neither an absolute path",
		"backup: {to: 'ftp://host/x'}":                      "there are directories, s3:// and sftp://",
		"backup: {to: 's3:///x'}":                           "not such a URL",
		"backup: {name: ../x}":                              "must be letters",
		"backup: {retention: {yearly: 1}}":                  "unknown key",
		"backup: {retention: {daily: -2}}":                  "at least -1",
		"backup: {ping: 'file:///etc/passwd'}":              "not an http",
		"backup: {plugins: [{name: 'a/b'}]}":                "the name of a plugin",
		"backup: {plugins: [{name: a}, {name: a}]}":         "given twice",
		"backup: {plugins: [{name: a, include: ['../x']}]}": "not a pattern",
		"backup: {plugins: [{name: a, include: ['[']}]}":    "not a pattern",
		"backup: {plugins: [{name: a, timeout: 0s}]}":       "longer than nothing",
		"backup: {plugins: [{name: a, run: x}]}":            "unknown key",
		"backup: {wern: 1d}":                                "unknown key",
	} {
		_, err := ParseConfig("config.yml", []byte(text))
		require.ErrorContains(t, err, says, text)
	}
}

// TestTargetsThatCannotBeRead: a target in the tree is no part of it. Where it cannot be learned just now
// which there are, that is an error; a file that is damaged costs nobody anything else.
func TestTargetsThatCannotBeRead(t *testing.T) {
	home, work := ground(t)
	at := filepath.Join(work, "safe/app")
	mkdirs(t, at)
	require.NoError(t, os.WriteFile(filepath.Join(at, BackupMarker), nil, 0o600))
	where := Where{Cwd: work, Home: home}
	file := filepath.Join(open(t, where, true).StorePath, BackupsFile)
	stores := func(failing string) (int, error) {
		p, err := Open(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if failing != "" && strings.HasSuffix(st.Path, failing) {
				return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.EIO}}
			}
			return disktest.Action{}
		}), where, false)
		require.NoError(t, err)
		defer p.Close()
		list, err := p.Stores(where)
		return len(list), err
	}
	none, err := stores("")
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(file, []byte(`{"targets":{`+strconv.Quote(filepath.Join(work, "safe"))+`:{"name":"app"}}}`), 0o600))
	n, err := stores("")
	require.NoError(t, err)
	require.Equal(t, none+1, n)
	for _, failing := range []string{BackupsFile, "/safe/app", BackupMarker} {
		_, err := stores(failing)
		require.ErrorIs(t, err, syscall.EIO, failing)
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	n, err = stores("")
	require.NoError(t, err)
	require.Equal(t, none, n)
}
