package ensemble

import (
	"fmt"
	"math"
	"slices"
)

// Mix plans the components of an ensemble. With several posteriors, such as those of runs with different seeds, the
// ensemble is a mixture of Gaussians. This is MultiSWAG (Wilson and Izmailov, "Bayesian deep learning and a
// probabilistic perspective of generalization", NeurIPS 2020), which gives all posteriors the same weight.
//
// Mix spreads the members over the posteriors as evenly as possible. The first posteriors get one more if some are left
// over. Antithetic pairs stay together. The weights of the posteriors are in the given ratio, or equal if it is nil.
// They do not depend on the number of members: more members describe a posterior more precisely, but do not raise its
// weight.
func Mix(posteriors, members int, ratio []float64, antithetic bool) ([]Component, error) {
	unit := 1
	if antithetic {
		unit = 2
	}
	switch {
	case posteriors > MaxPosteriors:
		return nil, fmt.Errorf("%d posteriors, want at most %d", posteriors, MaxPosteriors)
	case members%unit != 0:
		return nil, fmt.Errorf("%d members: antithetic ones come in pairs", members)
	case members < unit*posteriors:
		return nil, fmt.Errorf("members: %d, want at least %d, %d from each of %d posteriors", members, unit*posteriors, unit, posteriors)
	case ratio == nil:
		ratio = slices.Repeat([]float64{1}, posteriors)
	case len(ratio) != posteriors:
		return nil, fmt.Errorf("%d weights for %d posteriors", len(ratio), posteriors)
	}
	total := 0.0
	for _, r := range ratio {
		if !(r > 0) || math.IsInf(r, 1) {
			return nil, fmt.Errorf("weight %v: want a finite number above 0", r)
		}
		total += r
	}
	units := members / unit
	components := make([]Component, posteriors)
	for i, r := range ratio {
		share := r / total
		if share == 0 {
			return nil, fmt.Errorf("weight %v: is negligible beside the others", r)
		}
		n := units / posteriors
		if i < units%posteriors {
			n++
		}
		components[i] = Component{Members: unit * n, Weight: share}
	}
	return components, nil
}
