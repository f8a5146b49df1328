//go:build linux || darwin

package runner

import "os"

// maxLineage bounds a walk that another process could make endless by ending meanwhile.
const maxLineage = 1 << 12

// Lineage lists this process and those that it descends from, the nearest first, as far
// as the system tells: one that outlived its parent descends from nobody else.
func Lineage() []Ancestor {
	var out []Ancestor
	for pid := os.Getpid(); pid > 0 && len(out) < maxLineage; {
		parent, start, ok := parentAt(pid)
		if n := len(out); n > 0 && start > out[n-1].StartTime {
			break // the parent has ended meanwhile, and its number is another one's
		}
		out = append(out, Ancestor{PID: pid, StartTime: start})
		if !ok || parent == pid {
			break
		}
		pid = parent
	}
	return out
}
