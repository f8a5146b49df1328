//go:build unix

package cmd

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"decree/runner/fence"
)

// TestMain makes this binary serve as the command decree of the scripts: the
// real Main, with a clock, a user and a host that the script sets.
func TestMain(m *testing.M) {
	if filepath.Ext(os.Args[0]) == ".test" { // what is started inherits that HUP ends it, although the tests may run under nohup
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){"decree": func() { os.Exit(Main(scriptEnv())) }, "agent": agentProcess, "peak": peakProcess})
}

// agentProcess is a coding agent: each of its arguments is a command line, which it runs one after
// the other, and then it is gone.
func agentProcess() {
	for _, line := range os.Args[1:] {
		c := exec.Command("sh", "-c", line)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// peakProcess executes a command, its arguments from the second on, and fails where that, or what it waited for, has had more
// MB in memory than the first says. It is no command of the scripts' own process: the system counts what
// a process that starts another has to that one's peak.
func peakProcess() {
	most, err := strconv.ParseInt(os.Args[1], 10, 64)
	if err != nil {
		panic(err)
	}
	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if had := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10 / 1e6; had > most { // Linux counts KiB
		fmt.Fprintf(os.Stderr, "it had %d MB in memory\n", had)
		os.Exit(1)
	}
}

// scriptEnv is System with what must not vary between machines.
func scriptEnv() Env {
	syscall.Umask(0o022)
	env := System()
	env.User, env.Host = "tester", "testhost"
	env.Location = time.UTC
	if text := env.get("SCRIPT_NOW"); text != "" {
		now, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			panic(err)
		}
		env.Now = func() time.Time { return now }
	}
	return env
}

func TestScripts(t *testing.T) { testscript.Run(t, scriptParams()) }

// scriptParams are those of all scripts: an empty home, a clock that stands, and the
// commands of this file.
func scriptParams() testscript.Params {
	return testscript.Params{
		Dir: filepath.Join("..", "testdata", "script"), UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// The user's home holds nothing, and the script begins in an empty tree
			// or in the one its archive has.
			for _, dir := range []string{"home", "data", "tree"} {
				if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("SCRIPT_NOW", "2026-11-21T07:01:59Z")
			e.Setenv("TZ", "UTC")
			e.Setenv("LC_ALL", "C")
			e.Setenv("TERM", "xterm")
			e.Cd = filepath.Join(e.WorkDir, "tree")
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "overlay":
				return canOverlay(), nil
			case "landlock":
				hold, _ := fence.HoldOf(fence.Kernel())
				return hold == fence.Whole, nil
			case "nonet":
				return exec.Command("unshare", "--user", "--map-root-user", "--net", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("no condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"treehash": treehash, "like": like, "code": code, "mode": mode, "raw": rawNames, "tty": tty, "screen": onScreen,
		},
	}
}

// canOverlay says whether this machine lets its users mount overlays in namespaces.
var canOverlay = sync.OnceValue(func() bool {
	const try = "mkdir l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w,userxattr none m"
	dir, err := os.MkdirTemp("", "overlay-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	c := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", try)
	c.Dir = dir
	return c.Run() == nil
})

// treehash save NAME [DIR] remembers all that is in the tree, treehash same
// NAME [DIR] fails unless it is so still: paths, kinds, modes, bytes and, of
// files, mtimes. DIR is the script's tree if it is not given; .git and .decree
// are left out. treehash alike is same without the mtimes.
func treehash(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: treehash save|same|alike NAME [DIR]")
	}
	dir := filepath.Join(ts.Getenv("WORK"), "tree")
	if len(args) == 3 {
		dir = ts.MkAbs(args[2])
	}
	place := filepath.Join(ts.Getenv("WORK"), "treehash-"+args[1])
	now := map[string]string{}
	for suffix, times := range map[string]bool{"": false, ".times": true} {
		text, err := describeTree(dir, times)
		ts.Check(err)
		now[suffix] = text
	}
	for suffix, text := range now {
		if args[0] == "save" {
			ts.Check(os.WriteFile(place+suffix, []byte(text), 0o644))
		}
	}
	if args[0] == "save" {
		return
	}
	suffix := ""
	if args[0] == "same" {
		suffix = ".times"
	}
	before, err := os.ReadFile(place + suffix)
	ts.Check(err)
	if same := string(before) == now[suffix]; same == neg {
		ts.Fatalf("the tree is not as it should be\nbefore:\n%s\nnow:\n%s", before, now[suffix])
	}
}

func describeTree(dir string, times bool) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" || d.Name() == ".decree" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%q %v", rel, info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&b, " -> %q", target)
			if err != nil {
				return err
			}
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
			if times {
				fmt.Fprintf(&b, " %d", info.ModTime().UnixNano())
			}
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String(), err
}

// Measured times, and the directory the script runs in, are not the same twice.
var (
	tookForm  = regexp.MustCompile(`\b[0-9.]+ (ms|s)\b`)
	sizeForm  = regexp.MustCompile(`\b[0-9.]+ ([KMG]i)?B\b`)
	storeForm = regexp.MustCompile(`/decree/[0-9a-f]{32}\b`)
)

// like STREAM FILE compares stdout or stderr with a file, in which measured
// times are T, sizes SIZE, the store's name ID and the script's directory $WORK.
func like(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: like stdout|stderr FILE")
	}
	have := ts.ReadFile(args[0])
	have = strings.ReplaceAll(have, ts.Getenv("WORK"), "$WORK")
	have = tookForm.ReplaceAllString(have, "T")
	have = sizeForm.ReplaceAllString(have, "SIZE")
	have = storeForm.ReplaceAllString(have, "/decree/ID")
	want := ts.ReadFile(args[1])
	if have != want && *update && rewrite(ts, args[1], have) {
		return
	}
	if same := have == want; same == neg {
		ts.Fatalf("%s is\n%s\nbut %s has\n%s", args[0], have, args[1], want)
	}
}

// rewrite puts data in the place of a file of the script's archive; false if
// the archive has no such file.
func rewrite(ts *testscript.TestScript, file, data string) bool {
	path := filepath.Join("..", "testdata", "script", ts.Name()+".txtar")
	archive, err := txtar.ParseFile(path)
	ts.Check(err)
	rel, _ := filepath.Rel(ts.Getenv("WORK"), ts.MkAbs(file))
	for i := range archive.Files {
		if archive.Files[i].Name == rel {
			archive.Files[i].Data = []byte(data)
			ts.Check(os.WriteFile(path, txtar.Format(archive), 0o644))
			return true
		}
	}
	return false
}

// code N COMMAND... runs a command and fails unless its exit status is N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	have := "0"
	if err != nil {
		have = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if have != args[0] {
		ts.Fatalf("exit status %s, should be %s", have, args[0])
	}
}

// mode OCTAL PATH... fails unless each path has these permission bits.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args[1:] {
		info, err := os.Lstat(ts.MkAbs(path))
		ts.Check(err)
		if have := fmt.Sprintf("%o", info.Mode().Perm()); (have == args[0]) == neg {
			ts.Fatalf("%s has mode %s", path, have)
		}
	}
}

// raw CONTENT NAME writes a file whose name, in Go's quoted form, txtar cannot hold.
func rawNames(ts *testscript.TestScript, neg bool, args []string) {
	var name string
	if _, err := fmt.Sscanf(args[1], "%q", &name); err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(name), []byte(args[0]), 0o644))
}
