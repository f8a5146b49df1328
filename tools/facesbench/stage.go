//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The sizes of what is measured.
const (
	sessions     = 500
	turns        = 20 // of each
	manyFiles    = 50_000
	textSize     = 62 << 20 // its diff is just below what is kept inline
	binarySize   = 4 << 30
	millionFiles = 1_000_000
)

// stageHistory makes 10,000 turns of agents. The race, the first session and what created and deleted a file are the
// oldest.
func stageHistory(b *bench) []page {
	b.write("a.txt", "first\n")
	b.decree("", "checkpoint", "-d", "first")
	b.decree("", "run", "--", "sh", "-c", "echo gone >gone.txt")
	b.decree("", "run", "--", "sh", "-c", "rm gone.txt")
	b.decree("", "race", "-n", "2", "--clone", "--copy", "--", "sh", "-c", "echo $DECREE_CANDIDATE >who")
	race := b.last()
	for n := range turns {
		hook := func(event, more string) {
			b.decree(fmt.Sprintf(`{"session_id":"session-000","hook_event_name":"%s"%s}`, event, more), "hook", "claude", event)
		}
		hook("UserPromptSubmit", fmt.Sprintf(`,"prompt":"Turn %d of this session: mend the login, and write down what was found"`, n))
		b.write("a.txt", fmt.Sprintf("turn %d\n", n))
		hook("Stop", "")
	}
	b.multiply()
	newest := b.last()
	return []page{
		{"`/f/PATH`, changed by almost all records", "/f/a.txt"},
		{"`/f/PATH`, no longer there, changed by the two oldest runs alone", "/f/gone.txt"},
		{"`/sessions/ID`, the newest of 500", fmt.Sprintf("/sessions/session-%03d", sessions-1)},
		{"`/sessions/ID`, the oldest", "/sessions/session-000"},
		{"`/race/ID`, older than all sessions", "/race/race"},
		{"`/r/ID`, the newest", "/r/" + newest},
		{"`/r/ID`, one of the oldest", "/r/" + race},
	}
}

// multiply writes the turns that were recorded once more for each other session, a second later each.
func (b *bench) multiply() {
	stores, err := filepath.Glob(b.home + "/data/decree/*/records.jsonl")
	check(err)
	text, err := os.ReadFile(stores[0])
	check(err)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	lines = lines[len(lines)-turns:]
	at := time.Now().UTC().Truncate(time.Second)
	var out bytes.Buffer
	for session := 1; session < sessions; session++ {
		for _, line := range lines {
			at = at.Add(time.Second)
			out.Write(b.copied(line, at, fmt.Sprintf("session-%03d", session)))
		}
	}
	f, err := os.OpenFile(stores[0], os.O_WRONLY|os.O_APPEND, 0)
	check(err)
	_, err = f.Write(out.Bytes())
	check(err)
	check(f.Close())
}

// copied is the line of a record that is like another one, whose directory it makes, too.
func (b *bench) copied(line []byte, at time.Time, session string) []byte {
	var of map[string]json.RawMessage
	check(json.Unmarshal(line, &of))
	var id string
	check(json.Unmarshal(of["id"], &id))
	chain := at.Format("20060102150405") + "00"
	from, to := filepath.Join(b.root, ".decree/runs", id), filepath.Join(b.root, ".decree/runs", chain+"-0")
	data, err := os.ReadFile(filepath.Join(from, "run.json"))
	check(err)
	var was struct{ Started, Ended, Chain string }
	check(json.Unmarshal(data, &was))
	stamp := at.Format("2006-01-02T15:04:05.000000000Z")
	text := strings.NewReplacer(was.Chain, chain, was.Started, stamp, was.Ended, stamp, "session-000", session).Replace(string(data))
	check(os.Mkdir(to, 0o700))
	check(os.WriteFile(filepath.Join(to, "run.json"), []byte(text), 0o600))
	check(os.Link(filepath.Join(from, "changes.diff"), filepath.Join(to, "changes.diff")))
	info, err := os.Stat(filepath.Join(to, "run.json"))
	check(err)
	var flat bytes.Buffer
	check(json.Compact(&flat, []byte(text)))
	return fmt.Appendf(nil, "{\"id\":%q,\"at\":%d,\"file\":[%d,%d],\"trees\":%s,\"files\":%s,\"record\":%s}\n", chain+"-0", at.UnixNano(), len(text), info.ModTime().UnixNano(), of["trees"], of["files"], flat.Bytes())
}

func stageFiles(b *bench) []page {
	b.decree("", "checkpoint", "-d", "empty")
	b.decree("", "run", "--", "sh", "-c", fmt.Sprintf(`for d in $(seq 1 %d); do mkdir d$d; cd d$d; seq 1 100 | while read f; do echo $d $f >f$f.txt; done; cd ..; done`, manyFiles/100))
	return []page{
		{"`/r/ID`, 50,000 files created", "/r/" + b.last()},
		{"`/f/PATH`, one of them", "/f/d77/f7.txt"},
		{"`/f/PATH`, blame", "/f/d77/f7.txt?blame=yes"},
	}
}

func stageText(b *bench) []page {
	b.decree("", "checkpoint", "-d", "empty")
	b.decree("", "run", "--", "sh", "-c", fmt.Sprintf(`yes 'a line of a text that is long enough to be one' | head -c %d >text.txt`, textSize))
	id := b.last()
	return []page{{"`/r/ID`, a diff of 64 MB", "/r/" + id}, {"`/f/PATH`, of that text", "/f/text.txt"}, {"a record compared with now", "/f/text.txt?a=" + id + "&b=now"}}
}

func stageBinary(b *bench) []page {
	image := filepath.Join(b.root, "image")
	check(os.WriteFile(image, []byte("begins\x00"), 0o644))
	check(os.Truncate(image, binarySize))
	b.decree("", "--yes", "checkpoint", "-d", "image")
	b.decree("", "run", "--", "sh", "-c", "printf changed | dd of=image conv=notrunc bs=1 seek=4096 2>/dev/null")
	id := b.last()
	return []page{
		{"`/r/ID`, a binary of 4 GB changed", "/r/" + id},
		{"`/f/PATH`, that binary", "/f/image"},
		{"`/f/PATH`, blame", "/f/image?blame=yes"},
		{"a record compared with now", "/f/image?a=" + id + "&b=now"},
		{"before it compared with now", "/f/image?a=before:" + id + "&b=now"},
	}
}

func stageMillion(b *bench) []page {
	for d := range millionFiles / 1000 {
		dir := filepath.Join(b.root, fmt.Sprintf("d%03d", d))
		check(os.Mkdir(dir, 0o755))
		for f := range 1000 {
			check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d", f)), fmt.Appendf(nil, "%d %d\n", d, f), 0o644))
		}
	}
	b.decree("", "checkpoint", "--yes", "-d", "a million files")
	b.decree("", "run", "--yes", "--", "sh", "-c", "echo more >>d500/f500; rm -r d007")
	id := b.last()
	return []page{
		{"`/r/ID`, 1,000 files deleted of a million", "/r/" + id},
		{"`/f/PATH`, changed", "/f/d500/f500"},
		{"`/f/PATH`, not changed by any", "/f/d501/f001"},
		{"a record compared with now", "/f/d500/f500?a=before:" + id + "&b=now"},
	}
}
