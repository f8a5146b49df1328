package recorder

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutateEnv makes the test binary change its working directory by the seed in
// it: the command that the properties record.
const mutateEnv = "DECREE_TEST_MUTATE"

const (
	markEnv   = "DECREE_TEST_MARK"   // a file that gets a line each time the command is executed
	deleteEnv = "DECREE_TEST_DELETE" // what the command deletes first
	tamperEnv = "DECREE_TEST_TAMPER" // what it has a shell do then
)

func TestMain(m *testing.M) {
	if seed, err := strconv.ParseInt(os.Getenv(mutateEnv), 10, 64); err == nil {
		if mark := os.Getenv(markEnv); mark != "" {
			f, err := os.OpenFile(mark, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = f.WriteString("ran\n")
				f.Close()
			}
		}
		if gone := os.Getenv(deleteEnv); gone != "" {
			_ = os.RemoveAll(gone)
		}
		mutate(".", rand.New(rand.NewSource(seed)))
		if script := os.Getenv(tamperEnv); script != "" {
			_ = exec.Command("/bin/sh", "-c", script).Run()
		}
		code, _ := strconv.Atoi(os.Getenv("DECREE_TEST_EXIT"))
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// names hold what a tree may hold: plain, blank, quoted, a newline, no UTF-8.
var names = []string{"a", "b.go", "c d", "e\"q", "new\nline", "caf\xe9", "Ünïcode", "-dash", "x.bin", "deep", "lib", "sub"}

// contents are of every kind that a diff treats in its own way.
func content(rnd *rand.Rand) []byte {
	switch rnd.Intn(7) {
	case 0:
		return nil
	case 1:
		b := make([]byte, rnd.Intn(3000))
		rnd.Read(b)
		return append(b, 0)
	case 2:
		return []byte("no newline at the end")
	case 3:
		return []byte("-- a\n++ b\n@@ -1 +1 @@\n\\ No newline\n\r\n\xff\xfe\u2028\n")
	}
	var b []byte
	for range rnd.Intn(60) {
		b = fmt.Appendf(b, "line %d\n", rnd.Intn(40))
	}
	return b
}

// populate makes a first tree.
func populate(root string, rnd *rand.Rand) {
	for range 30 {
		place(root, rnd)
	}
}

// place writes a file, link or directory somewhere below root.
func place(root string, rnd *rand.Rand) {
	dir := root
	for range rnd.Intn(3) {
		dir = filepath.Join(dir, names[rnd.Intn(len(names))])
	}
	if os.MkdirAll(dir, 0o755) != nil {
		return // a file is in the way: that is a tree too
	}
	path := filepath.Join(dir, names[rnd.Intn(len(names))])
	if _, err := os.Lstat(path); err == nil {
		return
	}
	switch rnd.Intn(8) {
	case 0:
		_ = os.Symlink(names[rnd.Intn(len(names))], path)
	case 1:
		_ = os.Mkdir(path, []fs.FileMode{0o755, 0o700, 0o555}[rnd.Intn(3)])
	default:
		_ = os.WriteFile(path, content(rnd), []fs.FileMode{0o644, 0o755, 0o600, 0o400}[rnd.Intn(4)])
	}
}

// mutate changes a tree: edits, deletions, modes, kinds, new paths.
func mutate(root string, rnd *rand.Rand) {
	paths := pathsOf(root)
	for _, p := range paths {
		path := filepath.Join(root, p)
		info, err := os.Lstat(path)
		if err != nil || rnd.Intn(3) > 0 {
			continue
		}
		switch rnd.Intn(6) {
		case 0:
			_ = os.RemoveAll(path)
		case 1:
			if info.Mode()&fs.ModeSymlink == 0 {
				_ = os.Chmod(path, []fs.FileMode{0o644, 0o755, 0o700}[rnd.Intn(3)])
			}
		case 2: // another kind
			_ = os.RemoveAll(path)
			switch rnd.Intn(3) {
			case 0:
				_ = os.Symlink("elsewhere", path)
			case 1:
				_ = os.MkdirAll(filepath.Join(path, "inner"), 0o755)
				_ = os.WriteFile(filepath.Join(path, "f"), content(rnd), 0o644)
			case 2:
				_ = os.WriteFile(path, content(rnd), 0o644)
			}
		default:
			if info.Mode().IsRegular() {
				_ = os.Chmod(path, 0o644)
				_ = os.WriteFile(path, content(rnd), 0o644)
			}
		}
	}
	for range rnd.Intn(10) {
		place(root, rnd)
	}
}

// pathsOf lists what is below root but .decree, sorted.
func pathsOf(root string) []string {
	var out []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.Name() == ".decree" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil // a command put a file there: only that is passed over
		}
		if rel, _ := filepath.Rel(root, path); rel != "." {
			out = append(out, rel)
		}
		return nil
	})
	sort.Strings(out)
	return out
}

// snapshot maps each path below root to its type, mode and content's hash: the
// oracle that knows nothing of decree.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range pathsOf(root) {
		path := filepath.Join(root, p)
		info, err := os.Lstat(path)
		require.NoError(t, err)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			out[p] = "link " + target
		case info.IsDir():
			out[p] = info.Mode().String()
		default:
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			out[p] = fmt.Sprintf("%s %x", info.Mode(), sha256.Sum256(data))
		}
	}
	return out
}
