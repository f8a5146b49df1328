package history

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnread: what a log holds that nobody has written so is named, and so is a record that went with
// its end; what a death has cut off was never acknowledged, and is not.
func TestUnread(t *testing.T) {
	w := newWorld(t)
	first, second := w.checkpoint(), w.checkpoint()
	data := w.read(w.stored(logFile))
	end := strings.IndexByte(data, '\n')
	zeros := strings.Repeat("\x00", 20)
	none := map[string]string{}
	for name, c := range map[string]struct {
		log     string
		audited string
		want    map[string]string
	}{
		"sound":                   {data, second.ID, none},
		"cut off":                 {data[:len(data)-9], first.ID, none},
		"cut off, and written on": {data[:end-9] + "!\n" + data[end+1:], second.ID, none},
		"zeros, written on":       {data[:end-20] + zeros + "!\n" + data[end+1:], second.ID, none},
		"cut off, once acknowledged": {data[:len(data)-9], second.ID, map[string]string{
			"": "records.jsonl is damaged: 1 record is missing from it, although audit.jsonl has them: " + second.ID}},
		"zeros at the end": {data[:len(data)-20] + zeros, second.ID, map[string]string{
			"": "records.jsonl is damaged: 1 record is missing from it, although audit.jsonl has them: " + second.ID}},
		"a record": {strings.Replace(data, `"started":"2`, `"started":"x`, 1), second.ID, map[string]string{
			first.ID: "records.jsonl: record " + first.ID + ": started: "}},
		"the record's key": {strings.Replace(data, `"at":`, `"xt":`, 1), second.ID, map[string]string{
			"": "1 line of records.jsonl that this decree cannot read; a newer decree may have written them"}},
		"no JSON": {data[1:], second.ID, map[string]string{
			"": "records.jsonl is damaged: 1 line of it cannot be read at all, and what was said there is lost"}},
		"zeros over the end of a line": {data[:end-9] + zeros + data[end+11:], second.ID, map[string]string{
			first.ID: "records.jsonl: record " + first.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			w.put(w.stored(logFile), c.log)
			w.put(w.stored(auditFile), "")
			w.reopen()
			dropped, _, err := w.NewID()
			require.NoError(t, err)
			require.NoError(t, w.Audit(Operation{Op: "record", Record: c.audited, Outcome: "done"}))
			require.NoError(t, w.Audit(Operation{Op: OpRecover, Record: dropped, Outcome: "done"})) // what had not begun was dropped
			list, err := w.Unread()
			require.NoError(t, err)
			assert.Len(t, list, len(c.want))
			for _, d := range list {
				assert.Contains(t, d.Err.Error(), c.want[d.ID])
				assert.NotEmpty(t, c.want[d.ID])
			}
		})
	}
}
