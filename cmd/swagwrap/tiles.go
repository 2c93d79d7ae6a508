package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

var (
	tileFlag = flags.Checked(&cli.StringFlag{Name: "tile", Usage: "of a segmentation, cut pictures into squares of `N` pixels, for pictures that are large or of different sizes. N,M lets them overlap by M pixels, where probabilities are averaged; M is an eighth of N by default", DefaultText: "whole pictures"}, flags.Reads(parseTiling))
	atFlag   = flags.OneOf(&cli.StringFlag{Name: "at", Usage: "of a segmentation that resizes pictures, predict network|original: pixels as the network sees them, or as the picture has them", Value: "network"}, "network", "original")
)

// parseTiling parses the value of --tile: the size, and the overlap after a comma.
func parseTiling(s string) (t dataset.Tiling, err error) {
	size, overlap, given := strings.Cut(s, ",")
	t.Size, err = strconv.Atoi(size)
	t.Overlap = t.Size / 8
	if err == nil && given {
		t.Overlap, err = strconv.Atoi(overlap)
	}
	if err != nil || t.Size < 1 || t.Overlap < 0 || t.Overlap >= t.Size {
		return t, fmt.Errorf("%q: want tiles of 1 pixel or more, and a smaller overlap, such as 512 or 512,64", s)
	}
	return t, nil
}

// tiling reads --tile.
func tiling(c *cli.Context, n *infer.Network) (t dataset.Tiling, err error) {
	if !c.IsSet("tile") {
		return t, nil
	}
	if n.Axis() == 0 {
		return t, flags.Usagef("leave out --tile", "--tile: the network gives one prediction for a picture, and none for its pixels")
	}
	t, _ = parseTiling(c.String("tile")) // the flag was checked
	return t, flags.Refuse(c, "leave it out", "--*: is not with --tile", "montage", "save-batch", "estimate")
}

// atOriginal reads --at.
func atOriginal(c *cli.Context, n *infer.Network) (bool, error) {
	if c.String("at") != "original" {
		return false, nil
	}
	if n.Axis() == 0 {
		return false, flags.Usagef("leave out --at", "--at: the network gives one prediction for a picture, and none for its pixels")
	}
	return true, flags.Refuse(c, "leave it out", "--*: is not with --at original", "tile", "montage", "probs")
}
