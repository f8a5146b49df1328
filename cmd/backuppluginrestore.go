package cmd

import (
	"context"
	"fmt"
	"path/filepath"

	"decree/backup"
	"decree/disk"
	"decree/project"
	"decree/recorder"
)

// restorePlugins puts the plugins' files of a restored generation into .decree/restored, and has the restore commands
// of live, the config that was here before, take them up. Where there was none (fresh) the commands are the generation's own:
// they are printed, and run only with --run-plugins; so are those of a config that is distrusted: it came from elsewhere and was not let go, or
// root would run what another user could have written.
func (s *session) restorePlugins(ctx context.Context, o backupOptions, rec *recorder.Recorder, live []project.Plugin, fresh, distrusted bool, m *backup.Manifest) error {
	p := rec.Project()
	names, kept, err := backup.RestorePluginFiles(p, m)
	if kept != "" {
		s.note(fmt.Sprintf("what was in .decree/restored is not what this restore puts there; it is now in %s", kept))
	}
	if err != nil {
		return err
	}
	if fresh {
		data, err := project.ReadFile(p.Decree, "config.yml", 1<<20)
		if err != nil {
			return disk.UnlessMissing(err)
		}
		config, err := project.ParseConfig("config.yml", data)
		if err != nil {
			return err
		}
		live = config.Backup.Plugins
	}
	commands := map[string]project.Plugin{}
	for _, plugin := range live {
		commands[plugin.Name] = plugin
	}
	var failed error
	for _, name := range names {
		at := filepath.Join(p.Root, ".decree", "restored", name)
		plugin := commands[name]
		switch {
		case plugin.Restore == "":
			s.say("decree: what plugin %s had written is in %s", name, quoteWord(at))
		case (fresh || distrusted) && !o.runPlugins:
			s.say("decree: what plugin %s had written is in %s; its restore command was not run ('--run-plugins' runs it): %s", name, quoteWord(at), oneLine(plugin.Restore))
		default:
			if err := backup.RunPluginRestore(ctx, p.Root, at, s.env.Environ, plugin); err != nil {
				s.note(err.Error())
				failed = err
				continue
			}
			s.say("decree: plugin %s has taken up its files", name)
		}
	}
	if failed != nil {
		return &project.Error{Kind: project.Failed, Err: failed, State: "all else is restored",
			Advice: fmt.Sprintf("its files are in %s: mend what is wrong and run the command there, with DECREE_PLUGIN_FILES set to its directory", quoteWord(filepath.Join(p.Root, ".decree", "restored")))}
	}
	return nil
}
