package target_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
)

// TestSecretsOfURLsAreShownNowhere: a person may write credentials where they do not belong. They are refused, and
// neither the message nor the name of the target has them.
func TestSecretsOfURLsAreShownNowhere(t *testing.T) {
	for to, shown := range map[string]string{
		"/mnt/usb": "/mnt/usb",
		"s3://bucket/a%20b?endpoint=https://s3.example.org&region=eu-1": "s3://bucket/a%20b?endpoint=https://s3.example.org&region=eu-1",
		"sftp://me@host/~/backup":                                             "sftp://me@host/~/backup",
		"sftp://me:s3cret@host/backup":                                        "sftp://me@host/backup",
		"s3://AKIA:s3cret@bucket/x":                                           "s3://bucket/x",
		"s3://AKIA:s3cret/with+more@bucket/x":                                 "s3://...",
		"s3://bucket/x?secret=s3cret":                                         "s3://bucket/x",
		"s3://bucket/x?endpoint=http://AKIA:s3cret@127.0.0.1:1&region=eu-1":   "s3://bucket/x?endpoint=http%3A%2F%2F127.0.0.1%3A1&region=eu-1",
		"s3://bucket/x?endpoint=http://AKIA:s3cret/%253@127.0.0.1&region=eu1": "s3://bucket/x?region=eu1",
	} {
		require.Equal(t, shown, target.Shown(to))
		if to == shown {
			continue
		}
		_, err := target.Open(t.Context(), disk.OS, target.Options{To: to, Home: t.TempDir(), Getenv: func(string) string { return "x" }})
		require.Error(t, err, to)
		require.NotContains(t, err.Error(), "s3cret", to)
	}
}

// TestATargetHasOneSpelling: by it the store remembers what stands there.
func TestATargetHasOneSpelling(t *testing.T) {
	for to, clean := range map[string]string{
		"/mnt/usb":                      "/mnt/usb",
		"/mnt//usb/./":                  "/mnt/usb",
		"/":                             "/",
		"s3://bucket":                   "s3://bucket",
		"s3://bucket/":                  "s3://bucket",
		"s3://bucket/p/?endpoint=h://e": "s3://bucket/p?endpoint=h://e",
		"s3://bucket/p?region=/":        "s3://bucket/p?region=/",
		"sftp://me@host/":               "sftp://me@host/", // refused
		"sftp://me@host/~/b/":           "sftp://me@host/~/b",
		"sftp://me@host//b//":           "sftp://me@host//b",
		"ftp://host/":                   "ftp://host/",
	} {
		require.Equal(t, clean, target.Clean(to))
	}
}
