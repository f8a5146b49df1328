package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"decree/backup/target"
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

// isDamage says whether an error of reading is that bytes are missing or are others.
func isDamage(err error) bool {
	return otherBytes(err) || strange(err)
}

// strange says whether an error is that a link, a directory or the like stands where a file belongs, or a file where a directory does.
func strange(err error) bool {
	return err != nil && (errors.Is(err, disk.ErrNotRegular) || disk.OtherKind(err))
}

// strangeNext is what to do about that.
const strangeNext = "put what belongs there in the place of what stands there; or, if that is lost, move it away, and the next command says what is missing"

// otherBytes says whether an error is that a file is missing, or is not the one that is meant. Of a line that is cut, or a command that
// is ended, nothing is known but that the bytes did not come.
func otherBytes(err error) bool {
	if errors.Is(err, target.ErrGone) || errors.Is(err, context.Canceled) {
		return false
	}
	return isMissing(err) || errors.Is(err, errSize) || errors.Is(err, errHash) || errors.Is(err, target.ErrDamaged) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
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
