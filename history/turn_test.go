package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTurnRecord(t *testing.T) {
	r := fullRecord()
	r.Reason, r.Command, r.Cwd, r.Attempts, r.ExitCode = Turn, nil, "", 0, nil
	r.Turn = &TurnFacts{Prompt: "do it\n\x1b[31m", EndedBy: EndedByOther, Continues: "2026112107015800-0", Transcript: Transcript{"/h/log", 12},
		Overlaps: []string{"2026112107015700-0"}, Tools: []string{"Bash", "apply_patch"}}
	text := string(r.JSON(nil))
	assert.Contains(t, text, `  "prompt": "do it\n\u001b[31m",
  "ended_by": "inferred",
  "continues": "2026112107015800-0",
  "transcript": {"path": "/h/log", "offset": 12},
  "overlaps": ["2026112107015700-0"],
  "tools": ["Bash","apply_patch"],
`)
	got, err := ParseRecord([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, r, got)

	r.Turn = &TurnFacts{}
	got, err = ParseRecord(r.JSON(nil))
	require.NoError(t, err)
	assert.Equal(t, r, got, "what is not known is left out")

	for _, bad := range []string{`"continues":"x"`, `"overlaps":["x"]`} {
		_, err := ParseRecord([]byte(`{"version":1,"id":"2026112107015900-0","chain":"2026112107015900","seq":0,"reason":"turn","status":"open","started":"2026-11-21T07:01:59Z",` + bad + `}`))
		assert.Error(t, err, bad)
	}
	// In a record of another reason they are nobody's that this decree knows.
	got, err = ParseRecord([]byte(`{"version":1,"id":"2026112107015900-0","chain":"2026112107015900","seq":0,"reason":"run","status":"open","started":"2026-11-21T07:01:59Z","prompt":{"a":1}}`))
	require.NoError(t, err)
	assert.Equal(t, "prompt", got.Extra[0].Name)
}

func TestOwnLabels(t *testing.T) {
	for name, want := range map[string]int{"turn-1": 1, "turn-123456789": 123456789, "turn-0": 0, "turn-01": 0, "turn-": 0, "turn-1234567890": 0, "turn-x": 0, "return-1": 0} {
		n, ok := TurnOfLabel(name)
		assert.Equal(t, want, n, name)
		assert.Equal(t, want > 0, ok, name)
		if ok {
			assert.Equal(t, name, LabelOfTurn(n))
			assert.NoError(t, CheckLabel(name))
		}
	}
	assert.True(t, OwnLabel("session"))
	assert.False(t, OwnLabel("good"))
}
