#!/bin/sh
# Draws two pictures of README.md from the sample files of the program, for light and for dark pages.
# The dark colours are those of internal/report/plot/look.go.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
swagwrap=${SWAGWRAP:-../../bin/swagwrap}
"$swagwrap" try --sample -q -o "$work/run" > "$work/table.txt"
in=$work/run/sample posterior=$work/run/posterior.safetensors
"$swagwrap" compare -q --bn-data "$in/train.npz" --val "$in/val.npz" --plots "$work/result" "$posterior" "$in/test.npz" > "$work/table.txt"
"$swagwrap" geometry -q --bn-data "$in/train.npz" --plots "$work/idea" "$posterior" "$in/test.npz" > "$work/geometry.txt"
cp "$work/idea/surface-loss-in-the-plane-of-directions-1-and-2.svg" idea-light.svg
cp "$work/result/difference-nll-against-swa-temp.svg" result-light.svg
for name in idea result steps; do # steps-light.svg is drawn by hand
	sed -e 's/#1B1F24/#e6e9ec/Ig; s/#57606A/#a3acb6/Ig; s/#D8DEE4/#353c44/Ig; s/#ffffff/#14171b/Ig; s/#0068B3/#5aaaf0/Ig; s/#CF5500/#ff8a45/Ig; s/#00875F/#35c797/Ig; s/#5B6470/#b9c2cc/Ig' \
		"$name-light.svg" > "$name-dark.svg"
done
