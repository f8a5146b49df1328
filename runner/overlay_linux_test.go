package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/layer/overlay"
)

// layered is a root with a file and a layer over it, for one run each. The test is skipped
// where the machine lets nobody mount.
func layered(t testing.TB) *overlay.Mount {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	m := &overlay.Mount{Root: filepath.Join(base, "root"), Layer: filepath.Join(base, "layer"), Name: "decree " + base}
	for _, d := range []string{"root", "root/sub", "layer", "layer/upper", "layer/work"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(m.Root, "old"), []byte("old\n"), 0o644))
	c := shell("true")
	c.Overlay = m
	if _, err := Run(t.Context(), c); err != nil {
		var refused *overlay.Error
		require.ErrorAs(t, err, &refused)
		t.Skip("this machine makes no overlay: ", err)
	}
	freshWork(t, m)
	t.Cleanup(func() { freshWork(t, m) }) // what the kernel leaves there only its owner's chmod opens
	return m
}

func freshWork(t testing.TB, m *overlay.Mount) {
	t.Helper()
	require.NoError(t, exec.Command("sh", "-c", `chmod -R u+rwx "$1" && rm -r "$1" && mkdir "$1"`, "sh", m.Layer+"/work").Run())
}

func TestOverlay(t *testing.T) {
	m := layered(t)
	c := shell(`pwd; cat ../old; rm ../old; echo new >../new; id -u; grep -E 'Cap(Eff|Prm|Amb)' /proc/self/status | tr -d '\t'
		umount .. 2>/dev/null || echo stays; ls ..`)
	c.Dir, c.Overlay, c.Stdout, c.Stderr = filepath.Join(m.Root, "sub"), m, output(t), output(t)
	res := run(t, c)
	assert.Zero(t, res.ExitCode)
	assert.Equal(t, m.Root+"/sub\nold\n"+exactOutput(t, "id", "-u")+
		"CapPrm:0000000000000000\nCapEff:0000000000000000\nCapAmb:0000000000000000\nstays\nnew\nsub\n", content(t, c.Stdout))
	assert.Empty(t, content(t, c.Stderr))
	assert.FileExists(t, m.Root+"/old")
	assert.NoFileExists(t, m.Root+"/new")
	assert.FileExists(t, m.Layer+"/upper/new")
}

func exactOutput(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).Output()
	require.NoError(t, err)
	return string(out)
}

// TestOverlayAlone: no mount is left, and nobody else sees one.
func TestOverlayAlone(t *testing.T) {
	m := layered(t)
	c := shell("cat /proc/self/mountinfo")
	c.Overlay, c.Stdout = m, output(t)
	run(t, c)
	assert.True(t, overlay.Within([]byte(content(t, c.Stdout)), m.Name))
	own, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.False(t, overlay.Within(own, m.Name))
}

