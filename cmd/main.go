package cmd

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"decree/recorder"
	"decree/view"
)

const tagline = "run anything over your files, see exactly what it changed, take it back exactly"

// version is set by the linker in a build by make.
var version string

// Version is the program's version: the release, else what the Go toolchain knows.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Main runs one command line and returns its exit code.
func Main(env Env) int {
	lazyHeap()
	startPoller()
	s := &session{env: env}
	if isHook(env.Args) {
		s.hook(env.Args[1:], time.Now())
		return 0
	}
	err := s.main(context.Background())
	code := s.report(err) // hints look at the records, which are closed next
	if s.rec != nil {
		if cerr := s.rec.Close(); err == nil && cerr != nil {
			code = s.report(cerr)
		}
	}
	return code
}

// startPoller makes the runtime open its two descriptors now. It opens them when first
// something waits, and where none is left to open it ends the process instead of telling.
func startPoller() { time.AfterFunc(time.Hour, func() {}).Stop() }

// session is one call of the program. It is not safe for concurrent use, but
// for what say.go and meter.go guard themselves.
type session struct {
	env       Env
	global    globals
	line      line
	rec       *recorder.Reader
	writer    recorder.Options // that a Recorder was opened with
	beside    bool             // several Recorders are to have runs beside one another
	meter     *meter
	feed      *feed
	above     io.Writer              // what is said goes there while lines of progress stand below it; nil: to stderr
	short     func(id string) string // shortens ids for a terminal; nil until it is needed
	echoed    map[string]bool        // the @TIMEs that were
	bandwidth int64                  // of --bandwidth, in bytes a second; 0: no limit
	alarmed   bool                   // what is wrong with backups was said
	anew      bool                   // a store that is missing is made anew, for a restore
	arriving  bool                   // a restore of a backup that is not finished is no obstacle
	labels    view.Labels            // by record, filled by allLabels
	// code is what to exit with when there is no error: run's child has a say.
	code int
}

func (s *session) main(ctx context.Context) error {
	verbs := s.verbs()
	l, err := splitLine(s.env.Args, s.globalFlags(), verbs, false)
	s.line = l
	if err != nil {
		return err
	}
	switch {
	case l.version:
		_, err := fmt.Fprintln(s.env.Stdout, "decree", Version())
		return err
	case l.verb == "":
		return s.printProgramHelp(verbs)
	case l.help:
		return s.printVerbHelp(find(verbs, l.verb))
	}
	return s.app(verbs).RunContext(ctx, l.argv())
}

// words are all words of the line, whether a "--" stood among them or not.
func (s *session) words() []string {
	return slices.Concat(s.line.words, s.line.paths)
}

// atMost refuses more than n words.
func (s *session) atMost(n int) error {
	if w := s.words(); len(w) > n {
		if s.line.verb == "send" {
			return usagef("unexpected argument %s", quoteWord(w[n])).Hintf("put the text between quotes: decree send %s", quoteWord(strings.Join(w, " ")))
		}
		return usagef("unexpected argument %s", quoteWord(w[n])).Hintf("see 'decree %s --help'", s.line.verb)
	}
	return nil
}
