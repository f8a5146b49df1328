package project

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/gcfg/v2"
	"go.yaml.in/yaml/v3"
)

// DefaultBackupTo is where backups go that nobody has given a place, below the root: it goes
// with the tree.
const DefaultBackupTo = dirName + "/backup"

// Backup is what the config says of backups.
type Backup struct {
	To        string // a directory, absolute or ~/...; an s3:// or sftp:// URL; "" is DefaultBackupTo
	Name      string // the project's directory there; "": from the repository's origin, else the root's name
	Retention BackupRetention
	Schedule  string        // five cron fields; "": the daemon makes none
	Drill     time.Duration // how old the newest proof may be
	Warn      time.Duration // how old the newest backup may be
	Encrypt   string        // age recipients with spaces between them, or "passphrase"; "": not encrypted
	Identity  string        // a file, absolute or ~/...
	Ping      string        // a URL
	Plugins   []Plugin
}

// BackupRetention is how many generations are kept: the newest ones, and of days, weeks and months
// that have one. -1 is for ever, 0 that none is kept by this rule.
type BackupRetention struct {
	Last    int `json:"last"`
	Daily   int `json:"daily"`
	Weekly  int `json:"weekly"`
	Monthly int `json:"monthly"`
}

// Plugin is a command that writes files into the root, which are a part of each generation.
type Plugin struct {
	Name    string
	Command string   // for the shell, in the root
	Include []string // patterns of paths below the root, as path.Match has them
	Timeout time.Duration
	Restore string // the command that takes them up again; "": none
}

const pluginTimeout = time.Minute

// backupKeys are the keys below backup, whose table stands with the others.
func backupKeys() []Key {
	field := func(f func(*Backup) *string) func(*Config) *string {
		return func(c *Config) *string { return f(&c.Backup) }
	}
	return []Key{
		{"backup.to", "text", "", "Where backups go: a directory (an absolute path or ~/...), s3://bucket/prefix?endpoint=URL&region=R, or sftp://user@host/path. Without it they go to " + DefaultBackupTo + ", which is lost with the tree.", set(backupPlace, field(func(b *Backup) *string { return &b.To }))},
		{"backup.name", "text", "", "The project's directory there. Without it: the last part of the URL of the git repository's origin, else the name of the root's directory.", set(backupName, field(func(b *Backup) *string { return &b.Name }))},
		{"backup.retention", "numbers", "{last: 10, daily: 5, weekly: 4, monthly: -1}", "How many generations are kept: the last so many, and one for each of so many days, ISO weeks and months that have one, in UTC; -1 is for ever. What any of these keeps stays. A number that is not given is 0.", set(backupRetention, func(c *Config) *BackupRetention { return &c.Backup.Retention })},
		{"backup.schedule", "text", "", "When the daemon makes backups: five cron fields, in local time.", set(text, field(func(b *Backup) *string { return &b.Schedule }))},
		{"backup.drill", "duration", "30d", "How old the newest proof may be: a whole one is made when it is older, and until then decree says so.", set(parseAge, func(c *Config) *time.Duration { return &c.Backup.Drill })},
		{"backup.warn", "duration", "7d", "How old the newest backup may be before every command says so.", set(parseAge, func(c *Config) *time.Duration { return &c.Backup.Warn })},
		{"backup.encrypt", "text", "", "age recipients with spaces between them, to whom backups are encrypted, or the word passphrase: then DECREE_BACKUP_PASSPHRASE has it.", set(text, field(func(b *Backup) *string { return &b.Encrypt }))},
		{"backup.identity", "text", "", "A file with the age identity that opens encrypted backups, an absolute path or ~/....", set(absoluteFile, field(func(b *Backup) *string { return &b.Identity }))},
		{"backup.ping", "text", "", "A URL that is fetched after each backup that succeeded.", set(webAddress, field(func(b *Backup) *string { return &b.Ping }))},
		{"backup.plugins", "list", "[]", "Commands whose files are a part of each backup: a list of {name, command, include, timeout, restore}. The command runs by the shell in the root, at most timeout (60s); include are patterns of paths below the root; restore is a command that takes the files up again after a restore.", set(plugins, func(c *Config) *[]Plugin { return &c.Backup.Plugins })},
	}
}

func backupPlace(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil {
		if perr := checkBackupTo(s); perr != nil {
			err = atLine(n, "%v", perr)
		}
	}
	return s, err
}

// checkBackupTo refuses what cannot be the place of backups; "" is the default one.
func checkBackupTo(s string) error {
	scheme, _, remote := strings.Cut(s, "://")
	switch {
	case remote && (scheme == "s3" || scheme == "sftp"):
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return errors.New("this is not such a URL: s3://bucket/prefix?endpoint=URL&region=R, sftp://user@host/path")
		}
		return nil
	case remote:
		return fmt.Errorf("%q: there are directories, s3:// and sftp://", scheme+"://")
	case s != "" && s != DefaultBackupTo && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/"):
		return fmt.Errorf("%q is neither an absolute path, ~/..., an s3:// nor an sftp:// URL", s)
	}
	return nil
}

var backupNameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func backupName(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && s != "" && !backupNameForm.MatchString(s) {
		err = atLine(n, "%q must be letters, digits, '.', '_' and '-', at most 128", s)
	}
	return s, err
}

// IsBackupName says whether s can be the name of a project's directory in a target.
func IsBackupName(s string) bool { return backupNameForm.MatchString(s) }

