package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/patch"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

func encoded(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Encode(&b, v))
	require.True(t, json.Valid(b.Bytes()))
	return b.String()
}

// TestListsAreNeverNull: a program may go through a list that has nothing.
func TestListsAreNeverNull(t *testing.T) {
	site := &project.Site{Root: "/r", StorePath: "/s", ID: "i"}
	for name, v := range map[string]any{
		"usage":      UsageOf(site, &recorder.Usage{Prune: &recorder.Pruned{}}, nil),
		"move":       MoveOf(&recorder.MoveResult{Plan: &plan.Plan{}}, true, []string{}, nil),
		"pruned":     PrunedOf(&recorder.Pruned{}, true),
		"collected":  CollectedOf(&recorder.Collected{}),
		"forgetting": ForgettingOf(&recorder.Forgetting{}, true),
		"recovered":  RecoveredOf(nil),
		"checks":     Checks(nil),
		"problems":   Problems(nil),
		"ignored":    IgnoredOf(nil),
	} {
		text := strings.ReplaceAll(encoded(t, v), `"record": null`, "")
		require.NotContains(t, text, "null", name)
	}
}

// TestStatusThatCannotBeTold: what changed is null where the store has lost what it is
// compared with, and an empty list where nothing did.
func TestStatusThatCannotBeTold(t *testing.T) {
	site := &project.Site{Root: "/r", StorePath: "/s", ID: "i"}
	rec := &history.Record{ID: "2026112107015900-0"}
	st := &recorder.Status{Root: "/r", StorePath: "/s", Last: rec}
	sound := encoded(t, StatusOf(site, st, Labels{rec.ID: {"good"}}, Inbox{}, DaemonOf(project.Holder{})))
	require.Contains(t, sound, `"changed": []`)
	require.Contains(t, sound, `"daemon": null`)
	require.Contains(t, sound, `"good"`)
	require.Contains(t, sound, `"since": "2026112107015900-0"`)
	st.Lost = history.ErrNotKept
	require.Contains(t, encoded(t, StatusOf(site, st, nil, Inbox{}, nil)), `"changed": null`)
}

// TestPathsAreQuoted: in each object a path is as the manifest has it.
func TestPathsAreQuoted(t *testing.T) {
	const raw, quoted = "a\nb", `\"a\\nb\"`
	rec := &history.Record{ID: "2026112107015900-0", Started: time.Unix(0, 0)}
	e := tree.Entry{Type: tree.Symlink, Target: raw}
	moment, err := Moment(history.Moment{Record: rec, Outside: true, From: raw, Facts: []*patch.Section{{Path: raw, Op: patch.OpCreate}}}, nil)
	require.NoError(t, err)
	for name, v := range map[string]any{
		"file":   FileAt(recorder.Point{Record: rec}, raw, e),
		"moment": moment,
		"move":   MoveOf(&recorder.MoveResult{Plan: &plan.Plan{Items: []plan.Item{{Path: raw}}}}, true, nil, nil),
		"status": StatusOf(&project.Site{}, &recorder.Status{Changed: []tree.Change{{Path: raw}}}, nil, Inbox{}, nil),
		"verify": Problems([]recorder.Problem{{Path: raw}}),
		"forget": ForgettingOf(&recorder.Forgetting{Also: []tree.Path{raw}}, false),
	} {
		require.Contains(t, encoded(t, v), quoted, name)
	}
}

// TestWhatATerminalObeysIsEscaped: in lists that are written one by one, too.
func TestWhatATerminalObeysIsEscaped(t *testing.T) {
	const bidi = "x\u202ey\u009bz"
	var b bytes.Buffer
	require.NoError(t, EncodeEach(&b, func(yield func(any) error) error {
		return yield(Blamed(0, recorder.Blamed{Text: []byte(bidi), Culprit: recorder.Culprit{Outside: true}}))
	}))
	require.NotContains(t, b.String(), "\u202e")
	var lines []Line
	require.NoError(t, json.Unmarshal(b.Bytes(), &lines))
	require.Equal(t, bidi, lines[0].Text, "for a program the text is the same")
	require.Equal(t, "since the last record", lines[0].What)
}

// TestEventsHaveTheirHead: each begins with what happened and when.
func TestEventsHaveTheirHead(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 1, 59, 5, time.UTC)
	rec := &history.Record{ID: "2026112107015900-0"}
	for _, v := range []any{
		Event(recorder.Event{Kind: recorder.Progressed}, at), Event(recorder.Event{Kind: recorder.RecordCreated, Record: rec}, at),
		Event(recorder.Event{Kind: recorder.Restored, To: rec, Plan: &plan.Plan{}}, at), NoteEvent("x", at), FailedEvent(Failure{}, at),
	} {
		var b bytes.Buffer
		require.NoError(t, EncodeLine(&b, v))
		require.Regexp(t, `^\{"event":"[a-z-]+","time":"2026-11-21T07:01:59\.000000005Z"`, b.String(), reflect.TypeOf(v))
		require.Equal(t, 1, strings.Count(b.String(), "\n"))
	}
}

// TestEveryListIsEscaped: what a terminal would obey comes out of no list as it is, and a
// list of none is a list.
func TestEveryListIsEscaped(t *testing.T) {
	rec := &history.Record{ID: "2026112107015900-0", Description: "turned \u202e round"}
	for name, write := range map[string]func(b *bytes.Buffer, n int) error{
		"records": func(b *bytes.Buffer, n int) error { return EncodeRecords(b, []*history.Record{rec, rec}[:n], nil) },
		"moments": func(b *bytes.Buffer, n int) error {
			return EncodeMoments(b, []history.Moment{{Record: rec}, {Record: rec}}[:n], nil)
		},
		"each": func(b *bytes.Buffer, n int) error {
			return EncodeEach(b, func(yield func(any) error) error {
				for range n {
					if err := yield(Line{What: rec.Description}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		for n := range 3 {
			var b bytes.Buffer
			require.NoError(t, write(&b, n), name)
			var list []any
			require.NoError(t, json.Unmarshal(b.Bytes(), &list), name)
			require.Len(t, list, n, name)
			require.NotContains(t, b.String(), "\u202e", name)
			require.Equal(t, n, strings.Count(b.String(), `\u202e`), name)
		}
	}
}
