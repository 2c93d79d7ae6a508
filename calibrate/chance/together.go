package chance

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Together returns the intervals of several differences that hold together with 95 %. So the interval of the smallest
// difference holds too, although the examples chose it. losses has the differences of the losses by example, a list for each
// difference. fits has the variance that fitted numbers add to each: see [NewDifference].
//
// The intervals are mean ± c·√(Var/n + fits). c is the 95 % quantile of the largest |t| of the differences. These are
// taken as normal, with the correlations of their losses (max-t: Hothorn, Bretz and Westfall, Biometrical Journal 2008). Methods that err
// together cost little: c is that of one difference if all are equal. Quantiles are those of draws with a fixed seed.
//
// A difference without a finite mean is left out of the family, and its interval is NaN.
func Together(losses [][]float64, fits []float64) []Interval {
	all, counted := make([]Difference, len(losses)), []int(nil)
	for k, l := range losses {
		if all[k] = NewDifference(l, fits[k]); all[k].Standard > 0 && !math.IsInf(all[k].Standard, 1) {
			counted = append(counted, k)
		}
	}
	out := make([]Interval, len(losses))
	for k, d := range all {
		out[k] = d.Interval
	}
	if len(counted) < 2 {
		return out
	}
	c := largest(losses, all, counted)
	for _, k := range counted {
		half := c * all[k].Standard
		out[k] = Interval{all[k].Mean, all[k].Mean - half, all[k].Mean + half}
	}
	return out
}

// largest returns the 95 % quantile of the largest |t| of the counted differences if all targets are 0.
func largest(losses [][]float64, all []Difference, counted []int) float64 {
	n := float64(len(losses[0]))
	correlations := mat.NewSymDense(len(counted), nil)
	for i, a := range counted {
		correlations.SetSym(i, i, 1+1e-9) // methods that always agree give a singular matrix
		for j, b := range counted[:i] {
			correlations.SetSym(i, j, stat.Covariance(losses[a], losses[b], nil)/n/(all[a].Standard*all[b].Standard))
		}
	}
	var root mat.Cholesky
	if !root.Factorize(correlations) {
		return student(n - 1).Quantile(1 - 0.025/float64(len(counted))) // Bonferroni's, which is never less
	}
	var lower mat.TriDense
	root.LTo(&lower)
	const draws = 10_000
	rng := rand.New(rand.NewPCG(1, 0))
	scale := distuv.ChiSquared{K: min(n-1, 1e6), Src: rng}
	most, z := make([]float64, draws), make([]float64, len(counted))
	for k := range most {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		for i := range z {
			most[k] = max(most[k], math.Abs(floats.Dot(lower.RawTriangular().Data[i*len(z):][:i+1], z[:i+1])))
		}
		if n < 1000 { // beyond, Student's t is normal
			most[k] *= math.Sqrt(scale.K / scale.Rand())
		}
	}
	slices.Sort(most)
	return max(most[draws*95/100], student(n-1).Quantile(0.975))
}
