package ensemble

import "github.com/swagwrap/swagwrap/calibrate"

// Choice is the setting with the lowest NLL, and how far that can be relied upon:
// see [calibrate.Choose].
type Choice struct {
	Setting Setting // chosen on all the data that may choose
	// Candidates is the number of settings to choose from: all but those with stale
	// statistics, which are tried to tell what they cost.
	Candidates int
	// Validated says that validation data chose; else halves of the test data did,
	// and Halves has the setting that each chose.
	Validated bool
	Halves    [2]Setting
	// Gain is the NLL of what was chosen less the default's, on images that did not
	// choose, with a paired bootstrap interval; negative is better.
	Gain calibrate.Interval
	// Share is the part of bootstrap resamples of the choosing data in which the
	// setting is the best of all, DefaultShare that of the default.
	Share, DefaultShare float64
}

// Better reports whether what was chosen beats the default by more than chance.
func (c Choice) Better() bool { return c.Gain.High < 0 }

// choose fills in the choice; judged has every setting's losses on the data that
// may choose.
func (r *SweepResult) choose(judged [][]float64, validated bool, seed uint64) {
	const standard = 1 // place of the default, here and in the result
	var settings []Setting
	var candidates, held [][]float64
	for i, p := range r.Points {
		if p.Stale {
			continue
		}
		settings, candidates = append(settings, p.Setting), append(candidates, judged[i])
		if validated {
			held = append(held, p.losses)
		}
	}
	c := calibrate.Choose(candidates, held, standard, seed)
	r.Choice = Choice{Setting: settings[c.Best], Candidates: len(settings), Validated: validated,
		Gain: c.Gain, Share: c.Shares[c.Best], DefaultShare: c.Shares[standard]}
	if !validated {
		r.Choice.Halves = [2]Setting{settings[c.Halves[0]], settings[c.Halves[1]]}
	}
}
