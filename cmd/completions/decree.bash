# bash completion for decree
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
