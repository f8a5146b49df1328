package patch

import (
	"bytes"
	"decree/tree"
	"errors"
	"strconv"
)

// This file reads the hunks of a text section.

// maxLine bounds the line numbers in hunk headers: no text has more lines than 1 GiB has
// bytes, and sums of two stay within 32 bits.
const maxLine = 1 << 30

// hunkReader is the state between the hunks of one section.
type hunkReader struct {
	*Reader
	s            *Section
	bodies       []span // of each hunk, in raw, which moves while it grows
	oldAt, newAt int    // lines of each side that the hunks so far reach to
	cutOld       bool   // that side's last line has been there, without its '\n'
	cutNew       bool
	bytesOld     int64 // of each side's lines so far
	bytesNew     int64
}

type span struct{ from, to int }

// hunks reads the hunks of s, at least one, up to the next "# decree:" line or the end.
func (r *Reader) hunks(s *Section) error {
	h := &hunkReader{Reader: r, s: s}
	for {
		if c, ok := r.peekByte(); len(s.Hunks) > 0 && (!ok || c == '#') {
			break
		}
		if err := h.hunk(); err != nil {
			return err
		}
	}
	if r.peekErr != nil && !errors.Is(r.peekErr, errEnd) {
		return r.peekErr
	}
	for i := range s.Hunks {
		s.Hunks[i].Body = r.raw[h.bodies[i].from:h.bodies[i].to:h.bodies[i].to]
	}
	return h.checkAll()
}

// checkAll checks what the hunks of the section together must fulfil.
func (h *hunkReader) checkAll() error {
	s := h.s
	if s.Op == OpCreate || s.Op == OpDelete {
		if len(s.Hunks) != 1 || h.bytesOld != 0 && h.bytesNew != 0 {
			return h.syntax("more than the whole content in a "+string(s.Op), nil)
		}
	}
	if s.Old != nil && h.bytesOld > s.Old.Size || s.Op == OpDelete && h.bytesOld != s.Old.Size {
		return h.syntax("hunks do not give the size of old", nil)
	}
	if s.New != nil && h.bytesNew > s.New.Size || s.Op == OpCreate && h.bytesNew != s.New.Size {
		return h.syntax("hunks do not give the size of new", nil)
	}
	if s.kind() != tree.Symlink {
		return nil
	}
	// A link's contents stand on its "# decree:" line; the hunks must say the same.
	if s.Old != nil && s.New != nil {
		if got, err := s.Forward([]byte(s.Old.Target)); err != nil || string(got) != s.New.Target {
			return h.syntax("hunks do not give the target", nil)
		}
		return nil
	}
	var got []byte
	for l := range s.Hunks[0].Lines() {
		got = append(got, l.Text...)
	}
	if s.Old != nil && string(got) != s.Old.Target || s.New != nil && string(got) != s.New.Target {
		return h.syntax("hunks do not give the target", nil)
	}
	return nil
}

// hunk reads one header and its lines.
func (h *hunkReader) hunk() error {
	line, err := h.readLine(200)
	if errors.Is(err, errEnd) {
		return h.syntax("cut short: hunk expected", nil)
	}
	if err != nil {
		return err
	}
	hunk, reason := parseHunkHeader(line)
	if reason == "" {
		reason = h.checkPosition(&hunk)
	}
	if reason != "" {
		return h.syntax(reason, line)
	}
	from := len(h.raw)
	if err := h.lines(&hunk); err != nil {
		return err
	}
	h.s.Hunks = append(h.s.Hunks, hunk)
	h.bodies = append(h.bodies, span{from, len(h.raw)})
	return nil
}

// checkPosition checks a hunk's position against those before it, and moves past it.
func (h *hunkReader) checkPosition(k *Hunk) string {
	oldFrom, newFrom := k.oldFrom(), k.newFrom()
	switch {
	case k.OldLines == 0 && k.NewLines == 0:
		return "hunk without lines"
	case h.s.Op == OpCreate && (k.OldStart != 0 || k.OldLines != 0),
		h.s.Op == OpDelete && (k.NewStart != 0 || k.NewLines != 0):
		return "hunk of a " + string(h.s.Op) + " has lines on the other side"
	case oldFrom < h.oldAt || len(h.s.Hunks) == 0 && oldFrom < 0:
		return "hunk overlaps the one before it"
	case newFrom-h.newAt != oldFrom-h.oldAt:
		return "hunk's two starting lines do not fit together"
	case h.cutOld || h.cutNew:
		return "hunk after the end of the file"
	}
	h.oldAt, h.newAt = oldFrom+k.OldLines, newFrom+k.NewLines
	return ""
}

