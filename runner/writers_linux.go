package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Writers returns the processes that have the files open for writing, or mapped
// so, by pid, as far as this process may look into others; itself is among them.
// It reads what /proc knows of every process.
func Writers(files []File) map[File][]Process {
	out := map[File][]Process{}
	if len(files) == 0 {
		return out
	}
	rows, err := processes(0)
	if err != nil {
		return out
	}
	wanted := make(map[File]bool, len(files))
	for _, f := range files {
		wanted[f] = true
	}
	for _, r := range rows {
		held := map[File]bool{}
		for _, f := range writtenBy(r.pid, func(f File, _ uint32) bool { return wanted[f] }) {
			held[f] = true
		}
		mappedForWriting(r.pid, wanted, held)
		for f := range held {
			out[f] = append(out[f], r.process())
		}
	}
	return out
}

// writtenBy are those of the files that pid has open for writing which are wanted, by file and mode.
func writtenBy(pid int, wanted func(f File, mode uint32) bool) (files []File) {
	dir, err := os.Open(procFile(pid, "fd"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat(procFile(pid, "fd/"+name), &st) != nil {
			continue
		}
		if f := (File{uint64(st.Dev), st.Ino}); wanted(f, st.Mode) && writable(pid, name) {
			files = append(files, f)
		}
	}
	return files
}

// writable reads from fdinfo ("flags:\t0100002\n", octal) whether a descriptor writes.
func writable(pid int, fd string) bool {
	b, err := readProc(procFile(pid, "fdinfo/"+fd), 4, 4096)
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte("flags:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	flags, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// mapsReads bounds what is read of a process's mappings, 64 KiB at a time.
const mapsReads = 512

// mappedForWriting finds wanted files among the shared writable mappings of pid:
// "7f00-7f10 rw-s 00000000 fe:01 1234 /path", the device in hexadecimal.
func mappedForWriting(pid int, wanted, held map[File]bool) {
	b, err := readProc(procFile(pid, "maps"), mapsReads, 64<<10)
	if err != nil {
		return
	}
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) < 5 || !bytes.HasPrefix(fields[1], []byte("rw")) || !bytes.HasSuffix(fields[1], []byte("s")) {
			continue
		}
		var major, minor uint32
		ino, ok := number(fields[4])
		if _, err := fmt.Sscanf(string(fields[3]), "%x:%x", &major, &minor); err != nil || !ok {
			continue
		}
		if f := (File{unix.Mkdev(major, minor), ino}); wanted[f] {
			held[f] = true
		}
	}
}
