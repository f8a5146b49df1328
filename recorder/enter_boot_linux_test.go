package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// enter has a shell work in the only draft, on a disk that may fail.
func (b *isolatedBench) enter(script string, on disk.Disk) error {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(b.t, err)
	defer null.Close()
	s := &sweep{bench: b.bench, t: b.t}
	return s.try(on, func(r *Recorder) error {
		_, err := r.Enter(context.Background(), EnterOptions{Args: []string{"sh", "-c", script}, Dir: b.root, Env: os.Environ(), Stdin: null, Stdout: null, Stderr: null})
		return err
	})
}

// onEach runs a test on each mechanism that this machine has; top is where a layer has what was written.
func onEach(t *testing.T, test func(t *testing.T, b *isolatedBench, top func() string)) {
	for name, where := range map[string]string{"clone": "clone/tree", "overlay": "upper"} {
		t.Run(name, func(t *testing.T) {
			if where == "upper" && !overlays() {
				t.Skip("no overlays here")
			}
			b := &isolatedBench{newBench(t), IsolatedOptions{Copy: where == "clone/tree"}}
			test(t, b, func() string { return filepath.Join(b.layerDir(), where) })
		})
	}
}

// TestEnterAfterAnotherBoot: what a power failure has left of a layer is not taken for the draft's work,
// which is in the store; not by an enter, and not by the recovery of one that died in the other boot.
func TestEnterAfterAnotherBoot(t *testing.T) {
	for name, tear := range map[string]func(t *testing.T, top string){
		"w is empty":      func(t *testing.T, top string) { require.NoError(t, os.Truncate(top+"/w", 0)) },
		"tool has a mode": func(t *testing.T, top string) { require.NoError(t, os.Chmod(top+"/tool", 0o600)) },
		"d is not there":  func(t *testing.T, top string) { require.NoError(t, os.Remove(top+"/d")) },
		"gone is there": func(t *testing.T, top string) {
			if filepath.Base(top) == "upper" {
				require.NoError(t, os.Remove(top+"/gone")) // what stood for the deletion
			} else {
				require.NoError(t, os.WriteFile(top+"/gone", nil, 0o600))
			}
		},
		"anew/old is there": func(t *testing.T, top string) {
			if filepath.Base(top) == "upper" {
				require.NoError(t, syscall.Removexattr(top+"/anew", "user.overlay.opaque"))
			} else {
				require.NoError(t, os.WriteFile(top+"/anew/old", nil, 0o600))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, b *isolatedBench, top func() string) {
				b.sh(b.root, "echo a >a; echo g >gone; echo t >tool; mkdir anew; echo o >anew/old; echo k >kind")
				b.isolated("echo work >w; ln -s w l; echo b >>a; rm gone; chmod 755 tool; mkdir d; rm -r anew; mkdir anew; echo n >anew/new; rm kind; mkdir kind; echo k >kind/k")
				b.otherBoot()
				require.NoError(t, b.enter("true", disk.OS), "it is whole")
				tear(t, top())
				said := b.enter("true", disk.OS)
				require.ErrorContains(t, said, "the machine went down")
				require.ErrorContains(t, said, "or lacks: "+strings.Fields(name)[0])
				require.NoError(t, os.WriteFile(filepath.Join(b.layerDir(), "entered"), nil, 0o600))
				assert.Contains(t, b.recovers(), "the machine went down")
				require.NoError(t, b.publish())
				assert.Equal(t, "work\n", b.read("w"))
			})
		})
	}
}

// TestEnterDiesInThisBoot: what a command did in a layer of an earlier boot, and its decree could not record,
// is the draft's as soon as it can be: no machine went down since.
func TestEnterDiesInThisBoot(t *testing.T) {
	onEach(t, func(t *testing.T, b *isolatedBench, _ func() string) {
		b.sh(b.root, "echo a >a")
		b.isolated("echo work >w")
		b.otherBoot()
		full := disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
			if s.Write && strings.HasSuffix(s.Path, "/records.jsonl") {
				return disktest.Action{Err: syscall.ENOSPC}
			}
			return disktest.Action{}
		})
		require.ErrorContains(t, b.enter("echo more >>w", full), "what it changed is not recorded")
		assert.Contains(t, b.recovers(), "a command worked in draft")
		require.NoError(t, b.enter("echo again >>w", disk.OS))
		require.NoError(t, b.publish())
		assert.Equal(t, "work\nmore\nagain\n", b.read("w"))
	})
}
