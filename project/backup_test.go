package project

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
