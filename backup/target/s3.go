package target

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"decree/disk"
	"decree/tree"
)

// objects is a target in a bucket of S3's, or of another server that speaks like it.
type objects struct {
	core           *minio.Core
	name           string // the URL, as it was given: there is nothing secret in it
	bucket, prefix string // the prefix is "" or ends with '/'
	disk           disk.Disk
	scratch        string
}

const metaUpload = "Decree-Upload" // which upload has written an object

// openS3 reads s3://BUCKET/PREFIX?endpoint=URL&region=R. Without an endpoint it is Amazon's.
func openS3(d disk.Disk, u *url.URL, o Options) (*objects, error) {
	query := u.Query()
	for key := range query {
		if key != "endpoint" && key != "region" {
			return nil, fmt.Errorf("%s: there is no %q; there are endpoint and region", o.name(u), key)
		}
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s: credentials do not belong into the URL: %s", o.name(u), whereCredentials)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("%s: it names no bucket: s3://BUCKET/PREFIX", o.name(u))
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := CheckName(prefix); err != nil {
			return nil, fmt.Errorf("%s: the prefix: %w", o.name(u), err)
		}
		prefix += "/"
	}
	host, secure, lookup := "s3.amazonaws.com", true, minio.BucketLookupAuto
	if at := cmp.Or(query.Get("endpoint"), o.Getenv("AWS_ENDPOINT_URL_S3"), o.Getenv("AWS_ENDPOINT_URL")); at != "" {
		endpoint, err := url.Parse(at)
		if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" || strings.Trim(endpoint.Path, "/") != "" {
			return nil, fmt.Errorf("%s: the endpoint must be like https://s3.example.org or http://localhost:9000", o.name(u))
		}
		if endpoint.User != nil {
			return nil, fmt.Errorf("%s: credentials do not belong into the endpoint: %s", o.name(u), whereCredentials)
		}
		host, secure, lookup = endpoint.Host, endpoint.Scheme == "https", minio.BucketLookupPath
	}
	creds, err := o.credentials()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(u), err)
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.DialContext = patientDialer
	core, err := minio.NewCore(host, &minio.Options{Creds: creds, Secure: secure, BucketLookup: lookup, MaxRetries: 1,
		Region:    cmp.Or(query.Get("region"), o.Getenv("AWS_REGION"), o.Getenv("AWS_DEFAULT_REGION")),
		Transport: &slowTransport{transport, newLine(o.Bandwidth)}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(u), err)
	}
	return &objects{core: core, name: o.To, bucket: u.Host, prefix: prefix, disk: d, scratch: o.Scratch}, nil
}

// name is how a target is called in messages: without what may be secret.
func (o Options) name(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

const whereCredentials = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them into ~/.aws/credentials"

// ErrNoCredentials: nothing was given by which the server would know who asks.
var ErrNoCredentials = errors.New("there are no credentials")

// ErrCredentials: something was given, and the server does not know it.
var ErrCredentials = errors.New("the server does not take these credentials")

// credentialCodes are what servers say of them; the last is versitygw's.
var credentialCodes = []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "InvalidSecurity", "XAdminUserNotFound"}

// ErrRegion: the bucket is in another region than the requests say.
var ErrRegion = errors.New("the bucket is in another region")

func otherRegion(answer minio.ErrorResponse) bool {
	switch answer.Code {
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect", "IllegalLocationConstraintException":
		return answer.Region != "" || strings.Contains(answer.Message, "region") || answer.Code == "PermanentRedirect"
	}
	return false
}

// credentials are those of the usual variables, else of the profile in the usual file.
func (o Options) credentials() (*credentials.Credentials, error) {
	id, key := o.Getenv("AWS_ACCESS_KEY_ID"), o.Getenv("AWS_SECRET_ACCESS_KEY")
	if id != "" && key != "" {
		return credentials.NewStaticV4(id, key, o.Getenv("AWS_SESSION_TOKEN")), nil
	}
	if id != "" || key != "" {
		return nil, fmt.Errorf("%w: only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set", ErrNoCredentials)
	}
	file := o.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if file == "" && o.Home != "" {
		file = filepath.Join(o.Home, ".aws", "credentials")
	}
	profile := cmp.Or(o.Getenv("AWS_PROFILE"), "default")
	if file == "" {
		return nil, fmt.Errorf("%w: %s", ErrNoCredentials, whereCredentials)
	}
	c := credentials.NewFileAWSCredentials(file, profile)
	if _, err := c.GetWithContext(nil); isMissing(err) {
		return nil, fmt.Errorf("%w: %s", ErrNoCredentials, whereCredentials)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s has no usable profile %s, which AWS_PROFILE names: %w", ErrNoCredentials, file, profile, err)
	}
	return c, nil
}

