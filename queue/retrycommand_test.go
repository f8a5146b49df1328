package queue

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRetryCommandCanBePasted: the shell hands the very name on, and a terminal is shown no
// byte that it would act on.
func TestRetryCommandCanBePasted(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, name := range []string{"two", "a b", "it's", "-x", "--", "$(id)", "`id`", "new\nline", "caf\xe9", "é", "\x1b[31m", "\u202egnp", `\n'`, "~", "*", "#", "!x"} {
		command := RetryCommand(name + suffix)
		require.NotRegexp(t, `[\x00-\x1f\x7f]|\x{202e}`, command, "%q", name)
		out, err := exec.Command(bash, "-c", "decree() { printf %s \"${@: -1}\"; }; "+command).Output()
		require.NoError(t, err, command)
		require.Equal(t, name, string(out), command)
	}
}
