package main

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// chosenSettings are the settings for the members of sample.
type chosenSettings struct {
	ensemble.Settings
	of ensemble.Reference // the posterior for which a study chose them
}

// maxSettings is the largest size of a settings file, in bytes.
const maxSettings = 1 << 20

// readSettings reads --settings, or the flags with the same meaning.
func readSettings(c *cli.Context) (s chosenSettings, err error) {
	if c.IsSet("settings") {
		return readSettingsFile(c)
	}
	if s.Settings, err = settingsOfFlags(c); err != nil {
		return s, err
	}
	s.Temperature = c.Float64("temperature")
	if c.IsSet("noise-std") {
		s.NoiseStd = c.Float64Slice("noise-std")
	}
	s.Threshold, _ = threshold(c)
	if err := s.Check(); err != nil {
		return s, flags.Usagef("", "%w", err)
	}
	folders := c.StringSlice("checkpoints")
	switch {
	case len(folders) > 0 && s.Method != ensemble.Iterates:
		return s, flags.Usagef("", "--checkpoints is for --method %s", ensemble.Iterates)
	case len(folders) > 0 && len(folders) != c.NArg():
		return s, flags.Usagef("give --checkpoints once for each posterior, in their order", "%d folders of checkpoints for %d posteriors", len(folders), c.NArg())
	}
	return s, nil
}

func settingsOfFlags(c *cli.Context) (ensemble.Settings, error) {
	s := ensemble.Settings{Method: c.String("method"), Seed: c.Uint64("seed")}
	given := func(names ...string) error {
		return flags.Refuse(c, "", "--* is not for --method "+s.Method, names...)
	}
	switch s.Method {
	case ensemble.SWA:
		return s, given("scale", "rank", "antithetic", "members")
	case ensemble.Iterates:
		if c.IsSet("members") {
			s.Members = c.Int("members")
		}
		return s, given("scale", "rank", "antithetic")
	case ensemble.SWAGDiag:
		if err := cmp.Or(given("rank"), c.Set("rank", "0")); err != nil {
			return s, err
		}
	case ensemble.SWAG:
	default:
		return s, nil // Check returns the error
	}
	opts := flags.Sampling(c)
	return ensemble.Settings{Method: opts.Covariance.String(), Scale: opts.Scale, Rank: opts.Rank, Antithetic: opts.Antithetic, Members: c.Int("members"), Seed: opts.Seed}, nil
}

// readSettingsFile reads --settings.
func readSettingsFile(c *cli.Context) (s chosenSettings, err error) {
	err = flags.Refuse(c, "give all that is in the file as flags, or nothing of it", "--settings and --*: the file says how members are made",
		"method", "scale", "rank", "antithetic", "members", "seed", "temperature", "threshold", "noise-std", "checkpoints")
	if err != nil {
		return s, err
	}
	path := c.String("settings")
	js, err := file.Read(path, maxSettings)
	if err != nil {
		return s, flags.BadInput(err)
	}
	found, err := ensemble.ParseSettings(js)
	if err != nil {
		return s, inputs.WrongKind(c, fmt.Errorf("%s: %w", path, err), path, inputs.Settings)
	}
	// The seed also sets the order of batch-norm images.
	return chosenSettings{found.Settings, found.Posterior}, c.Set("seed", strconv.FormatUint(found.Seed, 10))
}

// fits refuses a settings file that was chosen for another posterior. Its scale and temperature are meaningless for
// this one.
func (s chosenSettings) fits(c *cli.Context, networks []*infer.Network) error {
	if s.of.ID == "" || len(networks) == 1 && networks[0].Posterior.ID == s.of.ID {
		return nil
	}
	return flags.BadInput(fmt.Errorf("%s: was chosen for %s (id %s), and for no other posterior", c.String("settings"), s.of.Path, s.of.ID),
		"choose anew: swagwrap compare --tune")
}

// describe describes the members.
func (s chosenSettings) describe(e *ensemble.Ensemble) string {
	what := fmt.Sprintf("%s, scale %g, seed %d", s.Method, s.Scale, s.Seed)
	switch s.Method {
	case ensemble.SWA:
		what = fmt.Sprintf("%s, seed %d", s.Method, s.Seed)
	case ensemble.Iterates:
		what = s.Method
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
