package cmd

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"
)

func (s *session) completionVerb() verb {
	return verb{
		name: "completion", category: keepCategory, args: "SHELL", words: shellWords, most: anyWords,
		usage: "print a completion script for bash, zsh or fish",
		about: `Prints a script that makes SHELL complete decree's commands, flags, records, labels, routines, messages and paths, also paths that are gone but which the record changed.`,
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
var shells = map[string]string{
	"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
}

func (s *session) completion(context.Context) error {
	words := s.words()
	if len(words) != 1 {
		return usagef("one SHELL is needed").Hintf("it is bash, zsh or fish: 'decree completion bash'")
	}
	script, ok := shells[words[0]]
	if !ok {
		return usagef("%s: no completion for this shell", quoteWord(words[0])).Hintf("choose bash, zsh or fish")
	}
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, script)
		return err
	})
}

// The scripts know nothing of decree's commands: they ask "decree __complete" what the
// word at the cursor can become, and show it as their shell does.

const bashCompletion = `# bash completion for decree
_decree() {
	local word line value words=()
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		word=${word//\\/}
		word=${word#[\"\']}
		word=${word%[\"\']}
		# bash takes words apart at these.
		if ((${#words[@]})) && [[ $word == [=:@]* || ${words[-1]} == *[=:@] ]]; then
			words[-1]+=$word
		else
			words+=("$word")
		fi
	done
	local cur=${words[-1]}
	# What bash is going to replace is the last part alone.
	[[ ${COMP_WORDS[COMP_CWORD]} == *[!=:@]* ]] || word=""
	local taken=${cur%"$word"}
	COMPREPLY=()
	compopt -o filenames
	while IFS= read -r line; do
		case $line in
		$'\tfiles')
			while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "${cur#"$taken"}")
			return ;;
		$'\tcommand '*)
			if declare -F _command_offset >/dev/null; then
				_command_offset "${line##* }"
			elif ((COMP_CWORD == ${line##* })); then
				while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -c -- "$cur")
			else
				while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$cur")
			fi
			return ;;
		esac
		value=${line%%$'\t'*}
		[[ $value == *[/=] ]] && compopt -o nospace
		COMPREPLY+=("${value#"$taken"}")
	done < <(decree __complete -- "${words[@]}" 2>/dev/null </dev/null)
}
complete -F _decree decree
`

const zshCompletion = `#compdef decree

_decree() {
	local line value what
	local -a whole shown open
	for line in "${(@f)$(decree __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}"; do
		value=${line%%$'\t'*}
		what=${line#*$'\t'}
		if [[ -z $line ]]; then
			continue
		elif [[ $line == $'\tfiles' ]]; then
			[[ $PREFIX == -*=* ]] && compset -P '*='
			_files
			return
		elif [[ $line == $'\tcommand '* ]]; then
			shift ${line##* } words
			(( CURRENT -= ${line##* } ))
			_normal
			return
		elif [[ $value == *[/=] ]]; then
			open+=("$value")
		else
			whole+=("$value")
			shown+=("$value${what:+  -- $what}")
		fi
	done
	compadd -S '' -a -- open
	compadd -l -d shown -a -- whole
}

if [[ $funcstack[1] == _decree ]]; then
	_decree "$@"
else
	compdef _decree decree
fi
`

const fishCompletion = `# fish completion for decree
function __decree_complete
	set -l words (commandline -opc)[2..-1]
	set -l word (commandline -ct)
	set -l typed (string unescape -- $word; or string trim -lc '"\'' -- $word)
	set -l lines (decree __complete -- $words "$typed" 2>/dev/null </dev/null)
	switch "$lines[1]"
		case \tfiles
			__fish_complete_path (string replace -r -- '^-.*?=' '' $typed)
		case \t'command *'
			set -l at (string split ' ' -- $lines[1])[2]
			complete -C (string join -- ' ' (string escape -- $words[$at..-1]) $word)
		case '*'
			printf '%s\n' $lines
	end
end
complete -c decree -f -a '(__decree_complete)'
`
