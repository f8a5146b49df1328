package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

func journalOf(t testing.TB, from, to files) []byte {
	list, err := prepare(steps(from, to))
	require.NoError(t, err)
	list.fact(1).beside = new(tree.Path)
	return encodeJournal("2026112107015900-0", json.RawMessage(`{"for":"tests"}`), list)
}

func TestJournalRoundTrip(t *testing.T) {
	data := journalOf(t, before, after)
	j, reason, err := decodeJournal(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Empty(t, reason)
	require.Equal(t, "2026112107015900-0", j.ID)
	require.Equal(t, `{"for":"tests"}`, string(j.Meta))
	require.Equal(t, data, encodeJournal(j.ID, j.Meta, j.steps))
	want, err := prepare(steps(before, after))
	require.NoError(t, err)
	have := slices.Collect(j.Steps())
	require.Len(t, have, want.n)
	for s := range want.all() {
		require.Equal(t, s.Path, have[s.n].Path)
		require.True(t, tree.SameEntry(s.From, have[s.n].From))
		require.True(t, tree.SameEntry(s.To, have[s.n].To))
	}
}

// sealed gives a body a right checksum: what a careful attacker would do.
func sealed(body string) []byte {
	b := []byte(journalMagic + body)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func text(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func TestDamagedJournalsAreNotActedOn(t *testing.T) {
	head := text("t1") + text("")
	entry := "\x00\xa4\x03\x01" + strings.Repeat("h", 32)
	step := func(path string) string { return text(path) + "\x02" + entry }
	good := journalOf(t, before, after)
	flipped := append([]byte{}, good...)
	flipped[len(flipped)/2] ^= 4
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":           {nil, "not a journal"},
		"text":            {[]byte(strings.Repeat("hello ", 20)), "not a journal"},
		"cut":             {good[:len(good)-5], "checksum"},
		"a bit":           {flipped, "checksum"},
		"newer":           {[]byte("decree txn 2\n" + strings.Repeat("x", 40)), "newer decree"},
		"another's id":    {good, "it belongs to transaction 2026112107015900-0"},
		"outside":         {sealed(head + "\x01" + step("../x")), `".." in path`},
		"absolute":        {sealed(head + "\x01" + step("/etc/passwd")), "absolute path"},
		"git":             {sealed(head + "\x01" + step("a/.git/hooks/x")), "path in .git"},
		"decree":          {sealed(head + "\x01" + step(".decree/project.json")), "path in .decree"},
		"NUL":             {sealed(head + "\x01" + step("a\x00b")), "NUL"},
		"twice":           {sealed(head + "\x02" + step("a") + step("a")), "named twice"},
		"order":           {sealed(head + "\x02" + step("b") + step("a")), "order"},
		"under a file":    {sealed(head + "\x02" + step("a") + step("a/b")), "not a directory"},
		"huge count":      {sealed(head + "\xff\xff\xff\xff\xff\xff\xff\x7f"), "more steps than"},
		"count":           {sealed(head + "\xff\xff\x7f"), "truncated"},
		"many nothings":   {sealed(head + "\xff\xff\x7f" + strings.Repeat("\x00", 1<<20)), "empty path"},
		"huge length":     {sealed(head + "\x01\xff\xff\xff\xff\xff\xff\xff\x7fa"), "ends too early"},
		"more":            {sealed(head + "\x01" + step("a") + "!"), "bytes after its last step"},
		"flags":           {sealed(head + "\x01" + text("a") + "\x42" + entry), "unknown flags"},
		"mode":            {sealed(head + "\x01" + text("a") + "\x02\x00\xff\xff\x03\x01" + strings.Repeat("h", 32)), "mode"},
		"kind":            {sealed(head + "\x01" + text("a") + "\x02\x07"), "kind"},
		"beside":          {sealed(head + "\x01" + text("a/b") + "\x0a" + entry + "\x02"), "slots that are not in a directory above"},
		"varint":          {sealed(head + "\x81\x00" + step("a")), "not in canonical form"},
		"no change":       {sealed(head + "\x01" + text("a") + "\x03" + entry + entry), "changes nothing"},
		"nothing at all":  {sealed(head + "\x01" + text("a") + "\x00"), "neither"},
		"id":              {sealed(text("../t1") + text("") + "\x01" + step("a")), "not a transaction's id"},
		"meta":            {sealed(text("t1") + text("{") + "\x01" + step("a")), "JSON"},
		"link without":    {sealed(head + "\x01" + text("a") + "\x02\x01\x00"), "target"},
		"dir may stay":    {sealed(head + "\x01" + text("a") + "\x06" + entry), "may stay"},
		"truncated entry": {sealed(head + "\x01" + text("a") + "\x02" + entry[:9]), "ends too early"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, before)
			journals := r.open("txn")
			f, err := journals.Create("t1.journal", 0o600)
			require.NoError(t, err)
			_, err = f.Write(c.data)
			require.NoError(t, err)
			require.NoError(t, f.Close())

			pending, err := Pending(journals)
			require.NoError(t, err)
			require.Len(t, pending, 1)
			require.ErrorContains(t, pending[0].Err, c.says)
			_, _, err = r.recover()
			var je *JournalError
			require.ErrorAs(t, err, &je)
			require.Equal(t, before, r.state())
			pending, err = Pending(journals)
			require.NoError(t, err)
			if name == "newer" {
				require.Len(t, pending, 1, "it is that decree's")
				return
			}
			require.Equal(t, "t1.damaged", je.Kept)
			require.Empty(t, pending)
		})
	}
}

