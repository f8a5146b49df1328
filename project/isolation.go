package project

import (
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Isolation is what the config says of isolated runs.
type Isolation struct {
	Always bool          // every run is isolated that does not ask to be in place
	Queue  bool          // so are the runs of messages
	Share  []string      // what a clone has as links into the tree: clean paths below the root
	Keep   int           // of how many drafts that wait the layer is kept
	MaxAge time.Duration // and how long
}

func whetherAlways(n *yaml.Node) (bool, error) {
	if n.Kind != yaml.ScalarNode || n.Value != "always" && n.Value != "asked" {
		return false, atLine(n, "must be always or asked, which is with --isolated alone")
	}
	return n.Value == "always", nil
}

// sharedPaths takes a list of paths below the root. What decree and git keep cannot be
// shared: a command that works in a clone is not to write there.
func sharedPaths(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, atLine(n, "must be a list of paths, such as [node_modules]")
	}
	var out []string
	for _, v := range n.Content {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		clean := path.Clean(s)
		parts := strings.Split(clean, "/")
		switch {
		case s == "" || clean == "." || path.IsAbs(s) || parts[0] == "..":
			return nil, atLine(v, "%q is not a path below the root", s)
		case slices.Contains(parts, ".git") || slices.Contains(parts, dirName):
			return nil, atLine(v, "%q cannot be shared", s)
		case !slices.Contains(out, clean):
			out = append(out, clean)
		}
	}
	return out, nil
}
