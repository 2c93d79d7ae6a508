package main

import (
	"path/filepath"
	"regexp"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
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
