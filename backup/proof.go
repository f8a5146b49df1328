package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"decree/backup/target"
)

// Proof is a line of proofs.jsonl.
type Proof struct {
	At         time.Time `json:"at"`
	Generation string    `json:"generation"`
	Host       string    `json:"host"`
	Whole      bool      `json:"whole"`
	Files      int       `json:"files"` // that were restored and had their hashes
	Of         int       `json:"of"`
	Bytes      int64     `json:"bytes"`
	Duration   int64     `json:"duration_ms"`
	OK         bool      `json:"ok"`
	Problems   []string  `json:"problems,omitempty"`
	// Damaged are packs that are to be sent again, and generations whose zip cannot be read.
	Damaged []string `json:"damaged,omitempty"`
	Next    string   `json:"next,omitempty"` // the record with which the next sample begins
}

// String says what the proof has found: "restored 5,120 of 5,120 files of 2026-11-20T03:00Z in 4.1 s", and
// what was wrong first.
func (p Proof) String() string {
	text := p.Result()
	if !p.OK && len(p.Problems) > 0 {
		text += ": " + p.Problems[0]
		if more := len(p.Problems) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return text
}

// Result is String without what was wrong.
func (p Proof) Result() string {
	when := p.Generation
	if t, ok := timeOf(p.Generation); ok {
		when = t.UTC().Format("2006-01-02T15:04Z")
	}
	text := fmt.Sprintf("restored %s of %s files of %s in %.1f s", humanize.Comma(int64(p.Files)), humanize.Comma(int64(p.Of)), when,
		(time.Duration(p.Duration) * time.Millisecond).Seconds())
	if !p.Whole {
		text += ", a sample"
	}
	return text
}

// readProofs reads proofs.jsonl, oldest first; a line that is none is passed over, and a whole file that is not what was
// written there: the next proof begins it anew.
func (p *Place) readProofs(ctx context.Context) (list []Proof, version target.Version, data []byte, err error) {
	data, version, err = p.Target.Read(ctx, p.At(proofsFile), maxManifest)
	if errors.Is(err, target.ErrDamaged) {
		return nil, version, nil, nil
	}
	if err != nil {
		return nil, "", nil, p.about(proofsFile, err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		var proof Proof
		if json.Unmarshal([]byte(line), &proof) == nil && !proof.At.IsZero() {
			list = append(list, proof)
		}
	}
	return list, version, data, nil
}

// proofs are those that the place has, oldest first.
func (p *Place) proofs(ctx context.Context) ([]Proof, error) {
	list, _, _, err := p.readProofs(ctx)
	if errors.Is(err, target.ErrTooLarge) { // nobody has written that; the next proof begins it anew
		return nil, nil
	}
	return list, err
}

// newestProof is the newest that the place has, or that this store remembers: proofs.jsonl may have been lost, cut or damaged. nil where there is none.
func (o Options) newestProof(ctx context.Context, p *Place) (*Proof, error) {
	list, err := p.proofs(ctx)
	if err != nil {
		return nil, err
	}
	var newest *Proof
	if n := len(list); n > 0 {
		newest = &list[n-1]
	}
	known := recall(o.Recorder.Project().Store, o.Target.String())
	if known.Name == p.Name && known.Proof != nil && (newest == nil || known.Proof.At.After(newest.At)) {
		newest = known.Proof
	}
	return newest, nil
}

// maxProofs bounds proofs.jsonl as it is written, in bytes: each backup reads it and writes it anew.
const maxProofs = 1 << 20

// addProof appends a line to proofs.jsonl, of which it keeps the newest lines.
func (p *Place) addProof(ctx context.Context, proof Proof) error {
	line, err := json.Marshal(proof)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		_, version, data, err := p.readProofs(ctx)
		if errors.Is(err, target.ErrTooLarge) {
			err = p.Target.Delete(ctx, p.At(proofsFile))
		}
		if err != nil {
			return err
		}
		_, err = p.Target.Swap(ctx, p.At(proofsFile), append(append(newestLines(data, maxProofs-len(line)-1), line...), '\n'), version)
		if !errors.Is(err, target.ErrConflict) || try == 5 {
			return err
		}
	}
}

// newestLines are the last lines of data that are whole and have no more than most bytes.
func newestLines(data []byte, most int) []byte {
	if len(data) <= most {
		return data
	}
	_, rest, _ := bytes.Cut(data[len(data)-max(0, most)-1:], []byte("\n"))
	return rest
}
