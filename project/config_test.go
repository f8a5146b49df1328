package project

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"decree/disk"
	"decree/retention"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaultConfig(t *testing.T) {
	c := DefaultConfig()
	assert.EqualValues(t, 1_000_000, c.MaxFiles)
	assert.EqualValues(t, 20<<30, c.MaxBytes)
	assert.EqualValues(t, 1<<20, c.InlineBinary)
	assert.EqualValues(t, 64<<20, c.InlineText)
	assert.Equal(t, map[string]retention.Policy{"run": {Last: 500, Daily: 30, Weekly: 52}, "turn": {Last: 100},
		"manual": {Last: 50, Daily: 30, Weekly: 52}, "auto": {Last: 200, Daily: 30, Weekly: 52}, "publish": {All: true},
		"restore": {Last: 50}, "revert": {Last: 50}, "apply": {Last: 50}}, c.Retention)
	assert.Equal(t, []int{3, 10}, []int{c.MaxAttempts, c.MaxDepth})
	assert.Equal(t, "develop", c.DefaultRoutine)
	assert.Equal(t, Isolation{Keep: 10, MaxAge: 7 * 24 * time.Hour}, c.Isolated)
	c.Retention["run"] = retention.Policy{}
	assert.Equal(t, retention.Policy{Last: 500, Daily: 30, Weekly: 52}, DefaultConfig().Retention["run"], "the defaults are not shared")
}

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("config.yml", []byte(`
# a comment
store: /var/lib/decree
capture:
  max_files: 5
  max_bytes: 1.5 GiB
inline_binary: 2048
inline_text: "64 KB"
max_store: 10GiB
retention:
  manual: {last: 50, daily: 7, weekly: 4, monthly: 12, max_age: 90d}
  publish: {last: 1}
  auto: all
max_retries: 5
router: 007
notebook:
`))
	require.NoError(t, err)
	assert.Equal(t, "/var/lib/decree", c.Store)
	assert.EqualValues(t, 5, c.MaxFiles)
	assert.EqualValues(t, 3<<29, c.MaxBytes)
	assert.EqualValues(t, 2048, c.InlineBinary)
	assert.EqualValues(t, 64000, c.InlineText)
	assert.EqualValues(t, 10<<30, c.MaxStore)
	assert.Equal(t, retention.Policy{Last: 50, Daily: 7, Weekly: 4, Monthly: 12, MaxAge: 90 * 24 * time.Hour}, c.Retention["manual"])
	assert.Equal(t, retention.Policy{Last: 1}, c.Retention["publish"])
	assert.Equal(t, retention.Policy{All: true}, c.Retention["auto"])
	assert.Equal(t, retention.Policy{Last: 500, Daily: 30, Weekly: 52}, c.Retention["run"], "what is not named keeps its default")
	assert.Equal(t, 5, c.MaxAttempts)
	assert.Equal(t, "007", c.Router, "scalars stay text")
	for _, empty := range []string{"", "\n# nothing\n", "---\n"} {
		c, err := ParseConfig("config.yml", []byte(empty))
		require.NoError(t, err, empty)
		assert.Equal(t, DefaultConfig(), c)
	}
}

func TestConfigOfIsolatedRuns(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]Isolation{
		"isolated: always\n": {Always: true, Keep: 10, MaxAge: 7 * day},
		"isolated: asked\n":  {Keep: 10, MaxAge: 7 * day},
		"isolated: {run: always, queue: true, keep: 0}\n":        {Always: true, Queue: true, MaxAge: 7 * day},
		"isolated:\n  max_age: 12h\n":                            {Keep: 10, MaxAge: 12 * time.Hour},
		"isolated: {share: []}\n":                                {Keep: 10, MaxAge: 7 * day},
		"isolated: {share: [node_modules, ./a//b/, a/b, ..c]}\n": {Keep: 10, MaxAge: 7 * day, Share: []string{"node_modules", "a/b", "..c"}},
	} {
		c, err := ParseConfig("config.yml", []byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, c.Isolated, text)
	}
}

