package target_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
)

// answering is a bucket whose server answers as do says.
func answering(t *testing.T, do http.HandlerFunc) target.Target {
	t.Helper()
	target.Impatient()
	srv := httptest.NewServer(do)
	t.Cleanup(srv.Close)
	tg, err := target.Open(t.Context(), disk.OS, target.Options{
		To:      "s3://bucket?region=us-east-1&endpoint=" + srv.URL,
		Getenv:  environment("AWS_ACCESS_KEY_ID", targettest.AccessKey, "AWS_SECRET_ACCESS_KEY", targettest.SecretKey),
		Scratch: t.TempDir(),
	})
	require.NoError(t, err)
	return tg
}

func head(w http.ResponseWriter, length string) {
	w.Header().Set("Content-Length", length)
	w.Header().Set("ETag", `"1"`)
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
}

// TestAnObjectThatIsGoneWhenItsLineIsCut loses the line within a body, and then the object.
func TestAnObjectThatIsGoneWhenItsLineIsCut(t *testing.T) {
	asked := 0
	tg := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			targettest.Answer(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		head(w, "100")
		_, _ = io.WriteString(w, "the beginning") // the server ends the connection after less than it has promised
	})
	r, _, err := tg.Open(t.Context(), "p/a", 0, -1)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, r.Close())
}

// TestNothingOfAnObjectIsAskedForItsLengthAlone looks at the length of one, of which no byte is to be read.
func TestNothingOfAnObjectIsAskedForItsLengthAlone(t *testing.T) {
	tg := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Errorf("%s asks for the bytes, which nobody would read", r.Method)
		}
		head(w, "100")
	})
	for _, offset := range []int64{0, 5} {
		r, size, err := tg.Open(t.Context(), "p/a", offset, 0)
		require.NoError(t, err)
		require.EqualValues(t, 100, size)
		require.NoError(t, r.Close())
	}
}

// TestUploadsOfANeighbourAreItsOwn has an upload in parts, days old, of a directory whose name only begins alike.
func TestUploadsOfANeighbourAreItsOwn(t *testing.T) {
	tg := answering(t, func(w http.ResponseWriter, r *http.Request) {
		key := "tool-2/packs/a.pack"
		switch {
		case r.Method == http.MethodDelete:
			t.Errorf("%s was ended", r.URL.Path)
		case strings.HasPrefix(key, r.URL.Query().Get("prefix")):
			_, _ = io.WriteString(w, `<ListMultipartUploadsResult><Bucket>bucket</Bucket><IsTruncated>false</IsTruncated><Upload><Key>`+key+
				`</Key><UploadId>1</UploadId><Initiated>2006-01-02T15:04:05.000Z</Initiated></Upload></ListMultipartUploadsResult>`)
		default:
			_, _ = io.WriteString(w, `<ListMultipartUploadsResult><Bucket>bucket</Bucket><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`)
		}
	})
	require.NoError(t, tg.Tidy(t.Context(), "tool"))
}

// TestAnErrorInTheBodyOfASuccess has a server find, after it has begun to answer with 200, that it cannot complete an upload now, or that
// there is an object of that name.
func TestAnErrorInTheBodyOfASuccess(t *testing.T) {
	was := target.SetPartSize(1)
	t.Cleanup(func() { target.SetPartSize(was) })
	for code, want := range map[string]error{"InternalError": nil, "SlowDown": nil, "PreconditionFailed": fs.ErrExist} {
		completed := 0
		tg := answering(t, func(w http.ResponseWriter, r *http.Request) {
			switch query := r.URL.Query(); {
			case r.Method == http.MethodHead:
				head(w, "2")
			case query.Has("uploads"):
				_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>p/a</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
			case r.Method == http.MethodPut:
				w.Header().Set("ETag", `"1"`)
			case r.Method == http.MethodPost:
				if completed++; completed == 1 {
					targettest.Answer(w, http.StatusOK, code)
					return
				}
				_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>p/a</Key><ETag>"1"</ETag></CompleteMultipartUploadResult>`)
			}
		})
		u, err := tg.Create(t.Context(), "p/a")
		require.NoError(t, err)
		_, err = io.WriteString(u, "xy")
		require.NoError(t, err)
		require.ErrorIs(t, u.Commit(t.Context(), "p/a"), want, code)
	}
}

// TestAnObjectThatGoesWhileItIsInTheWay: one of that name is there when it is to be sent, and no longer a moment later. Then it is sent again.
func TestAnObjectThatGoesWhileItIsInTheWay(t *testing.T) {
	sent := 0
	tg := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPut:
			if sent++; sent == 1 {
				targettest.Answer(w, http.StatusPreconditionFailed, "PreconditionFailed")
				return
			}
			w.Header().Set("ETag", `"1"`)
		}
	})
	u, err := tg.Create(t.Context(), "p/a")
	require.NoError(t, err)
	_, err = io.WriteString(u, "xy")
	require.NoError(t, err)
	require.NoError(t, u.Commit(t.Context(), "p/a"))
	require.Equal(t, 2, sent)
}
