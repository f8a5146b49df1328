package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func (s *session) completionVerb() verb {
	return verb{
		name: "completion", category: keepCategory, args: "SHELL", words: shellWords,
		usage: "print a completion script for bash, zsh or fish",
		about: `Prints a script that makes SHELL complete decree's commands, flags, records, labels and paths.`,
		examples: []example{
			{"source <(decree completion bash)", "in ~/.bashrc"},
			{"decree completion zsh > ~/.zfunc/_decree", "with ~/.zfunc in $fpath"},
			{"decree completion fish > ~/.config/fish/completions/decree.fish", "for fish"},
		},
		flags:  []cli.Flag{s.quietFlag()},
		action: s.completion,
	}
}

// shells are the completion scripts that can be printed.
var shells = map[string]func(w io.Writer, verbs []verb, global []cli.Flag){
	"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
}

func (s *session) completion(context.Context) error {
	words := s.words()
	if len(words) != 1 {
		return usagef("one SHELL is needed").hint("it is bash, zsh or fish: 'decree completion bash'")
	}
	script, ok := shells[words[0]]
	if !ok {
		return usagef("%s: no completion for this shell", quoteWord(words[0])).hint("choose bash, zsh or fish")
	}
	return s.print(func(w io.Writer) error {
		script(w, s.verbs(), s.globalFlags())
		return nil
	})
}

// flagWords are all spellings of flags, for a completion's list.
func flagWords(flags []cli.Flag) []string {
	var out []string
	for _, f := range flags {
		for _, name := range f.Names() {
			if len(name) == 1 {
				out = append(out, "-"+name)
			} else {
				out = append(out, "--"+name)
			}
		}
	}
	return append(out, "--help")
}

// verbWords are the names of all verbs that are shown.
func verbWords(verbs []verb) []string {
	var out []string
	for _, v := range verbs {
		if !v.hidden {
			out = append(append(out, v.name), v.aliases...)
		}
	}
	return out
}

func bashCompletion(w io.Writer, verbs []verb, global []cli.Flag) {
	fmt.Fprintf(w, `# bash completion for decree
_decree() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb="" ref="" flags words i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-C|--root|--wait) ((i++)) ;;
		-*) ;;
		*) [[ -n $verb ]] && { ref=${COMP_WORDS[i]}; break; }; verb=${COMP_WORDS[i]} ;;
		esac
	done
	case $verb in
	"") flags="%s"; words="%s" ;;
`, strings.Join(flagWords(global), " "), strings.Join(verbWords(verbs), " "))
	for _, v := range verbs {
		if v.hidden {
			continue
		}
		names := strings.Join(append([]string{v.name}, v.aliases...), "|")
		fmt.Fprintf(w, "\t%s) flags=\"%s\"; words=%s ;;\n", names, strings.Join(flagWords(v.flags), " "), bashWords(v, verbs))
	}
	io.WriteString(w, "\tesac\n\tcase \"$verb ${COMP_WORDS[COMP_CWORD-1]}\" in\n")
	for _, v := range verbs {
		for _, f := range v.flags {
			bashValues(w, v, f)
		}
	}
	io.WriteString(w, `	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
		return
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if [[ -n $verb ]]; then
		compopt -o filenames
		while IFS= read -r i; do
			case ${i##*/} in .git|.decree) ;; *) COMPREPLY+=("$i") ;; esac
		done < <(compgen -f -- "$cur")
		case $verb in revert|apply|restore|diff) [[ -n $ref && -e .decree ]] && while IFS= read -r i; do
			[[ $i == "$cur"* && ! -e $i ]] && COMPREPLY+=("$i")
		done < <(decree diff "$ref" --name-only 2>/dev/null) ;; esac
	fi
}
complete -F _decree decree
`)
}

// valueWords are what can be completed as the value that a usage text calls by that
// name, with that usage; files is set where it is a file or directory, labels where it is a label.
func valueWords(name, usage string) (words string, files, labels bool) {
	switch name {
	case "REASON":
		if !strings.Contains(usage, "revert") { // a checkpoint's
			return "manual auto publish", false, false
		}
		return "run manual auto publish restore revert apply outside", false, false
	case "WHEN":
		return "always never auto", false, false
	case "L":
		return "", false, true
	case "FILE", "DIR", "PATH":
		return "", true, false
	}
	return "", false, false
}

// listLabels is a shell command that prints the labels there are.
const listLabels = `decree label 2>/dev/null | cut -d " " -f1 | grep -v "^no$"`

// bashValues are the branches of a case for what may follow a flag that takes a value.
func bashValues(w io.Writer, v verb, f cli.Flag) {
	value, usage := unquoteUsage(f)
	words, files, labels := valueWords(value, usage)
	if value == "" || files {
		return
	}
	if labels {
		words = "$(" + listLabels + ")"
	}
	for _, flag := range flagWords([]cli.Flag{f}) {
		if flag != "--help" {
			fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", v.name+" "+flag, words)
		}
	}
}

// bashWords is a shell expression for what may stand for v's words.
func bashWords(v verb, verbs []verb) string {
	switch v.words {
	case refWords, refAndPathWords:
		return `"$(decree __refs 2>/dev/null | cut -f1)"`
	case shellWords:
		return `"bash zsh fish"`
	case helpWords:
		return `"config env events ` + strings.Join(verbWords(verbs), " ") + `"`
	}
	return `""`
}

