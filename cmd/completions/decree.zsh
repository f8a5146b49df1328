#compdef decree

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
