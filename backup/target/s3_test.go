package target_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
)

// server starts versitygw over a directory that has a bucket called "bucket", and returns its address.
func server(t *testing.T) (at, dir string) {
	t.Helper()
	target.Impatient()
	return targettest.Gateway(t)
}

func environment(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func openS3(t *testing.T, at, place string) target.Target {
	t.Helper()
	tg, err := target.Open(t.Context(), disk.OS, target.Options{
		To:      "s3://" + place + "?endpoint=http://" + at,
		Getenv:  environment("AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", targettest.SecretKey),
		Scratch: t.TempDir(),
	})
	require.NoError(t, err)
	require.Equal(t, "s3://"+place+"?endpoint=http://"+at, tg.String(), "by this the store remembers it")
	return tg
}

func TestABucketIsATarget(t *testing.T) {
	at, _ := server(t)
	n := 0
	targettest.Run(t, func(t *testing.T) target.Target {
		n++
		return openS3(t, at, fmt.Sprintf("bucket/some/prefix%d", n))
	})
}

func TestABucketIsATargetInParts(t *testing.T) {
	was := target.SetPartSize(5 << 20)
	t.Cleanup(func() { target.SetPartSize(was) })
	at, _ := server(t)
	n := 0
	targettest.Run(t, func(t *testing.T) target.Target {
		n++
		return openS3(t, at, fmt.Sprintf("bucket/%d", n))
	})
	tg := openS3(t, at, "bucket/again")
	large := strings.Repeat("x", 11<<20)
	write(t, tg, "p/a", large)
	u, err := tg.Create(t.Context(), "p/a")
	require.NoError(t, err)
	_, err = io.WriteString(u, large)
	require.NoError(t, err)
	require.ErrorIs(t, u.Commit(t.Context(), "p/a"), fs.ErrExist)
}

func TestAnEncryptedBucketIsATarget(t *testing.T) {
	at, _ := server(t)
	identity, recipient := pair(t)
	n := 0
	targettest.Run(t, func(t *testing.T) target.Target {
		n++
		e, err := target.Encrypted(openS3(t, at, fmt.Sprintf("bucket/%d", n)), target.Keys{Recipients: recipient, Identity: identity})
		require.NoError(t, err)
		return e
	})
}

// TestEachFaultOnceAtEachRequest has each request of a little backup fail once, in each way, the location
// request too.
func TestEachFaultOnceAtEachRequest(t *testing.T) {
	at, _ := server(t)
	for i, what := range targettest.Faults {
		seen := map[string]bool{}
		var mu sync.Mutex
		f := &targettest.Faulty{Next: func(r *http.Request) targettest.Fault {
			mu.Lock()
			defer mu.Unlock()
			key := r.Method + r.URL.String() + r.Header.Get("Range") + r.Header.Get("If-Match")
			if seen[key] || what == targettest.CutInside && r.Method != http.MethodGet {
				return targettest.None
			}
			seen[key] = true
			return what
		}}
		tg := openS3(t, f.Start(t, at), fmt.Sprintf("bucket/f%d", i))
		backupAndReadBack(t, tg)
		require.Greater(t, f.Hits.Load(), int64(3), "fault %d", what)
	}
}

func backupAndReadBack(t *testing.T, tg target.Target) {
	t.Helper()
	large := strings.Repeat("0123456789abcdef", 100_000)
	write(t, tg, "p/packs/a.pack", large)
	first, err := tg.Swap(t.Context(), "p/manifest.json", []byte("one"), "")
	require.NoError(t, err)
	second, err := tg.Swap(t.Context(), "p/manifest.json", []byte("two"), first)
	require.NoError(t, err)
	data, now, err := tg.Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	require.Equal(t, second, now)
	got, err := read(t, tg, "p/packs/a.pack")
	require.NoError(t, err)
	require.Equal(t, large, got)
	got, err = part(t.Context(), tg, "p/packs/a.pack", 7, 1000)
	require.NoError(t, err)
	require.Equal(t, large[7:1007], got)
	require.Equal(t, []string{"p/manifest.json", "p/packs/a.pack"}, names(t, tg, ""))
	require.NoError(t, tg.Tidy(t.Context(), "p"))
	require.NoError(t, tg.Delete(t.Context(), "p/packs/a.pack"))
	require.Equal(t, []string{"p/manifest.json"}, names(t, tg, ""))
}

// TestFaultsAtRandom has a fifth of all requests fail, in all ways; what is acknowledged stands.
func TestFaultsAtRandom(t *testing.T) {
	was := target.SetPartSize(5 << 20)
	t.Cleanup(func() { target.SetPartSize(was) })
	at, _ := server(t)
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		f := &targettest.Faulty{Next: func(r *http.Request) targettest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(5) > 0 {
				return targettest.None
			}
			return targettest.Faults[random.IntN(len(targettest.Faults))]
		}}
		proxied, direct := openS3(t, f.Start(t, at), fmt.Sprintf("bucket/r%d", seed)), openS3(t, at, fmt.Sprintf("bucket/r%d", seed))
		var version target.Version
		acknowledged := ""
		for n := range 12 {
			data := fmt.Sprintf("generation %d", n)
			v, err := proxied.Swap(t.Context(), "p/manifest.json", []byte(data), version)
			if err == nil {
				version, acknowledged = v, data
			}
			there, now, rerr := direct.Read(t.Context(), "p/manifest.json", 100)
			require.NoError(t, rerr)
			if err == nil {
				require.Equal(t, acknowledged, string(there))
				require.Equal(t, version, now)
			} else {
				version = now // as the next backup reads it
			}
		}
		large := strings.Repeat("0123456789abcdef", 700_000)
		u, err := proxied.Create(t.Context(), "p/packs/b.pack")
		require.NoError(t, err)
		_, err = io.WriteString(u, large)
		require.NoError(t, err)
		if u.Commit(t.Context(), "p/packs/b.pack") == nil {
			got, err := read(t, direct, "p/packs/b.pack")
			require.NoError(t, err)
			require.Equal(t, large, got)
		}
	}
}