func zshCompletion(w io.Writer, verbs []verb, global []cli.Flag) {
	io.WriteString(w, "#compdef decree\n\n_decree_refs() {\n\tlocal -a refs\n\trefs=(${(f)\"$(decree __refs 2>/dev/null)\"})\n\trefs=(\"${refs[@]//:/\\\\:}\")\n\trefs=(\"${refs[@]/$'\\t'/:}\")\n\t_describe record refs\n}\n\n_decree_files() { _files -F '(*/|).(git|decree)' }\n\n"+zshChanged+"_decree() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, v := range verbs {
		if !v.hidden {
			fmt.Fprintf(w, "\t\t'%s:%s'\n", v.name, zshQuote(v.usage))
		}
	}
	io.WriteString(w, "\t)\n\t_arguments -C \\\n")
	for _, f := range global {
		zshFlag(w, f)
	}
	io.WriteString(w, "\t\t'1:command:{_describe command commands}' \\\n\t\t'*::word:->words'\n\t[[ $state == words ]] || return\n\tcase $words[1] in\n")
	for _, v := range verbs {
		if v.hidden {
			continue
		}
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments \\\n", strings.Join(append([]string{v.name}, v.aliases...), "|"))
		for _, f := range v.flags {
			zshFlag(w, f)
		}
		fmt.Fprintf(w, "\t\t%s ;;\n", zshWords(v, verbs))
	}
	io.WriteString(w, "\tesac\n}\n\nif [[ $funcstack[1] == _decree ]]; then\n\t_decree \"$@\"\nelse\n\tcompdef _decree decree\nfi\n")
}

// zshChanged offers, in the root, the paths that the record named before has changed, also
// those that are gone; and the labels.
const zshChanged = `_decree_changed() {
	local word
	local -a gone
	[[ -e .decree ]] || return 1
	for word in "${(@)words[2,CURRENT-1]}"; do
		[[ $word == -* ]] && continue
		gone=(${(f)"$(decree diff "$word" --name-only 2>/dev/null)"})
		compadd -f -a gone
		return
	done
	return 1
}

_decree_labels() {
	local -a labels
	labels=(${(f)"$(` + listLabels + `)"})
	compadd -a labels
}

`

func zshFlag(w io.Writer, f cli.Flag) {
	value, usage := unquoteUsage(f)
	if value != "" {
		words, files, labels := valueWords(value, usage)
		action := " "
		switch {
		case files:
			action = "_files"
		case labels:
			action = "_decree_labels"
		case words != "":
			action = "(" + words + ")"
		}
		value = ":" + value + ":" + action
	}
	for _, name := range f.Names() {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		fmt.Fprintf(w, "\t\t'%s%s[%s]%s' \\\n", dashes, name, zshQuote(usage), value)
	}
}

func zshQuote(text string) string {
	return strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(text)
}

func zshWords(v verb, verbs []verb) string {
	switch v.words {
	case refWords:
		return "'*:record:_decree_refs'"
	case refAndPathWords:
		return "'*:record or path:{_decree_refs; _decree_files; _decree_changed}'"
	case pathWords:
		return "'*:path:_decree_files'"
	case shellWords:
		return "'1:shell:(bash zsh fish)'"
	case helpWords:
		return "'1:topic:(config env events " + strings.Join(verbWords(verbs), " ") + ")'"
	case commandWords:
		return "'(-)1:command:_command_names -e' '*::arguments:_normal'"
	}
	return "''"
}

func fishCompletion(w io.Writer, verbs []verb, global []cli.Flag) {
	io.WriteString(w, "# fish completion for decree\ncomplete -c decree -f\n")
	for _, f := range global {
		fishFlag(w, "__fish_use_subcommand", f)
	}
	for _, v := range verbs {
		if v.hidden {
			continue
		}
		fmt.Fprintf(w, "complete -c decree -n __fish_use_subcommand -a %s -d '%s'\n", v.name, fishQuote(v.usage))
		seen := "'__fish_seen_subcommand_from " + strings.Join(append([]string{v.name}, v.aliases...), " ") + "'"
		for _, f := range v.flags {
			fishFlag(w, seen, f)
		}
		for _, words := range fishWords(v, verbs) {
			fmt.Fprintf(w, "complete -c decree -n %s %s\n", seen, words)
		}
	}
}

func fishFlag(w io.Writer, condition string, f cli.Flag) {
	value, usage := unquoteUsage(f)
	fmt.Fprintf(w, "complete -c decree -n %s", condition)
	for _, name := range f.Names() {
		if len(name) == 1 {
			fmt.Fprintf(w, " -s %s", name)
		} else {
			fmt.Fprintf(w, " -l %s", name)
		}
	}
	if value != "" {
		words, files, labels := valueWords(value, usage)
		switch {
		case files:
			io.WriteString(w, " -r -F")
		case labels:
			fmt.Fprintf(w, " -x -a '(%s)'", listLabels)
		default:
			fmt.Fprintf(w, " -x -a '%s'", words)
		}
	}
	fmt.Fprintf(w, " -d '%s'\n", fishQuote(usage))
}

func fishQuote(text string) string {
	return strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text)
}

func fishWords(v verb, verbs []verb) []string {
	switch v.words {
	case refWords:
		return []string{"-a '(decree __refs 2>/dev/null)'"}
	case refAndPathWords:
		return []string{"-F", "-a '(decree __refs 2>/dev/null)'"}
	case pathWords:
		return []string{"-F"}
	case shellWords:
		return []string{"-a 'bash zsh fish'"}
	case helpWords:
		return []string{"-a 'config env events " + strings.Join(verbWords(verbs), " ") + "'"}
	case commandWords:
		return []string{"-a '(__fish_complete_subcommand --fcs-skip=2)'"}
	}
	return nil
}
