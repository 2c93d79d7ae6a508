#!/usr/bin/env bash
# check.sh DIST VERSION: tries a release as users get it, in environments that have nothing else.
#
# The wheel and the archive of this machine are installed and run. Linux on arm64 runs under QEMU, if it is there. Of other platforms pip
# says whether it would choose the wheel, and the format and the signature of the program are looked at: they do not run here.
set -euo pipefail
dist=$(realpath "$1") version=$2 here=$(dirname "$(realpath "$0")")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
say() { printf '   %s (%d s)\n' "$*" "$SECONDS"; }

case "$(uname -m)" in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) fail "no archive for $(uname -m)" ;; esac

cd "$dist"
sha256sum --quiet --strict -c SHA256SUMS
test "$(ls | grep -vcE '^SHA256SUMS(\.sig)?$')" = "$(wc -l <SHA256SUMS)" || fail "SHA256SUMS does not have all files"
if test -n "${SIGNERS:-}"; then
	ssh-keygen -q -Y verify -f "$SIGNERS" -I release@swagwrap -n swagwrap -s SHA256SUMS.sig <SHA256SUMS
	if sed 's/./x/1' SHA256SUMS | ssh-keygen -q -Y verify -f "$SIGNERS" -I release@swagwrap -n swagwrap -s SHA256SUMS.sig 2>/dev/null >&2; then
		fail "the signature holds for other sums too"
	fi
fi
say "sums and signature"

# Nothing of this shell: no Go, no ONNX Runtime, no cache, no configuration. Proxies and indices of pip stay, which fetch.
empty() { # HOME, PATH, command
	local home=$1 path=$2
	shift 2
	env -i HOME="$home" PATH="$path:/usr/bin:/bin" TMPDIR="$work" LC_ALL=C.UTF-8 \
		${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} ${PIP_CONFIG_FILE:+PIP_CONFIG_FILE="$PIP_CONFIG_FILE"} \
		${HTTPS_PROXY:+HTTPS_PROXY="$HTTPS_PROXY"} ${SSL_CERT_FILE:+SSL_CERT_FILE="$SSL_CERT_FILE"} "$@"
}

# The wheel: pip installs it with what it needs, and the main job runs.
mkdir "$work/wheel"
"$python" -m venv "$work/wheel/venv"
empty "$HOME" "$work/wheel/venv/bin" pip install --quiet --disable-pip-version-check --find-links "$dist" --pre "swagwrap==$(ls swagwrap-*manylinux*_"$(uname -m)".whl | cut -d- -f2)"
said=$(empty "$work/wheel" "$work/wheel/venv/bin" swagwrap --version)
test "$said" = "swagwrap version $version" || fail "the wheel's program says: $said"
cd "$work/wheel"
empty "$work/wheel" "$work/wheel/venv/bin" swagwrap try --quiet --sample --methods sgd,swa,swag -n 4 -o result >/dev/null
test -s result/report.html && test -s result/ensemble.onnx || fail "swagwrap try --sample made no report"
empty "$work/wheel" "$work/wheel/venv/bin" python -c 'import swagwrap; assert swagwrap.__file__.startswith("'"$work"'")'
say "wheel of linux/$arch: installed, try --sample"

# The archive: it unpacks, fetches ONNX Runtime, and the main job runs.
mkdir "$work/archive"
cd "$work/archive"
tar xzf "$dist/swagwrap-$version-linux-$arch.tar.gz" --strip-components=1
said=$(empty "$work/archive" "$work/archive" swagwrap --version)
test "$said" = "swagwrap version $version" || fail "the archive's program says: $said"
empty "$HOME" "$work/archive" env XDG_CACHE_HOME="$work/cache" swagwrap setup --quiet
empty "$work/archive" "$work/archive" env XDG_CACHE_HOME="$work/cache" swagwrap try --quiet --sample --methods sgd,swa,swag -n 4 -o result >/dev/null
empty "$work/archive" "$work/archive" swagwrap export --web page result/ensemble.safetensors 2>said && fail "a page without ONNX Runtime for browsers"
grep -q 'setup --provider web' said || fail "export --web says: $(cat said)"
say "archive of linux/$arch: unpacked, setup, try --sample"