// TestEveryKeyIsRead: what the help lists can be said, also below a word.
func TestEveryKeyIsRead(t *testing.T) {
	for _, key := range schema {
		text := strings.Replace(key.Name, ".", ": {", 1) + ": nonsense"
		if strings.Contains(key.Name, ".") {
			text += "}"
		}
		if _, err := ParseConfig("config.yml", []byte(text+"\n")); err != nil {
			assert.NotContains(t, err.Error(), "unknown key", text)
		}
	}
	c, err := ParseConfig("config.yml", []byte("drafts: {block: false}\n"))
	require.NoError(t, err)
	assert.False(t, c.DraftsBlock)
	assert.True(t, DefaultConfig().DraftsBlock)
}

// TestFencePlaces: homes and variables are those of the command; what is not set names no place.
func TestFencePlaces(t *testing.T) {
	get := func(name string) string {
		return map[string]string{"HOME": "/home/u", "GOCACHE": "/c", "ODD": "relative"}[name]
	}
	for text, want := range map[string][]string{
		"fence: {write: []}\n": nil,
		"fence: {write: [/a, ~/b, /a, $GOCACHE, $GOCACHE/x, $NONE, $NONE/x, $ODD/x, /a/~/$b]}\n": {"/a", "/home/u/b", "/c", "/c/x", "/a/~/$b"},
	} {
		c, err := ParseConfig("config.yml", []byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, c.FencePlaces(get), text)
		c, err = ParseConfig("config.yml", []byte(strings.Replace(text, "[", "[defaults, ", 1)))
		require.NoError(t, err, text)
		places := c.FencePlaces(get)
		for _, place := range append(want, "/dev/null", "/home/u/.cache", "/home/u/.npm", "/c") {
			assert.Contains(t, places, place)
		}
	}
	assert.Equal(t, defaultWrite, DefaultConfig().FenceWrite)
	for _, place := range DefaultConfig().FencePlaces(func(string) string { return "" }) {
		assert.True(t, strings.HasPrefix(place, "/dev/") || place == "/var/tmp", "%s without a home", place)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		part       string
	}{
		{"unknown key", "store: /x\nstorre: /y\n", 2, `"storre"`},
		{"unknown key below capture", "capture:\n  max_size: 1\n", 2, `"capture.max_size"`},
		{"dotted key", "capture.max_filez: 1\n", 1, "capture.max_filez"},
		{"not a mapping", "- a\n- b\n", 1, "not a mapping"},
		{"capture is a number", "max_depth: 2\ncapture: 7\n", 2, "capture"},
		{"negative", "max_depth: -1\n", 1, "whole number"},
		{"zero attempts", "max_attempts: 0\n", 1, "at least 1"},
		{"text for a number", "capture:\n  max_files: many\n", 2, "whole number"},
		{"size", "max_store: 10 potatoes\n", 1, "10 GiB"},
		{"huge size", "max_store: 99999999999999TiB\n", 1, "size"},
		{"list for text", "router: [a, b]\n", 1, "text"},
		{"number for a place", "max_depth: 2\nstore: 5\n", 2, "absolute path"},
		{"relative place", "store: stores\n", 1, "absolute path"},
		{"twice", "router: a\nrouter: b\n", 2, "twice"},
		{"fence", "fence: strict\n", 1, "mapping"},
		{"unknown key of the fence", "fence:\n  writes: []\n", 2, "fence.writes"},
		{"places", "fence:\n  write: ~/x\n", 2, "a list of paths"},
		{"relative place to write", "fence:\n  write: [/a,\n    b]\n", 3, "absolute path"},
		{"home of another", "fence: {write: [~u/x]}\n", 1, "absolute path"},
		{"variable without a name", "fence: {write: [$/x]}\n", 1, "absolute path"},
		{"unknown reason", "retention:\n  runs: {last: 1}\n", 2, `"runs"`},
		{"unknown rule", "retention:\n  run: {lasst: 1}\n", 2, `"lasst"`},
		{"age", "retention:\n  run: {max_age: 3 fortnights}\n", 2, "not a duration"},
		{"policy is a number", "retention: {run: 5}\n", 1, "last: 50"},
		{"alias", "router: &a x\nnotebook: *a\n", 2, "text"},
		{"broken", "router: a\nstore: [\n", 2, "node content"},
		{"second YAML document", "router: a\n---\nrouter: b\n", 0, "second YAML document"},
		{"isolated is a word", "max_depth: 2\nisolated: allways\n", 2, "always or asked"},
		{"isolated is true", "isolated: true\n", 1, "always or asked"},
		{"isolated is a list", "isolated: [always]\n", 1, "isolated is not a mapping"},
		{"isolated is empty", "isolated:\n", 1, "always or asked"},
		{"unknown key below isolated", "isolated:\n  run: always\n  kep: 3\n", 3, `"isolated.kep"`},
		{"run is given twice", "isolated:\n  run: always\n  run: asked\n", 3, "twice"},
		{"negative keep", "isolated: {keep: -1}\n", 1, "at least 0"},
		{"age of layers", "isolated: {max_age: 7}\n", 1, "not a duration"},
		{"share is text", "isolated: {share: node_modules}\n", 1, "[node_modules]"},
		{"share of a list", "isolated: {share: [[a]]}\n", 1, "text"},
		{"share of the root", "isolated:\n  share:\n    - a\n    - a/..\n", 4, "not a path below the root"},
		{"share outside", "isolated: {share: [../x]}\n", 1, "not a path below the root"},
		{"absolute share", "isolated: {share: [/usr]}\n", 1, "not a path below the root"},
		{"empty share", "isolated: {share: ['']}\n", 1, "not a path below the root"},
		{"share of .git", "isolated: {share: [sub/.git/objects]}\n", 1, "cannot be shared"},
		{"share of .decree", "isolated: {share: [.decree]}\n", 1, "cannot be shared"},
		{"key is a list", "? [a]\n: b\n", 1, "plain text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseConfig("p/config.yml", []byte(c.text))
			var e *ConfigError
			require.ErrorAs(t, err, &e)
			if c.line > 0 {
				assert.Equal(t, c.line, e.Line, err.Error())
			}
			assert.Contains(t, err.Error(), c.part)
			assert.True(t, strings.HasPrefix(err.Error(), "p/config.yml:"), err.Error())
			assert.Equal(t, Usage, KindOf(err))
			assert.Contains(t, HintOf(err), "help config")
		})
	}
}

