package history

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"decree/jsonread"
	"decree/tree"
)

// line is one line of records.jsonl.
type line struct {
	key    key
	gone   bool
	size   int64 // of the run.json that was written with it
	mtime  int64
	left   bool                 // of a removed one: its run directory may still be there
	files  map[string]tree.Hash // the run directory's files, by name with '/', as objects
	trees  [2]tree.Hash         // of the record: before, after
	record *Record
	raw    []byte // the record as it stands there, where it cannot be decoded; else nil
}

func (l *line) id() string { return FormatID(l.key.chain, l.key.seq) }

// append writes the line with its newline.
func (l *line) append(dst []byte) []byte {
	dst = append(dst, linePrefix...)
	dst = append(dst, l.id()...)
	dst = append(dst, lineAt...)
	dst = strconv.AppendInt(dst, l.key.at, 10)
	if l.gone {
		dst = append(dst, lineGone...)
		if l.left {
			dst = append(dst, lineLeft...)
		}
		return append(dst, "}\n"...)
	}
	dst = append(dst, `,"file":[`...)
	dst = strconv.AppendInt(dst, l.size, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, l.mtime, 10)
	if l.record != nil {
		l.trees = [2]tree.Hash{l.record.Before, l.record.After}
	}
	dst = append(dst, `],"trees":[`...)
	for i, id := range l.trees {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendHash(dst, id)
	}
	dst = append(dst, `],"files":{`...)
	w := &writer{dst: dst, sep: ",", colon: ":"}
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		w.hash(name, l.files[name])
	}
	dst = append(w.dst, `},"record":`...)
	if l.record == nil {
		return append(append(dst, l.raw...), "}\n"...)
	}
	return append(l.record.appendCompact(dst), "}\n"...)
}

// appendHash writes a hash as JSON, null for none.
func appendHash(dst []byte, h tree.Hash) []byte {
	if h.IsZero() {
		return append(dst, "null"...)
	}
	return append(hex.AppendEncode(append(dst, '"'), h[:]), '"')
}

// maxFileName bounds the name of a file in a run directory, in bytes.
const maxFileName = 256

const (
	linePrefix = `{"id":"`
	lineAt     = `","at":`
	lineGone   = `,"gone":true`
	lineLeft   = `,"left":{}`
)

var errLine = errors.New("damaged line")

// lineKey reads a line's key without decoding the rest, and whether the record
// is gone. It needs the form that append writes.
func lineKey(b []byte) (k key, gone bool, err error) {
	if len(b) < len(linePrefix)+chainDigits+2 || string(b[:len(linePrefix)]) != linePrefix || b[len(b)-1] != '}' {
		return key{}, false, errLine
	}
	rest := b[len(linePrefix):]
	end := bytes.IndexByte(rest[:min(len(rest), 32)], '"')
	if end < 0 || !bytes.HasPrefix(rest[end:], []byte(lineAt)) {
		return key{}, false, errLine
	}
	// A view: the log's bytes stay as long as its keys do, and never change.
	chain, seq, ok := ParseID(unsafe.String(unsafe.SliceData(rest), end))
	if !ok {
		return key{}, false, errLine
	}
	rest = rest[end+len(lineAt):]
	end = bytes.IndexAny(rest[:min(len(rest), 24)], ",}")
	if end < 0 {
		return key{}, false, errLine
	}
	at, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return key{}, false, errLine
	}
	return key{at, chain, seq}, bytes.HasPrefix(rest[end:], []byte(lineGone)), nil
}

// recordMark stands before a line's record and nowhere else outside of it: in a
// JSON string its quotes would be escaped.
const recordMark = `,"record":{`

// parseRecord decodes the record of a line alone.
func parseRecord(b []byte) (*Record, error) {
	k, gone, err := lineKey(b)
	if err != nil || gone {
		return nil, errLine
	}
	i := bytes.Index(b, []byte(recordMark))
	if i < 0 {
		return nil, errLine
	}
	r, err := ParseRecord(b[i+len(recordMark)-1 : len(b)-1])
	if err != nil {
		return nil, err
	}
	if r.Started.UnixNano() > k.at || r.Chain != k.chain || r.Seq != k.seq {
		return nil, errLine
	}
	if r.Started.UnixNano() != k.at {
		r.order = k.at
	}
	return r, nil
}

// parseHead decodes a line without its record.
func parseHead(b []byte) (*line, error) {
	k, gone, err := lineKey(b)
	if err != nil {
		return nil, err
	}
	l := &line{key: k, gone: gone}
	if !gone {
		i := bytes.Index(b, []byte(recordMark))
		if i < 0 {
			return nil, errLine
		}
		b = append(b[:i:i], '}')
	}
	err = jsonread.Object(b, func(key string, v *jsonread.Value) error {
		switch key {
		case "file":
			var n []int64
			v.Array(func(e *jsonread.Value) { n = append(n, e.Int()) })
			if len(n) == 2 {
				l.size, l.mtime = n[0], n[1]
			}
		case "trees":
			i := 0
			v.Array(func(e *jsonread.Value) {
				if i < len(l.trees) && !e.Null() {
					l.trees[i] = hashOf(e)
				}
				i++
			})
		case "left":
			l.left = true
		case "files":
			l.files = hashesOf(v)
		}
		return v.Err()
	})
	return l, err
}

// parseLine decodes a line.
func parseLine(b []byte) (*line, error) {
	l, err := parseHead(b)
	if err != nil || l.gone {
		return l, err
	}
	l.record, err = parseRecord(b)
	return l, err
}

func hashesOf(v *jsonread.Value) map[string]tree.Hash {
	out := map[string]tree.Hash{}
	v.Members(func(key string, f *jsonread.Value) {
		if _, err := splitName(key); err != nil {
			f.Expected("names of files of a run directory")
			return
		}
		out[strings.Clone(key)] = hashOf(f)
	})
	return out
}
