package backup

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"decree/backup/target"
	"decree/project"
)

// Setting is a line of `backup config`: what is in force, and where it comes from.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // "default", ".decree/config.yml:7", "--to"
}

// Settings are what is in force of the config's backup part, and where each comes from.
func Settings(c *project.Config, name, home string) []Setting {
	b := c.Backup
	nameFrom := c.From("backup.name")
	if b.Name == "" {
		nameFrom = "the repository's origin, or the root's name"
	}
	type plugin struct {
		Name    string   `json:"name"`
		Command string   `json:"command"`
		Include []string `json:"include"`
		Timeout string   `json:"timeout"`
		Restore string   `json:"restore"`
	}
	plugins := []plugin{}
	for _, p := range b.Plugins {
		plugins = append(plugins, plugin{p.Name, p.Command, p.Include, ageOf(p.Timeout), p.Restore})
	}
	out := []Setting{{"to", target.Shown(c.BackupTo(home)), c.From("backup.to")}, {"name", name, nameFrom}}
	for _, l := range []struct {
		key   string
		value int
	}{{"last", b.Retention.Last}, {"daily", b.Retention.Daily}, {"weekly", b.Retention.Weekly}, {"monthly", b.Retention.Monthly}} {
		out = append(out, Setting{"retention." + l.key, l.value, c.From("backup.retention")})
	}
	for _, l := range []Setting{{"schedule", b.Schedule, ""}, {"drill", ageOf(b.Drill), ""}, {"warn", ageOf(b.Warn), ""}, {"encrypt", b.Encrypt, ""},
		{"identity", b.Identity, ""}, {"ping", b.Ping, ""}, {"plugins", plugins, ""}} {
		l.From = c.From("backup." + l.Key)
		out = append(out, l)
	}
	return out
}

// Words is the value for people: -1 is for ever.
func (s Setting) Words() string {
	switch v := s.Value.(type) {
	case int:
		if v < 0 {
			return "for ever"
		}
		return fmt.Sprint(v)
	case string:
		if v == "" {
			return "-"
		}
		return v
	}
	data, err := json.Marshal(s.Value)
	if err != nil || string(data) == "[]" {
		return "-"
	}
	return string(data)
}

// ageOf writes a duration as the config takes it.
func ageOf(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{7 * day, "w"}, {day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit && d%u.unit == 0 && (u.name != "w" || d >= 8*7*day) {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return strings.TrimSuffix(d.String(), "0s")
}
