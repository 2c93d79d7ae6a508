package calibrate

import (
	"math/rand/v2"
	"slices"
)

const badRows = "calibrate: settings or members of different images, or none"

const (
	halvesStream    = 0x68616c766573   // "halves"
	resampleStream  = 0x726573616d706c // "resampl"
	choiceResamples = 1000
)

// Choice is the setting with the lowest mean loss, and how far that can be relied
// upon. Settings are numbered as their losses are given.
//
// The lowest of many losses is lower than it deserves, so the gain is measured on
// images that took no part in the choice.
type Choice struct {
	Best int
	// Halves has what each half of the images chose, where no others measure the
	// gain.
	Halves [2]int
	// Gain is the loss of what was chosen less that of the standard setting, with
	// the interval of [PairedBootstrap]; negative is better.
	Gain Interval
	// Shares is the part of bootstrap resamples of the choosing images in which each
	// setting is the best.
	Shares []float64
}

// Choose returns which setting has the lowest mean of losses, one slice for each
// setting with the losses of the same images. The setting with the number standard
// wins a tie, then the first.
//
// The gain is measured on held, losses of the settings on other images; where that
// is nil, on each half of the images, cut at random, with the setting that the other
// half chose, and of a single image it is zero. Choose panics if settings have
// losses of different numbers of images, or there are none.
func Choose(losses, held [][]float64, standard int, seed uint64) Choice {
	n := columns(losses)
	c := Choice{Best: lowest(losses, allRows(n), standard), Shares: shares(losses, standard, seed)}
	opts := BootstrapOptions{Seed: seed}
	switch {
	case held != nil:
		c.Gain = PairedBootstrap(held[c.Best], held[standard], opts)
	case n > 1:
		order := rand.New(rand.NewPCG(seed, halvesStream)).Perm(n)
		halves := [2][]int{order[:n/2], order[n/2:]}
		chosen := make([]float64, n)
		for h, half := range halves {
			other := lowest(losses, halves[1-h], standard)
			c.Halves[1-h] = other
			for _, i := range half {
				chosen[i] = losses[other][i]
			}
		}
		c.Gain = PairedBootstrap(chosen, losses[standard], opts)
	}
	return c
}

// lowest returns which setting has the lowest loss over the rows.
func lowest(losses [][]float64, rows []int, standard int) int {
	best, value := standard, meanOf(losses[standard], rows)
	for s, l := range losses {
		if m := meanOf(l, rows); m < value {
			best, value = s, m
		}
	}
	return best
}

func meanOf(values []float64, rows []int) float64 {
	sum := 0.0
	for _, i := range rows {
		sum += values[i]
	}
	return sum / float64(len(rows))
}

// shares returns in which part of bootstrap resamples each setting is the best.
func shares(losses [][]float64, standard int, seed uint64) []float64 {
	wins := make([]float64, len(losses))
	resample(rand.New(rand.NewPCG(seed, resampleStream)), len(losses[0]), choiceResamples, func(rows []int) { wins[lowest(losses, rows, standard)]++ })
	for s := range wins {
		wins[s] /= choiceResamples
	}
	return wins
}

// columns returns the length of all rows, and panics where it is 0, or not one.
func columns(rows [][]float64) int {
	if len(rows) == 0 || len(rows[0]) == 0 || slices.ContainsFunc(rows, func(r []float64) bool { return len(r) != len(rows[0]) }) {
		panic(badRows)
	}
	return len(rows[0])
}
