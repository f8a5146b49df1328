package disk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Folded is what all spellings of a name have in common that some file system takes for
// one name: those that differ in case ("straße", "STRASSE"), in how an accent is written,
// or in characters that are not seen. Names that no file system takes for one may have it
// in common too.
func Folded(name string) string {
	plain := true
	for i := range len(name) {
		plain = plain && name[i] < utf8.RuneSelf
	}
	if plain {
		return strings.ToLower(name)
	}
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
	return norm.NFD.String(cases.Fold().String(norm.NFD.String(seen)))
}
