package history

import "golang.org/x/sys/unix"

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
