package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/project"
	"decree/runner"
	"decree/tree"
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

// runCommands runs the plugins' commands by the shell in root, one after the other, with env and
// DECREE_ROOT. One that fails, or takes longer than it may, is an error in failed, and the next one is
// run. When a command has ended nothing of its session is left; who has begun a session of his own is named, where the
// system tells. The error is ctx's.
func runCommands(ctx context.Context, root string, env []string, plugins []project.Plugin) (failed []*PluginError, err error) {
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

// runPlugins is runCommands for the project's own plugins. None is run that came with a restore from elsewhere and was not let go
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
		return runCommands(ctx, p.Root, env, plugins)
	}
	for _, plugin := range plugins {
		if plugin.Command != "" {
			failed = append(failed, &PluginError{plugin.Name, "its command was not run: " + reason})
		}
	}
	return failed, nil
}

// RunPluginRestore runs a plugin's restore command in root, as runCommands does. The plugin's files of
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
	for _, left := range res.Outside { // such as a server that the command was to start
		reason += fmt.Sprintf("; process %d (%s) has left the group and goes on", left.PID, left.Name)
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

// eachPluginFile calls each for the files below root that a plugin's patterns match, in byte order of
// their paths, each once. A directory that a pattern matches stands for all files below it. Links are
// neither followed nor files; .decree and .git at the top have none. What vanishes meanwhile, as beside a database
// that is at work, is passed over. What cannot be read, or each refuses by a *PluginError, and a pattern that matches no
// file are one *PluginError, which comes after all others were looked at; any other error of each ends it.
func eachPluginFile(root disk.Dir, p project.Plugin, each func(name string, f disk.File, size int64) error) error {
	m := &matching{found: map[string]bool{}}
	var without []string
	for _, pattern := range p.Include {
		if !m.expand(root, pattern) {
			without = append(without, pattern)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.found)) {
		if err := m.withFile(root, name, each); err != nil {
			return err
		}
	}
	if len(without) > 0 {
		m.wrong = append(m.wrong, "no file matches "+strings.Join(without, ", "))
	}
	if len(m.wrong) > mostWrong {
		m.wrong = append(m.wrong[:mostWrong:mostWrong], fmt.Sprintf("%d more", len(m.wrong)-mostWrong))
	}
	if len(m.wrong) > 0 {
		return &PluginError{p.Name, strings.Join(m.wrong, "; ")}
	}
	return nil
}

// mostWrong bounds what is said of one plugin's files.
const mostWrong = 10

// matching are the files that a plugin's patterns match.
type matching struct {
	found map[string]bool
	wrong []string // what could not be taken, and why
}

// unread notes that something cannot be read, unless it has vanished, or become something else.
func (m *matching) unread(name string, err error) {
	if isMissing(err) || disk.OtherKind(err) || errors.Is(err, disk.ErrNotRegular) {
		return
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if text := tree.Quote(name) + " cannot be read: " + err.Error(); !slices.Contains(m.wrong, text) { // as by two patterns
		m.wrong = append(m.wrong, text)
	}
}

// withFile calls each for a file.
func (m *matching) withFile(root disk.Dir, name string, each func(string, disk.File, int64) error) error {
	dir := root
	if parent := path.Dir(name); parent != "." {
		var err error
		if dir, err = disk.OpenPath(root, parent); err != nil {
			m.unread(name, err)
			return nil
		}
		defer dir.Close()
	}
	f, err := dir.Open(path.Base(name))
	if err != nil {
		m.unread(name, err)
		return nil
	}
	in := &noted{File: f}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		m.unread(name, err)
		return nil
	}
	err = each(name, in, st.Size)
	if in.err != nil {
		m.unread(name, in.err)
		return nil
	}
	if refused, ok := errors.AsType[*PluginError](err); ok {
		m.wrong = append(m.wrong, refused.Reason)
		return nil
	}
	return err
}

// noted is a file that remembers why it could not be read.
type noted struct {
	disk.File
	err error
}

func (n *noted) Read(b []byte) (int, error) {
	done, err := n.File.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return done, err
}

// expand finds the regular files below root that a pattern matches, or that lie below a directory that it matches. It says
// whether something was there.
func (m *matching) expand(root disk.Dir, pattern string) (some bool) {
	var walk func(dir disk.Dir, at string, parts []string)
	unread := func(name string, err error) {
		some = true // there may be some
		m.unread(name, err)
	}
	walk = func(dir disk.Dir, at string, parts []string) {
		entries, err := dir.List()
		if err != nil {
			unread(cmp.Or(at, "."), err)
			return
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
			case err != nil:
				unread(name, err)
			case st.Kind == disk.Regular && len(parts) <= 1:
				some, m.found[name] = true, true
			case st.Kind == disk.Directory:
				sub, err := dir.OpenDir(e.Name)
				if err != nil {
					unread(name, err)
					continue
				}
				walk(sub, name, parts[min(1, len(parts)):])
				sub.Close()
			}
		}
	}
	var parts []string
	if pattern != "." { // all of the root
		parts = strings.Split(pattern, "/")
	}
	walk(root, "", parts)
	return some
}
