package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/task"
)

// thresholdFlag returns --threshold for commands that predict. of describes the default.
func thresholdFlag(of string) cli.Flag {
	return &cli.Float64Flag{Name: "threshold", Usage: "of the task binary: predict class 1 where its probability is `T` or more", DefaultText: of}
}

// threshold reads --threshold. It returns 0 if the flag is not given.
func threshold(c *cli.Context) (float64, error) {
	t := c.Float64("threshold")
	if c.IsSet("threshold") && !(t > 0 && t <= 1) {
		return 0, flags.Usagef("", "--threshold %g: want a number above 0 and at most 1", t)
	}
	return t, nil
}

// thresholdFits refuses a threshold for any task except binary. name is the task in the model card.
func thresholdFits(c *cli.Context, name string) error {
	if c.IsSet("threshold") && name != "" {
		t, err := task.OfWidth(name, 2)
		if _, ok := t.(task.Decided); err != nil || !ok {
			return flags.Usagef("", "--threshold: is on the probability of class 1 of the task binary, and the task is %s", name)
		}
	}
	return nil
}

// thresholdRule reads a threshold, or a criterion that chooses one.
func thresholdRule(c *cli.Context) (float64, calibrate.Criterion, error) {
	s := c.String("threshold")
	if s == "" {
		return 0, calibrate.Criterion{}, nil
	}
	if t, err := strconv.ParseFloat(s, 64); err == nil {
		if !(t > 0 && t <= 1) {
			return 0, calibrate.Criterion{}, flags.Usagef("", "--threshold %s: want a number above 0 and at most 1", s)
		}
		return t, calibrate.Criterion{}, nil
	}
	by, err := calibrate.ParseCriterion(s)
	if err != nil {
		return 0, by, flags.Usagef("", "--threshold %w", err)
	}
	return 0, by, nil
}
