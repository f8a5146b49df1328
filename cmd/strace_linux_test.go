package cmd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// injected are system calls by which decree changes the disk, or looks at it,
// with what happens to them.
var injected = []struct {
	call   string
	faults []string
}{
	{"renameat2", []string{"error=EIO", "error=EACCES", "error=EINVAL", "signal=KILL"}},
	{"renameat", []string{"error=EIO", "error=ENOSPC", "signal=KILL"}},
	{"fsync", []string{"error=EIO", "error=ENOSPC", "signal=KILL"}},
	{"write", []string{"error=ENOSPC", "error=EIO", "signal=KILL"}},
	{"pwrite64", []string{"error=ENOSPC", "error=EIO", "signal=KILL"}},
	{"unlinkat", []string{"error=EIO", "error=EACCES", "signal=KILL"}},
	{"mkdirat", []string{"error=ENOSPC", "error=EACCES", "signal=KILL"}},
	{"openat", []string{"error=EIO", "error=EMFILE", "error=EACCES", "signal=KILL"}},
	{"linkat", []string{"error=EPERM", "signal=KILL"}},
	{"ftruncate", []string{"error=EIO", "signal=KILL"}},
	{"fchmodat", []string{"error=EPERM", "signal=KILL"}},
	{"getdents64", []string{"error=EIO"}},
	{"newfstatat", []string{"error=EIO", "signal=KILL"}},
	{"statx", []string{"error=EIO"}},
	{"flock", []string{"error=ENOLCK", "signal=KILL"}},
}

// TestStrace is TestSoak with system calls that fail, once or from then on, or
// in which decree dies, instead of kills from outside: what the seam of disk
// steps says must hold below it too.
func TestStrace(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if out, err := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %s", out)
	}
	faults := 30
	switch {
	case os.Getenv("DECREE_LONG") != "":
		faults = 1000
	case testing.Short():
		faults = 5
	}
	faults = int(numberOf(t, "DECREE_FAULTS", int64(faults)))
	seed := numberOf(t, "DECREE_SEED", 1)
	count, fired := &landings{by: map[string]map[string]int{}}, 0
	for seed := seed; count.kills < faults; seed++ {
		s := newSoak(t, rand.New(rand.NewPCG(uint64(seed), 1)), 300, count)
		trace := filepath.Join(s.base, "trace")
		s.fault = func(string) []string {
			i := injected[s.rng.IntN(len(injected))]
			when := fmt.Sprint(1 + s.rng.IntN(1<<s.rng.IntN(7)))
			what := i.faults[s.rng.IntN(len(i.faults))]
			if what != "signal=KILL" && s.rng.IntN(3) == 0 {
				when += "+"
			}
			return []string{strace, "-f", "-qq", "-o", trace, "-e", "trace=" + i.call, "-e", fmt.Sprintf("inject=%s:%s:when=%s", i.call, what, when)}
		}
		for end := count.kills + 50; count.kills < min(end, faults); {
			s.turn()
			if data, err := os.ReadFile(trace); err == nil && (bytes.Contains(data, []byte("(INJECTED)")) || bytes.Contains(data, []byte("killed by SIGKILL"))) {
				fired++
			}
		}
		require.NoError(t, os.RemoveAll(s.base))
	}
	t.Logf("from seed %d: %d faulty executions, the fault came in at least %d; the tree was whole after each\n%s", seed, count.kills, fired, count)
}
