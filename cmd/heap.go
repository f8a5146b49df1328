package cmd

import (
	"runtime"
	"runtime/debug"
)

// firstCycle is how much of the heap may grow before the collector looks at it
// for the first time, in percent of the runtime's 4 MiB: 36 MiB.
const firstCycle = 900

// lazyHeap keeps the collector away from short commands, most of which end
// before they have allocated what is worth collecting; on two cores its workers
// cost them a third of their time. With the first cycle the usual pace begins,
// so that long ones stay small.
func lazyHeap() {
	before := debug.SetGCPercent(firstCycle)
	type canary struct{ _ [16]byte }
	c := new(canary)
	runtime.SetFinalizer(c, func(*canary) { debug.SetGCPercent(before) })
}
