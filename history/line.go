package history

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"decree/jsonread"
	"decree/tree"
)

// line is one line of records.jsonl: a record that ends, one that is removed, or an
// operation that is no record.
type line struct {
	key     key
	gone    bool
	op      string    // of an operation; "": a record's line
	given   []string  // of a compaction: ids of records that were removed before
	effects []*effect // on the records before it
	file    fileStat  // of the run.json that was written with it
	left    bool      // of a removed one: its run directory may still be there
	files   map[string]tree.Hash
	trees   [2]tree.Hash // of the record: before, after
	record  *Record
	raw     []byte // the record as it stands there, where it cannot be decoded; else nil
}

// The operations that are no records.
const (
	opRewrite  = "forget"  // of files: those that held what is forgotten
	opRunFiles = "repair"  // run.json files were written again
	opDraft    = "draft"   // drafts were discarded, or became others as somebody worked in their layers
	opCompact  = "compact" // the log was, without the lines of removed records; what these had changed is here, and their ids
)

var operations = []string{opRewrite, opRunFiles, opDraft, opCompact}

func (l *line) id() string { return FormatID(l.key.chain, l.key.seq) }

// append writes the line with its newline.
func (l *line) append(dst []byte) []byte {
	w := compact(dst)
	if l.op != "" {
		w.text("op", l.op)
		if len(l.given) > 0 {
			w.text("given", strings.Join(l.given, " "))
		}
		w.effects(l.effects)
		return append(w.dst, "}\n"...)
	}
	w.text("id", l.id())
	w.number("at", l.key.at)
	if l.gone {
		w.raw("gone", "true")
		if l.left {
			w.raw("left", "{}")
		}
		return append(w.dst, "}\n"...)
	}
	w.file(l.file)
	if len(l.effects) > 0 {
		w.effects(l.effects)
	}
	if l.record != nil {
		l.trees = [2]tree.Hash{l.record.Before, l.record.After}
	}
	w.key("trees")
	for i, id := range l.trees {
		w.dst = append(w.dst, "[,"[i])
		w.dst = appendHash(w.dst, id)
	}
	w.dst = append(w.dst, ']')
	w.files(l.files)
	w.key("record")
	if l.record == nil {
		w.dst = append(w.dst, l.raw...)
	} else {
		w.dst = l.record.appendCompact(w.dst)
	}
	return append(w.dst, "}\n"...)
}

// maxFileName bounds the name of a file in a run directory, in bytes.
const maxFileName = 256

const (
	linePrefix = `{"id":"`
	lineAt     = `","at":`
	lineGone   = `,"gone":true`
	opPrefix   = `{"op":"`
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
	// Not copied: the log's bytes stay as long as its keys do, and never change.
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

// parseHead decodes a record's line without the record.
func parseHead(b []byte) (*line, error) {
	k, gone, err := lineKey(b)
	if err != nil {
		return nil, err
	}
	if !gone {
		i := bytes.Index(b, []byte(recordMark))
		if i < 0 || beginsAnother(b[i:]) {
			return nil, errLine
		}
		b = append(b[:i:i], '}')
	}
	l := &line{key: k, gone: gone}
	if err := l.members(b); err != nil {
		return l, err
	}
	if !gone && !namesNeeds(b) {
		return l, errLine // one bad byte in a name, and what the record needs would not be known
	}
	return l, nil
}

// namesNeeds says whether a record's line has the members that say what the record needs, be there nothing in them. Version 1 wrote "tree" in
// the place of "trees".
func namesNeeds(b []byte) bool {
	trees := bytes.Contains(b, []byte(`,"trees":[`)) || bytes.Contains(b, []byte(`,"tree":`))
	return trees && bytes.Contains(b, []byte(`,"files":`))
}

// beginsAnother says whether another line has become a part of a record's, as by a newline that is another byte now. Only a line
// begins so: in a JSON string the quotes would be escaped, and no object of a record has a place behind its id, or an operation of the log first.
func beginsAnother(b []byte) bool {
	if slices.ContainsFunc(operations, func(op string) bool { return bytes.Contains(b, []byte(opPrefix+op+`"`)) }) {
		return true
	}
	for {
		i := bytes.Index(b, []byte(linePrefix))
		if i < 0 {
			return false
		}
		if _, _, err := lineKey(b[i:]); err == nil {
			return true
		}
		b = b[i+len(linePrefix):]
	}
}

// endsGone says whether a removed record's line is that alone.
func endsGone(b []byte) bool {
	_, err := parseHead(b)
	return err == nil
}

// parseOp decodes the line of an operation that is no record.
func parseOp(b []byte) (*line, error) {
	l := &line{}
	err := l.members(b)
	if err == nil && l.op == "" {
		err = errLine
	}
	return l, err
}

func (l *line) members(b []byte) error {
	return jsonread.Object(b, func(key string, v *jsonread.Value) error {
		switch key {
		case "op":
			l.op = v.Known(operations...)
		case "given":
			l.given = strings.Fields(v.Text())
		case "file":
			l.file = fileStatOf(v)
		case "effects":
			l.effects = effectsOf(v)
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
}

// changesOthers says whether a record's line has effects, without decoding it.
func changesOthers(b []byte) bool {
	const mark = `],"effects":[` // behind the id, the place and the run.json
	return bytes.Contains(b[:min(len(b), 160)], []byte(mark))
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
