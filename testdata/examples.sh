# The scene of the commands' examples: a tree two days old with what they name.
at() { export SCRIPT_NOW="$1"; }
mkdir -p ../bin ../tmp/good ~/.zfunc ~/.config/fish/completions ~/.codex src specs .decree/routines .decree/inbox/dead
stub() { printf '#!/bin/sh\n%s\n' "$2" > "../bin/$1"; chmod +x "../bin/$1"; }
stub make 'echo generated > generated.txt'
stub golangci-lint 'echo linted >> src/main.go'
stub vim 'echo "$@" > edited.txt'
stub git 'case $1 in log) echo "a message";; fast-import) cat > /dev/null;; *) exit 9;; esac'
stub gemini 'cat >/dev/null'
stub npx 'cat >/dev/null'
PATH=$PWD/../bin:$PATH
echo 'package main' > src/main.go
echo 'package main' > main.go
echo 'some notes' > notes.txt
echo 'token=hunter2' > .env
echo '# a parser' > specs/parser.spec.md
printf '#!/bin/sh\necho worked >> agent.txt\n' > agent.sh
chmod +x agent.sh
# A routine ends the daemon that has it done.
printf '# Works.\ntarget_branch="${target_branch:-main}"\nspec_file="${spec_file:-}"\necho worked >> done.txt\ncase $(tr "\\0" " " < /proc/$PPID/cmdline) in *daemon*) kill -TERM $PPID;; esac\n' > .decree/routines/develop.sh
cp .decree/routines/develop.sh .decree/routines/review.sh

at 2026-11-19T09:00:00Z
decree -q checkpoint --label good
decree -q run -- sh -c 'echo one >> notes.txt'
at 2026-11-20T09:00:00Z
decree -q run -- sh -c 'echo two >> src/main.go; echo two >> main.go'
cp -r . ../copy
(cd ../copy && decree -q run -- sh -c 'echo copied > copied.txt')
decree -q run -- sh -c 'echo three >> notes.txt'
at 2026-11-21T06:30:17Z
decree -q run -- sh -c 'echo four >> src/main.go'
at 2026-11-21T07:01:59Z
decree -q send -m fix-login 'Fix the login.'
echo 'Do it again.' > .decree/inbox/dead/2026112107015900-0.md
echo 'it failed' > .decree/inbox/dead/2026112107015900-0.error.txt
