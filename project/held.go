package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"decree/disk"
)

// HeldFile in a store says that the messages, cron jobs and schedules of the project came from
// elsewhere, by a restore, and wait until a person lets them go: nothing runs by being restored.
const HeldFile = "held.json"

// Held is what HeldFile has.
type Held struct {
	Version int    `json:"version"`
	From    string `json:"from"` // the project that it came from
	Host    string `json:"host"`
	Root    string `json:"root"`
}

// Held is what HeldFile has; nil where nothing has to wait. With an error it waits too, and is not known.
func (s *Site) Held() (*Held, error) {
	data, err := ReadFile(s.Store, HeldFile, maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	h := &Held{Version: formatNow}
	if err == nil {
		err = json.Unmarshal(data, h)
	}
	return h, err
}

// HeldBack refuses to do what came from elsewhere; nil where nothing has to wait.
func (s *Site) HeldBack() error {
	h, err := s.Held()
	if h == nil {
		return nil
	}
	return &Error{Kind: Refused, State: "they were left as they are", Err: err,
		Msg:    fmt.Sprintf("the messages and cron jobs here came with a backup of %s:%s and wait", h.Host, h.Root),
		Advice: "look at them with 'decree inbox'; 'decree daemon --resume' lets them go"}
}

// Hold writes into a store that what waits in its project waits on.
func Hold(store disk.Dir, h Held) error {
	h.Version = formatNow
	return ReplaceJSON(store, HeldFile, h, PrivateFile, true)
}

// Resume lets go what HeldBack refuses.
func (s *Site) Resume() error { return removeFile(s.Store, HeldFile) }
