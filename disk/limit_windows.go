package disk

// OpenLimit returns how many files this process may have open at once.
func OpenLimit() int { return 1 << 20 }
