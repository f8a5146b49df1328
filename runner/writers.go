package runner

// A File is one whatever its path: its device and inode.
type File struct{ Dev, Ino uint64 }
