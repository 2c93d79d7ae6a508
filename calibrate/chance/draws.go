package chance

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

const badGroups = "chance: losses of groups are not those of the same examples, or weights are missing"

// Draws is the effect of random draws, such as the members of an ensemble, on a mean loss.
//
// With S draws and n examples the variance of a mean loss is
//
//	σ²_example/n + σ²_draw/S + σ²_both/nS
//
// where σ²_both arises because draws help some examples and harm others. The variance of the losses of given draws,
// divided by n, estimates the first and the last term. So Variance holds only the middle term (Owen, "The pigeonhole
// bootstrap", Annals of Applied Statistics 2007).
type Draws struct {
	Variance float64 // σ²_draw/S; +Inf if unknown
	DoF      float64 // degrees of freedom of Variance
	Third    float64 // third cumulant of the mean loss: positive if few draws give much higher losses
	// Bias is the part of the loss that comes from the small number of draws. The expected loss of an average over
	// infinitely many draws is lower by Bias.
	Bias float64
}

// Standard returns the standard error from the choice of the draws.
func (d Draws) Standard() float64 { return math.Sqrt(d.Variance) }

// Minus returns the effect on the negative of the loss.
func (d Draws) Minus() Draws { return Draws{d.Variance, d.DoF, -d.Third, -d.Bias} }

// Plus returns the combined effect of independent draws, with Satterthwaite's degrees of freedom.
func (d Draws) Plus(o Draws) Draws {
	return Draws{d.Variance + o.Variance, satterthwaite(d.Variance, d.DoF, o.Variance, o.DoF), d.Third + o.Third, d.Bias + o.Bias}
}

// satterthwaite returns the degrees of freedom of the sum of two variances
// (Satterthwaite 1946).
func satterthwaite(v, vDoF, w, wDoF float64) float64 {
	share := func(v, dof float64) float64 {
		if v == 0 {
			return 0
		}
		return v * v / dof
	}
	if math.IsInf(v+w, 1) {
		return 1
	}
	if below := share(v, vDoF) + share(w, wDoF); below > 0 {
		return (v + w) * (v + w) / below
	}
	return math.Inf(1)
}

