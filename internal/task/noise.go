package task

import (
	"errors"
	"fmt"
	"math"
	"slices"

	gauss "github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Noisy is a task whose networks may leave open how far truth is from what they say: a
// regression without a variance head. Its outcomes then have no noise in them, and no
// likelihood, until one that was fitted is added.
type Noisy interface {
	Task
	// LacksNoise reports whether nothing was said of the noise.
	LacksNoise() bool
	// FitNoise finds the noise under which averaged outcomes without any make the labels
	// most likely.
	FitNoise(outcomes []float64, labels truth.Truth) (*Noise, error)
	// AddNoise stores the outcomes with that noise in dst, which may be the same, or nil.
	AddNoise(dst []float64, noise *Noise, outcomes []float64) []float64
}

// Noise is the standard deviation of each target about its mean, in the targets' units.
type Noise struct {
	Std      []float64
	Warnings []error // why it should not be taken at face value
}

// Times is the noise with so many times the variance.
func (n *Noise) Times(factor float64) *Noise {
	out := &Noise{}
	for _, std := range n.Std {
		out.Std = append(out.Std, std*math.Sqrt(factor))
	}
	return out
}

// Lacking returns the task as one that lacks noise, or nil.
func Lacking(t Task) Noisy {
	if n, ok := t.(Noisy); ok && n.LacksNoise() {
		return n
	}
	return nil
}

var errNoNoise = errors.New("no variance head, and nothing was said of the noise about the means: there is no likelihood (fit --noise-std STD says it, and compare finds it on validation data)")

func (t regression) LacksNoise() bool { n := t.numbers(); return n.Head == "" && n.Noise == nil }

// FitNoise goes by the moments of the outcomes: see [gauss.FitMomentNoise].
func (t regression) FitNoise(outcomes []float64, known truth.Truth) (*Noise, error) {
	if err := t.checkTruth(outcomes, known); err != nil {
		return nil, err
	}
	out, bound := &Noise{}, 0
	for k := range t.targets {
		var y, means, epistemic []float64
		for i := range known.Len() {
			m := t.moments(outcomes[i*t.Width():], k)
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
		out.Std = append(out.Std, math.Sqrt(variance))
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

// AddNoise gives each outcome the variance of the noise, in the network's units.
func (t regression) AddNoise(dst []float64, n *Noise, outcomes []float64) []float64 {
	if len(n.Std) != t.targets {
		panic(errors.New("task: noise of other targets"))
	}
	if dst == nil {
		dst = slices.Clone(outcomes)
	} else {
		copy(dst, outcomes)
	}
	for i := 0; i < len(dst); i += perTarget {
		k := i / perTarget % t.targets
		std := n.Std[k] / t.units(k).Std
		dst[i+2] = std * std
	}
	return dst
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

// hide takes the columns out of sight that nothing can be said in without noise.
func (t regression) hide(list []Column) []Column {
	if !t.LacksNoise() {
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
