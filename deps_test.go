package decree_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers is the import graph that ARCHITECTURE.md draws: what each package may
// import of decree's own. A new package is a new line here and there.
var layers = map[string]string{
	"jsonread":                 "",
	"patch":                    "jsonread tree",
	"tree":                     "",
	"ignorefile":               "",
	"layer":                    "disk ignorefile layer/overlay runner/gate runner/userns tree",
	"layer/overlay":            "runner/userns",
	"runner":                   "layer/overlay runner/fence runner/gate",
	"runner/fence":             "runner/userns",
	"runner/gate":              "layer/overlay runner/fence runner/userns",
	"runner/userns":            "",
	"retention":                "",
	"message":                  "tree",
	"disk":                     "",
	"disk/disktest":            "disk",
	"manifest":                 "tree",
	"store":                    "disk tree",
	"capture":                  "disk ignorefile manifest tree",
	"worktree":                 "disk tree",
	"project":                  "disk retention tree",
	"history":                  "disk jsonread manifest patch project store tree",
	"plan":                     "patch tree worktree",
	"recorder":                 "agent capture disk history ignorefile layer layer/overlay manifest message patch plan project retention runner runner/fence runner/userns store tree worktree",
	"backup":                   "backup/target disk history message project recorder runner store tree",
	"backup/target":            "disk project tree",
	"queue":                    "disk history message project recorder tree",
	"backup/target/targettest": "backup/target",
	"view":                     "capture history message patch plan project queue recorder tree",
	"tui":                      "history page patch plan planner project recorder timeline tree view",
	"timeline":                 "history project recorder tree view",
	"acp":                      "agent",
	"agent":                    "",
	"hookfile":                 "agent disk project",
	"planner":                  "history patch plan project recorder tree view",
	"mcpserver":                "history patch planner project recorder tree view",
	"page":                     "history patch recorder timeline tree view",
	"report":                   "history page project recorder timeline tree view",
	"web":                      "backup history page patch plan planner project queue recorder timeline tree view",
	"cmd":                      "acp agent backup backup/target disk history hookfile mcpserver message page patch plan planner project queue recorder report retention runner timeline tree tui view web worktree",
	"cmd/decree":               "cmd",
}

// TestImportsPointOneWay holds the graph: an import that is not drawn fails, and
// so does a package that the graph does not know.
func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{join .Imports " "}}`, "./...").Output()
	require.NoError(t, err)
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		path, imports, _ := strings.Cut(line, ":")
		if path == "decree" {
			continue // this test
		}
		name := strings.TrimPrefix(path, "decree/")
		allowed, known := layers[name]
		require.True(t, known, "%s is not in the graph", name)
		seen++
		for _, imp := range strings.Fields(imports) {
			dep, ours := strings.CutPrefix(imp, "decree/")
			if ours {
				require.Contains(t, strings.Fields(allowed), dep, "%s imports %s", name, dep)
			}
		}
	}
	require.Equal(t, len(layers), seen, "the graph names a package that is gone")
}

// TestViewOpensNothing holds that what programs are shown is converted from what it is
// given: view opens no file, runs nothing and has no disk to ask.
func TestViewOpensNothing(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports " "}}`, "./view").Output()
	require.NoError(t, err)
	for _, imp := range strings.Fields(string(out)) {
		require.NotContains(t, []string{"os", "io/fs", "os/exec", "syscall", "decree/disk"}, imp)
	}
}

// TestPureOnesTouchNoFiles holds that patch, tree, ignorefile, retention, message, agent and acp stay free of the
// file system, so that every byte they decide on comes by argument.
func TestPureOnesTouchNoFiles(t *testing.T) {
	for _, name := range []string{"jsonread", "patch", "tree", "ignorefile", "retention", "message", "agent", "acp"} {
		out, err := exec.Command("go", "list", "-f", `{{join .Imports " "}}`, "./"+name).Output()
		require.NoError(t, err)
		for _, imp := range strings.Fields(string(out)) {
			require.NotContains(t, []string{"os", "io/fs", "os/exec", "syscall", "path/filepath"}, imp, name)
		}
	}
}
