package backup

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// TestProofsDoNotGrowForEver: the newest stay, and a file that is larger than any that is written is begun anew.
func TestProofsDoNotGrowForEver(t *testing.T) {
	w := newWorld(t)
	proof := Proof{At: w.now(), Generation: "g", OK: true}
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		_, version, err := o.Target.Read(t.Context(), place.At(proofsFile), maxProofs)
		require.NoError(t, err)
		line := `{"at":"2026-11-21T06:00:00Z","generation":"before","ok":true,"problems":["` + strings.Repeat("x", 1000) + `"]}` + "\n"
		_, err = o.Target.Swap(t.Context(), place.At(proofsFile), []byte(strings.Repeat(line, 2*maxProofs/len(line))), version)
		require.NoError(t, err)
		for n := range 3 {
			proof.At = proof.At.Add(time.Second)
			require.NoError(t, place.addProof(t.Context(), proof))
			data, _, err := o.Target.Read(t.Context(), place.At(proofsFile), maxProofs)
			require.NoError(t, err)
			require.Equal(t, n+1+strings.Count(string(data), line), bytes.Count(data, []byte("\n")), "each line is whole")
			list, err := place.proofs(t.Context())
			require.NoError(t, err)
			require.Greater(t, len(list), maxProofs/len(line)-3)
			require.Equal(t, "g", list[len(list)-1].Generation, "%d", n)
			require.Equal(t, "before", list[0].Generation)
		}
		large := bytes.Repeat([]byte("y"), maxManifest+1)
		_, version, err = o.Target.Read(t.Context(), place.At(proofsFile), maxProofs)
		require.NoError(t, err)
		_, err = o.Target.Swap(t.Context(), place.At(proofsFile), large, version)
		require.NoError(t, err)
		list, err := place.proofs(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
		_, _, err = o.Target.Read(t.Context(), place.At(proofsFile), maxManifest)
		require.ErrorIs(t, err, target.ErrTooLarge)
		require.NoError(t, place.addProof(t.Context(), proof))
		list, err = place.proofs(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		return nil
	}))
}

func TestTheNewestLines(t *testing.T) {
	for most, want := range map[int]string{-3: "", 0: "", 1: "", 4: "", 5: "four\n", 6: "four\n", 8: "four\n", 9: "six\nfour\n", 15: "six\nfour\n", 16: "second\nsix\nfour\n", 99: "second\nsix\nfour\n"} {
		require.Equal(t, want, string(newestLines([]byte("second\nsix\nfour\n"), most)), most)
	}
}
