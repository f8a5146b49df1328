package project

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"decree/disk"
)

// Some events of coding agents need no capture of the tree: a tool has named files, or a session
// has ended. A hook notes each as a line of a log in the store, its report. The next command that
// takes the project's lock reads them:
//
//	own/told.jsonl   there while a turn is open, beside the log of acts
//
// A line is written under the lock of own/ alone, and is not flushed. A path whose line is lost
// with the power counts as named by nobody, as it would without a hook.

// AgentReportsLog is the name of the log in OwnLogs.
const AgentReportsLog = "told.jsonl"

// maxAgentReports bounds the log, in bytes: further reports are dropped.
const maxAgentReports = 32 << 20

// AgentReport is one line: an event of an agent's session.
type AgentReport struct {
	Agent   string `json:"agent"`
	Session string `json:"session,omitempty"`
	Process Holder `json:"process"`
	// End: the session has ended. Else a tool is about to work or has worked.
	End   bool   `json:"end,omitempty"`
	Tool  string `json:"tool,omitempty"`
	After bool   `json:"after,omitempty"` // it has worked
	// Paths are the files, below the root, that a tool changes and no other; in base64.
	Paths [][]byte `json:"paths,omitempty"`
	Any   bool     `json:"any,omitempty"` // the tool may change anything
}

// NoteAgentReport adds a report to the log. Where no record is open it concerns nobody, and nothing
// is noted.
func (p *Project) NoteAgentReport(t AgentReport) error {
	if !unfinished(p.Store, ofAnyKind) {
		return nil
	}
	own, release, err := p.lockActs(actsWait)
	if err != nil {
		return err
	}
	defer own.Close()
	defer release()
	log, err := own.OpenWrite(AgentReportsLog, PrivateFile)
	if err != nil {
		return err
	}
	defer log.Close()
	now, err := log.Stat()
	if err != nil || now.Size > maxAgentReports {
		return err
	}
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	// The first line feed ends what a death, or a full disk, has left half-written.
	_, err = log.WriteAt(slices.Concat([]byte{'\n'}, line, []byte{'\n'}), now.Size)
	return err
}

// HasOpen says whether a record is open, as far as can be seen without the lock.
func (s *Site) HasOpen() bool { return unfinished(s.Store, ofAnyKind) }

// AgentReportsSize is the log's length: where the next report begins.
func (s *Site) AgentReportsSize() (int64, error) {
	log, err := s.readOwnLog(AgentReportsLog)
	if log == nil {
		return 0, err
	}
	defer log.Close()
	st, err := log.Stat()
	return st.Size, err
}

// EachAgentReport calls each for the reports in the log, with the places of their lines. A torn line
// is passed over.
func (s *Site) EachAgentReport(each func(at int64, t AgentReport)) error {
	return eachLine(s, AgentReportsLog, 0, each)
}

// hooksLog says which events of agents were not recorded, a line each.
const hooksLog = "hooks.log"

// maxHooksLog bounds the log, in bytes: of a longer one the last half stays.
const maxHooksLog = 64 << 10

// NoteHook adds a line to the log of hooks: what could not be recorded, and why.
func (p *Project) NoteHook(at time.Time, text string) error {
	_, release, err := p.lockActsOrGoOn(actsWait) // hooks that fail together come together
	if err != nil {
		return err
	}
	defer release()
	text = at.UTC().Format(time.RFC3339) + " " + strings.Join(strings.Fields(text), " ") + "\n"
	was, err := readHooksLog(p.Store)
	if err != nil {
		return err
	}
	if len(was)+len(text) <= maxHooksLog {
		log, err := p.Store.OpenWrite(hooksLog, PrivateFile)
		if err != nil {
			return err
		}
		defer log.Close()
		_, err = log.WriteAt([]byte(text), int64(len(was)))
		return err
	}
	half := string(was[len(was)/2:])
	_, half, _ = strings.Cut(half, "\n")
	return ReplaceFile(p.Store, hooksLog, []byte(half+text), PrivateFile, false)
}

// readHooksLog returns the end of the log of hooks, maxHooksLog bytes at most; nothing where there is none.
func readHooksLog(store disk.Dir) ([]byte, error) {
	f, err := store.Open(hooksLog)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, st.Size-maxHooksLog), maxHooksLog))
}

// HooksLog are the lines of the log of hooks since a time, to the second, oldest first.
func (s *Site) HooksLog(after time.Time) (lines []string, err error) {
	data, err := readHooksLog(s.Store)
	for line := range strings.Lines(string(data)) {
		when, _, _ := strings.Cut(line, " ")
		if at, terr := time.Parse(time.RFC3339, when); terr == nil && !at.Before(after.Truncate(time.Second)) {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	if disk.OtherKind(err) {
		return nil, nil // a stand-in, which is told as one
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", hooksLog, err)
	}
	return lines, err
}
