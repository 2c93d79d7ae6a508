package multilabel

import (
	"errors"
	"math"
)

// PlattRidge is the weight of the ridge in Platt scaling, which pulls towards a = 1 and b = 0. The ridge makes the
// minimum finite and unique if labels are separated or all logits equal. Moving a
// from 1 to 2 costs as much as 0.005 nats in one of 1,000 examples. Platt's own remedy, the target (N+1)/(N+2)
// instead of 1, would change every other fit too, and so would scikit-learn's.
const PlattRidge = 1e-5

const (
	plattSteps = 200
	// decrementTolerance is the Newton decrement, in nats, at which convergence is quadratic and the rest is
	// rounding.
	decrementTolerance = 1e-24
)

// errTurned is the error of infinite logits that are right, where the others want an a that makes them wrong.
var errTurned = errors.New("want finite logits: Platt scaling of the finite ones reverses their order, against the infinite ones")

// platt returns the minimum of the mean NLL plus the ridge. The problem is convex. Newton's method with halved steps
// solves it, from a start where no logit saturates. Infinite logits are right, and cost nothing if a is positive. It also reports
// whether a threshold of the logits separates the labels.
func (l known) platt() (a, b float64, separated bool, err error) {
	finite, n := known{}, float64(len(l.targets))
	largest := 1.0
	for i, z := range l.logits {
		if !math.IsInf(z, 0) {
			finite.logits, finite.targets = append(finite.logits, z), append(finite.targets, l.targets[i])
			largest = max(largest, math.Abs(z)/10)
		}
	}
	a = 1 / largest
	value := finite.objective(n, a, b)
	for range plattSteps {
		da, db, decrement := finite.newton(n, a, b)
		if decrement <= decrementTolerance {
			break
		}
		step, next := 1.0, 0.0
		for ; step > 1e-10; step /= 2 {
			// A quarter of the decrease that the slope predicts for small steps (Armijo).
			if next = finite.objective(n, a+step*da, b+step*db); next <= value-step*decrement/4 {
				break
			}
		}
		if step <= 1e-10 { // the step is lost in rounding and is the last
			a, b = a+da, b+db
			break
		}
		a, b, value = a+step*da, b+step*db, next
	}
	if a <= 0 && len(finite.logits) < len(l.logits) {
		return 0, 0, false, errTurned
	}
	return a, b, l.separated(), nil
}

// objective returns what platt minimises, for n rows of which these have finite logits.
func (l known) objective(n, a, b float64) float64 {
	return l.loss(a, b)/n + PlattRidge/2*((a-1)*(a-1)+b*b)
}

// newton returns a step of Newton's method and its decrement, −2 times the decrease of a quadratic function. Let w =
// p(1−p), W = mean w, m = mean wz/W and C = mean w(z−m)². The Hessian is (C + Wm² + R, Wm; Wm, W + R). Its
// determinant is a sum of positive terms.
func (l known) newton(n, a, b float64) (da, db, decrement float64) {
	const r = PlattRidge
	var ga, gb, w, m, c float64
	weight := func(z float64) float64 { return sigmoid(a*z+b) * sigmoid(-a*z-b) / n }
	for i, z := range l.logits {
		off := sigmoid(a*z+b) - float64(l.targets[i])
		ga += off * z / n
		gb += off / n
		w += weight(z)
		m += weight(z) * z
	}
	if w > 0 {
		m /= w
	}
	for _, z := range l.logits {
		c += weight(z) * (z - m) * (z - m)
	}
	ga, gb = ga+r*(a-1), gb+r*b
	hab, hbb := w*m, w+r
	det := (c+r)*hbb + w*m*m*r
	rest := ga - hab/hbb*gb
	da = -hbb * rest / det
	db = -(gb + hab*da) / hbb
	return da, db, hbb*rest*rest/det + gb*gb/hbb
}

// separated reports whether all logits of one target are above all logits of the other.
func (l known) separated() bool {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, z := range l.logits {
		y := l.targets[i]
		lo[y], hi[y] = min(lo[y], z), max(hi[y], z)
	}
	return lo[1] > hi[0] || lo[0] > hi[1]
}
