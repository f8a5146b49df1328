//go:build linux || darwin

package runner

import "golang.org/x/sys/unix"

// Outputs are the files into which the standard output and standard error of this process go. Where one is a pipe, those
// that the reader of it in the same session, as tee in a shell's pipeline, has open for writing, where the system tells.
func Outputs() (files []File) {
	pipes := map[File]bool{}
	for fd := 1; fd <= 2; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		switch f := (File{uint64(st.Dev), st.Ino}); st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			files = append(files, f)
		case unix.S_IFIFO:
			pipes[f] = true
		}
	}
	if len(pipes) == 0 {
		return files
	}
	return append(files, readersFiles(pipes)...)
}