func TestHugeConfigIsRefused(t *testing.T) {
	home, root := ground(t)
	write(t, filepath.Join(root, ".decree/config.yml"), strings.Repeat("# x\n", maxConfig))
	_, err := Open(disk.OS, Where{Cwd: root, Home: home}, true)
	require.ErrorContains(t, err, "larger than decree reads")
	require.Contains(t, HintOf(err), "256 KiB")
	require.FileExists(t, filepath.Join(root, ".decree/config.yml"))
}

func TestEveryKeyIsExplained(t *testing.T) {
	for _, k := range Keys() {
		assert.NotEmpty(t, k.Doc, k.Name)
	}
}

func TestSizesAndAges(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "4096": 4096, "1B": 1, "1KiB": 1024, "1K": 1024, "1KB": 1000, "64 MiB": 64 << 20, "1.5GiB": 3 << 29, "2TB": 2e12, "0.5T": 1 << 39} {
		got, err := ParseSize(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"", " 1", "1 ", "-1", "1.5", "1.5.5K", "1e3", "0x10", "1  K", "1k", "1KiBs", "9999999TiB", "999999999999999999K", "1_000"} {
		_, err := ParseSize(s)
		assert.Error(t, err, s)
	}
	for s, want := range map[string]time.Duration{"90s": 90 * time.Second, "15m": 15 * time.Minute, "2h": 2 * time.Hour, "3d": 72 * time.Hour, "1w": 168 * time.Hour} {
		got, err := ParseAge(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "1", "s", "1 s", "-1s", "1.5h", "1y", "1h30m", "999999999w", "9999999999s"} {
		_, err := ParseAge(s)
		assert.Error(t, err, s)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{"", "store: /x", "capture: {max_files: 1}", "retention: {run: {last: 1, max_age: 1w}, auto: all}", "a: &a [*a]", "? {}", "---\n---", "max_store: 1TiB\n\t", "\xff\xfe", "!!binary x: y", "router: |\n  a\n b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConfig("c", []byte(s))
		var e *ConfigError
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil && (c.MaxFiles < 0 || c.MaxStore < 0 || c.MaxAttempts < 1 || c.MaxDepth < 1) {
			t.Fatalf("%+v", c)
		}
	})
}