# Other platforms: pip chooses the wheel for them, and the program is one of theirs.
cd "$work"
chosen() { # platform of pip, part of the wheel's name
	rm -rf got
	"$python" -m pip download --quiet --disable-pip-version-check --no-index --no-deps --pre --only-binary=:all: --python-version 3.12 --implementation cp \
		--platform "$1" --find-links "$dist" --dest got swagwrap
	ls got | grep -qF -- "$2" || fail "pip takes $(ls got) for $1, want one with $2"
}
chosen manylinux2014_x86_64 manylinux
chosen manylinux2014_aarch64 aarch64
for wheel in "$dist"/*.whl; do
	case $wheel in
	*macosx*arm64*) chosen macosx_14_0_arm64 macosx ;;
	*-any.whl) chosen win_amd64 -any ;;
	esac
done
begins() { # archive, file offset, bytes in hex
	test "$(tar xzOf "$dist/swagwrap-$version-$1.tar.gz" "swagwrap-$version-$1/swagwrap" | head -c 20 | od -An -tx1 -v | tr -d ' \n' | cut -c"$2")" = "$3" || fail "the program for $1 is of another kind"
}
begins linux-amd64 1-8,37-40 7f454c463e00
begins linux-arm64 1-8,37-40 7f454c46b700
begins darwin-arm64 1-16 cffaedfe0c000001
"$python" "$here/macos.py" <(tar xzOf "$dist/swagwrap-$version-darwin-arm64.tar.gz" "swagwrap-$version-darwin-arm64/swagwrap")
say "pip chooses the wheel of each platform, and programs are of their kind"

# The program for arm64 fetches its own ONNX Runtime, which asks /proc/cpuinfo: in a namespace a processor of that kind stands there.
# QEMU is slow: a small network is enough. Its rows are those of this machine.
if test "$arch" = amd64 && command -v qemu-aarch64 >/dev/null && test -d /usr/aarch64-linux-gnu && unshare -rm true; then
	mkdir "$work/arm64"
	cd "$work/arm64"
	tar xzf "$dist/swagwrap-$version-linux-arm64.tar.gz" --strip-components=1
	printf 'processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n' >cpuinfo
	under() {
		empty "$HOME" "$work/arm64" env XDG_CACHE_HOME="$work/arm64/cache" \
			unshare -rm sh -c 'mount --bind cpuinfo /proc/cpuinfo && exec qemu-aarch64 -L /usr/aarch64-linux-gnu ./swagwrap "$@"' sh "$@"
	}
	native() { empty "$HOME" "$work/archive" env XDG_CACHE_HOME="$work/cache" swagwrap "$@"; }
	rows() { # folder, command
		mkdir "$1"
		"$2" fit -q --task classes --columns a,b,c -o "$1/p.safetensors" "$here"/../cmd/swagwrap/testdata/table-[12].onnx
		"$2" sample -q -n 5 -o "$1/e.safetensors" "$1/p.safetensors"
		"$2" score -q --probs -o "$1/rows.csv" "$1/e.safetensors" table.csv
	}
	under setup --quiet
	awk 'BEGIN { print "a,b,c"; for (i = 0; i < 500; i++) print sin(i) "," cos(3 * i) "," i % 7 }' >table.csv
	rows arm64 under
	rows amd64 native
	"$python" - <<-'EOF'
		import csv
		a, b = (list(csv.reader(open(f"{p}/rows.csv"))) for p in ("arm64", "amd64"))
		apart = max(abs(float(x) - float(y)) for r, s in zip(a[1:], b[1:], strict=True) for x, y in zip(r, s, strict=True) if "[" not in x + y and x + y)
		assert a[0] == b[0] and len(a) == 501 and apart <= 1e-6, (a[0], b[0], len(a), apart)
	EOF
	say "program of linux/arm64 under QEMU: setup, fit, sample; the rows of score are those of linux/amd64"
else
	say "program of linux/arm64: not run, for want of QEMU (Debian: qemu-user, libc6-arm64-cross, libstdc++6-arm64-cross)"
fi

# The wheel without a program: the module is there, and the program says that it is not.
"$work/wheel/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --target "$work/any" "$dist"/*-any.whl
cd "$work/any"
empty "$work" "$work/wheel/venv/bin" PYTHONPATH="$work/any" python -c 'import swagwrap; assert swagwrap.__file__.startswith("'"$work/any"'")'
code=0
empty "$work" "$work/wheel/venv/bin" PYTHONPATH="$work/any" python -m swagwrap --version 2>said || code=$?
test "$code" = 69 && grep -q 'this wheel has no program' said || fail "without a program: $code, $(cat said)"
say "the module without a program"