func TestAnotherMachineWasFaster(t *testing.T) {
	at, _ := server(t)
	one, two := openS3(t, at, "bucket/x"), openS3(t, at, "bucket/x")
	version, err := one.Swap(t.Context(), "p/m", []byte("one"), "")
	require.NoError(t, err)
	_, err = two.Swap(t.Context(), "p/m", []byte("two"), "")
	require.ErrorIs(t, err, target.ErrConflict)
	_, err = two.Swap(t.Context(), "p/m", []byte("two"), version)
	require.NoError(t, err)
	_, err = one.Swap(t.Context(), "p/m", []byte("three"), version)
	require.ErrorIs(t, err, target.ErrConflict)
	require.NoError(t, one.Delete(t.Context(), "p/m"))
	_, err = one.Swap(t.Context(), "p/m", []byte("three"), version)
	require.ErrorIs(t, err, target.ErrConflict, "it is gone")
}

func TestWhatIsWrongWithABucketIsSaid(t *testing.T) {
	at, dir := server(t)
	attempt := func(t *testing.T, o target.Options) error {
		o.Scratch = t.TempDir()
		tg, err := target.Open(t.Context(), disk.OS, o)
		if err != nil {
			return err
		}
		defer tg.Close()
		_, _, err = tg.Read(t.Context(), "p/manifest.json", 100)
		if err == nil {
			_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("x"), "")
		}
		return err
	}
	good := environment("AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", targettest.SecretKey)
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "[other]\naws_access_key_id = %s\naws_secret_access_key = %s\n", targettest.AccessKey, targettest.SecretKey), 0o600))
	endpoint := "?endpoint=http://" + at
	for name, c := range map[string]struct {
		o    target.Options
		want string
	}{
		"credentials from a file": {target.Options{To: "s3://bucket/1" + endpoint, Getenv: environment("AWS_SHARED_CREDENTIALS_FILE", file, "AWS_PROFILE", "other")}, ""},
		"a region":                {target.Options{To: "s3://bucket/2" + endpoint + "&region=us-east-1", Getenv: good}, ""},
		"an endpoint of the environment": {target.Options{To: "s3://bucket/3", Getenv: environment("AWS_ENDPOINT_URL", "http://"+at,
			"AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", targettest.SecretKey)}, ""},
		"no bucket":        {target.Options{To: "s3://missing/1" + endpoint, Getenv: good}, `there is no bucket "missing"`},
		"no credentials":   {target.Options{To: "s3://bucket" + endpoint, Home: t.TempDir()}, "there are no credentials: set AWS_ACCESS_KEY_ID"},
		"half of them":     {target.Options{To: "s3://bucket" + endpoint, Getenv: environment("AWS_ACCESS_KEY_ID", "x")}, "only one of AWS_ACCESS_KEY_ID"},
		"a wrong key":      {target.Options{To: "s3://bucket" + endpoint, Getenv: environment("AWS_ACCESS_KEY_ID", "nobody", "AWS_SECRET_ACCESS_KEY", "x")}, "does not take these credentials"},
		"another region":   {target.Options{To: "s3://bucket" + endpoint + "&region=eu-9", Getenv: good}, "the bucket is in another region"},
		"an empty bucket":  {target.Options{To: "s3:///prefix" + endpoint, Getenv: good}, "it names no bucket"},
		"a wrong secret":   {target.Options{To: "s3://bucket" + endpoint, Getenv: environment("AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", "x")}, "does not take these credentials"},
		"no such host":     {target.Options{To: "s3://bucket?endpoint=http://nowhere.invalid", Getenv: good}, "cannot be reached"},
		"nobody listens":   {target.Options{To: "s3://bucket?endpoint=http://127.0.0.1:1", Getenv: good}, "cannot be reached"},
		"an odd endpoint":  {target.Options{To: "s3://bucket?endpoint=localhost:9000", Getenv: good}, "the endpoint must be like"},
		"an unknown word":  {target.Options{To: "s3://bucket?regoin=x", Getenv: good}, `there is no "regoin"`},
		"a secret in it":   {target.Options{To: "s3://me:hunter2@bucket/x" + endpoint, Getenv: good}, "credentials do not belong into the URL"},
		"another protocol": {target.Options{To: "ftp://bucket", Getenv: good}, "targets are directories, s3:// and sftp://"},
		"a hostile prefix": {target.Options{To: "s3://bucket/a/../../b" + endpoint, Getenv: good}, "not a clean relative name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := attempt(t, c.o)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := os.Stat(filepath.Join(dir, "bucket", "1", "p", "manifest.json"))
	require.NoError(t, err, "the prefix is a prefix")
}

func TestAFullOrReadOnlyBucket(t *testing.T) {
	at, _ := server(t)
	for code, want := range map[string]struct {
		status int
		want   error
	}{
		"XMinioStorageFull": {http.StatusInsufficientStorage, nil},
		"AccessDenied":      {http.StatusForbidden, fs.ErrPermission},
	} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				targettest.Answer(w, want.status, code)
				return
			}
			httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at}).ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		tg := openS3(t, front.Listener.Addr().String(), "bucket")
		_, err := tg.Swap(t.Context(), "p/manifest.json", []byte("x"), "")
		require.Error(t, err)
		u, cerr := tg.Create(t.Context(), "p/packs/a")
		require.NoError(t, cerr)
		cerr = u.Commit(t.Context(), "p/packs/a")
		for _, err := range []error{err, cerr} {
			if want.want == nil {
				require.True(t, disk.Full(err), err)
			} else {
				require.ErrorIs(t, err, want.want)
			}
		}
	}
}

