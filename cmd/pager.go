package cmd

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// page runs fill on a pager if stdout is a terminal and a pager is there, else
// on a buffered stdout. A pager that is closed early is no error.
func (s *session) page(fill func(w io.Writer) error) error { return s.pageOn(s.env.Stdout, fill) }

// pageOn is page for any stream.
func (s *session) pageOn(out *os.File, fill func(w io.Writer) error) error {
	argv := s.pager(out)
	if argv == nil {
		return s.printOn(out, fill)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, s.env.Stderr
	cmd.Env = s.env.Environ
	if s.env.get("LESS") == "" {
		// Quit on a short text, pass colours, leave the text on the screen.
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LESS=FRX")
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return s.printOn(out, fill)
	}
	s.meter.pause()
	// Ctrl-C in a pager stops its search, it must not end decree under it.
	interrupts := make(chan os.Signal, 1)
	defer heed(interrupts, os.Interrupt)()
	if err := cmd.Start(); err != nil {
		return s.printOn(out, fill)
	}
	w := bufio.NewWriterSize(pipe, 64<<10)
	err = fill(w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if cerr := pipe.Close(); err == nil {
		err = cerr
	}
	werr := cmd.Wait()
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil // the reader has seen enough
	}
	if exit := (*exec.ExitError)(nil); err == nil && werr != nil && !errors.As(werr, &exit) {
		err = werr
	}
	return err
}

// pager is the command to page with: $DECREE_PAGER, $PAGER, less; nil for none.
func (s *session) pager(out *os.File) []string {
	if !isTerminal(out) || s.global.json || s.env.get("TERM") == "dumb" {
		return nil
	}
	chosen := "less -FRX"
	for _, key := range []string{"PAGER", "DECREE_PAGER"} {
		if v := s.env.get(key); v != "" {
			chosen = v
		}
	}
	argv := strings.Fields(chosen)
	if len(argv) == 0 || argv[0] == "cat" {
		return nil
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil
	}
	return argv
}
