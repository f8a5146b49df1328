package tree

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShellWords: the shell hands the very words on, and a terminal is shown no byte that it
// would act on.
func TestShellWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, word := range []string{"", "two", "a b", "it's", "-x", "--", "$(id)", "`id`", "new\nline", "caf\xe9", "é", "\x1b[31m", "\u202egnp", `\n'`, "~", "~root", "last~2", "*", "#", "!x", "a=b", "{a,b}", "\u009b31m", "it's\n"} {
		command := ShellWords([]string{"printf", "%s", word})
		require.NotRegexp(t, `[\x00-\x1f\x7f\x{80}-\x{9f}]|\x{202e}`, command, "%q", word)
		for _, locale := range []string{"C", "C.UTF-8"} {
			c := exec.Command(bash, "-c", command)
			c.Env = []string{"LC_ALL=" + locale}
			out, err := c.Output()
			require.NoError(t, err, command)
			require.Equal(t, word, string(out), command)
		}
	}
	require.Equal(t, "sh -c 'echo a >b' last~2", ShellWords([]string{"sh", "-c", "echo a >b", "last~2"}))
}