// oldFrom returns how many lines of the old side stand before the hunk.
func (h *Hunk) oldFrom() int { return rangeFrom(h.OldStart, h.OldLines) }

// newFrom returns how many lines of the new side stand before the hunk.
func (h *Hunk) newFrom() int { return rangeFrom(h.NewStart, h.NewLines) }

func rangeFrom(start, n int) int {
	if n == 0 {
		return start
	}
	return start - 1
}

// lines reads the lines that the header announced, by its counts.
func (h *hunkReader) lines(k *Hunk) error {
	oldLeft, newLeft := k.OldLines, k.NewLines
	changed := false
	for oldLeft > 0 || newLeft > 0 {
		line, err := h.readLine(0)
		if errors.Is(err, errEnd) {
			return h.syntax("cut short: hunk has fewer lines than its header says", nil)
		}
		if err != nil {
			return err
		}
		kind := byte(0)
		if len(line) > 0 {
			kind = line[0]
		}
		onOld, onNew := kind == ' ' || kind == '-', kind == ' ' || kind == '+'
		if !onOld && !onNew || onOld && oldLeft == 0 || onNew && newLeft == 0 {
			return h.syntax("hunk's lines do not match the counts in its header", line)
		}
		if onOld && h.cutOld || onNew && h.cutNew {
			return h.syntax("line after the end of the file", line)
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return h.syntax("NUL byte in a text section", line)
		}
		n := int64(len(line))
		if c, ok := h.peekByte(); ok && c == '\\' {
			if err := h.marker(onOld, onNew); err != nil {
				return err
			}
			n--
		}
		if onOld {
			oldLeft--
			h.bytesOld += n
		}
		if onNew {
			newLeft--
			h.bytesNew += n
		}
		changed = changed || kind != ' '
	}
	if !changed {
		return h.syntax("hunk without a change", nil)
	}
	return nil
}

// marker reads the line that says that the one before it has no '\n'.
func (h *hunkReader) marker(onOld, onNew bool) error {
	line, err := h.readLine(200)
	if err != nil {
		return err
	}
	if string(line) != noNewline {
		return h.syntax(`"`+noNewline+`" expected`, line)
	}
	h.cutOld = h.cutOld || onOld
	h.cutNew = h.cutNew || onNew
	return nil
}

// parseHunkHeader reads "@@ -a[,b] +c[,d] @@".
func parseHunkHeader(line []byte) (Hunk, string) {
	const malformed = "hunk header expected"
	var h Hunk
	rest, ok := bytes.CutPrefix(line, []byte("@@ -"))
	if !ok {
		return h, malformed
	}
	old, rest, ok := bytes.Cut(rest, []byte(" +"))
	if !ok {
		return h, malformed
	}
	new, ok := bytes.CutSuffix(rest, []byte(" @@"))
	if !ok {
		return h, malformed
	}
	if h.OldStart, h.OldLines, ok = parseRange(old); !ok {
		return h, malformed
	}
	if h.NewStart, h.NewLines, ok = parseRange(new); !ok {
		return h, malformed
	}
	return h, ""
}

// parseRange reads "start" or "start,count". A count of 1 is not written, and a start of 0
// needs a count of 0.
func parseRange(b []byte) (start, n int, ok bool) {
	first, second, two := bytes.Cut(b, []byte{','})
	if start, ok = parseLineNumber(first); !ok {
		return 0, 0, false
	}
	n = 1
	if two {
		if n, ok = parseLineNumber(second); !ok || n == 1 {
			return 0, 0, false
		}
	}
	return start, n, start > 0 || n == 0
}

func parseLineNumber(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 10 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil && n <= maxLine
}
