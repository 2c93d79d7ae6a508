#!/usr/bin/env bash
# make release VERSION=v0.1.0: the files of a release in dist/, tried in empty environments, with notes and a signature.
#
#   SIGNING_KEY=FILE   the private key of ssh that signs. Its public key stands in packaging/signers
#   DRY=1              a rehearsal: notes may be those of "Unreleased", and a key that is thrown away signs
#
# The version is a tag, since Go stamps it by that. This script tags a clone. Nothing is pushed, and this repository gets no tag:
# the last lines say what to type.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'error: %s\n' "$1" >&2; test -z "${2:-}" || printf 'hint: %s\n' "$2" >&2; exit 1; }
say() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]] || fail "VERSION=$version, want such as v0.1.0 or v0.1.0-rc.1"
test -z "$(git status --porcelain)" || fail "files were changed since the last commit" "commit them: a release is of a commit"
tagged=$(git rev-parse -q --verify "refs/tags/$version^{commit}" || true)
test -z "$tagged" || test "$tagged" = "$(git rev-parse HEAD)" || fail "$version is the tag of another commit" "git checkout $version, or take the next version"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say notes
notes() { awk -v want="$1" '/^## \[/ { on = index($0, "## [" want "]") == 1; next } on' CHANGELOG.md; }
notes "${version#v}" >"$work/NOTES.md"
if ! grep -q '[^[:space:]]' "$work/NOTES.md"; then
	test -n "${DRY:-}" || fail "CHANGELOG.md has no section [${version#v}]" "rename [Unreleased] to it, with the date: CONTRIBUTING.md, Releases"
	notes Unreleased >"$work/NOTES.md"
fi
grep -q '[^[:space:]]' "$work/NOTES.md" || fail "CHANGELOG.md says nothing of this release"

say clone
git clone --quiet --no-hardlinks . "$work/clone"
git -C "$work/clone" tag -f "$version" >/dev/null
# What tools were fetched stays for the next time.
mkdir -p packaging/.tools
ln -s "$PWD/packaging/.tools" "$work/clone/packaging/.tools"
"$work/clone/packaging/dist.sh"
test -e "$work/clone/dist/swagwrap-$version-linux-amd64.tar.gz" || fail "dist.sh made another version than $version"
rm -rf dist
cp -r "$work/clone/dist" dist
cp "$work/NOTES.md" dist/
(cd dist && sha256sum -- NOTES.md >>SHA256SUMS)

say signature
signers=packaging/signers
if test -n "${DRY:-}"; then
	ssh-keygen -q -t ed25519 -N '' -C rehearsal -f "$work/key"
	SIGNING_KEY=$work/key signers=$work/signers
	echo "release@swagwrap $(cat "$work/key.pub")" >"$signers"
fi
test -n "${SIGNING_KEY:-}" || fail "no key signs" "SIGNING_KEY=FILE names a private key of ssh, or DRY=1 rehearses"
ssh-keygen -q -Y sign -f "$SIGNING_KEY" -n swagwrap dist/SHA256SUMS
ssh-keygen -q -Y verify -f "$signers" -I release@swagwrap -n swagwrap -s dist/SHA256SUMS.sig <dist/SHA256SUMS ||
	fail "$signers does not have the public key of $SIGNING_KEY" "add the line: release@swagwrap $(cut -d' ' -f1,2 "$SIGNING_KEY.pub" 2>/dev/null)"

say check
SIGNERS=$signers packaging/check.sh dist "$version"

say done
if test -n "${DRY:-}"; then
	rm dist/SHA256SUMS.sig # of a key that nobody has
	echo "This was a rehearsal: nothing is signed."
else
	printf '%s\n' "Publish it, and the workflow makes the same files again:" "  git tag $version && git push origin $version"
fi
