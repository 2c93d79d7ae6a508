#!/usr/bin/env bash
# macos.sh FOLDER: what zig lacks to link Go programs for macOS. Apple's frameworks are on every Mac. To link, only their names and
# those of their functions are needed. Go's sources name both, and they become text files that linkers read (.tbd).
set -euo pipefail
out=$1 root=$(go env GOROOT)/src
rm -rf "$out"

stub() { # file, install name, path in Go's sources
	local symbols
	symbols=$(grep -rhoE "^//go:cgo_import_dynamic [^ ]+ [^ ]+ \"$3[^\"]*\"" --include='*.go' "$root" | awk '{ print "_" $3 }' | sort -u | paste -sd, -)
	mkdir -p "$(dirname "$out/$1")"
	cat >"$out/$1" <<-EOF
		--- !tapi-tbd
		tbd-version: 4
		targets: [ arm64-macos ]
		install-name: '$2'
		exports:
		  - targets: [ arm64-macos ]
		    symbols: [ ${symbols:-_none} ]
		...
	EOF
}

for f in CoreFoundation Security; do
	stub "Frameworks/$f.framework/$f.tbd" "/System/Library/Frameworks/$f.framework/Versions/A/$f" "/System/Library/Frameworks/$f.framework/"
done
stub lib/libresolv.tbd /usr/lib/libresolv.9.dylib /usr/lib/libresolv.9.dylib
