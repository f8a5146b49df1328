package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"decree/disk"
	"decree/retention"
)

const (
	configFile = "config.yml"
	maxConfig  = 256 << 10
)

// Config is .decree/config.yml with the defaults filled in. The table in
// schema.go says what each key means.
type Config struct {
	Store        string                      // a base; "" where the config says nothing
	MaxFiles     int64                       // capture.max_files
	GitExcludes  bool                        // capture.git_excludes
	MaxBytes     int64                       // capture.max_bytes
	MaxFile      int64                       // capture.max_file
	InlineBinary int64                       // bytes
	InlineText   int64                       // bytes
	LogMax       int64                       // log.max, bytes; 0: no cap
	Retention    map[string]retention.Policy // by reason
	MaxStore     int64                       // bytes; 0: no cap
	Isolated     Isolation                   // isolated.*
	DraftsBlock  bool                        // drafts.block
	FenceWrite   []string                    // fence.write; FencePlaces are its paths
	Agents       Agents                      // agents.*
	Backup       Backup                      // backup.*

	lines map[string]int // at which a config has given a key

	DefaultRoutine string
	MaxAttempts    int
	MaxDepth       int
	MaxChain       int
	StrictParams   bool // strict_parameters
	OnDead         string
	Router         string
	Notebook       string
	RoutineSource  string
	SpecDir        string
}

// Agents is what the config says of the hooks of coding agents.
type Agents struct {
	Deadline time.Duration
	PerTool  bool
	Prompts  bool
}

// Reasons are the reasons that a record can have (product.md), in the order of
// the help text.
var Reasons = []string{"run", "turn", "manual", "auto", "publish", "restore", "revert", "apply"}

// ConfigError is a mistake in a config, with its line.
type ConfigError struct {
	Path   string
	Line   int // from 1; 0 when the file as a whole is meant
	Reason string
	unread bool // nothing is known of what it says
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// Category is Usage.
func (e *ConfigError) Category() Kind { return Usage }

// Hint is the next step to take.
func (e *ConfigError) Hint() string {
	if e.unread {
		return fmt.Sprintf("make it a file of at most %d KiB that you may read, or move it away: without one the defaults hold", maxConfig>>10)
	}
	return "'decree help config' lists the keys and what they take"
}

// readConfig reads .decree/config.yml; a missing one is the defaults, and so is, with a
// note, what is no regular file: the next writing command puts it aside. A file that
// cannot be read is a person's all the same: reading goes on with the defaults, and
// writing is refused, lest retention removes what the file says is to be kept.
func (p *Project) readConfig(create bool) (err error) {
	if p.noConfig = p.Decree == nil; p.noConfig {
		return nil
	}
	path := filepath.Join(p.Decree.Path(), configFile)
	data, err := ReadFile(p.Decree, configFile, maxConfig)
	if p.noConfig = errors.Is(err, fs.ErrNotExist); p.noConfig {
		return nil
	}
	if err == nil {
		p.Config, err = ParseConfig(path, data)
		return err
	}
	st, serr := p.Decree.Stat(configFile)
	odd := serr == nil && st.Kind != disk.Regular
	switch {
	case odd && !create:
		p.note("%s is no regular file and is not read: the defaults hold, and the next command that writes puts it aside", path)
	case odd: // EnsureDecree says it
	case create || !barred(err):
		return &ConfigError{Path: path, Reason: reason(err).Error(), unread: true}
	default:
		p.note("%s is not read (%v): the defaults hold", path, reason(err))
	}
	return nil
}

// ConfigBack reads the config where there was none when the project was opened, and a recovery may have written it again since.
func (p *Project) ConfigBack() error {
	if !p.noConfig {
		return nil
	}
	return p.readConfig(true)
}

// ConfigLinked says whether something else than a file is in the place of the config of the tree at root, such as a link,
// which is never followed.
func ConfigLinked(d disk.Disk, root string) bool {
	dir, err := d.OpenRoot(root)
	if err != nil {
		return false
	}
	defer dir.Close()
	decree, err := dir.OpenDir(dirName)
	if err != nil {
		return false
	}
	defer decree.Close()
	st, err := decree.Stat(configFile)
	return err == nil && st.Kind != disk.Regular
}

// clearConfig puts aside what is no regular file in the place of config.yml.
func (p *Project) clearConfig() error {
	st, err := p.Decree.Stat(configFile)
	if err != nil || st.Kind == disk.Regular {
		return disk.UnlessMissing(err)
	}
	if err = p.PutAside(p.Decree, configFile); errors.Is(err, fs.ErrPermission) {
		p.note("%s is no regular file and cannot be moved away: %v; the defaults hold", filepath.Join(dirName, configFile), err)
		return nil
	}
	return disk.UnlessMissing(err)
}

// barred says whether an error is about how one file is (its kind, size or rights): it
// comes again at each try, and is no failure of the disk.
func barred(err error) bool {
	for _, kind := range []error{disk.ErrNotRegular, ErrTooLarge, fs.ErrPermission, syscall.ELOOP, syscall.ENXIO} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// ParseConfig reads a config; path stands in the errors, which are *ConfigError.
// It is strict: an unknown or repeated key, a wrong type, an alias or a second
// document is an error with its line.
func ParseConfig(path string, data []byte) (Config, error) {
	c := DefaultConfig()
	root, err := parseYAML(data)
	if err == nil && root != nil {
		err = c.fill(root)
	}
	if err == nil {
		return c, nil
	}
	e := &ConfigError{Path: path, Reason: err.Error()}
	if at, ok := errors.AsType[*lineError](err); ok {
		e.Line, e.Reason = at.line, at.reason
	}
	return Config{}, e
}

// lineError is a mistake at a line.
type lineError struct {
	line   int
	reason string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.reason) }

func atLine(n *yaml.Node, format string, args ...any) error {
	return &lineError{n.Line, fmt.Sprintf(format, args...)}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// parseYAML returns the one document's top node, nil for an empty file.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, yamlError(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, atLine(&more, "a second YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

func yamlError(err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &lineError{line, strings.TrimPrefix(err.Error(), m[0])}
	}
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}

// fill sets what the document says.
func (c *Config) fill(root *yaml.Node) error {
	return eachKey(root, "", func(key string, k, v *yaml.Node) error {
		switch {
		case key == "isolated" && v.Kind == yaml.ScalarNode:
			return c.set("isolated.run", k, v)
		case key == "capture", key == "log", key == "isolated", key == "drafts", key == "fence", key == "agents", key == "backup":
			return eachKey(v, key+".", func(key string, k, v *yaml.Node) error { return c.set(key, k, v) })
		}
		return c.set(key, k, v)
	})
}

func (c *Config) set(key string, k, v *yaml.Node) error {
	for i := range schema {
		if schema[i].Name != key {
			continue
		}
		if c.lines == nil {
			c.lines = map[string]int{}
		}
		c.lines[key] = k.Line
		return schema[i].set(c, v)
	}
	return atLine(k, "unknown key %q", key)
}

// eachKey calls f for each key of a mapping, with prefix before its name.
func eachKey(n *yaml.Node, prefix string, f func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return atLine(n, "%s is not a mapping of keys to values", nameOf(strings.TrimSuffix(prefix, ".")))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return atLine(k, "a key must be plain text")
		}
		key := prefix + k.Value
		if seen[key] {
			return atLine(k, "key %q is given twice", key)
		}
		seen[key] = true
		if err := f(key, k, v); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(key string) string {
	if key == "" {
		return "the config"
	}
	return key
}

// text takes a scalar as it is written.
func text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!null" && n.Tag != "!!int" && n.Tag != "!!float" && n.Tag != "!!bool" {
		return "", atLine(n, "must be text")
	}
	if n.Tag == "!!null" {
		return "", nil
	}
	return n.Value, nil
}

