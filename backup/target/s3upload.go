package target

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"decree/disk"
)

// partSize is the length from which on an object is sent in parts of that length, so that a cut connection
// costs one of them; partsAtOnce are on their way together.
var partSize int64 = 64 << 20

const partsAtOnce = 4

// spool is a file that nobody else sees, with the hash of what was written.
type spool struct {
	disk.File
	dir  disk.Dir
	name string // "" once it has none
	sum  hash.Hash
	size int64
}

func newSpool(d disk.Disk, scratch string) (*spool, error) {
	dir, err := d.OpenRoot(cmp.Or(scratch, os.TempDir()))
	if err != nil {
		return nil, fmt.Errorf("what goes to S3 has no place to wait: %w", err)
	}
	f := &spool{dir: dir, name: Unfinished + rand.Text(), sum: sha256.New()}
	if f.File, err = disk.CreateFile(dir, f.name, privateFile); err != nil {
		dir.Close()
		return nil, fmt.Errorf("what goes to S3 has no place to wait: %w", err)
	}
	if dir.Remove(f.name) == nil { // not every system can while it is open
		f.name = ""
	}
	return f, nil
}

func (f *spool) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.sum.Write(b[:n])
	f.size += int64(n)
	return n, err
}

func (f *spool) Close() error {
	err := f.File.Close()
	if f.name != "" {
		err = errors.Join(err, f.dir.Remove(f.name))
	}
	f.dir.Close()
	return err
}

// objectUpload is an object that is sent when it is whole.
type objectUpload struct {
	s  *objects
	id string
	*spool
}

// Commit sends the object, on condition that there is none of that name. When the server says that there is one
// it may be ours: the answer to an earlier try may have been lost.
func (u *objectUpload) Commit(ctx context.Context, name string) error {
	key, err := u.s.key(name)
	if err == nil {
		opts := minio.PutObjectOptions{ContentType: "application/octet-stream", UserMetadata: map[string]string{metaUpload: u.id}}
		opts.SetMatchETagExcept("*")
		err = retry(ctx, func(err error) bool { return errors.Is(err, errWent) }, func() error { return u.send(ctx, name, key, opts) })
		err = u.s.say(name, err)
	}
	return errors.Join(err, u.Abort())
}

// errWent is that an object of that name was in the way, and is not there any more.
var errWent = errors.New("an object of that name comes and goes")

func (u *objectUpload) send(ctx context.Context, name, key string, opts minio.PutObjectOptions) (err error) {
	if u.size > partSize {
		err = u.inParts(ctx, key, opts)
	} else {
		_, err = u.s.put(ctx, key, u.File, u.size, hex.EncodeToString(u.sum.Sum(nil)), opts)
	}
	if !hasStatus(err, http.StatusPreconditionFailed) {
		return err
	}
	info, err := u.s.stat(ctx, name)
	switch {
	case missingObject(err):
		return errWent
	case err == nil && info.UserMetadata[metaUpload] != u.id:
		return fs.ErrExist
	}
	return err
}

// Abort gives the file back.
func (u *objectUpload) Abort() error {
	if u.spool == nil {
		return nil
	}
	err := u.spool.Close()
	u.spool = nil
	return err
}

// inParts sends a large object.
func (u *objectUpload) inParts(ctx context.Context, key string, opts minio.PutObjectOptions) error {
	id, err := ask(ctx, func() (string, error) {
		return u.s.core.NewMultipartUpload(ctx, u.s.bucket, key, minio.PutObjectOptions{ContentType: opts.ContentType, UserMetadata: opts.UserMetadata})
	})
	if err != nil {
		return err
	}
	parts := make([]minio.CompletePart, (u.size+partSize-1)/partSize)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range parts {
		group.Go(func() (err error) {
			parts[i], err = u.part(gctx, key, id, i)
			return err
		})
	}
	err = group.Wait()
	if err == nil {
		_, err = ask(ctx, func() (minio.UploadInfo, error) {
			return u.s.core.CompleteMultipartUpload(ctx, u.s.bucket, key, id, parts, opts)
		})
	}
	if hasStatus(err, http.StatusNotFound) { // the upload: an earlier try has completed it, or there is one of that name
		return minio.ErrorResponse{StatusCode: http.StatusPreconditionFailed, Code: "PreconditionFailed"}
	}
	if err != nil {
		_ = u.s.core.AbortMultipartUpload(context.WithoutCancel(ctx), u.s.bucket, key, id) // Tidy does it later
	}
	return err
}

func (u *objectUpload) part(ctx context.Context, key, id string, i int) (minio.CompletePart, error) {
	from := int64(i) * partSize
	length := min(partSize, u.size-from)
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(u.File, from, length)); err != nil {
		return minio.CompletePart{}, err
	}
	part, err := ask(ctx, func() (minio.ObjectPart, error) {
		return u.s.core.PutObjectPart(ctx, u.s.bucket, key, id, i+1, io.NewSectionReader(u.File, from, length), length,
			minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(hash.Sum(nil))})
	})
	return minio.CompletePart{PartNumber: i + 1, ETag: part.ETag}, err
}
