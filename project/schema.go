package project

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"decree/retention"
)

// Key is one key of the config: the help text and the parser are made of the
// same table, and its Default is parsed like a user's value.
type Key struct {
	Name    string // "capture.max_files": max_files below capture
	Type    string // text, number, size, policies
	Default string // as YAML; "" is empty text or nothing
	Doc     string // one sentence or two

	set func(*Config, *yaml.Node) error
}

// schema is the table of the config's keys.
var schema []Key

// The table is filled by init: its setters lead back to it.
func init() {
	schema = []Key{
		{"store", "text", "", "Where stores are kept: an absolute path, ~/..., or .decree/store. DECREE_STORE goes before it. It is decided with the first record; a project's store does not move afterwards.", set(asBase, func(c *Config) *string { return &c.Store })},
		{"capture.max_files", "number", "1000000", "A first capture of more files asks first, or needs --yes.", set(countFrom0, func(c *Config) *int64 { return &c.MaxFiles })},
		{"capture.max_bytes", "size", "20GiB", "A first capture of more bytes asks first, or needs --yes.", set(size, func(c *Config) *int64 { return &c.MaxBytes })},
		{"capture.max_file", "size", "64GiB", "A larger file asks before it is first recorded, or needs --yes. One that a run made is left as it is and named.", set(size, func(c *Config) *int64 { return &c.MaxFile })},
		{"capture.git_excludes", "true or false", "true", "Whether .git/info/exclude and the user's global git excludes count too, below all .gitignore files.", set(parseBool, func(c *Config) *bool { return &c.GitExcludes })},
		{"inline_binary", "size", "1MiB", "Binary contents up to this size stand in changes.diff; larger ones are only in the store.", set(size, func(c *Config) *int64 { return &c.InlineBinary })},
		{"inline_text", "size", "64MiB", "A file's section of changes.diff up to this size stands there; a larger one is only in the store.", set(size, func(c *Config) *int64 { return &c.InlineText })},
		{"retention", "policies", defaultRetention, "How long records are kept, a policy a reason (" + strings.Join(Reasons, ", ") + "): all, or any of last, daily, weekly, monthly (numbers) and max_age (30d). A record stays if any of them keeps it: the last so many, the newest of each of so many days, weeks or months that have one, those not older than max_age before the newest record. Reasons that are not named keep their default.", setRetention},
		{"log.max", "size", "64MiB", "How much of what a command prints is kept: of more, the first and the last half of it; 0 keeps all.", set(size, func(c *Config) *int64 { return &c.LogMax })},
		{"max_store", "size", "0", "When the store and .decree/runs together are larger, records go, oldest first, until they fit; 0 is no cap.", set(size, func(c *Config) *int64 { return &c.MaxStore })},
		{"isolated.run", "always or asked", "asked", "Whether every \"decree run\" is isolated, or only one with --isolated; \"decree run --in-place\" goes before it. isolated: always is short for it.", set(whetherAlways, func(c *Config) *bool { return &c.Isolated.Always })},
		{"isolated.queue", "true or false", "false", "Whether the run of a message is isolated: what it did is published when it has succeeded.", set(parseBool, func(c *Config) *bool { return &c.Isolated.Queue })},
		{"isolated.share", "paths", "[]", "What an isolated run in a clone shares with the tree instead of having a copy, such as [node_modules]: what a command writes there, it writes in the tree itself. Paths are relative to the root.", set(sharedPaths, func(c *Config) *[]string { return &c.Isolated.Share })},
		{"isolated.keep", "number", "10", "Of how many drafts that wait the layer is kept, for \"decree enter\": of the newest. A draft can be published without; one whose .git was changed, or that has what could not be recorded, stays whatever its age.", set(smallFrom0, func(c *Config) *int { return &c.Isolated.Keep })},
		{"isolated.max_age", "duration", "7d", "How long the layer of a draft that waits is kept; see isolated.keep.", set(parseAge, func(c *Config) *time.Duration { return &c.Isolated.MaxAge })},
		{"drafts.block", "true or false", "true", "Whether a draft that waits keeps the faces (\"decree ui\", \"decree serve\") from restoring and from making checkpoints until it is published or discarded; commands are not kept from it.", set(parseBool, func(c *Config) *bool { return &c.DraftsBlock })},
		{"fence.write", "paths", "[" + defaultsWord + "]", "Where the command of \"decree run --fence\" may write beside the root and the temporary directory ($TMPDIR, else /tmp): files and directories with all below them, each an absolute path, ~/... or $NAME/...; those that are not there are passed over. The word " + defaultsWord + " stands for " + strings.Join(defaultWrite, ", ") + ".", set(writePlaces, func(c *Config) *[]string { return &c.FenceWrite })},
		{"agents.deadline", "duration", "8s", "How long a hook of a coding agent may take, and never more than half of what the agent itself allows. What is not done by then is not recorded.", set(parseAge, func(c *Config) *time.Duration { return &c.Agents.Deadline })},
		{"agents.per_tool", "true or false", "false", "Whether the tree is recorded after each command that a coding agent ran, so that what each changed can be told apart.", set(parseBool, func(c *Config) *bool { return &c.Agents.PerTool })},
		{"agents.prompts", "true or false", "true", "Whether the record of a turn has the first 200 characters of its prompt.", set(parseBool, func(c *Config) *bool { return &c.Agents.Prompts })},
		{"default_routine", "text", "develop", "The routine of a message that names none.", set(text, func(c *Config) *string { return &c.DefaultRoutine })},
		{"max_attempts", "number", "3", "How often a message's routine is tried in all.", set(smallFrom1, func(c *Config) *int { return &c.MaxAttempts })},
		{"max_retries", "number", "", "Read as max_attempts.", set(smallFrom1, func(c *Config) *int { return &c.MaxAttempts })},
		{"max_depth", "number", "10", "How many generations of messages a chain may have: a message, its follow-ups, theirs, and so on.", set(smallFrom1, func(c *Config) *int { return &c.MaxDepth })},
		{"max_chain", "number", "100", "How many messages a chain may have in all.", set(smallFrom1, func(c *Config) *int { return &c.MaxChain })},
		{"strict_parameters", "true or false", "false", "A message that sets a parameter which its routine does not declare is not done; else this is a warning.", set(parseBool, func(c *Config) *bool { return &c.StrictParams })},
		{"router", "text", "", "A command that picks a routine: the prompt is its stdin, a routine's name its answer.", set(text, func(c *Config) *string { return &c.Router })},
		{"on_dead", "text", "", "A command that is run by bash in the root when a message went to inbox/dead, with DECREE_MESSAGE, DECREE_REASON, DECREE_RECORD and DECREE_ROOT in its environment.", set(text, func(c *Config) *string { return &c.OnDead })},
		{"notebook", "text", "", "The command line that executes .ipynb routines, with {input}, {output} and {params}; else papermill, else jupyter nbconvert --execute.", set(text, func(c *Config) *string { return &c.Notebook })},
		{"routine_source", "text", "", "A directory of shared routines, searched after .decree/routines.", set(text, func(c *Config) *string { return &c.RoutineSource })},
		{"spec_dir", "text", "specs", "The directory that holds *.spec.md.", set(text, func(c *Config) *string { return &c.SpecDir })},
	}
	schema = append(schema, backupKeys()...)
}

