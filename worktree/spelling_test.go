package worktree

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/tree"
)

// Two states of a tree that differ in the case of names, or in how an accent is written, with
// and without a change of what the names stand for.
var (
	lowerCase = files{
		"readme": file("read me"), "src": dir(0o755), "src/a": file("a"), "src/Sub": dir(0o750), "src/Sub/b": file("b"), "src/old": file("o"),
		"link": link("readme"), "kind": dir(0o755), "kind/x": file("x"), "keep": file("k"), "edit": file("1"),
		"caf\u00e9": file("c"), "stra\u00dfe": dir(0o755), "stra\u00dfe/\u017fign": file("s"), "\u00c5ng": file("1"),
	}
	upperCase = files{
		"README": file("read me"), "Src": dir(0o755), "Src/a": file("a"), "Src/sub": dir(0o750), "Src/sub/B": file("other"), "Src/new": file("n"),
		"LINK": link("readme"), "Kind": file("a file now"), "keep": file("k"), "edit": file("2"),
		"cafe\u0301": file("c"), "STRASSE": dir(0o755), "STRASSE/sign": file("s"), "\u212bng": file("2"),
	}
)

// TestRenamesOfCaseAlone moves there and back where names are folded and where not,
// by a plain move, by one with a fault and by one with a death at every step.
func TestRenamesOfCaseAlone(t *testing.T) {
	for _, folds := range []bool{true, false} {
		for _, way := range [][2]files{{lowerCase, upperCase}, {upperCase, lowerCase}} {
			for _, act := range []disktest.Action{{Err: context.DeadlineExceeded}, {Die: true}} {
				count := map[string]int{}
				for n := 0; ; n++ {
					fired := false
					r, m := newMemRig(t, way[0])
					m.FoldCase, m.NoExchange = folds, n%2 == 0
					r.wrap = failAt(n, &fired, writes, act)
					_, err := r.move(steps(way[0], way[1]))
					r.wrap = nil
					if !fired {
						require.NoError(t, err)
						require.Equal(t, way[1], r.state())
						break
					}
					r.vault.crash()
					_, out, err := r.recover()
					require.NoError(t, err, "step %d", n)
					for _, o := range out {
						require.Empty(t, o.Left, "step %d", n)
					}
					count[oldOrNew(r, way[0], way[1])]++
					r.clean()
				}
				require.Greater(t, count["old"], 40)
				if act.Die {
					require.Greater(t, count["new"], 20)
				}
			}
		}
	}
}

func TestLookAtBothSpellings(t *testing.T) {
	r, m := newMemRig(t, lowerCase)
	m.FoldCase = true
	live, _, done := r.tree()
	defer done()
	got, err := live.LookAll(context.Background(), []tree.Path{"README", "Src", "Src/a", "readme", "src", "src/a"})
	require.NoError(t, err)
	for i, there := range []bool{false, false, false, true, true, true} {
		require.NoError(t, got[i].Err)
		require.Equal(t, there, got[i].Entry != nil, i)
	}
}

// TestAnotherSpellingHoldsMore: a directory that cannot go leaves no place for the
// other spelling of its name.
func TestAnotherSpellingHoldsMore(t *testing.T) {
	was, will := files{"src": dir(0o755), "src/a": file("a")}, files{"Src": dir(0o755), "Src/a": file("a")}
	for folds, want := range map[bool]string{true: "under another spelling", false: ""} {
		r, m := newMemRig(t, was.with(files{"src/ignored": file("i")}))
		m.FoldCase = folds
		list := steps(was, will)
		for i := range list {
			list[i].MayStay = list[i].To == nil && list[i].From.IsDir()
		}
		_, err := r.move(list)
		if !folds {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Equal(t, was.with(files{"src/ignored": file("i")}), r.state())
		r.clean()
	}
}
