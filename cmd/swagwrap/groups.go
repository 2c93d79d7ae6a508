package main

import (
	"path/filepath"
	"regexp"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

var groupsFlag = &cli.StringFlag{Name: "groups", Usage: "of a segmentation or tagger, intervals resample whole groups, since their examples depend on each other, such as the frames of a video: `HOW` is folder, or a regular expression for the part of the path that names the group", DefaultText: "each example is one"}

// groups returns a function from the path of an example to the name of its group, or nil without --groups.
func groups(c *cli.Context) (func(path string) string, error) {
	how := c.String("groups")
	switch how {
	case "":
		return nil, nil
	case "folder":
		return filepath.Dir, nil
	}
	re, err := regexp.Compile(how)
	if err != nil {
		return nil, flags.Usagef("--groups folder, or such as --groups '/(video[0-9]+)_'", "--groups: %w", err)
	}
	return func(path string) string {
		m := re.FindStringSubmatch(path)
		if m == nil {
			return path // a group of its own
		}
		return m[len(m)-1]
	}, nil
}

var (
	tileFlag    = &cli.IntFlag{Name: "tile", Usage: "of a segmentation, cut pictures into squares of `N` pixels, for pictures that are large or of different sizes", DefaultText: "whole pictures"}
	overlapFlag = &cli.IntFlag{Name: "overlap", Usage: "let tiles overlap by `N` pixels, where their probabilities are averaged", DefaultText: "an eighth of --tile"}
	atFlag      = flags.OneOf(&cli.StringFlag{Name: "at", Usage: "of a segmentation that resizes pictures, predict network|original: pixels as the network sees them, or as the picture has them", Value: "network"}, "network", "original")
)

// tiling reads --tile and --overlap.
func tiling(c *cli.Context, n *infer.Network) (t dataset.Tiling, err error) {
	if t.Size = c.Int("tile"); t.Size == 0 {
		return t, flags.Refuse(c, "--tile 512 cuts pictures into tiles", "--*: without --tile", "overlap")
	}
	if t.Overlap = t.Size / 8; c.IsSet("overlap") {
		t.Overlap = c.Int("overlap")
	}
	if t.Size < 1 || t.Overlap < 0 || t.Overlap >= t.Size {
		return t, flags.Usagef("such as --tile 512 --overlap 64", "--tile %d --overlap %d: want tiles of 1 pixel or more, and a smaller overlap", t.Size, t.Overlap)
	}
	if n.Axis() == 0 {
		return t, flags.Usagef("leave out --tile", "--tile: the network gives one prediction for a picture, and none for its pixels")
	}
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
