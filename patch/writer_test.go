package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

func TestWriterNoChange(t *testing.T) {
	assert.Empty(t, write(t, Limits{}))
	same := Change{Path: "f", Old: file("x", 0o644), New: file("x", 0o644)}
	linkMode := Change{Path: "l", Old: link("x"), New: link("x")}
	linkMode.New.Mode = 0o755
	assert.Empty(t, write(t, Limits{}, same, linkMode, Change{Path: "nothing"}))
}

func TestWriterStat(t *testing.T) {
	old := nodes{
		"a-mod": regular("1\n2\n3\n", 0o644), "b-mode": regular("x\n", 0o644), "c-gone": regular("1\n2", 0o644), "d-kind": regular("1\n", 0o644),
		"e-bin": regular("\x00", 0o644), "f-dir": {dir(0o755), ""}, "g-dir": {dir(0o755), ""}, "h-link": {link("a"), ""}, "i-to-dir": regular("1\n", 0o644),
	}
	new := nodes{
		"a-mod": regular("1\n3\n4\n5\n", 0o644), "b-mode": regular("x\n", 0o755), "d-kind": {link("t"), ""},
		"e-bin": regular("\x00\n", 0o644), "g-dir": {dir(0o700), ""}, "h-link": {link("b"), ""}, "i-to-dir": {dir(0o755), ""},
		"j-new": regular("1\n2\n", 0o644), "k-empty": regular("", 0o644), "l-dir": {dir(0o755), ""}, "m-bin": regular("\x00\n\n", 0o644),
	}
	var out bytes.Buffer
	w := NewWriter(&out, Limits{})
	for _, c := range changes(old, new) {
		require.NoError(t, w.Write(context.Background(), c))
	}
	require.NoError(t, w.Close())
	assert.Equal(t, Stat{Created: 4, Modified: 4, Deleted: 3, AddedLines: 6, RemovedLines: 6}, w.Stat())
	var added, removed int64
	for _, s := range read(t, out.Bytes()) {
		a, r := lineCounts(s)
		added, removed = added+a, removed+r
	}
	assert.Equal(t, w.Stat().AddedLines, added)
	assert.Equal(t, w.Stat().RemovedLines, removed)
}

