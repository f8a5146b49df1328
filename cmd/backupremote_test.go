//go:build unix

package cmd

import (
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target/targettest"
)

// far is a target on another machine that can be spoiled.
type far struct {
	*battered
	to     string
	files  string       // where the server has the target
	faults atomic.Int64 // of a bucket: the fault of each request that writes, and from when on
	after  atomic.Int64
}

// farTargets are a bucket and a directory of an sshd.
func farTargets(t *testing.T, do func(t *testing.T, f *far)) {
	t.Helper()
	t.Run("bucket", func(t *testing.T) {
		f := &far{battered: newBattered(t, rand.New(rand.NewPCG(1, 12)))}
		at, dir := targettest.Gateway(t)
		proxy := &targettest.Faulty{Next: func(r *http.Request) targettest.Fault {
			what := targettest.Fault(f.faults.Load())
			if r.Method == http.MethodGet && what != targettest.CutBefore || r.Method == http.MethodHead || what == targettest.None || f.after.Add(-1) >= 0 {
				return targettest.None
			}
			return what
		}}
		f.env = append(f.env, "AWS_ACCESS_KEY_ID="+targettest.AccessKey, "AWS_SECRET_ACCESS_KEY="+targettest.SecretKey)
		f.to, f.files = "s3://bucket/under?endpoint=http://"+proxy.Start(t, at), filepath.Join(dir, "bucket/under")
		do(t, f)
	})
	t.Run("ssh", func(t *testing.T) {
		f := &far{battered: newBattered(t, rand.New(rand.NewPCG(1, 12)))}
		f.files = filepath.Join(f.base, "target")
		f.serve()
		do(t, f)
	})
}

// TestMistakesAboutABucket: each error says what is wrong, that nothing was changed, and what to do.
func TestMistakesAboutABucket(t *testing.T) {
	at, _ := targettest.Gateway(t)
	b := newBattered(t, rand.New(rand.NewPCG(1, 13)))
	b.grow(3)
	b.must("checkpoint", "--yes")
	endpoint := "?endpoint=http://" + at
	for name, c := range map[string]struct {
		to, id, secret string
		says           []string
	}{
		"a wrong secret": {"s3://bucket/x" + endpoint, targettest.AccessKey, "wrong", []string{"does not take these credentials", "hint: mend AWS_ACCESS_KEY_ID"}},
		"a wrong key":    {"s3://bucket/x" + endpoint, "nobody", targettest.SecretKey, []string{"does not take these credentials", "hint: mend AWS_ACCESS_KEY_ID"}},
		"no credentials": {"s3://bucket/x" + endpoint, "", "", []string{"there are no credentials", "set AWS_ACCESS_KEY_ID"}},
		"another region": {"s3://bucket/x" + endpoint + "&region=eu-9", targettest.AccessKey, targettest.SecretKey, []string{"another region", "hint: name the bucket's region"}},
		"a wrong bucket": {"s3://nobucket/x" + endpoint, targettest.AccessKey, targettest.SecretKey, []string{`there is no bucket "nobucket"`, "hint: make the bucket"}},
		"nobody listens": {"s3://bucket/x?endpoint=http://127.0.0.1:1", targettest.AccessKey, targettest.SecretKey, []string{"cannot be reached", "hint: mount the disk, or see that the machine can be reached"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			was := b.env
			defer func() { b.env = was }()
			b.env = append(append([]string{}, b.env...), "AWS_ACCESS_KEY_ID="+c.id, "AWS_SECRET_ACCESS_KEY="+c.secret)
			code, out := b.call(b.root, 0, "backup", "--to", c.to)
			require.Positive(t, code)
			for _, want := range append(c.says, "nothing was changed") {
				require.Contains(t, out, want)
			}
			require.Equal(t, 1, strings.Count(out, "s3://"), "one error: %s", out)
			require.LessOrEqual(t, strings.Count(out, "decree-backup.json"), 2, out)
		})
	}
}

// serve has the target served by an sshd, to which the config is changed.
func (f *far) serve(options ...string) {
	f.t.Helper()
	h := targettest.SSHD(f.t, options...)
	home := filepath.Join(f.base, "home/.ssh")
	require.NoError(f.t, os.RemoveAll(home))
	require.NoError(f.t, os.Rename(filepath.Join(h.Home, ".ssh"), home))
	f.to = "sftp://" + targettest.User() + "@" + h.Addr + f.files
}

