package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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

// memberOptions are the flags of sample that say how members are made.
type memberOptions struct {
	method      string
	members     int
	seed        uint64
	draws       flags.DrawOptions
	temperature float64
	noise       []float64
	threshold   float64
}

// chosen returns the settings that sample is given, or none with --settings, whose file is read later.
func (o *sampleOptions) chosen() (s chosenSettings, err error) {
	if s.file = o.settings.file; s.file != "" {
		return s, o.Refuse("settings", "give all that is in the file as flags, or nothing of it",
			"--settings and --*: the file says how members are made")
	}
	if err := o.Refuse(o.making.method, "", "--* is not for --method "+o.making.method); err != nil {
		return s, err
	}
	s.Settings = o.making.settings(o.Is("members"))
	s.Temperature, s.NoiseStd, s.Threshold = o.making.temperature, o.making.noise, o.making.threshold
	if err := s.Check(); err != nil {
		return s, console.Usagef("", "%w", err)
	}
	if len(o.folders) > 0 && !s.Checkpoints() {
		return s, console.Usagef("", "--checkpoints is for --method %s and %s", ensemble.Last, ensemble.Iterates)
	}
	return s, nil
}

// settings returns the settings of a method. Others are those of a method that does not exist, which their Check refuses.
func (o memberOptions) settings(given bool) (s ensemble.Settings) {
	switch o.method {
	case ensemble.SWA:
		return *ensemble.FromSampling(swag.SampleOptions{Seed: o.seed}, 0)
	case ensemble.Iterates:
		if s = *ensemble.FromCheckpoints(); given {
			s.Members = o.members
		}
	case ensemble.Last:
		s = *ensemble.FromLast()
	case ensemble.SWAG, ensemble.SWAGDiag:
		return ensemble.Settings{
			Draw:    ensemble.DrawOf(o.draws.Draws(o.seed, o.method == ensemble.SWAGDiag)),
			Members: cmp.Or(o.members, ensemble.DefaultMembers),
		}
	default:
		s.Covariance, s.Members = o.method, max(1, o.members)
		return s
	}
	s.Seed = o.seed
	return s
}

func (s *chosenSettings) read() error {
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
		"choose anew: swagwrap compare --tune FILE.json --val VAL POSTERIOR TEST")
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

// threshold makes the row of --threshold of commands that predict. of describes the default.
func threshold(field *float64, of string) *flags.Row {
	return flags.Real(flags.Row{
		Name:   "threshold",
		Usage:  "of the task binary: predict class 1 where its probability is `T` or more",
		Preset: of,
		Not:    "settings outputs",
	}, field, leastThreshold, 1)
}

// criterion makes the row of --threshold of commands that can choose one. usage says from what.
func criterion(t *chosenThreshold, usage string) *flags.Row {
	return flags.Parsed(flags.Row{
		Name:   "threshold",
		Usage:  usage + strings.Join(detect.Criteria, "|"),
		Preset: "0.5",
		Not:    "outcomes",
	}, t, parseThreshold)
}

// chosenThreshold is a threshold, or the criterion that chooses one.
type chosenThreshold struct {
	value float64
	by    detect.Criterion
	given bool
}

func parseThreshold(s string) (t chosenThreshold, err error) {
	t.given = true
	if t.value, err = strconv.ParseFloat(s, 64); err != nil {
		t.by, err = detect.ParseCriterion(s)
	} else if !(t.value > 0 && t.value <= 1) {
		err = fmt.Errorf("%s: want a number above 0 and at most 1", s)
	}
	return t, err
}