// TestOverlayLookup: what is executed, and where, is looked for in the layer.
func TestOverlayLookup(t *testing.T) {
	m := layered(t)
	bin := filepath.Join(m.Layer, "upper", "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(bin+"/tool", []byte("#!/bin/sh\necho tool\n"), 0o755))
	require.NoError(t, os.WriteFile(bin+"/text", nil, 0o644))
	for _, test := range []struct {
		name, dir, path string
		code            int
		reason          string
	}{
		{"tool", "", m.Root + "/bin", 0, ""},
		{"./tool", "/bin", "", 0, ""},
		{"tool", "/bin", "/nowhere:", 0, ""},
		{"tool", "", "/nowhere:/bin:/usr/bin", 127, "tool: command not found"},
		{"tool", "", "", 127, "tool: command not found"},
		{"./none", "", "", 127, "./none: no such file or directory"},
		{"./text", "/bin", "", 126, "./text: permission denied"},
	} {
		c := Command{Args: []string{test.name}, Dir: m.Root + test.dir, Env: []string{"PATH=" + test.path}, Overlay: m, Stdout: output(t)}
		res := run(t, c)
		freshWork(t, m)
		assert.Equal(t, test.code, res.ExitCode, "%+v", test)
		if test.reason == "" {
			assert.Equal(t, "tool\n", content(t, c.Stdout))
		} else {
			assert.EqualError(t, res.NotStarted, test.reason)
		}
	}
}

func TestOverlayRefused(t *testing.T) {
	m := layered(t)
	for name, spoil := range map[string]func(*Command){
		"enter /nowhere: no such file or directory":           func(c *Command) { c.Dir = "/nowhere" },
		"open /nowhere/work: no such file or directory":       func(c *Command) { c.Overlay.Layer = "/nowhere" },
		"open " + m.Root + "/work: no such file or directory": func(c *Command) { c.Overlay.Layer = m.Root },
		"open " + m.Root + "/none: no such file or directory": func(c *Command) { c.Overlay.Root += "/none" },
	} {
		c, own := shell("echo it ran"), *m
		c.Stdout, c.Overlay = output(t), &own
		spoil(&c)
		res, err := Run(t.Context(), c)
		var refused *overlay.Error
		require.ErrorAs(t, err, &refused)
		assert.EqualError(t, err, name)
		assert.Equal(t, Result{}, res)
		assert.Empty(t, content(t, c.Stdout))
		freshWork(t, m)
	}
}

// TestOverlayEndsAll: who has left the group and the session, and made namespaces of his
// own, is ended with the command, and named.
func TestOverlayEndsAll(t *testing.T) {
	m := layered(t)
	for _, script := range []string{
		`setsid sh -c 'echo up >up; exec sleep 1000' & while [ ! -s up ]; do :; done`,
		`setsid sh -c 'cd /; trap "" TERM; echo up >"$0"; while :; do sleep 0.1; done' "$PWD/up" & while [ ! -s up ]; do :; done`,
		`unshare -Um --map-current-user setsid sh -c 'echo up >up; exec sleep 1000' & while [ ! -s up ]; do :; done`,
	} {
		if strings.HasPrefix(script, "unshare") && os.Getuid() == 0 {
			continue // without capabilities root may not map itself
		}
		c := shell(script)
		c.Dir, c.Overlay, c.Grace = m.Root, m, 50*time.Millisecond
		res := run(t, c)
		assert.NotEmpty(t, res.Stragglers, script)
		assert.Empty(t, res.Survivors)
		assert.Empty(t, res.Outside)
		left, err := mounted(group{mount: m.Name})
		require.NoError(t, err)
		assert.Empty(t, left)
		freshWork(t, m)
		require.NoError(t, os.Remove(m.Layer+"/upper/up"))
	}
}

// TestKillMounted finds by the name of the overlay what was left by a decree that died.
func TestKillMounted(t *testing.T) {
	m := layered(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := exec.Command(os.Args[0], "sh", "-c", "echo up; exec sleep 1000")
	c.Env = append(os.Environ(), helperEnv+"=1", overlayEnv+"="+strings.Join([]string{m.Root, m.Layer, m.Name}, "\n"))
	c.Stdout, c.ExtraFiles = w, []*os.File{w}
	require.NoError(t, c.Start())
	_, err = r.Read(make([]byte, 10)) // it runs
	require.NoError(t, err)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	met, err := KillMounted(m.Name, nil, time.Second)
	require.NoError(t, err)
	assert.Len(t, met, 1)
	again, err := KillMounted(m.Name, nil, time.Second)
	require.NoError(t, err)
	assert.Empty(t, again)
}

// BenchmarkOverlay is the whole of a run that does nothing, without and with an overlay.
func BenchmarkOverlay(b *testing.B) {
	m := layered(b)
	for name, over := range map[string]*overlay.Mount{"none": nil, "overlay": m} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := shell("true")
				c.Dir, c.Overlay = m.Root, over
				_, err := Run(b.Context(), c)
				require.NoError(b, err)
				b.StopTimer()
				freshWork(b, m)
				b.StartTimer()
			}
		})
	}
}
