package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/swag"
)

// chosenSettings are the settings for the members of sample.
type chosenSettings struct {
	ensemble.Settings
	of   ensemble.Reference // the posterior for which a study chose them
	file string             // of --settings, or ""
}

// readSettings reads the flags that say how members are made, or --settings. A settings file is read later.
func readSettings(c *cli.Context) (s chosenSettings, err error) {
	if s.file = c.String("settings"); s.file != "" {
		return s, flags.Refuse(c, "give all that is in the file as flags, or nothing of it",
			"--settings and --*: the file says how members are made",
			"method", "scale", "rank", "antithetic", "members", "seed", "temperature", "threshold", "noise-std", "checkpoints")
	}
	if s.Settings, err = readMembersSettings(c); err != nil {
		return s, err
	}
	s.Temperature = c.Float64("temperature")
	if c.IsSet("noise-std") {
		s.NoiseStd = c.Float64Slice("noise-std")
	}
	s.Threshold = c.Float64("threshold")
	if err := s.Check(); err != nil {
		return s, console.Usagef("", "%w", err)
	}
	folders := c.StringSlice("checkpoints")
	switch {
	case len(folders) > 0 && !s.Checkpoints():
		return s, console.Usagef("", "--checkpoints is for --method %s and %s", ensemble.Last, ensemble.Iterates)
	case len(folders) > 0 && len(folders) != c.NArg():
		return s, console.Usagef("give --checkpoints once for each posterior, in their order",
			"%d folders of checkpoints for %d posteriors", len(folders), c.NArg())
	}
	return s, nil
}

func readMembersSettings(c *cli.Context) (s ensemble.Settings, err error) {
	method := c.String("method")
	given := func(names ...string) error {
		return flags.Refuse(c, "", "--* is not for --method "+method, names...)
	}
	switch method {
	case ensemble.SWA:
		return *ensemble.FromSampling(swag.SampleOptions{Seed: c.Uint64("seed")}, 0), given("scale", "rank", "antithetic", "members")
	case ensemble.Iterates:
		s = *ensemble.FromCheckpoints()
		if s.Seed = c.Uint64("seed"); c.IsSet("members") {
			s.Members = c.Int("members")
		}
		return s, given("scale", "rank", "antithetic")
	case ensemble.Last:
		s = *ensemble.FromLast()
		s.Seed = c.Uint64("seed")
		return s, given("scale", "rank", "antithetic", "members")
	case ensemble.SWAGDiag:
		if err := given("rank"); err != nil {
			return s, err
		}
	case ensemble.SWAG:
	default:
		s.Covariance, s.Members = method, c.Int("members")
		return s, nil // Check returns the error
	}
	return ensemble.Settings{Draw: ensemble.DrawOf(flags.ReadDraws(c, method == ensemble.SWAGDiag)), Members: c.Int("members")}, nil
}

// read reads the file of --settings, if there is one.
func (s *chosenSettings) read(a *app) error {
	if s.file == "" {
		return nil
	}
	js, err := file.Read(s.file, ensemble.MaxSettings)
	if err != nil {
		return console.BadInput(err)
	}
	found, err := ensemble.ParseSettings(js)
	if err != nil {
		return open.WrongKind(fmt.Errorf("%s: %w", s.file, err), s.file, kind.Settings)
	}
	s.Settings, s.of = found.Settings, found.Posterior
	return nil
}

// fits refuses a settings file that was chosen for another posterior. Its scale and temperature are meaningless for
// this one.
func (s chosenSettings) fits(networks []*infer.Network) error {
	if s.of.ID == "" || len(networks) == 1 && networks[0].Posterior.ID == s.of.ID {
		return nil
	}
	return console.BadInput(fmt.Errorf("%s: was chosen for %s (id %s), and for no other posterior", s.file, s.of.Path, s.of.ID),
		"choose anew: swagwrap compare --tune")
}

// describe describes the members.
func (s chosenSettings) describe(e *ensemble.Ensemble) string {
	method := s.Method()
	what := fmt.Sprintf("%s, scale %g, seed %d", method, s.Scale, s.Seed)
	switch method {
	case ensemble.SWA:
		what = fmt.Sprintf("%s, seed %d", method, s.Seed)
	case ensemble.Last, ensemble.Iterates:
		what = method
	}
	if e.Calibration != nil {
		what += ", " + e.Calibration.String()
	}
	if s.NoiseStd != nil {
		what += fmt.Sprintf(", noise %.4g", s.NoiseStd)
	}
	if e.Threshold > 0 {
		what += fmt.Sprintf(", threshold %.4g", e.Threshold)
	}
	return what
}

// leastThreshold is far below the smallest probability in float32.
const leastThreshold = 1e-300

// thresholdFlag returns --threshold for commands that predict. of describes the default.
func thresholdFlag(of string) cli.Flag {
	return flags.Real(leastThreshold, 1, &cli.Float64Flag{
		Name:        "threshold",
		Usage:       "of the task binary: predict class 1 where its probability is `T` or more",
		DefaultText: of,
	})
}

// criterionFlag returns --threshold for commands that can choose one. usage says from what.
func criterionFlag(usage string) cli.Flag {
	return flags.Checked(&cli.StringFlag{
		Name:        "threshold",
		Usage:       usage + strings.Join(detect.Criteria, "|"),
		DefaultText: "0.5",
	}, parseThreshold)
}

// chosenThreshold is a threshold, or the criterion that chooses one.
type chosenThreshold struct {
	value float64
	by    detect.Criterion
	given bool
}

// String returns the text to type for the threshold, or "" if none was given.
func (t chosenThreshold) String() string {
	switch {
	case !t.given:
		return ""
	case t.by != detect.Criterion{}:
		return t.by.String()
	}
	return strconv.FormatFloat(t.value, 'g', -1, 64)
}

func parseThreshold(s string) (t chosenThreshold, err error) {
	if t.value, err = strconv.ParseFloat(s, 64); err != nil {
		t.by, err = detect.ParseCriterion(s)
	} else if !(t.value > 0 && t.value <= 1) {
		err = fmt.Errorf("%s: want a number above 0 and at most 1", s)
	}
	return t, err
}

// readThreshold reads --threshold of a command that can choose one.
func readThreshold(c *cli.Context) (t chosenThreshold, err error) {
	if s := c.String("threshold"); s != "" {
		if t, err = parseThreshold(s); err != nil {
			err = console.Usagef("", "--threshold %w", err)
		}
		t.given = true
	}
	return t, err
}
