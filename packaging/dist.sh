#!/usr/bin/env bash
# make dist ALL=1: everything that a release consists of, in dist/. Go, these tools, and a commit give the same bytes each time:
# times are the commit's, names are sorted, and no path of this machine is in them.
#
# zig (the pip package ziglang) is the C compiler, since it links against an old glibc, for either processor, and for macOS. What
# the programs need of glibc is then looked up, and is what the wheels promise. Windows lacks the signals and file locks that the
# program needs: it gets the Python module without a program.
set -euo pipefail
cd "$(dirname "$0")/.."

glibc=2.17 # of 2013: manylinux_2_17, older than what ONNX Runtime itself needs
macos=14.0 # the oldest that ONNX Runtime runs on
out=dist
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

say() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }

case "$(uname -sm)" in
Linux\ x86_64) host=amd64 ;;
Linux\ aarch64) host=arm64 ;;
*)
	echo "error: make dist ALL=1 runs the program that it built, for Linux on amd64 or arm64, and this is $(uname -sm)" >&2
	exit 1
	;;
esac

say tools
tools=$(realpath -m packaging/.tools)
if ! cmp -s packaging/requirements.txt "$tools/requirements.txt"; then
	rm -rf "$tools"
	"${PYTHON:-python3}" -m venv "$tools"
	"$tools/bin/pip" install --quiet --disable-pip-version-check -r packaging/requirements.txt
	cp packaging/requirements.txt "$tools/"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir "$out"

# Builds the program for a system and a processor. The build ID is left out: it tells of the compiler's path. So does what
# debuggers need, which Go's own flags of C, -O2 -g, ask of zig: its linker takes the last of -s and -g.
build() { # GOOS-GOARCH, flags of zig
	local program=$work/bin/$1/swagwrap
	env -u GOFLAGS -u GOAMD64 -u GOARM64 CGO_ENABLED=1 CGO_CFLAGS=-O2 CGO_LDFLAGS=-O2 GOOS="${1%-*}" GOARCH="${1#*-}" \
		CC="$tools/bin/python -m ziglang cc $2" \
		go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$program" ./cmd/swagwrap
	if grep -qF "$PWD" "$program"; then
		echo "error: the program for $1 names $PWD: elsewhere it would be another" >&2
		exit 1
	fi
}

linux() { # GOARCH, the processor in zig's words
	build "linux-$1" "-target $2-linux-gnu.$glibc"
	local needs
	needs=$(versions "$work/bin/linux-$1/swagwrap" | tail -n 1)
	if [ "$(printf '%s\n' "$needs" "$glibc" | sort -V | tail -n 1)" != "$glibc" ]; then
		echo "error: the program for $1 needs glibc $needs, want $glibc or less" >&2
		exit 1
	fi
	say "$1 needs glibc $needs"
}

# The versions of glibc whose symbols a program takes.
versions() { readelf --version-info --wide "$1" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV; }

say programs
make -s page # what export --web embeds
linux amd64 x86_64
linux arm64 aarch64
packaging/macos.sh "$tools/macos"
build darwin-arm64 "-target aarch64-macos.$macos -F$tools/macos/Frameworks -L$tools/macos/lib"
program=$work/bin/linux-$host/swagwrap
version=$("$program" --version | awk '{ print $NF }')
case $version in
*+dirty) echo "warning: files were changed since the last commit: this is no release" >&2 ;;
*devel*)
	echo "error: Go found no version: it does not look into linked work trees (golang/go#58218), clone instead" >&2
	exit 1
	;;
esac
say "version $version"

# The licences of Go and of all modules that are linked.
licences() {
	local path module dir
	echo "The program swagwrap holds code of Go and of the modules below."
	{
		echo "Go $(go env GOROOT)"
		go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/swagwrap | sort -u
	} | while read -r module dir; do
		path=$(find "$dir" -maxdepth 1 -type f \( -iname '*LICEN[SC]E*' -o -iname 'COPYING*' -o -iname 'NOTICE*' \) | sort)
		test -n "$path" || { echo "error: $module has no licence" >&2; exit 1; }
		for path in $path; do
			printf '\n\n%s\n%s: %s\n\n' "$(printf '=%.0s' {1..80})" "$module" "${path##*/}"
			tr -d '\r' <"$path"
		done
	done
}

say documents
mkdir -p "$work/shared/completions"
cp LICENSE README.md CHANGELOG.md SECURITY.md "$work/shared/"
cp -r docs "$work/shared/docs"
licences >"$work/shared/THIRD_PARTY_LICENSES"
"$program" man >"$work/shared/swagwrap.1"
"$program" completion bash >"$work/shared/completions/swagwrap.bash"
"$program" completion zsh >"$work/shared/completions/_swagwrap"
"$program" completion fish >"$work/shared/completions/swagwrap.fish"

archive() { # GOOS-GOARCH
	local name=swagwrap-$version-$1
	cp -r "$work/shared" "$work/$name"
	cp "$work/bin/$1/swagwrap" "$work/$name/"
	tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' \
		-C "$work" -cf - "$name" | gzip -n -9 >"$out/$name.tar.gz"
}

wheel() { # program, platform in Python's words
	LICENCES=$work/shared/THIRD_PARTY_LICENSES PYTHON=$tools/bin/python packaging/wheel.sh "$1" "$2" "$version" "$out" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; exit 1; }
}

say archives and wheels
platforms="linux-amd64 linux-arm64 darwin-arm64"
for p in $platforms; do archive "$p"; done
wheel "$work/bin/linux-amd64/swagwrap" "manylinux_${glibc/./_}_x86_64.manylinux2014_x86_64"
wheel "$work/bin/linux-arm64/swagwrap" "manylinux_${glibc/./_}_aarch64.manylinux2014_aarch64"
wheel "$work/bin/darwin-arm64/swagwrap" "macosx_${macos/./_}_arm64"
wheel - any # the module alone, for Windows and others

say bill of materials
for p in $platforms; do
	"$tools/bin/python" packaging/bom.py "$work/bin/$p/swagwrap" "$out/swagwrap-$version-$p.cdx.json"
done

(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
say done
cat "$out/SHA256SUMS"
