package backup

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"decree/disk"
	"decree/tree"
)

// String says what the proof has found: "restored 5,120 of 5,120 files of 2026-11-20T03:00Z in 4.1 s", and
// what was wrong first.
func (p Proof) String() string {
	text := p.Result()
	if !p.OK && len(p.Problems) > 0 {
		text += ": " + p.Problems[0]
		if more := len(p.Problems) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return text
}

// Result is String without what was wrong.
func (p Proof) Result() string {
	when := p.Generation
	if t, ok := TimeOf(p.Generation); ok {
		when = t.UTC().Format("2006-01-02T15:04Z")
	}
	text := fmt.Sprintf("restored %s of %s files of %s in %.1f s", humanize.Comma(int64(p.Files)), humanize.Comma(int64(p.Of)), when,
		(time.Duration(p.Duration) * time.Millisecond).Seconds())
	if !p.Whole {
		text += ", a sample"
	}
	return text
}

// sameBytes reads a file from its beginning and compares it with its hash and length.
func sameBytes(ctx context.Context, f disk.File, h tree.Hash, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, &until{ctx, f})
	switch {
	case err != nil:
		return err
	case n != size:
		return errSize
	case tree.Hash(sum.Sum(nil)) != h:
		return errHash
	}
	return nil
}
