package target_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
)

// What a packet of the protocol begins with, and what it answers (draft-ietf-secsh-filexfer-02).
const (
	fxpVersion = 2
	fxpOpen    = 3
	fxpWrite   = 6
	fxpMkdir   = 14
	fxpRename  = 18
	fxpStatus  = 101
	fxpReply   = 201

	fxPermissionDenied = 3
	fxFailure          = 4
)

// refusing is the server's end of a line, on which some requests are answered in its place.
type refusing struct {
	io.ReadWriteCloser
	answer func(request []byte) []byte // nil: the server does it
	in     bytes.Buffer                // of the request that the server reads
	mu     sync.Mutex
	out    []byte // of the answer that it writes
	change func(answer []byte) []byte
}

func (r *refusing) Read(b []byte) (int, error) {
	for r.in.Len() == 0 {
		var length uint32
		if err := binary.Read(r.ReadWriteCloser, binary.BigEndian, &length); err != nil {
			return 0, err
		}
		request := make([]byte, length)
		if _, err := io.ReadFull(r.ReadWriteCloser, request); err != nil {
			return 0, err
		}
		if answer := r.answer(request); answer != nil {
			r.mu.Lock()
			_, err := r.ReadWriteCloser.Write(answer)
			r.mu.Unlock()
			if err != nil {
				return 0, err
			}
			continue
		}
		_ = binary.Write(&r.in, binary.BigEndian, length)
		r.in.Write(request)
	}
	return r.in.Read(b)
}

// Write passes on whole answers: others come between them.
func (r *refusing) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = append(r.out, b...)
	for len(r.out) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(r.out))
		if len(r.out) < n {
			break
		}
		if _, err := r.ReadWriteCloser.Write(r.change(r.out[:n])); err != nil {
			return 0, err
		}
		r.out = r.out[n:]
	}
	return len(b), nil
}

// answerTo is an answer of a kind to a request, which has its number behind its own kind.
func answerTo(request []byte, kind byte, body ...any) []byte {
	var b bytes.Buffer
	b.Write([]byte{0, 0, 0, 0, kind})
	b.Write(request[1:5])
	for _, v := range body {
		if s, ok := v.(string); ok {
			_ = binary.Write(&b, binary.BigEndian, uint32(len(s)))
			b.WriteString(s)
			continue
		}
		_ = binary.Write(&b, binary.BigEndian, v)
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()-4))
	return b.Bytes()
}

// refuser answers requests of one kind with a status, while it is on.
type refuser struct {
	kind      byte
	extension string // where kind is that of an extension
	status    uint32
	passes    int64 // so many are served first
	once      bool  // one alone is refused
	vfs       []any // what it says of the disk
	on        atomic.Bool
	refused   atomic.Int64
}

func (f *refuser) answer(request []byte) []byte {
	const fxpExtended = 200
	switch {
	case !f.on.Load():
		return nil
	case f.vfs != nil && request[0] == fxpExtended && bytes.Contains(request, []byte("statvfs@openssh.com")):
		return answerTo(request, fxpReply, f.vfs...)
	case request[0] != f.kind && (request[0] != fxpExtended || f.extension == "" || !bytes.Contains(request, []byte(f.extension))):
		return nil
	}
	if n := f.refused.Add(1) - f.passes; n <= 0 || f.once && n > 1 {
		return nil
	}
	return answerTo(request, fxpStatus, f.status, "Failure", "")
}

// faultyLibrary is the library's server behind such a line.
func faultyLibrary(t *testing.T, f *refuser, change func(answer []byte) []byte) *sshHost {
	return libraryBehind(t, never, func(line io.ReadWriteCloser) io.ReadWriteCloser {
		return &refusing{ReadWriteCloser: line, answer: f.answer, change: change}
	})
}

func asItIs(answer []byte) []byte { return answer }

// vfsOf is what a server says of a disk with so many free blocks of 4 KiB, and files.
func vfsOf(blocks, files uint64) []any {
	var out []any
	for _, n := range []uint64{4096, 4096, 1 << 20, blocks, blocks, 1000, files, files, 1, 0, 255} {
		out = append(out, n)
	}
	return out
}

