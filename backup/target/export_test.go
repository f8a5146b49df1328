package target

import "time"

// QuickPassphrases makes passphrases cost nothing, for tests.
func QuickPassphrases() { scryptWork = 10 }

// Impatient makes the pauses before another try short.
func Impatient() {
	firstPause, lastPause = time.Millisecond, 4*time.Millisecond
	lookAgain, helpAfter = time.Millisecond, 500*time.Millisecond
}

// PartSize is what larger objects are sent in parts of.
func SetPartSize(n int64) (was int64) { was, partSize = partSize, n; return was }

// Tries is how often something is tried.
const Tries = tries
