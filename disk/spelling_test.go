package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spelled is a directory whose names are the same without their case, and each spelling of one has an inode number of its own.
type spelled struct{ Dir }

func (d spelled) Stat(name string) (Info, error) {
	list, err := d.List()
	for _, e := range list {
		if strings.EqualFold(e.Name, name) {
			info, err := d.Dir.Stat(e.Name)
			info.Ino = 1000*info.Ino + uint64(name[1])
			return info, err
		}
	}
	if err == nil {
		err = os.ErrNotExist
	}
	return Info{}, err
}

func TestIsSpelling(t *testing.T) {
	for _, is := range []string{".git", ".GIT"} {
		at := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(at, is), 0o755))
		require.NoError(t, os.Mkdir(filepath.Join(at, ".decree"), 0o755))
		d, err := OS.OpenRoot(at)
		require.NoError(t, err)
		for _, name := range []string{".GIT", ".git", ".decree"} {
			of, err := IsSpelling(spelled{d}, name, ".git")
			require.NoError(t, err)
			assert.Equal(t, name != ".decree", of, "%s beside %s", name, is)
		}
		for _, own := range []string{".git", ".GIT"} { // where case counts
			of, err := IsSpelling(d, own, ".git")
			require.NoError(t, err)
			assert.Equal(t, own == is && is == ".git", of, own)
		}
		require.NoError(t, d.Close())
	}
}

func TestFolded(t *testing.T) {
	for _, names := range [][]string{
		{"readme", "README", "ReadMe"}, {"caf\u00e9", "cafe\u0301", "CAFE\u0301"}, {"stra\u00dfe", "STRASSE", "stra\u1e9ee"},
		{"\u017fign", "sign"}, {"\u212bng", "\u00c5ng", "a\u030ang"}, {"a\u200db", "AB"}, {"\u1fb7", "\u03b1\u0345\u0342"}, {"src/\u00c9", "SRC/e\u0301"}, {"a/b", "a./B. ."}, {"\u00e9/b", "\u00c9 /b."},
	} {
		for _, name := range names {
			assert.Equal(t, Folded(names[0]), Folded(name), "%q", name)
		}
	}
	for _, names := range [][2]string{{"a", "b"}, {"cafe", "caf\u00e9"}, {"\u00e9/a", "\u00e9a"}, {"i", "\u0131"}, {".a", "a"}, {"a.b", "ab"}} {
		assert.NotEqual(t, Folded(names[0]), Folded(names[1]))
	}
	assert.NotPanics(t, func() { Folded("\xff\xfe\u00e9\xc3") })
}
