# Says what a benchmark ran on, as lines that benchstat takes for prose.
echo "Taken $(date -u +%Y-%m-%d) at $(git describe --tags --always --dirty 2>/dev/null):"
echo "$(getconf _NPROCESSORS_ONLN) processors, $(uname -sm) $(uname -r), $(go env GOVERSION), $(df -T "${TMPDIR:-/tmp}" 2>/dev/null | awk 'NR == 2 { print $2 }') under TMPDIR"