// patience is how long a connection may carry nothing while something is waited for.
const patience = 2 * time.Minute

func patientDialer(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, network, addr)
	return &patientConn{c}, err
}

// patientConn ends a read or write that has waited for too long.
type patientConn struct{ net.Conn }

func (c *patientConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *patientConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// slowTransport keeps bodies to a bandwidth.
type slowTransport struct {
	http.RoundTripper
	line line
}

func (t *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.line.up == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	ctx := r.Context()
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(ctx)
		r.Body = &slowed{r.Body, ctx, t.line.up}
	}
	resp, err := t.RoundTripper.RoundTrip(r) //nolint:bodyclose // it is the caller's
	if err == nil {
		resp.Body = &slowed{resp.Body, ctx, t.line.down}
	}
	return resp, err
}

func (s *objects) String() string { return s.name }

// Close has nothing to do: connections that idle end by themselves.
func (s *objects) Close() error { return nil }

func (s *objects) key(name string) (string, error) { return s.prefix + name, CheckName(name) }

// statusOf are the statuses of errors that a server may find after it has begun to answer with 200, as where it completes an upload: then
// the body has the code alone.
var statusOf = map[string]int{
	"InternalError": http.StatusInternalServerError, "ServiceUnavailable": http.StatusServiceUnavailable, "SlowDown": http.StatusServiceUnavailable,
	"PreconditionFailed": http.StatusPreconditionFailed, "ConditionalRequestConflict": http.StatusConflict, "OperationAborted": http.StatusConflict,
	"NoSuchUpload": http.StatusNotFound,
}

// answerOf is what the server has said is wrong; not ok: the error is not its own.
func answerOf(err error) (answer minio.ErrorResponse, ok bool) {
	ok = errors.As(err, &answer)
	if status := statusOf[answer.Code]; status != 0 && answer.StatusCode < http.StatusMultipleChoices {
		answer.StatusCode = status
	}
	return answer, ok
}

// passes says whether an error of a request may be gone a moment later.
func passes(err error) bool {
	if answer, ok := answerOf(err); ok {
		switch answer.StatusCode {
		case http.StatusConflict, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return answer.Code == "SlowDown" || answer.Code == "RequestTimeout"
	}
	return cut(err)
}

// cut says whether an error is the connection's, and not for good.
func cut(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	if ok && dns.IsNotFound || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) || errors.Is(err, context.Canceled) {
		return false
	}
	var n net.Error
	if errors.As(err, &n) {
		if _, bare := n.(syscall.Errno); bare { //nolint:errorlint // it looks like an error of the network's, and is one of a disk
			n = nil
		}
	}
	return errors.As(err, new(*url.Error)) || n != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// say gives an error its category and, where the server's words would not tell, words.
func (s *objects) say(name string, err error) error {
	answer, known := answerOf(err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("%w: %w %q", ErrGone, ErrNoBucket, s.bucket)
	case slices.Contains(credentialCodes, answer.Code):
		return fmt.Errorf("%w: %w (%s): %s", fs.ErrPermission, ErrCredentials, answer.Code, answer.Message)
	case otherRegion(answer):
		return fmt.Errorf("%w: %s (%s)", ErrRegion, answer.Message, answer.Code)
	case missingObject(err):
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: %w: the server does not allow this to these credentials (%s)", name, fs.ErrPermission, answer.Message)
	case answer.StatusCode == http.StatusInsufficientStorage || answer.Code == "QuotaExceeded" || answer.Code == "XMinioStorageFull":
		return fmt.Errorf("%s: %w: %s", name, syscall.ENOSPC, answer.Message)
	case known && !passes(err):
		return fmt.Errorf("%s: the server says: %s (%s)", name, answer.Message, answer.Code)
	}
	if passes(err) || errors.As(err, new(*net.DNSError)) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// missingObject says that there is no such object. That status alone may mean that there is no such user.
func missingObject(err error) bool {
	answer, ok := answerOf(err)
	return ok && answer.Code == "NoSuchKey"
}

func hasStatus(err error, status int) bool {
	answer, ok := answerOf(err)
	return ok && answer.StatusCode == status
}

// Top are what names go on with behind the prefix, up to the next '/'.
func (s *objects) Top(ctx context.Context) (names []string, err error) {
	err = retry(ctx, passes, func() error {
		names = nil
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix}) {
			if o.Err != nil {
				return o.Err
			}
			name, below := strings.CutSuffix(strings.TrimPrefix(o.Key, s.prefix), "/")
			if below && CheckName(name) == nil {
				names = append(names, name)
			}
		}
		return ctx.Err()
	})
	slices.Sort(names)
	return names, s.say("", err)
}

