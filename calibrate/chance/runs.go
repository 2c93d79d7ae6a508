package chance

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// OverRuns is the difference of the mean losses of two methods over runs of training. Both methods are applied to each run, and
// to the same examples. Runs and examples are both sources of chance.
type OverRuns struct {
	// Difference is for new runs and new examples.
	Difference
	// PerRun has the mean difference of each run, on these examples, and Spread is its standard deviation.
	PerRun []float64
	Spread float64
	// Better is the share of runs in which the first method has the lower mean loss, an estimate of the probability of
	// outperforming; equal ones count half. Its interval is exact (Clopper and Pearson). Bootstrap is the percentile
	// interval over runs of Bouthillier et al. ("Accounting for variance in machine learning benchmarks", MLSys 2021). It has
	// the width 0 if all runs agree. So it needs tens of runs.
	Better, Bootstrap Interval
	// PairedT and SignFlip are two-sided p-values over runs, on these examples: of Student's paired t, and of the exact
	// test that flips signs (Fisher 1935). SignFlip is at least 2/2^runs, and NaN for more than 20 runs.
	PairedT, SignFlip float64
}

// NewOverRuns returns the difference for the differences of the losses by run and example. There are two runs and two
// examples at least. With R runs, n examples, the means over examples a_r and over runs b_i, and the residuals of both e_ri,
// the variance of the mean is estimated without bias by
//
//	Var(a)/R + Var(b)/n − Σe²/((R−1)(n−1)·R·n)
//
// and by the larger of the first terms if that is larger (two crossed random effects; Searle, Casella and McCulloch,
// Variance Components, 1992). Its degrees of freedom are Satterthwaite's. Rare errors make the differences skewed, so the end of
// the interval on that side is moved as in [Difference.OtherDraws], by the skewness of b. Simulated with 3 % errors the
// interval holds in 94 to 97 % for 600 examples, and in 90 % for 150. P is the level at which the interval reaches 0. All is NaN
// if the mean is not finite.
func NewOverRuns(losses [][]float64, seed uint64) OverRuns {
	runs, n := len(losses), len(losses[0])
	r, m := float64(runs), float64(n)
	o := OverRuns{PerRun: make([]float64, runs), SignFlip: math.NaN()}
	examples := make([]float64, n)
	for k, l := range losses {
		o.PerRun[k] = stat.Mean(l, nil)
		floats.AddScaled(examples, 1/r, l)
	}
	mean, ofRuns := stat.MeanVariance(o.PerRun, nil)
	if nan := math.NaN(); math.IsNaN(mean) || math.IsInf(mean, 0) {
		none := Interval{nan, nan, nan}
		o.Difference = Difference{Interval: Interval{mean, nan, nan}, Standard: nan, DoF: nan, P: nan}
		o.Spread, o.Better, o.Bootstrap, o.PairedT = nan, none, none, nan
		return o
	}
	ofExamples := stat.Variance(examples, nil)
	rest := 0.0
	for k, l := range losses {
		for i, v := range l {
			e := v - o.PerRun[k] - examples[i] + mean
			rest += e * e
		}
	}
	a, b := ofRuns/r, ofExamples/m
	c := rest / ((r - 1) * (m - 1) * r * m)
	variance := max(a+b-c, a, b)
	o.Spread = math.Sqrt(ofRuns)
	dof := r - 1
	if variance > 0 {
		dof = variance * variance / (a*a/(r-1) + b*b/(m-1) + c*c/((r-1)*(m-1)))
	}
	o.Difference = Difference{Standard: math.Sqrt(variance), DoF: dof}
	third := 0.0
	for _, v := range examples {
		third += math.Pow(v-mean, 3) / (m * m * m)
	}
	o.Interval = skewed(mean, o.Standard, quantile(o.DoF), third)
	o.P = twoSidedSkewed(mean, o.Standard, o.DoF, third)
	o.PairedT = twoSided(mean, math.Sqrt(a), r-1)
	o.outperform(seed)
	return o
}

// outperform computes what depends on the runs alone.
func (o *OverRuns) outperform(seed uint64) {
	wins := make([]float64, len(o.PerRun))
	for k, d := range o.PerRun {
		wins[k] = 0.5 * float64(1-cmp.Compare(d, 0))
	}
	r, won := float64(len(wins)), floats.Sum(wins)
	low, high := clopperPearson(won, r, 0.05)
	o.Better = Interval{won / r, low, high}
	o.Bootstrap = MeanBootstrap(wins, BootstrapOptions{Seed: seed})
	if len(wins) > 20 {
		return
	}
	total := math.Abs(floats.Sum(o.PerRun)) * (1 - 1e-12) // sums in another order are equal
	extreme, all := 0, 1<<len(wins)
	for signs := range all {
		sum := 0.0
		for k, d := range o.PerRun {
			if signs>>k&1 == 1 {
				d = -d
			}
			sum += d
		}
		if math.Abs(sum) >= total {
			extreme++
		}
	}
	o.SignFlip = float64(extreme) / float64(all)
}
