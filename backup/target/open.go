package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"decree/disk"
)

// Options say which target, and how it is reached.
type Options struct {
	To     string // an absolute path, s3://BUCKET/PREFIX?endpoint=URL&region=R, or sftp://USER@HOST/PATH
	Create bool   // make a directory that is missing
	// ForOwner: what root makes in a directory of another user belongs to that user.
	ForOwner bool
	Keys     Keys
	// Getenv is the environment, of which the usual variables of S3 and ssh are read; nil: none of them is set.
	Getenv    func(string) string
	Home      string // of the user: ~/.aws and ~/.ssh lie there
	Scratch   string // a private directory, absolute, for what is on its way to S3
	Bandwidth int64  // bytes a second, each way, to and from what is remote; 0: no limit
}

// Open opens the target that o says. What it can do beside that (Locker, Shelf, Placed, Sealed) it has
// as an interface. A remote one is not asked for anything yet.
func Open(_ context.Context, d disk.Disk, o Options) (Target, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	t, err := o.open(d)
	if err != nil || o.Keys.Recipients == "" && o.Keys.Identity == "" && o.Keys.Passphrase == "" {
		return t, err
	}
	e, err := Encrypted(t, o.Keys)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return e, nil
}

func (o Options) open(d disk.Disk) (Target, error) {
	scheme, _, remote := strings.Cut(o.To, "://")
	if !remote {
		if !filepath.IsAbs(o.To) {
			return nil, fmt.Errorf("%q is not an absolute path", o.To)
		}
		return openDirectory(d, o)
	}
	u, err := url.Parse(o.To)
	if err != nil {
		return nil, fmt.Errorf("%s: this is not a URL of a target", Shown(o.To)) // what url.Parse says has parts of it
	}
	switch scheme {
	case "s3":
		return openS3(d, u, o)
	case "sftp":
		return openSFTP(u, o)
	default:
		return nil, fmt.Errorf("%s: targets are directories, s3:// and sftp://", scheme)
	}
}
