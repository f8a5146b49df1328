//go:build linux || darwin

package layer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/layer"
)

// TestGitIsFlushed: what a run has committed is in its layer alone, and does not go with a power failure after the layer was read.
func TestGitIsFlushed(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "mkdir -p .git/objects/aa .git/refs/heads; echo old >.git/objects/aa/old; echo x >.git/HEAD; echo gone >.git/gone; mkdir .git/objects/cc; echo loose >.git/objects/cc/loose")
		s.make("one", how).Close()
		flushed := map[string]bool{}
		dirs := disktest.InjectDirs(func(st disktest.Step) disktest.Action {
			if st.Op == "Sync" || st.Op == "FileSync" {
				flushed[st.Path] = true
			}
			return disktest.Action{}
		}, s.place.Dir, s.place.Root)
		l, err := (&layer.Place{Dir: dirs[0], Root: dirs[1], Boot: "boot"}).Open("one")
		require.NoError(t, err)
		defer l.Close()
		s.run(l, "mkdir -p .git/objects/bb .git/refs/heads/deep; echo new >.git/objects/bb/new; echo value >.git/refs/heads/deep/main; echo y >.git/HEAD; rm -r .git/gone .git/objects/cc; echo a >a")
		found, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
		require.NoError(t, err)
		require.NoError(t, found.Unflushed)
		top := map[layer.Mechanism]string{layer.Overlay: "/upper", layer.Clone: "/clone/tree"}[how]
		for _, name := range []string{"", "/layer.json", top, top + "/.git", top + "/.git/HEAD", top + "/.git/objects", top + "/.git/objects/bb",
			top + "/.git/objects/bb/new", top + "/.git/refs", top + "/.git/refs/heads", top + "/.git/refs/heads/deep", top + "/.git/refs/heads/deep/main"} {
			require.True(t, flushed[l.Path()+name], "%s: %s", how, name)
		}
		require.True(t, flushed[s.place.Dir.Path()], "the layer's own name")
		require.False(t, flushed[l.Path()+top+"/a"], "the draft's record has it")
	}
}
