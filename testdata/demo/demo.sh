#!/bin/sh
# The main job in one minute: record a real command on a small project, look at
# what it changed, take it back, and prove by hash that the tree is as it was.
# usage: demo.sh DECREE
set -eu
decree=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DECREE_STORE="$work/store" NO_COLOR=1
cp -R "$here/../../cmd/testdata/demo" "$work/project"
mv "$work/project/go.mod.txt" "$work/project/go.mod" # of its own name it would keep the directory out of the program
cd "$work/project"

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
tree() { find . -name .decree -prune -o -type f -exec cksum {} + | sort; }
first=$(tree)

say "decree run -- gofmt -w -r 'Tally -> Count' ."
"$decree" run -- gofmt -w -r 'Tally -> Count' .
say "decree diff"
"$decree" diff
say "decree revert last"
"$decree" revert last
[ "$(tree)" = "$first" ] || { echo "demo: the tree is not as it was" >&2; exit 1; }

say "decree run -- sh -c 'rm -r docs; echo oops >words/tally.go; go vet ./...'     # fails: decree puts everything back"
"$decree" run -- sh -c 'rm -r docs; echo oops >words/tally.go; go vet ./...' && exit 1
[ "$(tree)" = "$first" ] || { echo "demo: the tree is not as it was" >&2; exit 1; }
say "decree log"
"$decree" log
printf '\nThe tree is, by checksum, what it was before.\n'