// ask asks the server once, and again where the error may be gone a moment later.
func ask[T any](ctx context.Context, once func() (T, error)) (answer T, err error) {
	err = retry(ctx, passes, func() (err error) {
		answer, err = once()
		return err
	})
	return answer, err
}

// List asks for a thousand names at a time, and goes on where it was when one of the answers is lost.
func (s *objects) List(ctx context.Context, prefix string, each func(Object) error) error {
	last := ""
	var stop error
	err := retry(ctx, passes, func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, StartAfter: last}) {
			if o.Err != nil {
				return o.Err
			}
			last = o.Key
			name := strings.TrimPrefix(o.Key, s.prefix)
			if CheckName(name) != nil {
				continue // nothing of ours
			}
			if stop = each(Object{name, o.Size}); stop != nil {
				return nil
			}
		}
		return ctx.Err()
	})
	if stop != nil {
		return stop
	}
	return s.say(prefix, err)
}

// Open reads an object. When the connection is cut it goes on with another one, as long as the object
// is the same.
func (s *objects) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	if _, err := s.key(name); err != nil {
		return nil, 0, err
	}
	if length == 0 {
		return s.openNothing(ctx, name)
	}
	r := &objectReader{s: s, ctx: ctx, name: name, at: offset, end: -1}
	if length > 0 {
		r.end = offset + length
	}
	size, err := r.open()
	if hasStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		return s.openNothing(ctx, name)
	}
	if err != nil {
		return nil, 0, s.say(name, err)
	}
	if r.end < 0 || r.end > size {
		r.end = size
	}
	return r, size, nil
}

// openNothing is Open where no byte is read. A range cannot be empty: without one the server would send the whole object.
func (s *objects) openNothing(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	info, err := s.stat(ctx, name)
	return io.NopCloser(bytes.NewReader(nil)), info.Size, s.say(name, err)
}

func (s *objects) stat(ctx context.Context, name string) (minio.ObjectInfo, error) {
	return ask(ctx, func() (minio.ObjectInfo, error) {
		return s.core.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
	})
}

// objectReader reads an object from at to end.
type objectReader struct {
	s       *objects
	ctx     context.Context
	name    string
	at, end int64
	etag    string // of the object when it was opened first
	body    io.ReadCloser
	lost    int // how often the connection was cut since bytes have come
}

// open asks for what is left, and returns the size of the whole.
func (r *objectReader) open() (size int64, err error) {
	var opts minio.GetObjectOptions
	if r.etag != "" {
		if err := opts.SetMatchETag(r.etag); err != nil {
			return 0, err
		}
	}
	if r.end > r.at {
		err = opts.SetRange(r.at, r.end-1)
	} else if r.at > 0 {
		err = opts.SetRange(r.at, 0)
	}
	if err != nil {
		return 0, err
	}
	var body io.ReadCloser // nil after an error, when r keeps the one that it had, to be closed
	var info minio.ObjectInfo
	var header http.Header
	err = retry(r.ctx, passes, func() (err error) {
		body, info, header, err = r.s.core.GetObject(r.ctx, r.s.bucket, r.s.prefix+r.name, opts)
		return err
	})
	if err != nil {
		return 0, err
	}
	r.body, r.etag, size = body, info.ETag, info.Size
	if _, whole, ok := strings.Cut(header.Get("Content-Range"), "/"); ok {
		_, err = fmt.Sscan(whole, &size)
	}
	return size, err
}

