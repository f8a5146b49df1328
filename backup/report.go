package backup

import "time"

// Listed is a generation as `backup list --json` shows it.
type Listed struct {
	Generation string    `json:"generation"`
	Timestamp  time.Time `json:"timestamp"`
	Host       string    `json:"host"`
	Bytes      int64     `json:"bytes"`
	NewBytes   int64     `json:"new_bytes"`
	Records    int       `json:"records"`
	KeptBy     []string  `json:"kept_by"` // "newest", "last", "daily", "weekly", "monthly", "pre-restore"; none: the next rotation takes it
	Provable   bool      `json:"provable"`
	unread     bool      // it has packs, and as far as is known it cannot be read what it needs of them
}

// Status is what `backup status --json` shows.
type Status struct {
	Target      string       `json:"target"`
	Name        string       `json:"name"`
	SameDisk    bool         `json:"same_disk"`
	Last        *Listed      `json:"last"`  // nil: there is no backup
	Proof       *ProofStatus `json:"proof"` // nil: nothing was proven yet
	Generations int          `json:"generations"`
	Bytes       int64        `json:"bytes"` // that the target holds of this project
	NextToGo    []string     `json:"next_to_go"`
	Problems    []string     `json:"problems"`
	// Aside are what restores have replaced and .decree/backup has, where that is not the target.
	Aside []string `json:"aside,omitempty"`
	// Lost are older generations of which a part is missing or damaged. No backup can mend them.
	Lost []string `json:"unprovable,omitempty"`
}

// ProofStatus is the newest proof.
type ProofStatus struct {
	At         time.Time `json:"at"`
	Generation string    `json:"generation"`
	Files      int       `json:"files"`
	Of         int       `json:"of"`
	Whole      bool      `json:"whole"`
	OK         bool      `json:"ok"`
	Text       string    `json:"text"` // for people
}

// Setting is a line of `backup config`: what is in force, and where it comes from.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // "default", ".decree/config.yml:7", "--to"
}
