package project

// readOnly is a matter of Unix file systems.
func readOnly(error) bool { return false }