// lineCounts returns how many lines the section's hunks add and remove.
func lineCounts(s *Section) (added, removed int64) {
	for i := range s.Hunks {
		for l := range s.Hunks[i].Lines() {
			switch l.Kind {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

func TestWriterRefuses(t *testing.T) {
	ok := modify("m", "a\n", "b\n")
	wrongSize := modify("n", "a\n", "b\n")
	wrongSize.NewContent = Bytes("b\nc\n")
	wrongHash := modify("n", "a\n", "b\n")
	wrongHash.OldContent = Bytes("x\n")
	short := modify("n", "a\n", "b\n")
	short.OldContent = Bytes("a")
	missing := modify("n", "a\n", "b\n")
	missing.NewContent = nil
	big := strings.Repeat("line\n", 1<<19)
	bigHash := Change{Path: "n", New: file(big, 0o644), NewContent: Bytes(strings.Replace(big, "line", "lime", 1))}
	bigSize := Change{Path: "n", New: file(big, 0o644), NewContent: Bytes(big + "x")}
	for name, tt := range map[string]struct {
		c      Change
		reason string
	}{
		"order":          {modify("a", "a\n", "b\n"), "not in byte order"},
		"twice":          {modify("m", "a\n", "b\n"), "second section"},
		"below a file":   {modify("m/x", "a\n", "b\n"), "below m, which is not a directory"},
		"path":           {modify("x/../y", "a\n", "b\n"), `".." in path`},
		"in .git":        {modify("x/.git/y", "a\n", "b\n"), "path in .git"},
		"mode":           {Change{Path: "n", New: dir(0o100755)}, "mode has bits"},
		"target":         {Change{Path: "n", New: &tree.Entry{Type: tree.Symlink, Mode: 0o777}}, "size and sha256 contradict each other"},
		"size":           {wrongSize, "longer than 2 bytes"},
		"hash":           {wrongHash, "the content does not match its entry: sha256"},
		"short":          {short, "1 bytes instead of 2"},
		"no content":     {missing, "no content given"},
		"created, hash":  {bigHash, "the content does not match its entry: sha256"},
		"created, size":  {bigSize, "the content does not match its entry"},
		"unknown type":   {Change{Path: "n", New: &tree.Entry{Type: 7, Mode: 0o644, SHA256: tree.EmptySum}}, "unknown type"},
		"negative size":  {Change{Path: "n", New: &tree.Entry{Size: -1, Mode: 0o644}}, "negative size"},
		"directory size": {Change{Path: "n", New: &tree.Entry{Type: tree.Dir, Size: 1}}, "directory with a content"},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(io.Discard, Limits{})
			require.NoError(t, w.Write(context.Background(), ok))
			err := w.Write(context.Background(), tt.c)
			require.ErrorContains(t, err, tt.reason)
			require.ErrorContains(t, err, tree.Quote(tt.c.Path)+": ")
			require.Equal(t, err, w.Write(context.Background(), modify("z", "a\n", "b\n")), "the error stays")
			require.Equal(t, err, w.Close())
		})
	}
}

// flaky is a content whose n-th opening gives another reader than the first.
type flaky struct {
	data  string
	opens int
	later func() io.Reader
}

func (f *flaky) Open() (io.ReadCloser, error) {
	f.opens++
	if f.opens == 1 {
		return io.NopCloser(strings.NewReader(f.data)), nil
	}
	return io.NopCloser(f.later()), nil
}

// A large created file is read twice; what happens between the two is noticed.
func TestWriterContentChangesBetweenReadings(t *testing.T) {
	data := strings.Repeat("line\n", 1<<19)
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		later  func() io.Reader
		reason string
	}{
		"other bytes": {func() io.Reader { return strings.NewReader(strings.Replace(data, "l", "m", 1)) }, "the content does not match its entry"},
		"longer":      {func() io.Reader { return strings.NewReader(data + "x") }, "the content does not match its entry"},
		"gone":        {func() io.Reader { return strings.NewReader("") }, "the content does not match its entry"},
		"broken":      {func() io.Reader { return iotest.ErrReader(boom) }, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(io.Discard, Limits{})
			c := Change{Path: "f", New: file(data, 0o644), NewContent: &flaky{data: data, later: tt.later}}
			require.ErrorContains(t, w.Write(context.Background(), c), tt.reason)
		})
	}
}

// limited takes n bytes and then fails.
type limited struct{ n int }

var errFull = errors.New("no space left")

func (l *limited) Write(p []byte) (int, error) {
	if l.n -= len(p); l.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A writer that fails at any byte is an error of Write or of Close.
func TestWriterSinkErrors(t *testing.T) {
	big := strings.Repeat("line\n", 60000)
	all := []Change{
		modify("a", big, "x\n"+big+"y\n"),
		{Path: "b", New: file(big, 0o644), NewContent: Bytes(big)},
		modify("c", "\x00"+big, "\x00\x00"+big),
	}
	size := len(write(t, Limits{}, all...))
	for n := 0; n < size; n += size/37 + 1 {
		w := NewWriter(&limited{n}, Limits{})
		var err error
		for _, c := range all {
			if err = w.Write(context.Background(), c); err != nil {
				break
			}
		}
		require.ErrorIs(t, errors.Join(err, w.Close()), errFull, "after %d bytes", n)
	}
}

func TestWriterCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := NewWriter(io.Discard, Limits{}).Write(ctx, modify("f", "a\n", "b\n"))
	require.ErrorIs(t, err, context.Canceled)
}

