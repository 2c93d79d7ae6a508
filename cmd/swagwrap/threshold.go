package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/task"
)

// thresholdFlag returns --threshold for commands that predict. of describes the default.
func thresholdFlag(of string) cli.Flag {
	return flags.Share(&cli.Float64Flag{Name: "threshold", Usage: "of the task binary: predict class 1 where its probability is `T` or more", DefaultText: of}, "")
}

// criterionFlag returns --threshold for commands that can choose one. usage says from what.
func criterionFlag(usage string) cli.Flag {
	return flags.Checked(&cli.StringFlag{Name: "threshold", Usage: usage + strings.Join(calibrate.Criteria, "|"), DefaultText: "0.5"}, func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil {
			_, err = calibrate.ParseCriterion(s)
			return err
		}
		if !(t > 0 && t <= 1) {
			return fmt.Errorf("%s: want a number above 0 and at most 1", s)
		}
		return nil
	})
}

// threshold reads --threshold: a number, or a criterion that chooses one. Both are zero if the flag is not given.
func threshold(c *cli.Context) (t float64, by calibrate.Criterion) {
	if s := c.String("threshold"); c.IsSet("threshold") { // it was checked
		var err error
		if t, err = strconv.ParseFloat(s, 64); err != nil {
			by, _ = calibrate.ParseCriterion(s)
		}
	}
	return t, by
}

// thresholdFits refuses a threshold for any task except binary. name is the task in the model card.
func thresholdFits(c *cli.Context, name string) error {
	if c.IsSet("threshold") && name != "" {
		t, err := task.OfWidth(name, 2, 1)
		if _, ok := t.(task.Decided); err != nil || !ok {
			return flags.Usagef("", "--threshold: is on the probability of class 1 of the task binary, and the task is %s", name)
		}
	}
	return nil
}