// TestStagingOfADamagedJournalStays: it may hold the only copy of somebody's bytes.
func TestStagingOfADamagedJournalStays(t *testing.T) {
	fired := false
	r, _ := newMemRig(t, before)
	r.wrap = failAt(80, &fired, writes, disktest.Action{Die: true})
	_, err := r.move(steps(before, after))
	require.Error(t, err)
	r.wrap = nil
	f, err := r.open("txn").OpenWrite("t1.journal", 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("?"), 40)
	require.NoError(t, err)
	state := r.state()
	_, _, err = r.recover()
	require.ErrorContains(t, err, "its checksum is wrong; set aside as t1.damaged")
	tree, journals, done := r.tree()
	defer done()
	kept, err := tree.Tidy(journals, func(string) bool { return true })
	require.NoError(t, err)
	require.Empty(t, kept)
	list, err := r.open("tree/.decree/tmp/txn-t1").List()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	require.Equal(t, state, r.state())
}

func FuzzJournal(f *testing.F) {
	f.Add(journalOf(f, before, after))
	f.Add(sealed(text("t1") + text("") + "\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// A body with a right checksum gets past the first door.
		for _, d := range [][]byte{data, sealed(string(data)), sealed(strings.TrimPrefix(string(data), journalMagic))} {
			j, reason, err := decodeJournal(bytes.NewReader(d), int64(len(d)))
			require.NoError(t, err)
			require.Equal(t, reason == "", j != nil)
			if j != nil {
				require.Equal(t, d, encodeJournal(j.ID, j.Meta, j.steps))
			}
		}
	})
}

// encodeJournal is a journal's bytes.
func encodeJournal(id string, meta []byte, steps *stepList) []byte {
	var b bytes.Buffer
	if err := writeJournal(&b, id, meta, steps); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestRecoveryWithoutRoom: a recovery that cannot make what tells whose new files are, since the disk is full, finishes what is staged, or takes it back.
func TestRecoveryWithoutRoom(t *testing.T) {
	was := files{"a": file("a"), "b": file("b"), "d": dir(0o755), "d/c": file("c")}
	will := files{"a": file("A"), "d": dir(0o755), "d/c": file("C"), "d/e": file("e")}
	for n := 0; ; n++ {
		r := newRig(t, was)
		fired := false
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
		_, _ = r.move(steps(was, will))
		if !fired {
			require.Greater(t, n, 20)
			return
		}
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(s disktest.Step) (a disktest.Action) {
				if s.Op == "Mkdir" && strings.HasSuffix(s.Path, "-owner") {
					a.Err = syscall.ENOSPC
				}
				return a
			}, dirs...)
		}
		_, _, err := r.recover()
		require.NoError(t, err, "step %d", n)
		r.wrap = nil
		r.clean()
		oldOrNew(r, was, will)
	}
}
