package ignorefile_test

import (
	"math/rand/v2"
	"strings"
)

// Names and rules of the random trees. Names are short and of few letters, so
// that rules meet them often.
var (
	nameParts = []string{
		"a", "a", "a", "b", "b", "b", "c", "ab", "aa", ".", "A", "1", "*", "?", "[", "]", "!", `\`, "#", " ", "-", "^", ":",
		"\xe9", "\xc3\xa9", "\n", "\r", "\t", "\v", "_", "$", "(", "{", ",",
	}
	ruleParts = []string{
		"a", "a", "a", "b", "b", "b", "c", "ab", ".", "A", "1", "*", "*", "*", "**", "***", "?", "?", "/", "/", "/", "**/", "/**", "/**/", "*/",
		"[", "]", "!", `\`, `\`, "#", " ", "-", "^", ":", "\xe9", "\xc3\xa9", "\r", "\t", "\x00", "_", "$", "(", "{",
		"[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[!]a]", "[a-]", "[a", `[\]]`, `[a\-c]`, `[a-\c]`, "[[:alpha:]]", "[[:digit:]a]", "[![:space:]]",
		"[[:punct:]]", "[[:alnum:]-z]", "[[:foo:]]", "[:a]", "[[:a]", "[--0]", "[*]", "[?]", "[/]", "[a/b]", `\/`, `\*`, `\[`, `\ `, `**\/`, "**/*", "*/**/",
	}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// randomName returns a name that a file system takes and git does not treat as
// its own.
func randomName(r *rand.Rand) string {
	for {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			b.WriteString(pick(r, nameParts))
		}
		switch name := b.String(); name {
		case ".", "..", ".git":
		default:
			return name
		}
	}
}

// randomTree fills in directories and files.
func randomTree(r *rand.Rand) gitCase {
	c := gitCase{dirs: []string{""}, rules: tree{}}
	taken := map[string]bool{}
	add := func(list *[]string) {
		path := randomName(r)
		dir := c.dirs[r.IntN(len(c.dirs))]
		if r.IntN(2) == 0 {
			dir = c.dirs[len(c.dirs)-1] // deep trees
		}
		if dir != "" {
			path = dir + "/" + path
		}
		if !taken[path] && strings.Count(path, "/") < 6 {
			taken[path] = true
			*list = append(*list, path)
		}
	}
	for range 3 + r.IntN(8) {
		add(&c.dirs)
	}
	for range 8 + r.IntN(16) {
		add(&c.files)
	}
	return c
}

// addRules gives some directories ignore files, their lines made by rule.
func (c *gitCase) addRules(r *rand.Rand, rule func(dir string) string) {
	for i, dir := range c.dirs {
		if i > 0 && r.IntN(3) > 0 {
			continue
		}
		var content [2]string
		for j := range content {
			if r.IntN(3) < j*2 {
				continue // fewer of the second file
			}
			content[j] = randomFile(r, func() string { return rule(dir) })
		}
		c.rules[dir] = content
	}
}

func randomFile(r *rand.Rand, rule func() string) string {
	var b strings.Builder
	if r.IntN(20) == 0 {
		b.WriteString("\xef\xbb\xbf")
	}
	for range 1 + r.IntN(6) {
		line := rule()
		if gitErrs(line) {
			continue
		}
		b.WriteString(line)
		b.WriteString([]string{"\n", "\n", "\n", "\n", "\r\n", " \n", "\n\n"}[r.IntN(7)])
	}
	if r.IntN(4) == 0 {
		// The end of the file may lack its line feed.
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}

// gitErrs says that line has ** directly behind a literal where git before 2.52
// takes it for a component: it forgets the literal in front, which it has
// compared on its own. gitignore(5) calls such stars ordinary ones.
func gitErrs(line string) bool {
	line = strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(line, "!"), " \r"), "/")
	if i := strings.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	if !strings.Contains(line, "/") {
		return false
	}
	i := strings.IndexAny(line, `*?[\`)
	return i > 0 && line[i-1] != '/' && strings.HasPrefix(line[i:], "**")
}

// adversarialCase has rules of random parts.
func adversarialCase(r *rand.Rand) gitCase {
	c := randomTree(r)
	c.addRules(r, func(string) string {
		var b strings.Builder
		if r.IntN(5) == 0 {
			b.WriteByte('!')
		}
		for range 1 + r.IntN(5) {
			b.WriteString(pick(r, ruleParts))
		}
		return b.String()
	})
	return c
}

// mutatedCase has rules made of the tree's own paths, a few bytes replaced.
func mutatedCase(r *rand.Rand) gitCase {
	c := randomTree(r)
	paths := append(append([]string{}, c.dirs[1:]...), c.files...)
	c.addRules(r, func(dir string) string {
		path := pick(r, paths)
		if below, ok := strings.CutPrefix(path, dir+"/"); ok {
			path = below
		}
		return mutate(r, path)
	})
	return c
}

// mutate makes a rule that path matches, mostly.
func mutate(r *rand.Rand, path string) string {
	parts := strings.Split(strings.ReplaceAll(path, "\n", "?"), "/")
	parts = parts[r.IntN(len(parts)):]
	for i, p := range parts {
		switch r.IntN(13) {
		case 0:
			parts[i] = "**"
		case 1:
			parts[i] = "*"
		case 2:
			parts[i] = "*" + p[r.IntN(len(p)):]
		case 3:
			parts[i] = p[:r.IntN(len(p))] + "*"
		case 4:
			at := r.IntN(len(p))
			parts[i] = p[:at] + pick(r, []string{"?", "[!x]", "[a-c]", "[[:alpha:]]", "[[:punct:]]", `\` + p[at:at+1]}) + p[at+1:]
		case 5:
			parts[i] = "**/" + p
		case 6:
			parts[i] = "**/*" + p[r.IntN(len(p)):] + "*"
		case 7:
			parts[i] = strings.ReplaceAll(p, "a", "[ab]")
		}
	}
	rule := strings.Join(parts, "/")
	if r.IntN(4) == 0 {
		rule = "/" + rule
	}
	if r.IntN(4) == 0 {
		rule += "/"
	}
	if r.IntN(4) == 0 {
		rule = "!" + rule
	}
	return rule
}
