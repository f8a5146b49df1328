//go:build unix

package cmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"decree/backup/target/targettest"
)

// TestBackupsUnderKills ends decree with SIGKILL at any moment of backups, drills, prunes and restores, or has
// requests to the target fail, and then looks whether every generation that was acknowledged, or is listed, can be
// restored, and whether the next command works. DECREE_KILLS and DECREE_SEED set how many such ends each
// kind of target gets, a bucket three times as many, and which; with DECREE_LONG they are 75. DECREE_BIN names the binary.
func TestBackupsUnderKills(t *testing.T) {
	ends := int64(10)
	switch {
	case os.Getenv("DECREE_LONG") != "":
		ends = 75
	case testing.Short():
		ends = 2
	}
	ends, seed := numberOf(t, "DECREE_KILLS", ends), numberOf(t, "DECREE_SEED", 1)
	for _, kind := range []struct {
		name      string
		encrypted bool
		open      func(*battered) (to string)
	}{
		{"directory", false, (*battered).directory},
		{"encrypted directory", true, (*battered).directory},
		{"bucket", false, (*battered).bucket},
		{"encrypted bucket", true, (*battered).bucket},
		{"ssh", false, (*battered).ssh},
		{"encrypted ssh", true, (*battered).ssh},
	} {
		if testing.Short() && !kind.encrypted {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel() // most of the time of a bucket goes by in pauses before another try
			b := newBattered(t, rand.New(rand.NewPCG(uint64(seed), 9)))
			b.begin(kind.open(b), kind.encrypted)
			ends := int(ends)
			if b.remote {
				ends *= 3 // most of them are faults
			}
			for b.kills+b.faults < ends {
				b.turn()
			}
			b.settle()
			t.Logf("%d kills, %d commands with faults; they ended by themselves with %v", b.kills, b.faults, b.exits)
		})
	}
}

// battered is a project whose backups are disturbed.
type battered struct {
	*proving
	clk    time.Time
	want   map[string]state // what the tree was, by generation; nil: one of several states
	newest string           // the newest generation that was acknowledged
	rate   atomic.Int64     // of a hundred requests so many fail
	remote bool             // requests can fail
	kills  int
	faults int
	exits  map[int]int
	took   map[string]time.Duration
	name   string // of the project in a target that several have; "" where it is the only one
}

func newBattered(t *testing.T, rng *rand.Rand) *battered {
	return &battered{proving: newProving(t, rng), clk: time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC), want: map[string]state{}, exits: map[int]int{}, took: map[string]time.Duration{}}
}

func (b *battered) directory() string { return filepath.Join(b.base, "target") }

// bucket is one of a server that is reached through what makes requests fail.
func (b *battered) bucket() string {
	to, _ := b.gateway()
	return to
}

// gateway is also the directory where the server has its buckets.
func (b *battered) gateway() (to, dir string) {
	at, dir := targettest.Gateway(b.t)
	rng := rand.New(rand.NewPCG(b.rng.Uint64(), 1))
	var mu sync.Mutex
	f := &targettest.Faulty{Next: func(*http.Request) targettest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if rng.Int64N(100) >= b.rate.Load() {
			return targettest.None
		}
		return targettest.Faults[rng.IntN(len(targettest.Faults))]
	}}
	b.remote = true
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+targettest.AccessKey, "AWS_SECRET_ACCESS_KEY="+targettest.SecretKey)
	return "s3://bucket/under?endpoint=http://" + f.Start(b.t, at), dir
}

func (b *battered) ssh() string {
	h := targettest.SSHD(b.t)
	require.NoError(b.t, os.Rename(filepath.Join(h.Home, ".ssh"), filepath.Join(b.base, "home/.ssh")))
	return "sftp://" + targettest.User() + "@" + h.Addr + filepath.Join(b.base, "target")
}

// begin makes a tree and a first generation.
func (b *battered) begin(to string, encrypted bool) {
	config := fmt.Sprintf("backup:\n  to: %q\n  retention: {last: 3, daily: 0, weekly: 0, monthly: 0}\n", to)
	if encrypted {
		id, err := age.GenerateX25519Identity()
		require.NoError(b.t, err)
		file := filepath.Join(b.base, "identity")
		require.NoError(b.t, os.WriteFile(file, []byte(id.String()+"\n"), 0o600))
		b.env = append(b.env, "DECREE_BACKUP_IDENTITY="+file)
		config += fmt.Sprintf("  encrypt: %s\n  identity: %s\n", id.Recipient(), file)
	}
	b.grow(25)
	require.NoError(b.t, os.MkdirAll(filepath.Join(b.root, ".decree"), 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.root, ".decree/config.yml"), []byte(config), 0o644))
	b.must("run", "--", "sh", b.script(0))
	b.must("send", "-m", "m", "a task")
	for range 2 {
		b.backup()
	}
}

// at is the environment with the clock, which goes on by hours, so that packs are removed too.
func (b *battered) at() []string {
	b.clk = b.clk.Add(time.Duration(1+b.rng.IntN(16)) * time.Hour)
	return append(append([]string{}, b.env...), "DECREE_NOW="+b.clk.Format(time.RFC3339))
}

// call runs decree, and kills it after a while, unless after is 0.
func (b *battered) call(root string, after time.Duration, args ...string) (code int, out string) {
	b.t.Helper()
	c := exec.Command(b.bin, args...)
	c.Dir, c.Env = root, b.at()
	var all strings.Builder
	c.Stdout, c.Stderr = &all, &all
	began := time.Now()
	require.NoError(b.t, c.Start())
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = c.Process.Signal(syscall.SIGKILL) })
		defer timer.Stop()
	}
	_ = c.Wait()
	code, out = c.ProcessState.ExitCode(), all.String()
	if after == 0 && b.rate.Load() == 0 && root == b.root {
		b.took[args[len(args)-1]] = time.Since(began)
	}
	b.log += fmt.Sprintf("\n%v, killed after %v, %d of 100 requests failing: exit %d: %s", args, after, b.rate.Load(), code, out)
	if len(b.log) > 20_000 {
		b.log = b.log[len(b.log)-20_000:]
	}
	require.NotContains(b.t, out, "goroutine ", "%s", b.log)
	return code, out
}

