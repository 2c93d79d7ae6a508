package sweep

import "github.com/swagwrap/swagwrap/calibrate"

// Choice is the setting with the lowest NLL, with measures of how reliable the choice is: see [calibrate.Choose].
type Choice struct {
	Setting Setting // chosen on all data that may be used for the choice
	// Candidates is the number of settings to choose from. It excludes settings with stale statistics, which only
	// show the cost of skipping the update.
	Candidates int
	// Validated reports that validation data made the choice. Otherwise halves of the test data did, and Halves holds
	// the setting that each half chose.
	Validated bool
	Halves    [2]Setting
	// Gain is the NLL of the chosen setting minus that of the default, on images that did not take part in the
	// choice. It has a paired bootstrap interval; negative is better.
	Gain calibrate.Interval
	// Share is the share of bootstrap resamples of the choosing data in which the setting is the best. DefaultShare
	// is that of the default.
	Share, DefaultShare float64
}

// Better reports whether the chosen setting beats the default by more than chance.
func (c Choice) Better() bool { return c.Gain.High < 0 }

// choose sets the choice. The argument judged holds every setting's losses on the choosing data.
func (r *Result) choose(judged [][]float64, validated bool) {
	const standard = 1 // index of the default, here and in the result
	var settings []Setting
	var candidates, held [][]float64
	for i, p := range r.Points {
		if p.Stale {
			continue
		}
		settings, candidates = append(settings, p.Setting), append(candidates, judged[i])
		if validated {
			held = append(held, p.Losses[0].Values)
		}
	}
	c := calibrate.Choose(candidates, held, standard, r.Seed)
	r.Choice = Choice{Setting: settings[c.Best], Candidates: len(settings), Validated: validated,
		Gain: c.Gain, Share: c.Shares[c.Best], DefaultShare: c.Shares[standard]}
	if !validated {
		r.Choice.Halves = [2]Setting{settings[c.Halves[0]], settings[c.Halves[1]]}
	}
}
