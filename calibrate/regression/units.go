package regression

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Units relate the numbers z that a network was trained on to the target y = Mean + Std·z.
type Units struct {
	Mean, Std float64
}

// FitUnits returns the units in which the targets have mean 0 and population variance 1. It fails if there is no
// target, a target is not finite, or all are equal.
func FitUnits(targets []float64) (Units, error) {
	if err := CheckTargets(targets); err != nil {
		return Units{}, err
	}
	if slices.Min(targets) == slices.Max(targets) { // their rounded mean may differ from them
		return Units{}, fmt.Errorf("all %d targets are %v: they have no scale", len(targets), targets[0])
	}
	mean, std := stat.PopMeanStdDev(targets, nil)
	u := Units{mean, std}
	return u, u.Check()
}

// Check returns an error unless Mean is finite and Std positive and finite.
func (u Units) Check() error {
	if math.IsNaN(u.Mean) || math.IsInf(u.Mean, 0) {
		return fmt.Errorf("mean of the target %v, want a finite number", u.Mean)
	}
	if !(u.Std > 0) || math.IsInf(u.Std, 1) {
		return fmt.Errorf("standard deviation of the target %v, want a positive finite number", u.Std)
	}
	return nil
}

// Target returns y = Mean + Std·z.
func (u Units) Target(z float64) float64 { return u.Mean + u.Std*z }

// Network returns z = (y − Mean)/Std.
func (u Units) Network(y float64) float64 { return (y - u.Mean) / u.Std }

// Moments converts the moments of z to those of y.
func (u Units) Moments(z Moments) Moments {
	return Moments{u.Target(z.Mean), u.Std * u.Std * z.Aleatoric, u.Std * u.Std * z.Epistemic}
}

// Mixture converts the mixture of z to that of y.
func (u Units) Mixture(z Mixture) Mixture { return z.moved(0, u.Mean, u.Std) }

// CheckTargets returns an error, which names the first bad row, unless there is a target and all are finite.
func CheckTargets(y []float64) error {
	if len(y) == 0 {
		return errEmpty
	}
	for i, x := range y {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("row %d: target %v, want a finite number", i, x)
		}
	}
	return nil
}
