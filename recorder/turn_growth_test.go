package recorder

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestTurnsInALongHistory: a prompt and an answer take no more steps on the disk where more
// records are before them than a recovery looks at.
func TestTurnsInALongHistory(t *testing.T) {
	const early, late = 66, 86 // turns; recoveries look at the 64 newest records
	a := newAgents(t)
	a.write("f", "0")
	a.checkpoint()
	steps := 0
	a.disk = disktest.Inject(disk.OS, func(disktest.Step) disktest.Action { steps++; return disktest.Action{} })
	counted := func(do func()) int {
		steps = 0
		do()
		return steps
	}
	prompts, answers := map[int]int{}, map[int]int{}
	e := event("s", 1)
	for n := 1; n <= late; n++ {
		prompts[n] = counted(func() { a.prompt(e, fmt.Sprint("turn ", n)) })
		a.tool(e, "edit", "f")
		a.write("f", fmt.Sprint(n))
		answers[n] = counted(func() { a.end(e) })
	}
	require.Less(t, prompts[late]-prompts[early], (late-early)/2)
	require.Less(t, answers[late]-answers[early], (late-early)/2)
	t.Log(prompts[early], prompts[late], answers[early], answers[late])
}
