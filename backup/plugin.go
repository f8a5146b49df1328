package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/project"
	"decree/runner"
)

// pluginGrace is what a plugin's processes are given between TERM and KILL.
const pluginGrace = 2 * time.Second

// PluginError says that a plugin did not do all that it is for. What it left is in the
// generation, as far as there is something.
type PluginError struct {
	Plugin string
	Reason string // a clause without a subject: "exit status 7: database is locked"
}

func (e *PluginError) Error() string { return "plugin " + e.Plugin + ": " + e.Reason }

// RunPlugins runs the plugins' commands by the shell in root, one after the other, with env and
// DECREE_ROOT. One that fails, or takes longer than it may, is an error in failed, and the next one is
// run. When a command has ended nothing of its session is left. The error is ctx's.
func RunPlugins(ctx context.Context, root string, env []string, plugins []project.Plugin) (failed []*PluginError, err error) {
	for _, p := range plugins {
		if p.Command == "" { // it has files, which something else writes
			continue
		}
		if reason := shell(ctx, root, p.Command, p.Timeout, env); reason != "" {
			failed = append(failed, &PluginError{p.Name, reason})
		}
		if err := ctx.Err(); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// runPlugins is RunPlugins for the project's own plugins. None is run that came with a restore from elsewhere and was not let go
// yet; root runs none that another user could have written.
func runPlugins(ctx context.Context, p *project.Project, env []string) (failed []*PluginError, err error) {
	plugins := p.Config.Backup.Plugins
	other, err := p.ConfigOfAnother()
	if err != nil {
		return nil, err
	}
	reason := ""
	if other != "" {
		reason = fmt.Sprintf("%s could have written it, and root would run it; make the backup as that user, or let root alone write the tree's directory, .decree and config.yml", other)
	}
	if p.HeldBack() != nil {
		reason = "it came with a backup from elsewhere, like the messages and cron jobs; look at .decree/config.yml, then 'decree daemon --resume' lets it go"
	}
	if reason == "" {
		return RunPlugins(ctx, p.Root, env, plugins)
	}
	for _, plugin := range plugins {
		if plugin.Command != "" {
			failed = append(failed, &PluginError{plugin.Name, "its command was not run: " + reason})
		}
	}
	return failed, nil
}

// RunPluginRestore runs a plugin's restore command in root, as RunPlugins does. The plugin's files of
// the generation are in files, an absolute path: DECREE_PLUGIN_FILES.
func RunPluginRestore(ctx context.Context, root, files string, env []string, p project.Plugin) error {
	if reason := shell(ctx, root, p.Restore, p.Timeout, append(slices.Clone(env), "DECREE_PLUGIN_FILES="+files)); reason != "" {
		return &PluginError{p.Name, "its restore command: " + reason}
	}
	return ctx.Err()
}

// shell runs a command line, and says why it failed; "" where it did not.
func shell(ctx context.Context, root, command string, timeout time.Duration, env []string) string {
	said := &lastLine{}
	res, err := runner.Run(ctx, runner.Command{
		Args: []string{"/bin/sh", "-c", command}, Dir: root, Root: root,
		Env:   append(slices.Clone(env), "DECREE_ROOT="+root),
		Apart: true, Log: said, Timeout: timeout, Grace: pluginGrace,
	})
	reason := ""
	switch {
	case err != nil:
		return err.Error()
	case res.NotStarted != nil:
		return res.NotStarted.Error()
	case res.TimedOut:
		reason = fmt.Sprintf("not done in %s, and ended with its process group", timeout)
	case res.Signal != "":
		reason = "ended by " + res.Signal
	case res.ExitCode != 0:
		reason = fmt.Sprintf("exit status %d", res.ExitCode)
	default:
		return ""
	}
	if line := said.text(); line != "" {
		reason += ": " + line
	}
	if len(res.Survivors) > 0 {
		reason += fmt.Sprintf("; process %d could not be ended", res.Survivors[0].PID)
	}
	return reason
}

// lastLine keeps the end of what is written to it.
type lastLine struct{ kept []byte }

const maxSaid = 4 << 10

func (l *lastLine) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-maxSaid):]...)
	l.kept = l.kept[max(0, len(l.kept)-maxSaid):]
	return len(p), nil
}

// text is the last line that says something, at most 200 bytes of it.
func (l *lastLine) text() string {
	b := bytes.TrimSpace(l.kept)
	b = bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:])
	return strings.ToValidUTF8(string(b[:min(len(b), 200)]), "\ufffd")
}

// PluginFiles calls each for the files below root that a plugin's patterns match, in byte order of
// their paths, each once. A directory that a pattern matches stands for all files below it. Links are
// neither followed nor files; .decree and .git at the top have none. A pattern that matches no file is a
// *PluginError, which comes after all others were looked at; each's own error ends it.
func PluginFiles(root disk.Dir, p project.Plugin, each func(name string, f disk.File, size int64) error) error {
	found := map[string]bool{}
	var without []string
	for _, pattern := range p.Include {
		before := len(found)
		matched, err := expand(root, pattern)
		if err != nil {
			return err
		}
		for _, name := range matched {
			found[name] = true
		}
		if len(found) == before && len(matched) == 0 {
			without = append(without, pattern)
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := withFile(root, name, each); err != nil {
			return err
		}
	}
	if len(without) > 0 {
		return &PluginError{p.Name, fmt.Sprintf("no file matches %s", strings.Join(without, ", "))}
	}
	return nil
}

func withFile(root disk.Dir, name string, each func(string, disk.File, int64) error) error {
	dir := root
	if parent := path.Dir(name); parent != "." {
		var err error
		if dir, err = disk.OpenPath(root, parent); err != nil {
			return err
		}
		defer dir.Close()
	}
	f, err := dir.Open(path.Base(name))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return each(name, f, st.Size)
}

// expand returns the regular files below root that a pattern matches, or that lie below a
// directory that it matches. What vanishes meanwhile is passed over.
func expand(root disk.Dir, pattern string) ([]string, error) {
	var out []string
	var walk func(dir disk.Dir, at string, parts []string) error
	walk = func(dir disk.Dir, at string, parts []string) error {
		entries, err := dir.List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(at, e.Name)
			if len(parts) > 0 {
				if ok, _ := path.Match(parts[0], e.Name); !ok { // the config has checked the pattern
					continue
				}
			}
			if at == "" && (e.Name == ".decree" || e.Name == ".git") {
				continue
			}
			st, err := dir.Stat(e.Name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case st.Kind == disk.Regular && len(parts) <= 1:
				out = append(out, name)
			case st.Kind == disk.Directory:
				if err := within(dir, e.Name, func(sub disk.Dir) error { return walk(sub, name, parts[min(1, len(parts)):]) }); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var parts []string
	if pattern != "." { // all of the root
		parts = strings.Split(pattern, "/")
	}
	err := walk(root, "", parts)
	return out, err
}

// within opens a directory for as long as do needs it; one that has become something else is
// passed over.
func within(dir disk.Dir, name string, do func(disk.Dir) error) error {
	sub, err := dir.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) || disk.OtherKind(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	return do(sub)
}
