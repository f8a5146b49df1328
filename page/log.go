package page

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// LogOptions say which part of a log is drawn.
type LogOptions struct {
	Begin int64 // the byte at which it begins: where another part ended
	Bytes int64 // about how many bytes it has at most; 0: all that is left
}

// Log draws what a command printed, as the contents of a pre. The colours and weights that it
// asked for become classes; nothing else that a terminal would do is done, but shown as an
// escape. It returns where the next part begins, or 0 after the last. A part ends at the end of
// a line where it can; its colours begin anew.
func Log(w io.Writer, log io.Reader, o LogOptions) (next int64, err error) {
	if _, err := io.CopyN(io.Discard, log, o.Begin); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return 0, err
	}
	d := &logDrawer{w: bufio.NewWriterSize(w, 64<<10), in: bufio.NewReaderSize(log, 32<<10)}
	more, err := d.draw(o.Bytes)
	if d.classes != "" {
		_, _ = d.w.WriteString("</span>") // Flush has what goes wrong
	}
	if more {
		next = o.Begin + d.done
	}
	return next, errors.Join(err, d.w.Flush())
}

type logDrawer struct {
	w       *bufio.Writer
	in      *bufio.Reader
	done    int64 // bytes drawn
	carry   []byte
	look    look
	classes string // of the span that is open
}