// TestAFullServer: the server has no word for a full disk. Whatever request it is that fails because of it, the error says so, what stood there stands, and when there
// is room the same is done.
func TestAFullServer(t *testing.T) {
	for name, f := range map[string]*refuser{
		"write":         {kind: fxpWrite, vfs: vfsOf(0, 500)},
		"create":        {kind: fxpOpen, passes: 1, vfs: vfsOf(0, 500)}, // the first one reads what is there
		"no more files": {kind: fxpOpen, passes: 1, vfs: vfsOf(1<<19, 0)},
		"link":          {extension: "hardlink@openssh.com", vfs: vfsOf(0, 500)},
		"rename":        {extension: "posix-rename@openssh.com", vfs: vfsOf(0, 500)},
	} {
		t.Run("swap, "+name, func(t *testing.T) {
			f.status = fxFailure
			at := filepath.Join(t.TempDir(), "to")
			tg := faultyLibrary(t, f, asItIs).open(t, at)
			first, err := tg.Swap(t.Context(), "p/m", []byte("one"), "")
			require.NoError(t, err)
			f.on.Store(true)
			_, err = tg.Swap(t.Context(), "p/m", []byte("two"), first)
			require.True(t, disk.Full(err), "%v", err)
			require.Positive(t, f.refused.Load())
			f.on.Store(false)
			data, now, err := tg.Read(t.Context(), "p/m", 10)
			require.NoError(t, err)
			require.Equal(t, "one", string(data))
			_, err = tg.Swap(t.Context(), "p/m", []byte("three"), now)
			require.NoError(t, err)
			require.Equal(t, []string{"m"}, inDirectory(t, filepath.Join(at, "p")), "nothing else is left")
		})
	}
	for name, f := range map[string]*refuser{
		"mkdir":  {kind: fxpMkdir, vfs: vfsOf(0, 500)},
		"create": {kind: fxpOpen, vfs: vfsOf(0, 500)},
		"write":  {kind: fxpWrite, vfs: vfsOf(0, 500)},
		"link":   {extension: "hardlink@openssh.com", vfs: vfsOf(0, 500)},
	} {
		t.Run("upload, "+name, func(t *testing.T) {
			f.status = fxFailure
			at := filepath.Join(t.TempDir(), "to")
			tg := faultyLibrary(t, f, asItIs).open(t, at)
			upload := func() error {
				u, err := tg.Create(t.Context(), "p/packs/a")
				if err != nil {
					return err
				}
				if _, err = io.WriteString(u, "some bytes"); err == nil {
					err = u.Commit(t.Context(), "p/packs/a")
				}
				return errors.Join(err, u.Abort())
			}
			f.on.Store(true)
			err := upload()
			require.True(t, disk.Full(err), "%v", err)
			require.NoFileExists(t, filepath.Join(at, "p/packs/a"))
			f.on.Store(false)
			require.NoError(t, upload())
			require.Equal(t, []string{"a"}, inDirectory(t, filepath.Join(at, "p/packs")))
		})
	}
}

func inDirectory(t *testing.T, at string) (names []string) {
	list, err := filepath.Glob(filepath.Join(at, "*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(at, ".*"))
	require.NoError(t, err)
	for _, name := range append(list, hidden...) {
		names = append(names, filepath.Base(name))
	}
	return names
}

// TestAServerThatDoesNotAllow: what the server forbids is no full disk and no lost line.
func TestAServerThatDoesNotAllow(t *testing.T) {
	for _, kind := range []byte{fxpOpen, fxpWrite} {
		f := &refuser{kind: kind, status: fxPermissionDenied, vfs: vfsOf(1<<19, 500)}
		tg := faultyLibrary(t, f, asItIs).open(t, filepath.Join(t.TempDir(), "to"))
		_, err := tg.Swap(t.Context(), "p/other", []byte("one"), "")
		require.NoError(t, err)
		f.on.Store(true)
		_, err = tg.Swap(t.Context(), "p/m", []byte("one"), "")
		require.ErrorIs(t, err, fs.ErrPermission)
		require.NotErrorIs(t, err, target.ErrGone)
		require.False(t, disk.Full(err))
	}
}

// TestAServerWithoutReplacingRename: one that cannot put a file in the place of another is said to be no target, and nothing is written there.
func TestAServerWithoutReplacingRename(t *testing.T) {
	without := func(answer []byte) []byte {
		if answer[4] == fxpVersion {
			return []byte(strings.ReplaceAll(string(answer), "posix-rename@openssh.com", "posix-rename@example.org"))
		}
		return answer
	}
	at := filepath.Join(t.TempDir(), "to")
	tg := faultyLibrary(t, &refuser{}, without).open(t, at)
	_, err := tg.Swap(t.Context(), "p/m", []byte("one"), "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "lacks posix-rename@openssh.com, without which no backup can be written there safely")
	_, err = tg.Create(t.Context(), "p/packs/a")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestAnExchangeThatFails leaves what was there, whichever of the renames it is that the server refuses.
func TestAnExchangeThatFails(t *testing.T) {
	for passes := range int64(2) {
		f := &refuser{kind: fxpRename, status: fxFailure, passes: passes, once: true}
		at := filepath.Join(t.TempDir(), "to")
		tg := faultyLibrary(t, f, asItIs).open(t, at)
		shelf := tg.(target.Shelf)
		require.NoError(t, shelf.Write(t.Context(), "p/current/a", strings.NewReader("old")))
		require.NoError(t, shelf.Write(t.Context(), "p/current.new/a", strings.NewReader("new")))
		f.on.Store(true)
		require.Error(t, shelf.Exchange(t.Context(), "p/current.new", "p/current"))
		require.FileExists(t, filepath.Join(at, "p/current/a"), "after %d renames", passes)
	}
}
