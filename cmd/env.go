package cmd

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"decree/project"
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
	// Cwd is the absolute working directory, "" if that was deleted.
	Cwd string
	// Now is the clock, Location the zone in which people read and write times.
	Now      func() time.Time
	Location *time.Location
	// User and Host name who acts, for the records.
	User, Host string
}

// System is the Env of the running process.
func System() Env {
	cwd, err := os.Getwd()
	if err != nil { // it looks into the directory, which its mode may forbid
		cwd, _ = syscall.Getwd() // one that is gone surfaces as soon as a root is looked for
	}
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

// behind is the user who called sudo; nil when nobody did, or the home is not known.
func (e Env) behind() *project.User {
	uid, err := strconv.ParseUint(e.get("SUDO_UID"), 10, 32)
	if err != nil || uid == 0 || os.Geteuid() != 0 {
		return nil
	}
	home := e.get("SUDO_HOME") // of newer versions of sudo
	if u, err := user.LookupId(e.get("SUDO_UID")); home == "" && err == nil {
		home = u.HomeDir
	}
	if !filepath.IsAbs(home) {
		return nil
	}
	return &project.User{UID: uint32(uid), Home: home}
}
