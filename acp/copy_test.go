package acp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"decree/acp"
)

// pieces reads a text in pieces of random lengths.
type pieces struct {
	rest   []byte
	random *rand.Rand
}

func (p *pieces) Read(buf []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(buf[:min(len(buf), 1+p.random.IntN(2*len(p.rest)))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// mostLine is the longest line that is read along here.
const mostLine = 1 << 16

func FuzzCopy(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\"}}\n{\"id\":1,\"result\":{}}\n"), uint64(1))
	f.Add([]byte("no JSON\r\n\n\n[[[[\x00\xff\n\"cut off"), uint64(2))
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":["s"],"update":{"content":{},"locations":[7]}}}`+"\n"), uint64(3))
	f.Add(bytes.Repeat([]byte("x"), mostLine+1), uint64(4))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		talk := acp.New("a")
		for _, read := range []func([]byte){func(l []byte) { talk.FromEditor(l, 0) }, func(l []byte) { talk.FromAgent(l) }} {
			var out, lines bytes.Buffer
			heard := func(line []byte, _ int64) {
				lines.Write(append(line, '\n'))
				// The other side has no whole message before it is heard.
				require.True(t, bytes.Equal(out.Bytes(), text[:out.Len()]))
				require.Less(t, out.Len(), lines.Len())
				read(line)
			}
			require.NoError(t, acp.Copy(&out, &pieces{text, rand.New(rand.NewPCG(seed, 0))}, mostLine, heard))
			require.True(t, bytes.Equal(text, out.Bytes()))
			if len(text) <= mostLine {
				require.Equal(t, string(text[:bytes.LastIndexByte(text, '\n')+1]), lines.String())
			}
		}
		talk.Ended()
	})
}

// TestCopyHoldsBackOnlyALinesEnd holds that bytes go on as they come, and the last piece of a
// line not before it was heard.
func TestCopyHoldsBackOnlyALinesEnd(t *testing.T) {
	from, toCopy := io.Pipe()
	var out strings.Builder
	var at []string
	done := make(chan error, 1)
	written := make(chan string)
	go func() {
		done <- acp.Copy(writer(func(p []byte) { out.Write(p); written <- string(p) }), from, mostLine, func(line []byte, _ int64) {
			at = append(at, out.String()+"|"+string(line))
		})
	}()
	for _, piece := range []string{"ab", "c", "d\n", "e\nf"} {
		_, err := toCopy.Write([]byte(piece))
		require.NoError(t, err)
		for sent := ""; sent != piece; {
			sent += <-written
		}
	}
	require.NoError(t, toCopy.Close())
	require.NoError(t, <-done)
	require.Equal(t, []string{"abc|abcd", "abcd\n|e"}, at)
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestLongLinesPassUnread(t *testing.T) {
	text := strings.Repeat("x", mostLine) + "\n" + strings.Repeat("y", mostLine+1) + "\nz\n"
	var out strings.Builder
	var lengths []int
	require.NoError(t, acp.Copy(&out, strings.NewReader(text), mostLine, func(line []byte, _ int64) { lengths = append(lengths, len(line)) }))
	require.True(t, out.String() == text)
	require.Equal(t, []int{mostLine, 1}, lengths)
}

// TestLongStringsAreNotHeld: of a long string in a line only its beginning is held, cut between
// characters and escapes, and the line is JSON all the same, however it comes in pieces.
func TestLongStringsAreNotHeld(t *testing.T) {
	const most = 64 << 10 // bytes of a string that are held
	for _, c := range []struct{ unit, kept string }{
		{"x", strings.Repeat("x", most)},
		{`\"`, strings.Repeat(`"`, most/2)},
		{`\u0041`, strings.Repeat("A", most/6+1)},
		{`\\`, strings.Repeat(`\`, most/2)},
	} {
		line := `{"a":["short \"","` + strings.Repeat(c.unit, 2*most) + `"],"b":"behind"}`
		text := line + "\n{}\n"
		for seed := range uint64(4) {
			var out bytes.Buffer
			var lines []string
			var left []int64
			require.NoError(t, acp.Copy(&out, &pieces{[]byte(text), rand.New(rand.NewPCG(seed, 0))}, 2*most, func(line []byte, cut int64) {
				lines, left = append(lines, string(line)), append(left, cut)
			}))
			require.True(t, out.String() == text)
			require.Len(t, lines, 2)
			var got struct {
				A []string
				B string
			}
			require.NoError(t, json.Unmarshal([]byte(lines[0]), &got))
			require.Equal(t, "behind", got.B)
			require.Equal(t, `short "`, got.A[0])
			require.True(t, got.A[1] == c.kept, "%d bytes", len(got.A[1]))
			require.Equal(t, []int64{int64(len(line) - len(lines[0])), 0}, left)
			require.Equal(t, "{}", lines[1])
		}
	}
}

func TestCopyReturnsTheStreamsErrors(t *testing.T) {
	require.ErrorIs(t, acp.Copy(io.Discard, iotest.ErrReader(io.ErrNoProgress), mostLine, nil), io.ErrNoProgress)
	reader, w := io.Pipe()
	reader.Close()
	require.ErrorIs(t, acp.Copy(w, strings.NewReader("x"), mostLine, nil), io.ErrClosedPipe)
}