// TestAServerThatGoesAway ends in ErrGone after all tries, and leaves what was acknowledged.
func TestAServerThatGoesAway(t *testing.T) {
	at, _ := server(t)
	var gone atomic.Bool
	f := &targettest.Faulty{Next: func(*http.Request) targettest.Fault {
		if gone.Load() {
			return targettest.Unavailable
		}
		return targettest.None
	}}
	tg := openS3(t, f.Start(t, at), "bucket/g")
	version, err := tg.Swap(t.Context(), "p/m", []byte("one"), "")
	require.NoError(t, err)
	gone.Store(true)
	_, err = tg.Swap(t.Context(), "p/m", []byte("two"), version)
	require.ErrorIs(t, err, target.ErrGone)
	require.EqualValues(t, target.Tries, f.Hits.Load())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tg.Swap(ctx, "p/m", []byte("two"), version)
	require.ErrorIs(t, err, context.Canceled)
	gone.Store(false)
	data, _, err := tg.Read(t.Context(), "p/m", 100)
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
}

func TestManyForeignObjectsUnderThePrefix(t *testing.T) {
	at, dir := server(t)
	count := 50_000
	if testing.Short() {
		count = 3_000
	}
	foreign := filepath.Join(dir, "bucket", "p", "photos")
	require.NoError(t, os.MkdirAll(foreign, 0o700))
	for n := range count {
		require.NoError(t, os.WriteFile(filepath.Join(foreign, fmt.Sprintf("%06d.jpg", n)), nil, 0o600))
	}
	fails := 0
	f := &targettest.Faulty{Next: func(r *http.Request) targettest.Fault {
		if fails++; fails%10 == 3 {
			return targettest.CutBefore
		}
		return targettest.None
	}}
	tg := openS3(t, f.Start(t, at), "bucket")
	write(t, tg, "p/packs/a", "x")
	require.Equal(t, []string{"p/packs/a"}, names(t, tg, "p/packs/"))
	require.Len(t, names(t, tg, "p/"), count+1, "each once, although the line was cut between")
	require.NoError(t, tg.Tidy(t.Context(), "p"))
	list, err := os.ReadDir(foreign)
	require.NoError(t, err)
	require.Len(t, list, count)
}

func TestABandwidthIsKeptAndChangesNothing(t *testing.T) {
	at, _ := server(t)
	tg, err := target.Open(t.Context(), disk.OS, target.Options{To: "s3://bucket/slow?endpoint=http://" + at, Scratch: t.TempDir(),
		Getenv: environment("AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", targettest.SecretKey), Bandwidth: 16 << 20})
	require.NoError(t, err)
	backupAndReadBack(t, tg)
}