// refusedThere makes a backup that must fail with an exit status and these words, and leaves all that was acknowledged.
func (f *far) refusedThere(code int, words string, args ...string) {
	f.t.Helper()
	got, out := f.call(f.root, 0, append([]string{"backup", "--to", f.to}, args...)...)
	require.Equal(f.t, code, got, "%s", out)
	require.Contains(f.t, out, words)
	require.NotContains(f.t, out, targettest.SecretKey)
}

// edit changes a file of the target.
func (f *far) edit(name, old, now string) {
	f.t.Helper()
	at := filepath.Join(f.files, name)
	data, err := os.ReadFile(at)
	require.NoError(f.t, err)
	require.Contains(f.t, string(data), old)
	require.NoError(f.t, os.Remove(at)) // current/ may have a hard link of it
	require.NoError(f.t, os.WriteFile(at, []byte(strings.Replace(string(data), old, now, 1)), 0o600))
}

func TestAFarTargetThatIsReadOnly(t *testing.T) {
	farTargets(t, func(t *testing.T, f *far) {
		f.begin(f.to, false)
		good, words := f.to, "permission denied: the server does not allow this to these credentials"
		if strings.HasPrefix(f.to, "s3") {
			f.faults.Store(int64(targettest.Denied))
		} else {
			require.NoError(t, os.Rename(filepath.Join(f.base, "home/.ssh"), filepath.Join(f.base, "good")))
			f.serve("-R")
			words = "the server only lets read, or lacks posix-rename@openssh.com"
		}
		f.refusedThere(1, words)
		code, _ := f.call(f.root, 0, "backup", "list", "--to", f.to)
		require.Zero(t, code, "who may read reads\n%s", f.log)
		f.faults.Store(0)
		if f.to != good {
			require.NoError(t, os.RemoveAll(filepath.Join(f.base, "home/.ssh")))
			require.NoError(t, os.Rename(filepath.Join(f.base, "good"), filepath.Join(f.base, "home/.ssh")))
		}
		f.backup()
		f.restores("current")
	})
}

func TestAFarTargetThatIsFull(t *testing.T) {
	farTargets(t, func(t *testing.T, f *far) {
		if strings.HasPrefix(f.to, "s3") {
			f.begin(f.to, false)
			f.faults.Store(int64(targettest.Full))
		} else {
			require.NoError(t, os.Mkdir(f.files, 0o700))
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", f.files).CombinedOutput(); err != nil {
				t.Skipf("no small file system can be mounted here: %s", out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", "-l", f.files).Run() })
			f.begin(f.to, false)
			full, err := os.Create(filepath.Join(f.files, "foreign"))
			require.NoError(t, err)
			for err == nil {
				_, err = full.Write(make([]byte, 4096))
			}
			_ = full.Close()
		}
		f.must("run", "--", "sh", f.script(0))
		f.refusedThere(1, "no space left on device")
		f.refusedThere(1, "stands as it was, and no new one was made\nhint: free some space on that disk, or name another target with backup.to; 'decree backup prune' frees little at once")
		f.faults.Store(0)
		_ = os.Remove(filepath.Join(f.files, "foreign"))
		f.backup()
		f.restores("current")
	})
}

// TestAFarTargetThatGoesAway is not there any more at some moment of a backup, and is back later.
func TestAFarTargetThatGoesAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it is asked again for half a minute")
	}
	farTargets(t, func(t *testing.T, f *far) {
		if !strings.HasPrefix(f.to, "s3") {
			t.Skip("TestCutConnections has it")
		}
		f.begin(f.to, false)
		f.must("run", "--", "sh", f.script(0))
		f.after.Store(20)
		f.faults.Store(int64(targettest.CutBefore))
		f.refusedThere(1, "the target cannot be reached")
		f.faults.Store(0)
		f.backup()
		f.restores("current")
	})
}

