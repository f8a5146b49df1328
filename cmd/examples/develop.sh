#!/usr/bin/env bash
# Has a coding agent do what the message asks, and lets the tests judge.
#
# If the tests fail, decree calls this routine again (max_attempts in .decree/config.yml);
# when the last attempt fails, every file is put back.

# The head: parameters with their defaults, up to the first other statement (so 'set -eu'
# comes after them). decree sets these seven for every routine:
message_file="${message_file:-}" # the message, a markdown file
message_id="${message_id:-}"     # <chain>-<seq>
message_dir="${message_dir:-}"   # this run's directory, .decree/runs/<id>: logs, the attempts' diffs
input_file="${input_file:-}"     # what the message is about, relative to the root; may be empty
spec_file="${spec_file:-}"       # the same, if it is a *.spec.md
chain="${chain:-}"               # the message and what follows it
seq="${seq:-}"                   # a follow-up: decree send 'what comes next', or a file in "$DECREE_OUTBOX"

# Your own. A message sets them in its front matter ("judge: go test ./parser"), or they
# are given with 'decree send -v judge="go test ./parser" ...'.
agent="${agent:-claude -p --permission-mode acceptEdits}" # reads the prompt on its stdin
judge="${judge:-make test}"                               # its exit status decides

set -eu

prompt() {
	echo "Do what this message asks for, in the current directory."
	echo "Then '$judge' must succeed. Do not change what it checks."
	echo
	cat "$message_file"
	if [ -n "$input_file" ]; then
		printf '\n--- %s ---\n' "$input_file"
		cat "$input_file"
	fi
	# The last attempt starts from the clean tree, with the story of those before.
	if [ -n "${DECREE_FAILURE_CONTEXT:-}" ]; then
		printf '\n--- what was tried before, and how it failed ---\n'
		cat "$DECREE_FAILURE_CONTEXT"
	elif [ "${DECREE_ATTEMPT:-1}" -gt 1 ]; then
		printf '\nAn earlier attempt left its changes, and this was its end:\n'
		tail -n 50 "$message_dir/attempts/$((DECREE_ATTEMPT - 1))/routine.log" 2>/dev/null || true
	fi
}

prompt | bash -c "$agent"
bash -c "$judge"
