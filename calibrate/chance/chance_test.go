package chance_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func TestShapeMistakesPanic(t *testing.T) {
	x := make([]float64, 6)
	testfile.Panics(t, "chance: ", map[string]func(){
		"bootstrap: unpaired":  func() { chance.PairedBootstrap(x, x[:1], chance.BootstrapOptions{}) },
		"bootstrap: empty":     func() { chance.PairedBootstrap(nil, nil, chance.BootstrapOptions{}) },
		"bootstrap: resamples": func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Resamples: -1}) },
		"bootstrap: level":     func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Level: 95}) },
		"bootstrap: level NaN": func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Level: math.NaN()}) },
		"bootstrap: no losses": func() { chance.MeanBootstrap(nil, chance.BootstrapOptions{}) },
		"Wilson: no images":    func() { chance.Wilson(0, 0) },
		"members: none":        func() { chance.NewMonteCarloError(nil, false, 0) },
		"members: ragged":      func() { chance.NewMonteCarloError([][]float64{x, x[:1]}, false, 0) },
	})
}
