package target

// QuickPassphrases makes passphrases cost nothing, for tests.
func QuickPassphrases() { scryptWork = 10 }
