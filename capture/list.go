package capture

import (
	"context"

	"decree/disk"
	"decree/tree"
)

// ListOptions says what List lists.
type ListOptions struct {
	Prefix  tree.Path // this path and what is below it; "": all
	Ignored bool      // what is left out, instead of what is recorded
}

// List calls yield for each path of the tree as a capture would see it, without reading
// files: all that would be recorded, a directory before what is in it, or, with Ignored,
// all that would not, of which directories stand for everything below them. Paths come
// in the byte order in which a directory's name ends with a slash. yield's error ends
// the listing and is returned. Writer and CacheDir of req are not used.
func List(ctx context.Context, req Request, o ListOptions, yield func(path tree.Path, k disk.Kind) error) error {
	req.Writer, req.CacheDir, req.Progress = nil, nil, nil
	c := memoryCache()
	w, err := newWalk(&req, c)
	if err != nil {
		return err
	}
	w.facts = factsNone
	if err := w.run(ctx); err != nil {
		return err
	}
	return c.descend(w.root, "", func(path []byte, b block, i int) (bool, error) {
		kd := b.kind(i)
		at := tree.Path(path)
		inside := at.Within(o.Prefix)
		if inside && kd != kNone && kd.tracked() != o.Ignored {
			if err := yield(at, shown(kd)); err != nil {
				return false, err
			}
		}
		return inside || o.Prefix.Below(at), nil
	})
}

// shown returns what a record is for a reader. Of what is left out, only whether it is a
// directory is known.
func shown(k kind) disk.Kind {
	switch k {
	case kFile:
		return disk.Regular
	case kLink:
		return disk.Symlink
	case kSpecial:
		return disk.Special
	case kIgnored:
		return disk.Unknown
	}
	return disk.Directory
}
