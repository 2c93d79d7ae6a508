#!/bin/sh
# Runs findings by name, all without names, and prints a table. What they print is in $LOGS, or a new folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
names() {
	(cd "$here" && ls ./*.sh) | sed 's|^\./||; s|\.sh$||' | grep -vx -e lib -e run
}
test $# -gt 0 || set -- $(names)
for name; do
	test -f "$here/$name.sh" || {
		echo "error: no finding $name" >&2
		echo "hint: make findings NAMES=\"$(names | head -n 1)\"; findings/README.md lists them" >&2
		exit 64
	}
done
logs=${LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/findings.XXXXXX")}
mkdir -p "$logs"
failed=0
printf '%-28s %7s  %s\n' finding seconds result
for name; do
	start=$(date +%s)
	sh "$here/$name.sh" >"$logs/$name.txt" 2>&1
	case $? in
	0) result="as described" ;;
	1) result="changed: $(sed -n 's/^CHANGED  *//p' "$logs/$name.txt" | cut -c1-150 | paste -sd ';' -)" ;;
	*) result="did not run: $(grep -v '^ *$' "$logs/$name.txt" | tail -n 1 | cut -c1-150)" ;;
	esac
	test "$result" = "as described" || failed=1
	printf '%-28s %7d  %s\n' "$name" $(($(date +%s) - start)) "$result"
done
echo "outputs: $logs"
exit $failed