// acknowledged notes what a command says to have made.
func (b *battered) acknowledged(out string) {
	if m := madeGeneration.FindStringSubmatch(out); m != nil {
		b.newest = m[1]
		b.want[b.newest] = b.look()
	}
}

// backup makes one that nothing disturbs.
func (b *battered) backup() {
	b.t.Helper()
	code, out := b.call(b.root, 0, "backup")
	require.Zero(b.t, code, "%s", b.log)
	b.acknowledged(out)
}

// turn does one thing that is disturbed, and what must hold after it.
func (b *battered) turn() {
	b.t.Helper()
	if b.rng.IntN(2) == 0 {
		b.must("run", "--", "sh", b.script(0))
	}
	args := [][]string{{"backup"}, {"backup"}, {"backup"}, {"backup", "drill", "--whole"}, {"backup", "prune"}, {"backup", "restore", "--yes"}, {"backup", "restore", "--yes", "--tree"}}[b.rng.IntN(7)]
	after := time.Duration(0)
	if how := b.rng.IntN(3); how > 0 || !b.remote {
		longest := max(b.took[args[len(args)-1]], 100*time.Millisecond)
		after = time.Duration(1 + b.rng.Int64N(int64(longest)*5/4))
		if how == 2 && b.remote {
			b.rate.Store(int64(2 + b.rng.IntN(15)))
		}
	} else {
		b.rate.Store(int64(2 + b.rng.IntN(25)))
	}
	was := b.look()
	code, out := b.call(b.root, after, args...)
	if b.rate.Swap(0) > 0 {
		b.faults++
	}
	if code < 0 {
		b.kills++
	} else {
		b.exits[code]++
		require.Contains(b.t, []int{0, 1, 3, 4, 5}, code, "%s", b.log)
	}
	b.acknowledged(out)
	b.holds(was)
}

type listedGeneration struct {
	Generation string
	Provable   bool
}

// holds looks at what is there after a command that was disturbed. was is what the tree was before it.
func (b *battered) holds(was state) {
	b.t.Helper()
	code, _ := b.call(b.root, 0, "recover")
	require.Zero(b.t, code, "%s", b.log)
	for _, g := range b.list() {
		if _, known := b.want[g.Generation]; !known {
			b.want[g.Generation] = nil // acknowledged by nobody, of before or after a restore's tree
			if !strings.HasPrefix(g.Generation, "pre-restore-") {
				b.want[g.Generation] = was
				b.newest = g.Generation
			}
		}
	}
	b.restores("current")
	if list := b.list(); len(list) > 1 {
		b.restores(list[b.rng.IntN(len(list))].Generation)
	}
	if b.rng.IntN(3) == 0 {
		b.backup()
	}
}

// list is what 'backup list' says, which must have the newest.
func (b *battered) list() (list []listedGeneration) {
	b.t.Helper()
	code, out := b.call(b.root, 0, "-q", "backup", "list", "--json")
	require.Zero(b.t, code, "%s", b.log)
	require.NoError(b.t, json.Unmarshal([]byte(out[strings.Index(out, "["):]), &list), "%s", out)
	has := false
	for _, g := range list {
		require.True(b.t, g.Provable, "%s\n%s", g.Generation, b.log)
		has = has || g.Generation == b.newest
	}
	require.True(b.t, has, "%s was acknowledged and is not listed\n%s", b.newest, b.log)
	return list
}

// restores restores a generation elsewhere and compares its tree.
func (b *battered) restores(name string) {
	b.t.Helper()
	to := filepath.Join(b.base, "elsewhere")
	config, err := os.ReadFile(filepath.Join(b.root, ".decree/config.yml"))
	require.NoError(b.t, err, "%s", b.log)
	_, target, _ := strings.Cut(string(config), "to: \"")
	target, _, _ = strings.Cut(target, "\"")
	require.NoError(b.t, os.RemoveAll(to))
	was := b.env
	b.env = append(append([]string{}, b.env...), "XDG_DATA_HOME="+filepath.Join(b.base, "elsewhere's"))
	args := []string{"backup", "restore", name, "--from", target, "--into", to, "--yes"}
	if b.name != "" {
		args = append(args, "--name", b.name)
	}
	code, out := b.call(b.base, 0, args...)
	require.Zero(b.t, code, "%s", b.log)
	code, _ = b.call(to, 0, "verify", "--all")
	require.Zero(b.t, code, "%s", b.log)
	b.env = was
	if want := b.want[restoredGeneration(out)]; want != nil && !strings.Contains(name, "pre-restore") {
		b.same(want, lookAt(b.t, to), "the tree of "+name+"\n"+b.log)
	}
	require.NoError(b.t, os.RemoveAll(to))
	require.NoError(b.t, os.RemoveAll(filepath.Join(b.base, "elsewhere's")))
}

// settle sees in the end that backups go on, are proven whole, and that all that is listed can be restored.
func (b *battered) settle() {
	b.t.Helper()
	b.backup()
	code, _ := b.call(b.root, 0, "backup", "drill", "--whole")
	require.Zero(b.t, code, "%s", b.log)
	for _, g := range b.list() {
		b.restores(g.Generation)
	}
}
