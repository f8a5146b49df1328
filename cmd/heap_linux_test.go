package cmd

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// heapGroups are memory cgroups, and the limit of the heap in each. files are those of the cgroup file system.
var heapGroups = []struct {
	name, cgroup, mounted string
	files                 map[string]string
	want                  int64
}{
	{"v2", "0::/a", "/ cgroup2", map[string]string{"a/memory.max": "104857600"}, 50 << 20},
	{"v2, the limit is that of the group around", "0::/a/b", "/ cgroup2", map[string]string{"a/memory.max": "104857600", "a/b/memory.max": "max"}, 50 << 20},
	{"v2, the group around has more", "0::/a/b", "/ cgroup2", map[string]string{"a/memory.max": "900000000", "a/b/memory.max": "104857600"}, 50 << 20},
	{"v2, the group around has less", "0::/a/b", "/ cgroup2", map[string]string{"a/memory.max": "104857600", "a/b/memory.max": "900000000"}, 50 << 20},
	{"v2, a container's own", "0::/docker/x", "/docker/x cgroup2", map[string]string{"memory.max": "104857600"}, 50 << 20},
	{"v2, more than is needed", "0::/a", "/ cgroup2", map[string]string{"a/memory.max": "8589934592"}, heapLimit},
	{"v2, no limit", "0::/a/b", "/ cgroup2", map[string]string{"a/memory.max": "max", "a/b/memory.max": "max"}, heapLimit},
	{"v2, no controller", "0::/a", "/ cgroup2", map[string]string{"a/cgroup.procs": ""}, heapLimit},
	{"v2, no number", "0::/a", "/ cgroup2", map[string]string{"a/memory.max": "much"}, heapLimit},
	{"v2, cannot be read", "0::/a", "/ cgroup2", map[string]string{"a/memory.max/is a directory": ""}, heapLimit},
	{"v2, not there", "0::/gone", "/ cgroup2", nil, heapLimit},
	{"v1", "5:cpu,memory:/a\n0::/", "/ cgroup cpu,memory", map[string]string{"a/memory.limit_in_bytes": "104857600"}, 50 << 20},
	{"v1, the limit is that of the group around", "5:memory:/a/b", "/ cgroup memory",
		map[string]string{"a/b/memory.limit_in_bytes": "9223372036854771712", "a/b/memory.stat": "cache 5\nhierarchical_memory_limit 104857600\n"}, 50 << 20},
	{"v1, no limit", "5:memory:/a", "/ cgroup memory", map[string]string{"a/memory.limit_in_bytes": "9223372036854771712"}, heapLimit},
	{"v1, cannot be read", "5:memory:/a", "/ cgroup memory", map[string]string{"a/memory.limit_in_bytes/is a directory": ""}, heapLimit},
	{"v1, not mounted", "5:memory:/a", "/ cgroup cpu", map[string]string{"a/memory.limit_in_bytes": "104857600"}, heapLimit},
	{"no group", "", "/ ext4", nil, heapLimit},
}

// TestHeapLimitOfTheGroup: the heap takes half of what the memory cgroup allows, whatever version it is of and whichever of the groups
// around sets the limit; what cannot be read sets none. Only a process of its own may see other groups in /proc.
func TestHeapLimitOfTheGroup(t *testing.T) {
	const inside = "DECREE_TEST_HEAP"
	if dir := os.Getenv(inside); dir != "" {
		heapLimits(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHeapLimitOfTheGroup$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+t.TempDir(), "GOMEMLIMIT=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip("no mount namespace: ", err)
	}
	require.NoError(t, err, string(out))
}

func heapLimits(t *testing.T, dir string) {
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for _, name := range []string{"cgroup", "mountinfo"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		require.NoError(t, unix.Mount(filepath.Join(dir, name), "/proc/self/"+name, "", unix.MS_BIND, ""))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, g := range heapGroups {
		at := filepath.Join(dir, strings.ReplaceAll(g.name, " ", "-"))
		require.NoError(t, os.Mkdir(at, 0o755))
		for name, text := range g.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
		}
		root, kind, _ := strings.Cut(g.mounted, " ")
		kind, options, _ := strings.Cut(kind, " ")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mountinfo"), []byte("31 24 0:28 "+root+" "+at+" rw - "+kind+" none rw,"+options+"\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup"), []byte(g.cgroup+"\n"), 0o644))
		debug.SetMemoryLimit(math.MaxInt64)
		limitHeap()
		assert.Equal(t, g.want, debug.SetMemoryLimit(-1), g.name)
	}
	debug.SetMemoryLimit(150 << 20)
	limitHeap()
	assert.EqualValues(t, 150<<20, debug.SetMemoryLimit(-1), "what GOMEMLIMIT says stays")
}
