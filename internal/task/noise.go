package task

import (
	"errors"
	"fmt"
	"math"

	gauss "github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/truth"
)

var errNoNoise = errors.New("no variance head, and nothing was said of the noise about the means: there is no likelihood (fit --noise-std STD says it, and compare finds it on validation data)")

// lacksNoise reports whether nothing is known about the noise.
func (t regression) lacksNoise() bool { n := t.numbers(); return n.Head == "" && n.Noise == nil }

// Missing implements [Incomplete].
func (t regression) Missing() *Calibrator {
	if !t.lacksNoise() {
		return nil
	}
	return &Calibrator{Method: ByNoise, Name: "Noise", Words: "fitted noise", Symbol: "noise", Fit: t.fitNoise}
}

// fitNoise finds the noise under which averaged outcomes without any make the targets most likely. It uses the moments
// of the outcomes: see [gauss.FitMomentNoise].
func (t regression) fitNoise(outcomes []float64, known truth.Truth) (*Calibration, error) {
	if err := t.checkTruth(outcomes, known); err != nil {
		return nil, err
	}
	out, bound := &Calibration{Method: ByNoise}, 0
	for k := range t.targets {
		var y, means, epistemic []float64
		for i := range known.Len() {
			m := t.moments(outcomes[i*t.width():], k)
			// Sums of groups of members are in float32, whose rounding can leave it below 0.
			y, means, epistemic = append(y, known.Values[i*t.targets+k]), append(means, m.Mean), append(epistemic, max(0, m.Epistemic))
		}
		variance, atBound, err := gauss.FitMomentNoise(y, means, epistemic)
		if err != nil {
			return nil, fmt.Errorf("noise of target %d: %w", k, err)
		}
		if atBound {
			bound++
		}
		out.NoiseStd = append(out.NoiseStd, math.Sqrt(variance))
	}
	if bound > 0 {
		out.Warnings = append(out.Warnings, NoiseAtBound(bound, t.targets))
	}
	return out, nil
}

// NoiseAtBound warns of targets whose members differ by more than they are wrong.
func NoiseAtBound(bound, targets int) error {
	return fmt.Errorf("the noise of %d of %d targets is at its lower bound: members differ by more than they are wrong, so that their spread alone is too wide", bound, targets)
}

// noiseless reports whether some outcomes have no noise.
func (t regression) noiseless(outcomes []float64) bool {
	for i := 2; i < len(outcomes); i += perTarget {
		if outcomes[i] == 0 {
			return true
		}
	}
	return false
}

// hide hides the columns that have no meaning without noise.
func (t regression) hide(list []Column) []Column {
	if !t.lacksNoise() {
		return list
	}
	for i, c := range list {
		switch c.Name {
		case "target", "mean", "epistemic_std", "member_mean":
		default:
			list[i].Hidden = true
		}
	}
	return list
}
