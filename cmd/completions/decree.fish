# fish completion for decree
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
