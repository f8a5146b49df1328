//go:build linux

// Command facesbench measures both faces of decree at scale, as tables in Markdown: what each page costs until its
// first byte and to its end, and what the terminal face costs until it has drawn its first screen, with the memory of
// both. It drives the built binary alone, in scratch directories that it removes.
//
//	facesbench -decree bin/decree [-only history,files,text,binary,million] [-dir SCRATCH]
//
// The history is one of copies: twenty turns of one session are recorded, and are then written into the log of
// records and into .decree/runs 500 times under other ids, as so many hooks would have had them.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// bench is a tree at work and the binary that is measured on it.
type bench struct {
	bin, root, home string
}

// scenes are what is measured, each on a tree of its own.
var scenes = []struct {
	name  string
	stage func(*bench) []page
}{
	{"history", stageHistory},
	{"files", stageFiles},
	{"text", stageText},
	{"binary", stageBinary},
	{"million", stageMillion},
}

func main() {
	bin := flag.String("decree", "bin/decree", "the binary")
	only := flag.String("only", "history,files,text,binary,million", "what is measured")
	dir := flag.String("dir", os.TempDir(), "where the trees are made")
	keep := flag.Bool("keep", false, "leave the trees where they are, and say where")
	flag.Parse()
	abs, err := filepath.Abs(*bin)
	check(err)
	for _, s := range scenes {
		if slices.Contains(strings.Split(*only, ","), s.name) {
			measure(abs, *dir, *keep, s.name, s.stage)
		}
	}
}

func measure(bin, dir string, keep bool, name string, stage func(*bench) []page) {
	scratch, err := os.MkdirTemp(dir, "facesbench-")
	check(err)
	if keep {
		defer fmt.Println("it lies in", scratch)
	} else {
		defer os.RemoveAll(scratch)
	}
	b := &bench{bin: bin, root: filepath.Join(scratch, "tree"), home: filepath.Join(scratch, "home")}
	check(os.Mkdir(b.root, 0o755))
	check(os.Mkdir(b.home, 0o755))
	// What is kept is as long as it is made.
	b.write(".decree/config.yml", "retention: {run: {last: 1000000}, turn: {last: 1000000}}\n")
	pages := stage(b)
	fmt.Printf("\n%s, load average %s\n\n| page | first byte, ms | whole, ms | CPU, ms | KB |\n|---|---|---|---|---|\n", name, load())
	s := b.serve()
	for _, p := range append([]page{{"`/`", "/"}, {"`/health`", "/health"}}, pages...) {
		s.get(p.address) // what is read for the first time is another matter
		fmt.Printf("| %s | %s\n", p.name, s.get(p.address))
	}
	fmt.Printf("\nserver's peak of memory: %d MB\n", s.end())
	fmt.Printf("`decree ui`: %s\n", b.paint())
}

func (b *bench) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DECREE_") || strings.HasPrefix(v, "XDG_") })
	return append(env, "HOME="+b.home, "XDG_DATA_HOME="+b.home+"/data", "TERM=xterm-256color", "TZ=UTC")
}

func (b *bench) command(args ...string) *exec.Cmd {
	c := exec.Command(b.bin, args...)
	c.Dir, c.Env = b.root, b.environ()
	return c
}

// decree runs the binary, which may fail with the commands that it runs.
func (b *bench) decree(stdin string, args ...string) string {
	c := b.command(args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	if err != nil && args[0] != "race" {
		log.Fatalf("decree %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (b *bench) write(name, text string) {
	path := filepath.Join(b.root, name)
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(os.WriteFile(path, []byte(text), 0o644))
}

// last is the id of the newest record.
func (b *bench) last() string {
	line, _, _ := strings.Cut(b.decree("", "show", "last"), "\n")
	fields := strings.Fields(line)
	return fields[len(fields)-1]
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	check(err)
	return strings.Fields(string(data))[0]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
