package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

var errFault = errors.New("fault")

func content(t *testing.T, d disk.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b)
}

func replaceWith(d disk.Dir, how disk.Replacement, text string) error {
	return disk.Replace(d, "file", how, func(f disk.File) error {
		for part := range bytes.SplitSeq([]byte(text), []byte(" ")) {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestReplaceUnderFaults lets each step fail, and the process die there: the file is the
// old one or the new one, an error surfaces, nothing is left beside it, the next try works,
// and what was reported done outlives a power failure.
func TestReplaceUnderFaults(t *testing.T) {
	for _, dies := range []bool{false, true} {
		steps := 0
		for n, fired := 0, true; fired; n++ {
			fired = false
			name := fmt.Sprintf("step %d, dies %v", n, dies)
			m := disktest.NewMem()
			plain, err := m.OpenRoot("/")
			require.NoError(t, err)
			how := disk.Replacement{Perm: 0o600, Flush: true}
			require.NoError(t, replaceWith(plain, how, "the old content"))

			d := disktest.InjectDir(plain, func(st disktest.Step) disktest.Action {
				if st.N != n {
					return disktest.Action{}
				}
				fired = true
				if dies {
					return disktest.Action{Die: true, Torn: st.Size / 2}
				}
				return disktest.Action{Err: errFault}
			})
			err = replaceWith(d, how, "the new content")
			require.Equal(t, fired, err != nil, name)
			require.Contains(t, []string{"theoldcontent", "thenewcontent"}, content(t, plain, "file"), name)
			if !dies {
				list, lerr := plain.List()
				require.NoError(t, lerr)
				require.Len(t, list, 1, "%s: %v", name, err)
			}
			after := m.Crash(rand.New(rand.NewPCG(uint64(n), 1)))
			lost, oerr := after.OpenRoot("/")
			require.NoError(t, oerr)
			if err == nil {
				require.Equal(t, "thenewcontent", content(t, lost, "file"), name)
			} else {
				require.Contains(t, []string{"theoldcontent", "thenewcontent"}, content(t, lost, "file"), name)
			}
			require.NoError(t, replaceWith(lost, how, "the next"), name)
			require.Equal(t, "thenext", content(t, lost, "file"))
			list, err := lost.List()
			require.NoError(t, err)
			require.Len(t, list, 1, name)
			steps = n
		}
		require.Greater(t, steps, 7, "each step was tried")
	}
}

// TestReplaceAsAsked: a temporary name and a way into place of the caller's own, and a
// mode that no umask takes anything from.
func TestReplaceAsAsked(t *testing.T) {
	d, err := disktest.NewMem().OpenRoot("/")
	require.NoError(t, err)
	require.NoError(t, replaceWith(d, disk.Replacement{Perm: 0o666}, "a"))
	st, err := d.Stat("file")
	require.NoError(t, err)
	require.Equal(t, uint32(0o666), st.Mode)

	seen := ""
	err = replaceWith(d, disk.Replacement{Perm: 0o600, Temp: "mine", Place: func(temp string, to disk.Dir, name string) error {
		seen = temp
		return d.RenameNew(temp, to, name)
	}}, "b")
	require.Error(t, err, "the name is taken")
	require.Equal(t, "mine", seen)
	require.Equal(t, "a", content(t, d, "file"))
	list, err := d.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
}