func TestAFarTargetOfAnotherVersion(t *testing.T) {
	farTargets(t, func(t *testing.T, f *far) {
		f.begin(f.to, false)
		for file, old := range map[string]string{"tree/decree-backup.json": `"version":1`, "tree/manifest.json": `"version": 1`} {
			newer := strings.Replace(old, "1", "2", 1)
			f.edit(file, old, newer)
			for _, args := range [][]string{nil, {"list"}, {"drill"}, {"prune"}, {"restore", "--dry-run"}} {
				f.refusedThere(4, "format version 2 is newer than the newest that this decree can read (1)", args...)
			}
			f.edit(file, newer, old)
		}
		f.backup()
	})
}

func TestAnotherProjectOfTheSameNameFarAway(t *testing.T) {
	farTargets(t, func(t *testing.T, f *far) {
		f.begin(f.to, false)
		before := f.inside("tree")
		other := f.another(f.to)
		require.Equal(t, before, f.inside("tree"), "the other's backups are in tree-2")
		other.settle()
		f.settle()
	})
}

// inside are the files of a directory of the target, with their lengths.
func (f *far) inside(dir string) map[string]int64 {
	f.t.Helper()
	out := map[string]int64{}
	require.NoError(f.t, filepath.WalkDir(filepath.Join(f.files, dir), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var st fs.FileInfo
			st, err = e.Info()
			out[path] = st.Size()
		}
		return err
	}))
	return out
}

// TestAClockOfLastYearFarAway has backups go on under a clock that was set back a year: nothing is removed and nothing is lost.
func TestAClockOfLastYearFarAway(t *testing.T) {
	farTargets(t, func(t *testing.T, f *far) {
		f.begin(f.to, false)
		had := f.list()
		f.clk = f.clk.AddDate(-1, 0, 0)
		f.must("run", "--", "sh", f.script(0))
		for range 3 {
			code, out := f.call(f.root, 0, "backup")
			require.Zero(t, code, "%s", out)
			require.Contains(t, out, "the clock was set back, so what is kept now is called 2026-")
			f.acknowledged(out)
		}
		require.Contains(t, f.log, "nothing was removed: generation 2026-")
		require.Len(t, f.list(), len(had)+3)
		f.restores("current")
		f.clk = f.clk.AddDate(1, 0, 0)
		f.backup()
	})
}

// TestSecretsAreNowhere makes backups with all that is secret given, some of which fail, and looks for it in all that was
// printed and in all files: of the tree, of the store, of the target.
func TestSecretsAreNowhere(t *testing.T) {
	const passphrase = "correct horse battery staple"
	farTargets(t, func(t *testing.T, f *far) {
		f.env = append(f.env, "DECREE_BACKUP_PASSPHRASE="+passphrase)
		require.NoError(t, os.MkdirAll(filepath.Join(f.root, ".decree"), 0o755))
		config := "backup:\n  to: \"" + f.to + "\"\n  encrypt: passphrase\n"
		require.NoError(t, os.WriteFile(filepath.Join(f.root, ".decree/config.yml"), []byte(config), 0o644))
		all := ""
		run := func(code int, args ...string) {
			got, out := f.call(f.root, 0, args...)
			require.Equal(t, code, got, "%v: %s", args, out)
			all += out
		}
		f.must("run", "--", "sh", f.script(0))
		run(0, "backup")
		run(0, "backup", "--json")
		run(0, "backup", "config")
		run(0, "backup", "config", "--json")
		run(0, "backup", "status", "--json")
		run(0, "backup", "restore", "--yes")
		run(0, "audit")
		if strings.HasPrefix(f.to, "s3") {
			was := f.env
			f.env = append(f.env[:len(f.env):len(f.env)], "AWS_ACCESS_KEY_ID=stranger")
			run(1, "backup")
			f.env = was
			for _, to := range []string{"s3://tester:" + targettest.SecretKey + "@bucket/x", "s3://bucket/x?secret=" + targettest.SecretKey} {
				run(2, "backup", "--to", to)
				run(0, "backup", "config", "--to", to)
				run(2, "backup", "status", "--to", to)
				run(0, "log")
			}
		}
		for _, secret := range []string{targettest.SecretKey, passphrase} {
			require.NotContains(t, all, secret)
			for _, dir := range []string{f.root, filepath.Join(f.base, "data"), f.files} {
				require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
					if err != nil || !e.Type().IsRegular() {
						return err
					}
					data, err := os.ReadFile(path)
					require.NotContains(t, string(data), secret, path)
					return err
				}))
			}
		}
	})
}