// The three limits, each at its value and one above.
func TestWriterLimits(t *testing.T) {
	stored := func(lim Limits, c Change) bool {
		s := read(t, write(t, lim, c))[0]
		return s.Stored
	}
	bin := modify("f", "\x00"+strings.Repeat("a", 99), "\x00")
	assert.False(t, stored(Limits{InlineBinary: 100}, bin))
	assert.True(t, stored(Limits{InlineBinary: 99}, bin))
	binNew := Change{Path: "f", New: bin.Old, NewContent: bin.OldContent}
	assert.False(t, stored(Limits{InlineBinary: 100}, binNew))
	assert.True(t, stored(Limits{InlineBinary: 99}, binNew))

	lines := text(50)
	for name, c := range map[string]Change{
		"modify": modify("f", lines, text(50, 3, 20, 40)),
		"create": {Path: "f", New: file(lines, 0o644), NewContent: Bytes(lines)},
		"delete": {Path: "f", Old: file(lines+"cut", 0o644), OldContent: Bytes(lines + "cut")},
		"noeol":  modify("f", lines+"a", lines+"b"),
	} {
		size := read(t, write(t, Limits{}, c))[0].Size
		assert.False(t, stored(Limits{InlineText: size}, c), name)
		assert.True(t, stored(Limits{InlineText: size - 1}, c), name)
	}
	txt := modify("f", "a\n", "bbb\n")
	assert.False(t, stored(Limits{MaxText: 4}, txt))
	assert.True(t, stored(Limits{MaxText: 3}, txt))
	assert.False(t, stored(Limits{InlineText: 1, MaxText: 1}, Change{Path: "l", Old: link("one"), New: link("two")}), "a link's target is on its line anyway")
}

// A NUL byte at any place makes a binary of either side, also far behind the first bytes.
func TestWriterFindsNUL(t *testing.T) {
	body := strings.Repeat("line\n", 40000)
	for _, at := range []int{0, 1, 65535, 65536, 65537, len(body) - 1, len(body)} {
		bad := body[:at] + "\x00" + body[at:]
		for i, c := range []Change{
			modify("f", bad, body), modify("f", body, bad),
			{Path: "f", New: file(bad, 0o644), NewContent: Bytes(bad)}, {Path: "f", Old: file(bad, 0o644), OldContent: Bytes(bad)},
		} {
			s := read(t, write(t, Limits{}, c))[0]
			require.True(t, s.Binary, "%d at %d", i, at)
			require.False(t, s.Stored)
			require.True(t, read(t, write(t, Limits{InlineBinary: 10}, c))[0].Stored)
		}
	}
}

// format writes a section anew from what the reader made of it.
func format(s *Section) []byte {
	out := s.appendHeader(s.appendFacts(nil))
	for i := range s.Hunks {
		out = append(s.Hunks[i].appendHeader(out), '\n')
		for l := range s.Hunks[i].Lines() {
			out = append(append(out, l.Kind), l.Text...)
			if !bytes.HasSuffix(l.Text, []byte("\n")) {
				out = append(out, "\n"+noNewline+"\n"...)
			}
		}
	}
	var buf bytes.Buffer
	w := NewWriter(&buf, Limits{})
	if s.Binary {
		w.payload(oldPrefix, s.OldData)
		w.payload(newPrefix, s.NewData)
		w.Close()
	}
	return append(out, buf.Bytes()...)
}

// Parsed and formatted again, a diff is the same bytes.
func TestParseFormatParse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		old, new := randomTree(rnd), randomTree(rnd)
		diff := write(t, Limits{InlineBinary: 40}, changes(old, new)...)
		var again []byte
		for i, s := range read(t, diff) {
			if i == 0 {
				again = append(again, first...)
			}
			require.Equal(t, string(s.Raw), string(format(s)))
			again = append(again, s.Raw...)
			if s.Binary && s.Stored {
				continue
			}
			checkBothWays(t, s, old[s.Path], new[s.Path])
		}
		require.Equal(t, string(diff), string(again))
	}
}

// randomTree returns a small tree with every kind of path, content and mode.
func randomTree(rnd *rand.Rand) nodes {
	tr := nodes{}
	for i, name := range fileNames {
		if rnd.IntN(3) > 0 {
			continue
		}
		p := tree.Path(fmt.Sprint(i%5, "/", name))
		switch rnd.IntN(5) {
		case 0:
			tr[p] = node{link(strings.Repeat("t\xff ", 1+rnd.IntN(3))), ""}
		case 1:
			tr[p] = node{dir([]uint32{0o755, 0o700, 0o1777}[rnd.IntN(3)]), ""}
			if rnd.IntN(2) == 0 {
				tr[p+"/below"] = regular(randomText(rnd, 9, 3), 0o644)
			}
		case 2:
			tr[p] = regular(randomText(rnd, 30, 3)+"\x00", 0o644)
		default:
			tr[p] = regular(randomText(rnd, 30, 3), []uint32{0o644, 0o755, 0o4711, 0}[rnd.IntN(4)])
		}
	}
	return tr
}