// NewDraws measures the effect of the choice of members on the losses of their average, by leaving out one group of
// members at a time. A group is usually one member. The argument all holds the losses of the average of all members,
// by example. The slices of without hold the losses of the averages without one group, and weights the weights of the
// groups.
//
// Let h_g be the total weight over that of group g. The influence of group g on example i is
//
//	D_gi = (h_g−1)(L_(−g)i − L_i),   a_g = mean_i D_gi
//
// for the NLL of an average probability p̄ about p_gi/p̄_i − 1. Bias and variance are those of the jackknife for groups
// of unequal size (Busing, Meijer and van der Leeden, "Delete-m jackknife for unequal m", Statistics and Computing
// 1999), which for G equal groups are
//
//	Bias = mean_g a_g,   V1 = Var_g(a)/G − Σ_gi (D_gi − D̄_i)²/((G−1)·G·n²)
//
// The second term of V1 removes σ²_both/nS. The jackknife counts the effects of pairs of members twice (Efron and
// Stein, "The jackknife estimate of variance", Annals of Statistics 1981). Their variance is
//
//	K_gh = mean_i (D_gi−D̄_i)(D_hi−D̄_i),   V2 = ½·Var(K_gh, g≠h)/G²
//
// because the second derivative of −log p̄ is the square of the first. For other negative log-likelihoods this holds on
// average over examples if the predictions are calibrated (the second Bartlett identity). The noise of the examples
// in K is subtracted from V2. Then
//
//	Variance = max(V1 − V2, V2/2)
//
// Third is the unbiased third central moment of −a_g, divided by G².
//
// With fewer than two groups, Variance is +Inf. NewDraws panics if the numbers of examples differ, or if weights does
// not match the groups.
func NewDraws(all []float64, without [][]float64, weights []float64) Draws {
	groups, n := len(without), len(all)
	if groups != len(weights) || n == 0 {
		panic(badGroups)
	}
	if groups < 2 {
		return Draws{Variance: math.Inf(1), DoF: 1}
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	influence := mat.NewDense(groups, n, nil)
	out := Draws{DoF: float64(groups - 1)}
	means := make([]float64, groups)
	for g, losses := range without {
		if len(losses) != n {
			panic(badGroups)
		}
		row, h := influence.RawRowView(g), total/weights[g]
		for i, loss := range losses {
			if loss != all[i] { // else infinite losses would give NaN
				row[i] = (h - 1) * (loss - all[i])
			}
		}
		means[g] = stat.Mean(row, nil)
		out.Bias += means[g] / h
	}
	v1 := 0.0
	for g, a := range means {
		v1 += (a - out.Bias) * (a - out.Bias) / (total/weights[g] - 1) / float64(groups)
	}
	for _, a := range means {
		out.Third -= math.Pow(a-out.Bias, 3) / float64(groups*(groups-1)*max(1, groups-2))
	}
	center(influence)
	own, squares, fourths := 0.0, make([]float64, n), 0.0 // squares are Σ_g D² of an example
	for g := range groups {
		h := total / weights[g]
		for i, d := range influence.RawRowView(g) {
			own += d * d / (h - 1)
			squares[i] += d * d
			fourths += d * d * d * d
		}
	}
	v1 -= own / float64(groups) / float64(n) / float64(n)
	v2 := pairs(influence, squares, fourths)
	out.Variance = max(v1-v2, v2/2, 0)
	return out
}

// center subtracts from each column its mean.
func center(m *mat.Dense) {
	groups, n := m.Dims()
	for i := range n {
		mean := 0.0
		for g := range groups {
			mean += m.At(g, i) / float64(groups)
		}
		for g := range groups {
			m.Set(g, i, m.At(g, i)-mean)
		}
	}
}

// pairs returns V2 of [NewDraws]. The noise of the examples in K_gh is the variance over examples of the product
// D_g·D_h, divided by n. Its sum over pairs follows from Σ_g D² and Σ_g D⁴.
func pairs(influence *mat.Dense, squares []float64, fourths float64) float64 {
	groups, n := influence.Dims()
	if groups < 4 {
		return 0
	}
	k := mat.NewSymDense(groups, nil)
	k.SymOuterK(1/float64(n), influence)
	var off []float64
	sum := 0.0 // the sum of K² over ordered pairs
	for g := range groups {
		for h := range g {
			off = append(off, k.At(g, h))
			sum += 2 * k.At(g, h) * k.At(g, h)
		}
	}
	products := -fourths // Σ_i Σ_{g≠h} D_g²·D_h²
	for _, s := range squares {
		products += s * s
	}
	ordered := float64(2 * len(off))
	noise := (products/float64(n) - sum) / ordered / float64(max(1, n-1))
	return max(0, stat.Variance(off, nil)-noise) / 2 / float64(groups*groups)
}

// Replicated measures the effect of a single draw on losses, given the losses of two or more such draws, by draw and
// example. It uses their variance, less the part that belongs to single examples. Bias is 0. It panics if the numbers
// of examples differ.
func Replicated(draws [][]float64) Draws {
	n, count := float64(columns(draws)), float64(len(draws))
	if count < 2 {
		return Draws{Variance: math.Inf(1), DoF: 1}
	}
	means, one, own := make([]float64, len(draws)), make([]float64, len(draws)), 0.0
	for r, losses := range draws {
		means[r] = stat.Mean(losses, nil)
	}
	for i := range draws[0] {
		for r := range draws {
			one[r] = draws[r][i]
		}
		own += stat.Variance(one, nil) / (n * n)
	}
	return Draws{Variance: max(0, stat.Variance(means, nil)-own), DoF: count - 1}
}
