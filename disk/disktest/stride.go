package disktest

import (
	"os"
	"testing"
)

// Stride is how many steps lie between two at which a sweep has something go wrong: usual of them, twice as many
// in the short form of the tests, and none with DECREE_LONG=1, where each step is tried.
func Stride(usual int) int {
	switch {
	case os.Getenv("DECREE_LONG") != "":
		return 1
	case testing.Short():
		return 2 * usual
	}
	return usual
}
