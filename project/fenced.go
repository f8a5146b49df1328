package project

import (
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaultsWord, in fence.write, stands for the places that it has by default.
const defaultsWord = "defaults"

// defaultWrite are the places that a fenced command may write by default: devices, shared
// memory, and what common tools and agents keep for all projects.
var defaultWrite = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm", "/var/tmp",
	"$XDG_CACHE_HOME", "~/.cache",
	"$GOCACHE", "$GOMODCACHE", "$GOPATH/pkg", "~/go/pkg",
	"$CARGO_HOME/registry", "$CARGO_HOME/git", "~/.cargo/registry", "~/.cargo/git", "~/.cargo/.package-cache", "~/.cargo/.package-cache-mutate", "~/.cargo/.global-cache",
	"~/.npm", "~/.yarn", "~/.local/share/pnpm", "~/.bun/install/cache", "~/.gradle", "~/.m2", "~/.ivy2", "~/.nuget/packages", "~/.ccache", "~/.composer/cache", "~/.bundle/cache",
	"~/.claude", "~/.claude.json", "~/.codex", "~/.gemini", "~/.local/share/opencode", "~/.local/state/opencode",
}

// writePlaces takes a list of places: absolute, below the home or below what a variable names.
func writePlaces(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, atLine(n, "must be a list of paths, such as [%s, ~/.mytool]", defaultsWord)
	}
	out := []string{}
	for _, v := range n.Content {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		switch {
		case s == defaultsWord:
			out = append(out, defaultWrite...)
		case filepath.IsAbs(s), strings.HasPrefix(s, "~/"), strings.HasPrefix(s, "$") && len(s) > 1 && s[1] != '/':
			out = append(out, s)
		default:
			return nil, atLine(v, "%q is not an absolute path, ~/..., $NAME/... or %s", s, defaultsWord)
		}
	}
	return out, nil
}

// FencePlaces are the paths that fence.write names for a command, whose environment get
// looks up. What starts with a variable that is not set, or is no absolute path, is left out.
func (c Config) FencePlaces(get func(name string) string) []string {
	var out []string
	for _, place := range c.FenceWrite {
		switch name, rest, _ := strings.Cut(place, "/"); {
		case name == "~":
			place = filepath.Join(get("HOME"), rest)
		case strings.HasPrefix(name, "$"):
			place = filepath.Join(get(name[1:]), rest)
		}
		if filepath.IsAbs(place) && !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	return out
}
