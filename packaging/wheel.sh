#!/usr/bin/env bash
# Makes a wheel of a program: wheel.sh PROGRAM PLATFORM VERSION FOLDER, with PYTHON that has hatchling. PLATFORM is the wheel's
# tag, VERSION what the program says, which is written as Python wants it: v0.1.0 is 0.1.0, v0.1.0-rc.1 is 0.1.0rc1, and a
# commit after it 0.1.1.dev20261122101010+g31ea119abcde.
set -euo pipefail
program=$(realpath "$1") platform=$2 out=$(realpath -m "$4")
version=$(echo "$3" | sed -E -e 's/^v//' -e 's/\+dirty$/.dirty/' \
	-e 's/^([0-9.]+)-(([a-z]+)\.?([0-9]+)\.)?(0\.)?([0-9]{14})-([0-9a-f]{12})/\1\3\4.dev\6+g\7/' \
	-e 's/-(alpha|beta|rc)\.?([0-9]+)/\1\2/' -e '/\+/!s/\.dirty$/+dirty/' -e 's/^\(devel\)/0.0.0.dev0/')
cd "$(dirname "$0")"

package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
cp -r python/. "$package"
cp ../LICENSE "$package"
if test -n "${LICENCES:-}"; then cp "$LICENCES" "$package/THIRD_PARTY_LICENSES"; fi
mkdir -p "$package/src/swagwrap/bin"
install -m 755 "$program" "$package/src/swagwrap/bin/swagwrap"
cd "$package"
SWAGWRAP_WHEEL_VERSION=$version SWAGWRAP_WHEEL_PLATFORM=$platform "${PYTHON:-python3}" -m hatchling build -t wheel -d "$out"
