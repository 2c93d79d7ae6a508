package expect

import (
	"fmt"
	"math"
)

// Figure is the name of an estimated number.
type Figure string

// The figures.
const (
	Accuracy Figure = "accuracy"
	RMSE     Figure = "rmse"
)

// A scale turns a mean loss into a value that is higher for better predictions. Estimates, bands and bounds are on this scale.
type scale struct {
	value  func(loss float64) float64
	figure func(value float64) float64
	least  float64 // values
	best   float64
	// deviation returns the standard deviation of the value, if the mean loss has this variance.
	deviation func(loss, variance float64) float64
	// chance returns the variance of the value over so many examples.
	chance func(r *Reference, value float64, units int) float64
	// prior returns the mean of an example's loss in a stratum of validation data, and of its square: never certain.
	prior func(h Stratum, r *Reference) (mean, square float64)
	sound func(r *Reference) error
	most  float64 // the largest loss of a prediction

	below, above band
	// drop is the estimated drop from which there is only a bound, and moved the share of moved predictions, or several if examples have
	// more than one. The bound counts on the part credited of the drop, up to drop.
	drop, moved, several, credited float64
}

var scales = map[Figure]*scale{
	// The value is the accuracy.
	Accuracy: {
		value:     func(loss float64) float64 { return 1 - min(1, max(0, loss)) },
		figure:    func(value float64) float64 { return value },
		best:      1,
		deviation: func(_, variance float64) float64 { return math.Sqrt(variance) },
		chance: func(r *Reference, value float64, units int) float64 {
			edge := max(0.02, min(0.5, 2/float64(units))) // no variance of 0, nor of few examples near it
			at := min(1-edge, max(edge, value))
			return at * (1 - at) * r.Spread / (r.Loss * (1 - r.Loss)) / float64(units)
		},
		prior: func(h Stratum, _ *Reference) (mean, square float64) {
			size := max(1, h.Known/float64(max(1, h.Labelled)))
			n := float64(h.Labelled) + 2
			return (h.Loss/size + 1) / n, (h.LossLoss/(size*size) + 1) / n
		},
		sound: func(r *Reference) error {
			// Wrong predictions of one example depend on each other.
			if wrong := r.Loss * r.Size; r.Loss >= 1 || wrong < FewWrong-1e-6 || r.Size-wrong < FewWrong-1e-6 {
				return fmt.Errorf("%.6g of %.6g predictions wrong: %w", wrong, r.Size, ErrFew)
			}
			return nil
		},
		most:  1,
		below: band{0.02, 0.8, 0.6, 0.5}, above: band{0.02, 0.3, 0.25, 0.5},
		drop: 0.15, moved: 0.15, several: 0.05, credited: 0.6,
	},
	// The value is −log RMSE: a drop of 0.1 is an RMSE that is 10 % higher.
	RMSE: {
		value:     func(loss float64) float64 { return -0.5 * math.Log(min(1e300, max(loss, 1e-300))) },
		figure:    func(value float64) float64 { return min(math.MaxFloat64, math.Exp(-value)) },
		least:     math.Inf(-1),
		best:      math.Inf(1),
		deviation: func(loss, variance float64) float64 { return math.Sqrt(variance) / (2 * max(loss, 1e-300)) },
		chance: func(r *Reference, _ float64, units int) float64 {
			return r.Spread / (4 * r.Loss * r.Loss) / float64(units)
		},
		prior: func(h Stratum, r *Reference) (mean, square float64) {
			n := float64(h.Labelled) + 1
			return (h.Loss + r.Loss) / n, (h.LossLoss + r.Spread + r.Loss*r.Loss) / n
		},
		sound: func(r *Reference) error {
			if r.Examples < FewExamples || !(r.Loss > 0) || !(r.Signs[0] > 0) {
				return fmt.Errorf("%d examples, mean squared error %v: %w", r.Examples, r.Loss, ErrFew)
			}
			return nil
		},
		most:  math.Inf(1),
		below: band{1.2, 0.5, 0.5, 1}, above: band{0.05, 0.3, 0.4, 0.5},
		drop: 0.25, moved: 0.1, credited: 0.5,
	},
}

// band is the error of the signs, besides chance. One part always counts. The others are multiplied by the estimated drop, by the
// difference of the two estimates, and by the share of moved predictions. fixtures/expect/README.md says on which networks it was chosen.
type band struct{ always, drop, dispersion, moved float64 }

func (b band) width(drop, dispersion, moved float64) float64 {
	return b.always + b.drop*max(0, drop) + b.dispersion*dispersion + b.moved*moved
}
