#!/usr/bin/env bash
# Makes a wheel: the Python module with a program in it.
#
#   wheel.sh                                   of bin/swagwrap, for this machine, in dist/: make dist
#   wheel.sh PROGRAM PLATFORM VERSION FOLDER   of a program, with PYTHON that has hatchling: dist.sh
#
# PROGRAM may be -, for a wheel without a program, of PLATFORM any. PLATFORM is the wheel's tag. This machine's own tag promises nothing about an old glibc. Those of dist.sh do. VERSION is what the
# program says. It is written as Python wants it: v0.1.0 is 0.1.0, v0.1.0-rc.1 is 0.1.0rc1, and a commit after it is
# 0.1.1.dev20261122101010+g31ea119abcde.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
if test $# = 0; then
	cd "$here/.."
	tools=packaging/.wheel
	if ! cmp -s packaging/requirements.txt "$tools/requirements.txt"; then
		rm -rf "$tools"
		"${PYTHON:-python3}" -m venv "$tools"
		"$tools/bin/pip" install --quiet --disable-pip-version-check "$(grep ^hatchling packaging/requirements.txt)"
		cp packaging/requirements.txt "$tools/"
	fi
	export PYTHON=$PWD/$tools/bin/python
	rm -rf dist
	set -- bin/swagwrap "$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_platform().replace("-", "_").replace(".", "_"))')" \
		"$(bin/swagwrap --version | awk '{ print $NF }')" dist
fi
program=$1 platform=$2 out=$(realpath -m "$4")
version=$(echo "$3" | sed -E -e 's/^v//' -e 's/\+dirty$/.dirty/' \
	-e 's/^([0-9.]+)-(([a-z]+)\.?([0-9]+)\.)?(0\.)?([0-9]{14})-([0-9a-f]{12})/\1\3\4.dev\6+g\7/' \
	-e 's/-(alpha|beta|rc)\.?([0-9]+)/\1\2/' -e '/\+/!s/\.dirty$/+dirty/' -e 's/^\(devel\)/0.0.0.dev0/')
test "$program" = - || program=$(realpath "$program")
cd "$here"

package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
cp -r python/. "$package"
cp ../LICENSE "$package"
if test -n "${LICENCES:-}"; then cp "$LICENCES" "$package/THIRD_PARTY_LICENSES"; fi
if test "$program" != -; then
	mkdir -p "$package/src/swagwrap/bin"
	install -m 755 "$program" "$package/src/swagwrap/bin/swagwrap"
fi
cd "$package"
SWAGWRAP_WHEEL_VERSION=$version SWAGWRAP_WHEEL_PLATFORM=$platform "${PYTHON:-python3}" -m hatchling build -t wheel -d "$out"
