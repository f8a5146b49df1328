package page

import (
	"html/template"
	"unicode/utf8"

	"decree/tree"
	"decree/view"
)

// Text is any text as HTML. Tabs and newlines stay; other controls become visible.
func Text[T ~string](s T) template.HTML {
	return template.HTML(appendText(nil, string(s)))
}

// Path is a path as HTML, as people see it everywhere: quoted where that is needed.
func Path(p tree.Path) template.HTML { return Text(view.ShownPath(p)) }

// appendText appends text as HTML.
func appendText[T string | []byte](dst []byte, text T) []byte {
	s := string(text)
	for i := 0; i < len(s); {
		n := plainLength(s[i:])
		dst = append(dst, s[i:i+n]...)
		if i += n; i == len(s) {
			break
		}
		if entity := entities[s[i]]; entity != "" {
			dst = append(dst, entity...)
			i++
			continue
		}
		n = hiddenLength(s[i:])
		dst = append(dst, `<span class="esc">`...)
		dst = append(dst, view.OneLine(s[i:i+n])...)
		dst = append(dst, "</span>"...)
		i += n
	}
	return dst
}

// appendAttribute appends text as the value of an attribute, between double quotes. What people get to
// see of it is made safe by the caller.
func appendAttribute(dst []byte, text string) []byte {
	for i := range len(text) {
		if entity := entities[text[i]]; entity != "" {
			dst = append(dst, entity...)
		} else {
			dst = append(dst, text[i])
		}
	}
	return dst
}

var entities = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;"}

// hidden says whether what s begins with has to be shown as an escape, and its length.
func hidden(s string) (is bool, size int) {
	r, size := utf8.DecodeRuneInString(s)
	return r == utf8.RuneError && size <= 1 || view.Unsafe(r) && r != '\t' && r != '\n', size
}

// plainLength is how much of s HTML takes as it is.
func plainLength(s string) (n int) {
	for n < len(s) {
		if entities[s[n]] != "" {
			return n
		}
		is, size := hidden(s[n:])
		if is {
			return n
		}
		n += size
	}
	return n
}

// hiddenLength is how much of s has to be shown as escapes.
func hiddenLength(s string) (n int) {
	for n < len(s) {
		is, size := hidden(s[n:])
		if !is {
			return n
		}
		n += size
	}
	return n
}
