//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// page is what is asked for, below the server's own path.
type page struct{ name, address string }

// server is 'decree serve' at work.
type server struct {
	command *exec.Cmd
	client  *http.Client
	base    string
}

func (b *bench) serve() *server {
	c := b.command("serve", "--addr", "127.0.0.1:0")
	out, err := c.StdoutPipe()
	check(err)
	c.Stderr = os.Stderr
	check(c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(err)
	jar, err := cookiejar.New(nil)
	check(err)
	s := &server{command: c, client: &http.Client{Jar: jar}}
	answer, err := s.client.Get(strings.TrimSpace(line[strings.Index(line, "http"):]))
	check(err)
	answer.Body.Close()
	s.base = strings.TrimRight(answer.Request.URL.String(), "/")
	return s
}

// get asks for a page, and says what it cost.
func (s *server) get(address string) string {
	cpu, begin := s.cpu(), time.Now()
	answer, err := s.client.Get(s.base + address)
	check(err)
	defer answer.Body.Close()
	one := make([]byte, 1)
	_, err = io.ReadFull(answer.Body, one)
	first := time.Since(begin)
	check(err)
	n, err := io.Copy(io.Discard, answer.Body)
	check(err)
	note := ""
	if answer.StatusCode != http.StatusOK {
		note = " (" + answer.Status + ")"
	}
	return fmt.Sprintf("%d | %d | %d | %d%s |", first.Milliseconds(), time.Since(begin).Milliseconds(), s.cpu()-cpu, (n+1023)/1024, note)
}

// cpu is what the server has used, in ms.
func (s *server) cpu() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	check(err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return (user + system) * 10 // the system counts hundredths
}

// end ends the server; peak is the most memory that it had, in MB.
func (s *server) end() (peak int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	check(err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(data)
	kb, _ := strconv.Atoi(string(m[1]))
	check(s.command.Process.Signal(syscall.SIGTERM))
	_ = s.command.Wait()
	return kb >> 10
}

// longestPaint is when a screen that does not come is given up.
const longestPaint = 5 * time.Minute

// What the terminal shows when it has rows, and when all that it reads at first is read.
var (
	hasRows = regexp.MustCompile("Manual|Run|Session")
	hasRead = regexp.MustCompile("diff verified|enter shows each")
)

// paint runs 'decree ui' on a terminal of its own until all is read, and says what that cost.
func (b *bench) paint() string {
	begin := time.Now()
	c, screen := b.onTerminal("ui")
	defer screen.Close()
	var first, all time.Duration
	var seen []byte
	part := make([]byte, 64<<10)
	for all == 0 {
		if time.Since(begin) > longestPaint {
			log.Fatalf("decree ui shows only %q", seen)
		}
		n, err := screen.Read(part)
		check(err)
		seen = append(seen, part[:n]...)
		if first == 0 && hasRows.Match(seen) {
			first = time.Since(begin)
		}
		if hasRead.Match(seen) {
			all = time.Since(begin)
		}
	}
	cpu := cpuOf(c.Process.Pid)
	_, err := screen.Write([]byte("q"))
	check(err)
	_, _ = io.Copy(io.Discard, screen) // it fails when the other end is closed
	check(c.Wait())
	use := c.ProcessState.SysUsage().(*syscall.Rusage)
	return fmt.Sprintf("first paint %d ms, all of it read after %d ms, CPU %d ms, memory %d MB", first.Milliseconds(), all.Milliseconds(), cpu, use.Maxrss>>10)
}

func cpuOf(pid int) int { return (&server{command: &exec.Cmd{Process: &os.Process{Pid: pid}}}).cpu() }

// onTerminal starts the binary on a terminal of 100 columns and 30 rows.
func (b *bench) onTerminal(args ...string) (*exec.Cmd, *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	check(err)
	var unlocked, number int32
	control(screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{30, 100}
	control(screen, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	check(err)
	defer terminal.Close()
	c := b.command(args...)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(c.Start())
	return c, screen
}

func control(f *os.File, request uintptr, at unsafe.Pointer) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(at)); errno != 0 {
		log.Fatal(errno)
	}
}