func (r *objectReader) Read(b []byte) (int, error) {
	for {
		if r.at >= r.end {
			return 0, io.EOF
		}
		n, err := r.body.Read(b[:min(int64(len(b)), r.end-r.at)])
		r.at += int64(n)
		if n > 0 {
			r.lost = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if r.lost++; r.lost > tries || r.ctx.Err() != nil {
			return 0, r.s.say(r.name, errors.Join(io.ErrUnexpectedEOF, err, r.ctx.Err()))
		}
		r.body.Close()
		if _, err := r.open(); err != nil {
			return 0, r.s.say(r.name, err)
		}
	}
}

func (r *objectReader) Close() error { return r.body.Close() }

// Read reads a small object.
func (s *objects) Read(ctx context.Context, name string, limit int64) ([]byte, Version, error) {
	r, size, err := s.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, "", disk.UnlessMissing(err)
	}
	defer r.Close()
	data, err := readSmall(r, size, name, limit)
	if err != nil {
		return nil, "", err
	}
	body, ok := r.(*objectReader)
	if !ok {
		info, err := s.stat(ctx, name)
		return data, Version(info.ETag), s.say(name, err)
	}
	return data, Version(body.etag), nil
}

// Swap is one put, on condition that the object is the one that was read, or that there is none. A refusal
// may be of our own: the answer to an earlier try may have been lost. So then the object is looked at.
func (s *objects) Swap(ctx context.Context, name string, data []byte, was Version) (Version, error) {
	key, err := s.key(name)
	if err != nil {
		return "", err
	}
	var opts minio.PutObjectOptions
	if was == "" {
		opts.SetMatchETagExcept("*")
	} else {
		opts.SetMatchETag(string(was))
	}
	info, err := s.put(ctx, key, bytes.NewReader(data), int64(len(data)), tree.Sum(data).String(), opts)
	if err == nil {
		return Version(info.ETag), nil
	}
	if hasStatus(err, http.StatusPreconditionFailed) || hasStatus(err, http.StatusConflict) || missingObject(err) && was != "" {
		there, now, rerr := s.Read(ctx, name, int64(max(len(data), 1)<<1)+1<<20)
		switch {
		case rerr != nil:
			return "", errors.Join(s.say(name, err), rerr)
		case now != "" && bytes.Equal(there, data):
			return now, nil
		case now != was || hasStatus(err, http.StatusPreconditionFailed):
			return "", fmt.Errorf("%s: %w", name, ErrConflict)
		}
	}
	return "", s.say(name, err)
}

// put sends an object in one request, again where it makes sense. sha256 is in hexadecimal digits.
func (s *objects) put(ctx context.Context, key string, data io.ReaderAt, size int64, sha256 string, opts minio.PutObjectOptions) (minio.UploadInfo, error) {
	return ask(ctx, func() (minio.UploadInfo, error) {
		return s.core.PutObject(ctx, s.bucket, key, io.NewSectionReader(data, 0, size), size, "", sha256, opts)
	})
}

// Delete removes an object. The server does not say whether there was one.
func (s *objects) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	err = retry(ctx, passes, func() error {
		return s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
	})
	if err = s.say(name, err); isMissing(err) {
		return nil
	}
	return err
}

// abandoned is how old an upload in parts is that nobody works on any more.
const abandoned = 24 * time.Hour

// Tidy ends uploads in parts that were begun a day ago: nobody can tell whether a younger one is still
// at work, on another machine. prefix is a directory.
func (s *objects) Tidy(ctx context.Context, prefix string) error {
	prefix = strings.TrimSuffix(prefix, "/") + "/"
	err := retry(ctx, passes, func() error { return s.endUploads(ctx, s.prefix+prefix) })
	if hasStatus(err, http.StatusNotImplemented) || hasStatus(err, http.StatusForbidden) {
		return nil // what is left there costs space and nothing else
	}
	return s.say(prefix, err)
}

// endUploads is Tidy, once. After an error it can begin anew: what it has ended is in no list any more.
func (s *objects) endUploads(ctx context.Context, prefix string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := range s.core.ListIncompleteUploads(ctx, s.bucket, prefix, true) {
		if u.Err != nil {
			return u.Err
		}
		if time.Since(u.Initiated) < abandoned {
			continue
		}
		if err := s.core.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID); err != nil && !hasStatus(err, http.StatusNotFound) {
			return err
		}
	}
	return ctx.Err()
}

// Create begins an object. S3 must know its name and length first, so what is written waits in a file
// without a name on this machine.
func (s *objects) Create(_ context.Context, near string) (Upload, error) {
	if _, err := s.key(near); err != nil {
		return nil, err
	}
	f, err := newSpool(s.disk, s.scratch)
	if err != nil {
		return nil, err
	}
	return &objectUpload{s: s, id: rand.Text(), spool: f}, nil
}