// draw draws lines until there are none, or the next would go beyond most bytes.
func (d *logDrawer) draw(most int64) (more bool, err error) {
	for {
		part, err := d.in.ReadSlice('\n')
		if most > 0 && d.done > 0 && d.done+int64(len(d.carry)+len(part)) > most && len(part) > 0 {
			return true, nil
		}
		part = append(d.carry, part...)
		d.carry = nil
		if errors.Is(err, bufio.ErrBufferFull) {
			n := wholeLength(part)
			d.carry, part, err = bytes.Clone(part[n:]), part[:n], nil
		}
		d.done += int64(len(part))
		if werr := d.text(part); werr != nil {
			return false, werr
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// longestEscape is how far behind an escape character its sequence may end.
const longestEscape = 64

// wholeLength is how much of a part of a line ends neither in a sequence nor in a character.
func wholeLength(part []byte) int {
	if i := bytes.LastIndexByte(part, escape); i >= 0 && len(part)-i < longestEscape {
		return i
	}
	for n := 1; n <= 3 && n < len(part); n++ {
		if c := part[len(part)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(part[len(part)-n:]) {
				return len(part) - n
			}
			break
		}
	}
	return len(part)
}

const escape = 0x1b

func (d *logDrawer) text(part []byte) error {
	if bytes.HasSuffix(part, []byte("\r\n")) { // as a terminal ends its lines
		part = append(part[:len(part)-2], '\n')
	}
	for len(part) > 0 {
		i := bytes.IndexByte(part, escape)
		if i < 0 {
			return d.write(part)
		}
		params, n := colourSequence(part[i:])
		if n == 0 { // shown with the text before and behind it
			next := bytes.IndexByte(part[i+1:], escape)
			if next < 0 {
				return d.write(part)
			}
			i, n = i+1+next, 0
		}
		if err := d.write(part[:i]); err != nil {
			return err
		}
		if n > 0 {
			d.look.set(params)
		}
		part = part[i+n:]
	}
	return nil
}

func (d *logDrawer) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var b []byte
	if now := d.look.classes(); now != d.classes {
		if d.classes != "" {
			b = append(b, "</span>"...)
		}
		if now != "" {
			b = append(b, `<span class="`+now+`">`...)
		}
		d.classes = now
	}
	_, err := d.w.Write(appendText(b, text))
	return err
}

// colourSequence takes "ESC [ 1;31 m" apart: its parameters and its length; 0: it is no such
// sequence.
func colourSequence(s []byte) (params string, n int) {
	if len(s) < 3 || s[1] != '[' {
		return "", 0
	}
	for i, c := range s[2:min(len(s), longestEscape)] {
		switch {
		case c == 'm':
			return string(s[2 : 2+i]), 3 + i
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return "", 0
		}
	}
	return "", 0
}

// look is how a terminal would show what comes next. A colour is the name of a hue, "" the
// usual one: a page has its own shades of them, which can be read on its own ground.
type look struct {
	fore, back                                 string
	bold, dim, italic, under, crossed, swapped bool
}

// hues are the first letters of the colours 0 to 7; black and white are those of the page.
var hues = [8]string{"", "r", "g", "y", "b", "m", "c", ""}

func (l *look) classes() string {
	fore, back := l.fore, l.back
	var names []string
	if l.swapped {
		fore, back = back, fore
		names = append(names, "inv")
	}
	for _, c := range []struct {
		on   bool
		name string
	}{
		{fore != "", "fg-" + fore},
		{back != "", "bg-" + back},
		{l.bold, "bold"},
		{l.dim, "dim"},
		{l.italic, "ital"},
		{l.under, "under"},
		{l.crossed, "cross"},
	} {
		if c.on {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, " ")
}

// set does what the parameters of a sequence say.
func (l *look) set(params string) {
	params = strings.ReplaceAll(params, "::", ":") // an empty name of a colour space
	list := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if strings.Trim(params, ";:") == "" {
		list = []string{"0"}
	}
	for len(list) > 0 {
		code, err := strconv.Atoi(list[0])
		list = list[1:]
		if err != nil {
			continue
		}
		if code == 38 || code == 48 {
			var hue string
			hue, list = mixed(list)
			l.paint(code == 48, hue)
			continue
		}
		l.one(code)
	}
}

func (l *look) paint(back bool, hue string) {
	if back {
		l.back = hue
		return
	}
	l.fore = hue
}

func (l *look) one(code int) {
	switch {
	case code == 0:
		*l = look{}
	case code == 22:
		l.bold, l.dim = false, false
	case code >= 30 && code <= 37, code >= 40 && code <= 47:
		l.paint(code >= 40, hues[code%10])
	case code == 90, code == 100:
		l.paint(code == 100, "x")
	case code > 90 && code <= 97, code > 100 && code <= 107:
		l.paint(code > 100, hues[code%10])
	case code == 39, code == 49:
		l.paint(code == 49, "")
	}
	for _, s := range []struct {
		on, off int
		is      *bool
	}{{1, 0, &l.bold}, {2, 0, &l.dim}, {3, 23, &l.italic}, {4, 24, &l.under}, {7, 27, &l.swapped}, {9, 29, &l.crossed}} {
		switch code {
		case s.on:
			*s.is = true
		case s.off:
			*s.is = false
		}
	}
}

// mixed is the hue of "5;N" or "2;R;G;B", and what comes behind.
func mixed(list []string) (hue string, rest []string) {
	var n [4]int
	for i := range min(4, len(list)) {
		n[i], _ = strconv.Atoi(list[i])
	}
	switch {
	case len(list) >= 2 && n[0] == 5:
		return indexed(n[1]), list[2:]
	case len(list) >= 4 && n[0] == 2:
		return hueOf(n[1], n[2], n[3]), list[4:]
	}
	return "", nil
}

// indexed is the hue of one of 256 colours.
func indexed(n int) string {
	switch {
	case n < 0 || n > 255:
		return ""
	case n == 8:
		return "x"
	case n < 16:
		return hues[n%8]
	case n >= 232:
		grey := 8 + 10*(n-232)
		return hueOf(grey, grey, grey)
	}
	level := [6]int{0, 95, 135, 175, 215, 255}
	n -= 16
	return hueOf(level[n/36], level[n/6%6], level[n%6])
}

// hueOf is the nearest hue of a colour; what is almost black or white has none.
func hueOf(r, g, b int) string {
	high, low := max(r, g, b), min(r, g, b)
	span := high - low
	switch {
	case span < 48 && (high < 64 || low > 192):
		return ""
	case span < 48:
		return "x"
	}
	middle := func(n int) bool { return 2*(n-low) > span }
	return map[[3]bool]string{
		{true, false, false}: "r", {true, true, false}: "y", {false, true, false}: "g",
		{false, true, true}: "c", {false, false, true}: "b", {true, false, true}: "m",
	}[[3]bool{middle(r), middle(g), middle(b)}]
}
