package cmd

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Env is all that the command line takes from the outside world.
type Env struct {
	// Args are the words after the program's name.
	Args []string
	// Stdin, Stdout and Stderr are files, not readers and writers, because a
	// recorded command inherits them.
	Stdin, Stdout, Stderr *os.File
	// Environ is the environment as KEY=VALUE, as a recorded command inherits it.
	Environ []string
	// Cwd is the absolute working directory.
	Cwd string
	// Now is the clock, Location the zone in which people read and write times.
	Now      func() time.Time
	Location *time.Location
	// User and Host name who acts, for the records.
	User, Host string
}

// System is the Env of the running process.
func System() Env {
	cwd, _ := os.Getwd() // an unreadable one surfaces as soon as a root is looked for
	host, _ := os.Hostname()
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Cwd: cwd, Now: time.Now, Location: time.Local,
		User: userName(), Host: host,
	}
}

// userName is the login name, or the numeric id where the system knows none.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// get is the value of an environment variable; the last one counts, as for exec.
func (e Env) get(key string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}