const defaultRetention = "{run: {last: 500, daily: 30, weekly: 52}, turn: {last: 100}, manual: {last: 50, daily: 30, weekly: 52}, auto: {last: 200, daily: 30, weekly: 52}, publish: all, restore: {last: 50}, revert: {last: 50}, apply: {last: 50}}"

// DefaultConfig is the config of a project without one.
func DefaultConfig() Config {
	c := defaults()
	c.Retention = maps.Clone(c.Retention) // which setRetention changes
	return c
}

var defaults = sync.OnceValue(func() Config {
	var c Config
	for _, k := range schema {
		if k.Default == "" {
			continue
		}
		n, err := parseYAML([]byte(k.Default))
		if err == nil {
			err = k.set(&c, n)
		}
		if err != nil {
			panic(fmt.Sprintf("the default of %s: %v", k.Name, err)) // a mistake in the table, which a test meets first
		}
	}
	return c
})

// Keys are the config's keys, in the order of the help text.
func Keys() []Key { return schema }

// set sets a field to what parse makes of a value.
func set[T any](parse func(*yaml.Node) (T, error), field func(*Config) *T) func(*Config, *yaml.Node) error {
	return func(c *Config, n *yaml.Node) error {
		v, err := parse(n)
		if err == nil {
			*field(c) = v
		}
		return err
	}
}

// asBase is a place that askedBase can make a path of.
func asBase(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && s != "" && s != inTree && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		err = atLine(n, "%q is not an absolute path, ~/... or %s", s, inTree)
	}
	return s, err
}

func countFrom0(n *yaml.Node) (int64, error) { return count(n, 0) }

func smallFrom0(n *yaml.Node) (int, error) { return small(n, 0) }

func smallFrom1(n *yaml.Node) (int, error) { return small(n, 1) }

// small is a count that fits everywhere.
func small(n *yaml.Node, least int64) (int, error) {
	v, err := count(n, least)
	if err == nil && v > 1<<30 {
		err = atLine(n, "must be a smaller number")
	}
	return int(v), err
}

func parseBool(n *yaml.Node) (bool, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return false, atLine(n, "must be true or false")
	}
	return strings.EqualFold(n.Value, "true"), nil
}

func parseAge(n *yaml.Node) (time.Duration, error) {
	s, err := text(n)
	if err != nil {
		return 0, err
	}
	d, err := ParseAge(s)
	if err != nil {
		err = atLine(n, "%v", err)
	}
	return d, err
}

// setRetention replaces the policies of the reasons that are named.
func setRetention(c *Config, n *yaml.Node) error {
	if c.Retention == nil {
		c.Retention = map[string]retention.Policy{}
	}
	return eachKey(n, "", func(reason string, k, v *yaml.Node) error {
		if !slices.Contains(Reasons, reason) {
			return atLine(k, "unknown reason %q; there are %s", reason, strings.Join(Reasons, ", "))
		}
		p, err := policy(v)
		if err == nil {
			c.Retention[reason] = p
		}
		return err
	})
}

func policy(n *yaml.Node) (retention.Policy, error) {
	var p retention.Policy
	if n.Kind == yaml.ScalarNode && n.Value == "all" {
		return retention.Policy{All: true}, nil
	}
	if n.Kind != yaml.MappingNode {
		return p, atLine(n, "must be all, or {last: 50, daily: 7, weekly: 4, monthly: 12, max_age: 90d}")
	}
	counts := map[string]*int{"last": &p.Last, "daily": &p.Daily, "weekly": &p.Weekly, "monthly": &p.Monthly}
	err := eachKey(n, "", func(key string, k, v *yaml.Node) error {
		if key == "max_age" {
			var err error
			p.MaxAge, err = parseAge(v)
			return err
		}
		field := counts[key]
		if field == nil {
			return atLine(k, "unknown key %q; there are last, daily, weekly, monthly and max_age", key)
		}
		number, err := small(v, 0)
		*field = number
		return err
	})
	return p, err
}
