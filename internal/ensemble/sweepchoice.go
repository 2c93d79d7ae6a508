package ensemble

import (
	"math/rand/v2"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Choice is the setting with the lowest NLL, and how far that can be relied upon.
//
// The lowest of many NLLs is lower than it deserves, so its gain over the default
// is measured on images that took no part in the choice: with validation data on
// all test images; without, on each half of the test images with the setting that
// the other half chose.
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

const (
	halvesStream    = 0x68616c766573   // "halves"
	resampleStream  = 0x726573616d706c // "resampl"
	choiceResamples = 1000
)

// choose fills in the choice; judged has every setting's losses on the data that
// may choose.
func (r *SweepResult) choose(judged [][]float64, validated bool, seed uint64) {
	const standard = 1 // place of the default, here and in the result
	var points []SweepPoint
	var candidates [][]float64
	for i, p := range r.Points {
		if !p.Stale {
			points, candidates = append(points, p), append(candidates, judged[i])
		}
	}
	judged = candidates
	n := len(judged[0])
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	best := lowest(judged, all, standard)
	c := Choice{Setting: points[best].Setting, Candidates: len(points), Validated: validated}
	wins := shares(judged, standard, seed)
	c.Share, c.DefaultShare = wins[best], wins[standard]

	opts := calibrate.BootstrapOptions{Seed: seed}
	if validated {
		c.Gain = calibrate.PairedBootstrap(points[best].losses, points[standard].losses, opts)
	} else if n > 1 {
		order := rand.New(rand.NewPCG(seed, halvesStream)).Perm(n)
		halves := [2][]int{order[:n/2], order[n/2:]}
		chosen := make([]float64, n)
		for h, half := range halves {
			other := lowest(judged, halves[1-h], standard)
			c.Halves[1-h] = points[other].Setting
			for _, i := range half {
				chosen[i] = judged[other][i]
			}
		}
		c.Gain = calibrate.PairedBootstrap(chosen, judged[standard], opts)
	}
	r.Choice = c
}

// lowest returns which setting has the lowest loss over the rows. The default wins
// a tie, then the first.
func lowest(losses [][]float64, rows []int, standard int) int {
	best, value := standard, mean(losses[standard], rows)
	for s, l := range losses {
		if m := mean(l, rows); m < value {
			best, value = s, m
		}
	}
	return best
}

func mean(values []float64, rows []int) float64 {
	sum := 0.0
	for _, i := range rows {
		sum += values[i]
	}
	return sum / float64(len(rows))
}

// shares returns in which part of bootstrap resamples each setting is the best.
func shares(losses [][]float64, standard int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, resampleStream))
	wins, out := make([]int, len(losses)), make([]float64, len(losses))
	rows := make([]int, len(losses[0]))
	for range choiceResamples {
		for k := range rows {
			rows[k] = rng.IntN(len(rows))
		}
		wins[lowest(losses, rows, standard)]++
	}
	for s, n := range wins {
		out[s] = float64(n) / choiceResamples
	}
	return out
}
