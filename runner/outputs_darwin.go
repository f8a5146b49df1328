package runner

// readersFiles is nil: this system does not tell.
func readersFiles(map[File]bool) []File { return nil }
