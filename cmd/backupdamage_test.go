//go:build unix

package cmd

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBackupsUnderDamage damages what a backup's target holds, or the live data before the next
// backup, and then restores to another machine what is there. What is restored is what was backed up,
// by content, or it is refused with a reason, and nothing is there; and where a drill of the whole
// finds nothing the newest generation can be restored. DECREE_ROUNDS and DECREE_SEED set how many rounds and which.
func TestBackupsUnderDamage(t *testing.T) {
	rounds := int64(40)
	switch {
	case os.Getenv("DECREE_LONG") != "":
		rounds = 200
	case testing.Short():
		rounds = 12
	}
	rounds = numberOf(t, "DECREE_ROUNDS", rounds)
	seed := numberOf(t, "DECREE_SEED", 1)
	d := newDamaged(t)
	for n := range rounds {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			d.t, d.rng, d.log = t, rand.New(rand.NewPCG(uint64(seed+n), 8)), ""
			d.round()
			t.Log(d.log)
		})
	}
	t.Logf("what was found: %v", d.found)
}

// damaged is a project with three generations, which each round begins with.
type damaged struct {
	*proving
	first  map[string]state // what want is when a round begins
	want   map[string]state // by generation
	latest string
	found  map[string]int
}

func newDamaged(t *testing.T) *damaged {
	d := &damaged{proving: newProving(t, rand.New(rand.NewPCG(1, 1))), want: map[string]state{}, found: map[string]int{}}
	d.grow(25)
	for i := range 3 {
		d.must("run", "--", "sh", d.script(0))
		require.NoError(t, os.MkdirAll(filepath.Join(d.root, ".decree"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(d.root, ".decree/config.yml"), fmt.Appendf(nil, "# %d\nbackup: {to: %s}\n", i, d.at("target")), 0o644))
		d.must("send", "-m", fmt.Sprintf("m%d", i), "a task")
		d.backup()
		d.copy("target", fmt.Sprintf("target.%d", i))
	}
	d.copy("data", "data.0")
	d.first = d.want
	return d
}

func (d *damaged) at(name string) string { return filepath.Join(d.base, name) }

func (d *damaged) copy(from, to string) {
	d.t.Helper()
	require.NoError(d.t, os.RemoveAll(d.at(to)))
	out, err := exec.Command("cp", "-a", d.at(from), d.at(to)).CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

var madeGeneration = regexp.MustCompile(`backup (\d{4}-\d\d-\d\dT\d{6}Z) to `)

// backup makes one, whatever comes of it; its generation, if there is one, is what the tree is now.
func (d *damaged) backup() (code int, out string) {
	d.t.Helper()
	code, out = d.decree("backup")
	if m := madeGeneration.FindStringSubmatch(out); m != nil {
		d.latest = m[1]
		d.want[d.latest] = d.look()
	}
	d.log += "\n" + fmt.Sprintf("backup: exit %d: %s", code, out)
	return code, out
}

func (d *damaged) round() {
	d.copy("target.2", "target")
	d.copy("data.0", "data")
	d.want = maps.Clone(d.first) // a generation of the round before may have had the name of one of these
	live := d.rng.IntN(4) == 0
	lost := false
	if live {
		d.damage("data", nil)
		code, out := d.backup()
		lost = code != 0
		if lost {
			d.named(code, out)
		}
	} else {
		for range 1 + d.rng.IntN(3) {
			d.damage("target", []string{"target.0", "target.1"})
		}
	}
	code, out := d.decree("backup", "drill", "--whole")
	d.log += "\n" + fmt.Sprintf("drill: exit %d: %s", code, out)
	if code != 0 {
		d.named(code, out)
		d.found["by a drill"]++
	}
	whole := d.restores("current", !lost)
	require.True(d.t, code != 0 || whole, "a drill found nothing, and the newest cannot be restored\n%s", d.log)
	d.restores("any", false)
	d.mend(lost)
}

// mend makes another backup: where it and a drill succeed, it can be restored.
func (d *damaged) mend(lost bool) {
	if code, out := d.backup(); code != 0 {
		d.named(code, out)
		return
	}
	code, out := d.decree("backup", "drill", "--whole")
	d.log += "\n" + fmt.Sprintf("second drill: exit %d: %s", code, out)
	require.Zero(d.t, code, "a backup succeeded with its proof, and the next proof fails\n%s", d.log)
	require.True(d.t, d.restores("current", !lost), "what was mended cannot be restored\n%s", d.log)
}

// named sees that a failure is one that decree itself tells.
func (d *damaged) named(code int, out string) {
	d.t.Helper()
	require.Contains(d.t, []int{1, 3, 4, 5}, code, "%s", d.log)
	require.Contains(d.t, out, "decree backup: ", "%s", d.log)
	require.NotContains(d.t, out, "goroutine ", "%s", d.log)
}

var restoredLine = regexp.MustCompile(`(?m)^decree: restored (\d{4}-\d\d-\d\dT\d{6}Z)`)

// restoredGeneration is the one that a restore says it has restored; its notes may name others.
func restoredGeneration(out string) string {
	if found := restoredLine.FindStringSubmatch(out); found != nil {
		return found[1]
	}
	return ""
}

// restores restores a generation to another machine, and says whether that could be done. ref is
// "current", or else an older one is chosen. sound: all contents of its records must be there, too.
func (d *damaged) restores(ref string, sound bool) bool {
	d.t.Helper()
	if ref != "current" {
		names := slices.Sorted(maps.Keys(d.want))
		ref = names[d.rng.IntN(len(names))]
	}
	other := *d.proving
	other.root = d.at("other")
	require.NoError(d.t, os.RemoveAll(other.root))
	require.NoError(d.t, os.RemoveAll(d.at("elsewhere")))
	require.NoError(d.t, os.Mkdir(other.root, 0o755))
	other.env = append(append([]string{}, d.env...), "XDG_DATA_HOME="+d.at("elsewhere"))
	code, out := other.decree("backup", "restore", ref, "--from", d.at("target"), "--into", ".", "--yes")
	d.log += "\n" + fmt.Sprintf("restore %s: exit %d: %s", ref, code, out)
	if code == 5 && strings.Contains(out, "the backup lacks ") {
		d.found["the store had lost it: the rest was restored"]++
		d.partly(restoredGeneration(out), other.look(), out)
		return true
	}
	if code != 0 {
		d.named(code, out)
		d.found["by a restore"]++
		list, err := os.ReadDir(other.root)
		require.NoError(d.t, err)
		for _, e := range list {
			require.Equal(d.t, ".decree", e.Name(), "%s", d.log)
		}
		return false
	}
	name := restoredGeneration(out)
	want, known := d.want[name]
	require.True(d.t, known, "which generation was restored?\n%s", d.log)
	d.same(want, other.look(), "the tree of "+name+"\n"+d.log)
	if sound {
		code, out = other.decree("verify", "--all")
		require.Zero(d.t, code, "%s\n%s", out, d.log)
	}
	d.found["nothing: it was restored"]++
	return true
}

var lostPath = regexp.MustCompile(`(?m)^  (\S+)$`)

// partly compares a tree that was restored but for what out names.
func (d *damaged) partly(name string, have state, out string) {
	d.t.Helper()
	if strings.Contains(out, "\n  and ") {
		return // it does not name all
	}
	want := maps.Clone(d.want[name])
	for _, m := range lostPath.FindAllStringSubmatch(out, -1) {
		maps.DeleteFunc(want, func(path, _ string) bool {
			_, there := have[path]
			return !there && (path == m[1] || strings.HasPrefix(path, m[1]+"/"))
		})
	}
	d.same(want, have, "the tree of "+name+" but for what is named\n"+d.log)
}

// damage changes one thing below dir: one file, or two, or what an older state of it had.
func (d *damaged) damage(dir string, older []string) {
	var files []string
	require.NoError(d.t, filepath.WalkDir(d.at(dir), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && (older != nil || strings.Contains(path, "/packs/") || strings.HasSuffix(path, "/index") || strings.HasSuffix(path, ".jsonl")) {
			files = append(files, path)
		}
		return err
	}))
	file := files[d.rng.IntN(len(files))]
	data, err := os.ReadFile(file)
	require.NoError(d.t, err)
	what := d.rng.IntN(7)
	if older == nil && what == 6 || len(data) == 0 {
		what = 2
	}
	write := func(path string, data []byte) {
		require.NoError(d.t, os.Remove(path)) // a hard link of it, in current/, is another file
		require.NoError(d.t, os.WriteFile(path, data, 0o600))
	}
	switch what {
	case 0, 1:
		at := d.rng.IntN(len(data))
		data[at] ^= 1 << d.rng.IntN(8)
		write(file, data)
		d.log += "\n" + fmt.Sprintf("damage: a bit of %s at %d", file, at)
	case 2:
		require.NoError(d.t, os.Remove(file))
		d.log += "\n" + "damage: deleted " + file
	case 3:
		write(file, data[:d.rng.IntN(len(data))])
		d.log += "\n" + "damage: cut " + file
	case 4:
		other := files[d.rng.IntN(len(files))]
		more, err := os.ReadFile(other)
		require.NoError(d.t, err)
		write(file, more)
		write(other, data)
		d.log += "\n" + fmt.Sprintf("damage: exchanged %s and %s", file, other)
	case 5:
		at := d.rng.IntN(len(data))
		clear(data[at:min(len(data), at+4096)])
		write(file, data)
		d.log += "\n" + fmt.Sprintf("damage: zeros in %s at %d", file, at)
	case 6:
		from, part := older[d.rng.IntN(len(older))], []string{"", "/tree/current", "/tree/manifest.json"}[d.rng.IntN(3)]
		d.copy(from+part, dir+part)
		d.log += "\n" + fmt.Sprintf("damage: %s of %s", part, from)
	}
}
