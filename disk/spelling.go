package disk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// IsSpelling says whether the file system takes name for what is called own in d. Where it folds names and gives each spelling an inode
// number of its own, as a FUSE does, a listing tells: of one entry it has one name.
func IsSpelling(d Dir, name, own string) (bool, error) {
	is, err := d.Stat(own) // mostly there is none
	if err != nil {
		return false, UnlessMissing(err)
	}
	info, err := d.Stat(name)
	switch {
	case err != nil || info.Kind != is.Kind:
		return false, UnlessMissing(err)
	case info.SameFile(is):
		return true, nil
	case Folded(name) != Folded(own):
		return false, nil
	}
	list, err := d.List()
	named := 0
	for _, e := range list {
		if e.Name == name || e.Name == own {
			named++
		}
	}
	return named < 2, err
}

// Folded is what all spellings of a name have in common that some file system takes for
// one name: those that differ in case ("straße", "STRASSE"), in how an accent is written,
// in characters that are not seen, or in dots and blanks at the end (FAT, exFAT, SMB). Names that no file system takes for one may have it
// in common too.
func Folded(name string) string {
	plain := true
	for i := range len(name) {
		plain = plain && name[i] < utf8.RuneSelf
	}
	if plain {
		return withoutEnds(strings.ToLower(name))
	}
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
	return withoutEnds(norm.NFD.String(cases.Fold().String(norm.NFD.String(seen))))
}

// withoutEnds leaves out the dots and blanks at the end of each name of a path.
func withoutEnds(path string) string {
	if last := len(path) - 1; last < 0 || path[last] != '.' && path[last] != ' ' && !strings.Contains(path, "./") && !strings.Contains(path, " /") {
		return path
	}
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = strings.TrimRight(name, ". ")
	}
	return strings.Join(names, "/")
}
