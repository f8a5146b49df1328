package cmd

import (
	"math"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// firstCycle is how much of the heap may grow before the collector looks at it
// for the first time, in percent of the runtime's 4 MiB: 36 MiB.
const firstCycle = 900

// heapLimit is what the heap may take before the collector, which else lets it grow to
// twice of what is in use, works harder: no operation needs more at a time.
const heapLimit = 200 << 20

// lazyHeap keeps the collector away from short commands, most of which end
// before they have allocated what is worth collecting; on two cores its workers
// cost them a third of their time. With the first cycle the usual pace begins,
// so that long ones stay small.
func lazyHeap() {
	before := debug.SetGCPercent(firstCycle)
	type canary struct{ _ [16]byte }
	c := new(canary)
	runtime.SetFinalizer(c, func(*canary) {
		debug.SetGCPercent(before)
		limitHeap()
	})
}

// servedHeap is heapLimit of a command that stays for days, beside what the person works with.
const servedHeap = 96 << 20

// limitServedHeap sets the limit of such a command; GOMEMLIMIT has precedence.
func limitServedHeap() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(servedHeap)
	}
}

// limitHeap sets the limit, lower where the control group allows less: what the command
// that is being recorded takes is counted there, too. GOMEMLIMIT has precedence.
func limitHeap() {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	limit := uint64(heapLimit)
	if group, err := memlimit.FromCgroup(); err == nil {
		limit = min(limit, group/2)
	}
	debug.SetMemoryLimit(int64(limit)) //nolint:gosec // at most heapLimit
}
