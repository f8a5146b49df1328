//go:build linux || darwin

package runner

import (
	"os"
	"slices"
	"strings"
)

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

// shells are the programs that others have execute a command line for them.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"}

// Caller is the process on whose behalf this one was started with a line: the nearest one
// that it descends from that is no shell, and has no such line to execute itself, as a shell that
// is not known, or a program that limits the time, does. False where the system does not tell.
func Caller(line string) (Ancestor, bool) {
	lineage := Lineage()
	for _, a := range lineage[min(1, len(lineage)):] {
		if a.PID > 1 && !slices.Contains(shells, nameAt(a.PID)) && !executes(a.PID, line) {
			return a, true
		}
	}
	return Ancestor{}, false
}

// executes says whether a process was started to execute a line: one of its arguments begins
// with it, or some are its words.
func executes(pid int, line string) bool {
	words := argumentsAt(pid)
	return strings.Contains(words, "\x00"+line) || strings.Contains(words, "\x00"+strings.ReplaceAll(line, " ", "\x00")+"\x00")
}

// ProcessAt is the process of a number, as of now.
func ProcessAt(pid int) Ancestor {
	start, _ := startAt(pid)
	return Ancestor{PID: pid, StartTime: start}
}

// Lives says whether a process of this boot still runs.
func Lives(a Ancestor) bool {
	now, live := startAt(a.PID)
	return live && (a.StartTime == 0 || now == a.StartTime)
}
