package calibrate

import (
	"math/rand/v2"
	"slices"
)

const badRows = "calibrate: settings or members of different examples, or none"

const (
	halvesStream    = 0x68616c766573   // "halves"
	resampleStream  = 0x726573616d706c // "resampl"
	choiceResamples = 1000
)

// Choice is the setting with the lowest mean loss, with measures of how reliable the choice is. Settings are numbered
// in the order of their losses.
//
// The lowest of many losses is too optimistic, so the gain is measured on images that took no part in the choice.
type Choice struct {
	Best int
	// Halves holds the choice of each half of the images, if no other images measure the gain.
	Halves [2]int
	// Gain is the loss of the chosen setting minus that of the standard setting, with the interval of
	// [PairedBootstrap]. Negative is better.
	Gain Interval
	// Shares holds, for each setting, the share of bootstrap resamples of the choosing images in which it is the
	// best.
	Shares []float64
}

// Choose returns the setting with the lowest mean of losses. Each slice of losses belongs to one setting, and all
// belong to the same images. In a tie the setting with the number standard wins, then the first.
//
// The gain is measured on held, the losses of the settings on other images. If held is nil, it is measured on random
// halves of the images, each with the setting that the other half chose. For a single image it is then zero. Choose
// panics if there are no losses, or if the settings have losses of different numbers of images.
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

// lowest returns the setting with the lowest loss over the rows.
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

// shares returns the share of bootstrap resamples in which each setting is the best.
func shares(losses [][]float64, standard int, seed uint64) []float64 {
	wins := make([]float64, len(losses))
	resample(rand.New(rand.NewPCG(seed, resampleStream)), len(losses[0]), choiceResamples, func(rows []int) { wins[lowest(losses, rows, standard)]++ })
	for s := range wins {
		wins[s] /= choiceResamples
	}
	return wins
}

// columns returns the common length of all rows. It panics if the lengths differ or are 0.
func columns(rows [][]float64) int {
	if len(rows) == 0 || len(rows[0]) == 0 || slices.ContainsFunc(rows, func(r []float64) bool { return len(r) != len(rows[0]) }) {
		panic(badRows)
	}
	return len(rows[0])
}
