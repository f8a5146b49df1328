package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
)

// RunOptions are what a backup does beside making a generation.
type RunOptions struct {
	Environ []string // that plugins inherit
	Ping    string   // a URL that is fetched after success; "": none
	// Prove is false where what was written cannot be read here, as with encryption and no identity.
	Prove bool
}

// Outcome is what a backup has led to.
type Outcome struct {
	*Made
	Failed []string // what did not work although a generation was made, plugins above all: a sentence each
	Proof  *Proof   // nil: nothing was proven
	Pruned *Prune   // nil: that failed
}

// Run makes a backup with all that belongs to it: plugins, a generation, its proof, rotation, and the ping,
// which follows only where all of it succeeded. The error is that no generation was made, which the store
// remembers, or that one was, as it says, and could not be written down.
func Run(ctx context.Context, o Options, r RunOptions) (*Outcome, error) {
	p := o.Recorder.Project()
	out, err := o.run(ctx, r)
	if err == nil {
		return out, nil
	}
	if (out == nil || out.Made == nil) && !errors.Is(err, context.Canceled) {
		if rerr := RememberFailure(p.Store, o.Target.String(), o.Now(), err); rerr != nil {
			o.Tell(fmt.Sprintf("that it failed could not be noted: %v", rerr))
		}
	}
	return nil, err
}

func (o Options) run(ctx context.Context, r RunOptions) (*Outcome, error) {
	p := o.Recorder.Project()
	b, out := p.Config.Backup, &Outcome{}
	var told []string // what is no failure, and is to be told until the next backup
	failed, err := runPlugins(ctx, p, r.Environ)
	if err != nil {
		return nil, err
	}
	o.Extra = func(put func(string, io.Reader, int64) error) (done []string, err error) {
		done, failed, err = o.pluginFiles(b.Plugins, failed, put)
		return done, err
	}
	o.held = &heldLock{}
	defer o.held.end()
	if out.Made, err = generate(ctx, o); err != nil {
		return out, err
	}
	for _, f := range failed {
		out.Failed = append(out.Failed, f.Error())
	}
	if out.Older != "" {
		told = append(told, out.Older)
	}
	if out.Place.Apart != "" {
		told = append(told, out.Place.Apart)
	}
	if err := Remember(p.Store, o.Target.String(), func(m *Remembered) { m.Problems, m.Failed = slices.Concat(told, out.Lost, out.Failed), nil }); err != nil {
		out.Failed = append(out.Failed, "what the next commands are to tell was not noted: "+err.Error())
	}
	sealed := Unreadable(ctx, o.Target, out.Place.Name)
	if r.Prove && sealed == nil {
		whole := recall(p.Store, o.Target.String()).wholeDue(b, o.Now())
		if out.Proof, err = Drill(ctx, o, whole); err != nil {
			out.Failed = append(out.Failed, "the proof could not be made: "+err.Error())
		}
	}
	if r.Prove && sealed != nil && !errors.Is(sealed, target.ErrNoIdentity) { // what was given does not open it
		out.Failed = append(out.Failed, "the proof could not be made: "+sealed.Error())
	}
	if sealed == nil && out.Older == "" {
		o.rotate(ctx, out)
	}
	if r.Ping != "" && len(out.Failed) == 0 && (out.Proof == nil || out.Proof.OK) && len(out.Lost) == 0 && out.Older == "" {
		if err := fetch(ctx, r.Ping); err != nil {
			o.Tell("the ping: " + err.Error())
		}
	}
	return out, nil
}

// pluginFiles puts the plugins' files into the generation, and returns who did all that it is for.
func (o Options) pluginFiles(plugins []project.Plugin, failed []*PluginError, put func(string, io.Reader, int64) error) (done []string, all []*PluginError, err error) {
	for _, plugin := range plugins {
		err := eachPluginFile(o.Recorder.Project().Dir, plugin, func(name string, f disk.File, size int64) error {
			as := path.Join(pluginsPart, plugin.Name, name)
			if err := checkFile(as); err != nil {
				return &PluginError{plugin.Name, err.Error()}
			}
			return put(as, f, size)
		})
		if f, ok := errors.AsType[*PluginError](err); ok {
			failed = append(failed, f)
		} else if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(failed, func(f *PluginError) bool { return f.Plugin == plugin.Name }) {
			done = append(done, plugin.Name)
		}
	}
	return done, failed, nil
}

// rotate removes what no rule keeps, unless something is wrong.
func (o Options) rotate(ctx context.Context, out *Outcome) {
	pruned, err := o.Prune(ctx, o.Recorder.Project().Config.Backup.Retention, false)
	if err != nil {
		out.Failed = append(out.Failed, "old generations could not be removed: "+err.Error())
		return
	}
	out.Pruned = pruned
}

// pingTime is how long the answer to a ping may take.
const pingTime = 10 * time.Second

// fetch gets a URL, and drops what it says. The error does not have the URL, which may be a secret, but its host.
func fetch(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("not a URL that can be fetched")
	}
	answer, err := http.DefaultClient.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", req.URL.Host, answer.Status)
	}
	return nil
}
