package queue

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTakenDirSealed: what is in the place of the directory through which messages are moved
// cannot be changed. That is told, and all messages are done; what lies in it waits until it can be taken out.
func TestTakenDirSealed(t *testing.T) {
	for _, name := range []string{"a file", "empty", "with a message"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"; ! grep -q bad "$message_file"` + "\n",
				".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "bad\n", ".decree/inbox/c.md": "three\n",
			})
			taken := filepath.Join(b.root, ".decree/inbox", takenDirs[0])
			switch name {
			case "a file":
				require.NoError(t, os.WriteFile(taken, nil, 0o644))
			case "empty":
				require.NoError(t, os.Mkdir(taken, 0o755))
			default:
				require.NoError(t, os.Mkdir(taken, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(taken, "old.md"), []byte("old\n"), 0o644))
			}
			if out, err := exec.Command("chattr", "+i", taken).CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			free := func() { _ = exec.Command("chattr", "-i", taken).Run() }
			t.Cleanup(free)
			b.process()
			require.Equal(t, "one three", strings.Join(slices.DeleteFunc(b.ran(), func(s string) bool { return s == "bad" }), " "))
			require.ElementsMatch(t, []string{"a.md", "c.md"}, b.done())
			require.Contains(t, b.dead(), "b.md")
			require.Contains(t, strings.Join(b.said, "\n"), takenDirs[0]+" cannot be used, and "+takenDirs[1]+" is in its place")
			free()
			b.process()
			require.Equal(t, name == "with a message", strings.Contains(strings.Join(b.ran(), " "), "old"))
		})
	}
}