func backupRetention(n *yaml.Node) (BackupRetention, error) {
	var r BackupRetention
	fields := map[string]*int{"last": &r.Last, "daily": &r.Daily, "weekly": &r.Weekly, "monthly": &r.Monthly}
	err := eachKey(n, "backup.retention.", func(key string, k, v *yaml.Node) error {
		name := strings.TrimPrefix(key, "backup.retention.")
		field := fields[name]
		if field == nil {
			return atLine(k, "unknown key %q; there are last, daily, weekly and monthly", name)
		}
		number, err := small(v, -1)
		*field = number
		return err
	})
	return r, err
}

func absoluteFile(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && s != "" && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		err = atLine(n, "%q is neither an absolute path nor ~/...", s)
	}
	return s, err
}

func webAddress(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil || s == "" {
		return s, err
	}
	if u, perr := url.Parse(s); perr != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		err = atLine(n, "%q is not an http:// or https:// URL", s)
	}
	return s, err
}

var pluginForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func plugins(n *yaml.Node) ([]Plugin, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, atLine(n, "must be a list of {name: NAME, command: COMMAND, include: [PATTERN]}")
	}
	var out []Plugin
	names := map[string]bool{}
	for _, v := range n.Content {
		p, err := plugin(v)
		if err != nil {
			return nil, err
		}
		if names[p.Name] {
			return nil, atLine(v, "plugin %q is given twice", p.Name)
		}
		names[p.Name] = true
		out = append(out, p)
	}
	return out, nil
}

func plugin(n *yaml.Node) (Plugin, error) {
	p := Plugin{Timeout: pluginTimeout}
	err := eachKey(n, "", func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "name":
			p.Name, err = text(v)
		case "command":
			p.Command, err = text(v)
		case "restore":
			p.Restore, err = text(v)
		case "timeout":
			p.Timeout, err = parseAge(v)
		case "include":
			p.Include, err = patterns(v)
		default:
			err = atLine(k, "unknown key %q; there are name, command, include, timeout and restore", key)
		}
		return err
	})
	switch {
	case err != nil:
	case !pluginForm.MatchString(p.Name):
		err = atLine(n, "the name of a plugin is letters, digits, '_' and '-', not %q", p.Name)
	case p.Timeout <= 0:
		err = atLine(n, "plugin %s: the timeout must be longer than nothing", p.Name)
	}
	return p, err
}

// patterns takes a list of patterns of paths below the root.
func patterns(n *yaml.Node) ([]string, error) {
	list := n.Content
	if n.Kind == yaml.ScalarNode {
		list = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		return nil, atLine(n, "must be a list of patterns, such as [\".beads/backup/*\"]")
	}
	var out []string
	for _, v := range list {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		_, bad := path.Match(s, "")
		clean := path.Clean(s)
		if bad != nil || s == "" || path.IsAbs(s) || clean == ".." || strings.HasPrefix(clean, "../") {
			return nil, atLine(v, "%q is not a pattern of paths below the root", s)
		}
		out = append(out, clean)
	}
	return out, nil
}

// From says where what is in force for a key comes from: a line of the config, or "default".
func (c *Config) From(key string) string {
	if line := c.lines[key]; line > 0 {
		return fmt.Sprintf("%s/%s:%d", dirName, configFile, line)
	}
	return "default"
}

// WantsBackups says whether the config names a place or a time for backups.
func (c *Config) WantsBackups() bool { return c.Backup.To != "" || c.Backup.Schedule != "" }

// BackupTo is the place of backups in force, with ~/ replaced by the home directory.
func (c *Config) BackupTo(home string) string {
	to := cmp.Or(c.Backup.To, DefaultBackupTo)
	if rest, ok := strings.CutPrefix(to, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	return to
}

// BackupName is how the project's directory in a target is called: backup.name, else the last
// part of the URL of the repository's origin, else the name of the root's directory.
func (p *Site) BackupName(w Where) string {
	if p.Config.Backup.Name != "" {
		return p.Config.Backup.Name
	}
	origin, _ := gitFiles{disk: p.Disk, w: w}.origin(p.Root) // a config that cannot be read names nothing
	origin = strings.TrimRight(origin, "/")
	origin = strings.TrimSuffix(origin[strings.LastIndexAny(origin, "/:\\")+1:], ".git")
	for _, name := range []string{origin, filepath.Base(p.Root)} {
		if name = backupNameOf(name); name != "" {
			return name
		}
	}
	return "project"
}

// backupNameOf makes a name that targets take of any text; "" where nothing is left.
func backupNameOf(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("._-", r) || r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '-'
	}, s)
	s = strings.Trim(s[:min(len(s), 120)], ".-")
	if !backupNameForm.MatchString(s) {
		return ""
	}
	return s
}

// origin is the URL of the repository's remote of that name, as its config has it.
func (g gitFiles) origin(root string) (url string, err error) {
	_, common, err := g.repository(root)
	if err != nil || common == "" {
		return "", err
	}
	data, err := g.read(filepath.Join(common, "config"), maxGitFile)
	if err != nil || data == nil {
		return "", err
	}
	err = gcfg.ReadWithCallback(bytes.NewReader(data), func(section, sub, key, value string, _ bool) error {
		if strings.EqualFold(section, "remote") && sub == "origin" && strings.EqualFold(key, "url") {
			url = value
		}
		return nil
	})
	return url, err
}

// From is the id of the project whose history a restore has put here, "" for none.
func (p *Project) From() string { return p.form.From }
