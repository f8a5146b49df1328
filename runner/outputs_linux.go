package runner

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readersFiles are the files that processes of this session whose standard input is one of pipes have open for writing.
func readersFiles(pipes map[File]bool) (files []File) {
	for _, pid := range sessionOf(os.Getpid()) {
		var in unix.Stat_t
		if pid != os.Getpid() && unix.Stat(procFile(pid, "fd/0"), &in) == nil && pipes[File{uint64(in.Dev), in.Ino}] {
			files = append(files, writtenBy(pid, func(_ File, mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFREG })...)
		}
	}
	return files
}

// sessionOf lists the processes of the session of a process: of a terminal's, or of a script's. `timeout` gives what it starts a process group of its own.
func sessionOf(process int) (pids []int) {
	session, err := unix.Getsid(process)
	if err != nil {
		return nil
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if of, err := unix.Getsid(pid); err == nil && of == session {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