func count(n *yaml.Node, least int64) (int64, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!int" {
		if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil && v >= least {
			return v, nil
		}
	}
	return 0, atLine(n, "must be a whole number, at least %d", least)
}

func size(n *yaml.Node) (int64, error) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!str") {
		if v, err := ParseSize(n.Value); err == nil {
			return v, nil
		}
	}
	return 0, atLine(n, "must be a size such as 1048576, 64MiB or 10 GiB")
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,18})(?:\.([0-9]{1,3}))?(?: ?(B|[KMGT]i?B|[KMGT]))?$`)

// ParseSize reads a number of bytes: 4096, 10GiB, 64 MiB, 1.5GB. K, M, G and T
// alone count in 1024s like KiB, MiB, GiB and TiB; KB, MB, GB, TB in 1000s.
func ParseSize(s string) (int64, error) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil || m[3] == "" && m[2] != "" {
		return 0, fmt.Errorf("%q is not a size; write 1048576, 64MiB or 10 GiB", s)
	}
	unit := int64(1)
	if u := m[3]; u != "" && u != "B" {
		base := int64(1024)
		if len(u) == 2 {
			base = 1000
		}
		for range strings.IndexByte("KMGT", u[0]) + 1 {
			unit *= base
		}
	}
	whole, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || whole > (1<<63-1)/unit-1 {
		return 0, fmt.Errorf("%q is more bytes than there can be", s)
	}
	n := whole * unit
	if m[2] != "" {
		part, _ := strconv.ParseInt((m[2] + "00")[:3], 10, 64)
		n += part * unit / 1000
	}
	return n, nil
}

var ageForm = regexp.MustCompile(`^([0-9]{1,9})([smhdw])$`)

// ParseAge reads 90s, 15m, 2h, 3d or 1w: a day is 24 hours, a week seven days.
func ParseAge(s string) (time.Duration, error) {
	m := ageForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a duration; write 90s, 15m, 2h, 3d or 1w", s)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]]
	if n > int64((1<<63-1)/unit) {
		return 0, fmt.Errorf("%q is longer than decree can count", s)
	}
	return time.Duration(n) * unit, nil
}
