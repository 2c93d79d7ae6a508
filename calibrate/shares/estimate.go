package shares

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Verdict says what an estimate is good for. Only [Moved] allows to correct probabilities.
type Verdict string

// The verdicts.
const (
	Moved Verdict = "moved"
	// Same is what examples with the shares of training give with a probability of 1 − [Level].
	Same Verdict = "not moved"
	// Few are too few examples.
	Few Verdict = "too few examples"
	// Alike are classes whose predictions resemble each other, so that an error of the shares would cost as much as they gain.
	Alike Verdict = "classes too alike"
	// Uncalibrated are probabilities that the correction does not improve on the labelled examples, weighted to the estimated shares.
	Uncalibrated Verdict = "not calibrated"
	// Otherwise are predictions that no shares of the labelled classes give: the examples of a class have changed too.
	Otherwise Verdict = "changed otherwise"
)

// The bounds of the verdicts, which fixtures/shares measures.
const (
	// Level is about the largest probability of [Moved] for data that are like the labelled examples. TestCalibrated has what was measured.
	Level = 0.01
	// LeastGain is the least gain, in expected losses by the error of the shares. An estimate on data with the shares of training
	// gains one such loss in appearance, and loses one.
	LeastGain = 2
	// oneSided is the quantile of a gain on the labelled examples that must be above 0.
	oneSided = 1.6448536269514722 // 95 %
	// mostUnexplained is how far the mean confidence may be from what the shares explain, and mostErrors the same in standard errors.
	mostUnexplained, mostErrors = 0.02, 3
	// leastEffective is the least number of labelled examples whose confidence is compared, after they are weighted to the shares.
	leastEffective = 100
	// LeastExamples is the least number of examples without labels.
	LeastExamples = 50

	z = 1.959963984540054 // 97.5 %
	// leastInformation is what the rounding of probabilities leaves of classes that are the same.
	leastInformation = 1e-6
	// leastValue is the part of the largest singular value below which others count as 0.
	leastValue = 1e-10
)

// Estimate is what data without labels say about the shares of classes.
type Estimate struct {
	Verdict  Verdict `json:"verdict"`
	Examples int     `json:"examples"`
	Labelled int     `json:"labelled"` // examples
	// Training are the shares that the probabilities assume, and Shares those of the data. They are drawn a little towards Training, as by
	// half an example of each class, so that none is 0.
	Training []float64 `json:"training"`
	Shares   []float64 `json:"shares"`
	Low      []float64 `json:"low"` // 95 %
	High     []float64 `json:"high"`
	// P is the p-value of the hypothesis that nothing has moved.
	P float64 `json:"p"`
	// Information is the least part of what labels would tell about shares that the predictions tell: 1 for a network without errors, and
	// 0 for two classes with the same probabilities.
	Information float64 `json:"information"`
	// Gain is the estimated fall of the NLL by the correction, Cost the expected rise by the error of the shares, and Checked the fall on
	// the labelled examples, weighted to the shares, with its standard error.
	Gain    float64    `json:"gain"`
	Cost    float64    `json:"cost"`
	Checked [2]float64 `json:"checked"`
	// Unexplained is the mean confidence, less that which the shares explain, with its standard error.
	Unexplained [2]float64 `json:"unexplained"`
	// Accuracy is to expect after the correction, with its interval; it was Validation on the labelled examples.
	Accuracy   [3]float64 `json:"accuracy"`
	Validation float64    `json:"validation"`
}

// Estimate estimates the shares of data without labels.
func (l *Labelled) Estimate(rows Rows) (*Estimate, error) {
	own, of := newSums(l.Classes), newSums(l.Classes)
	add := func(s *sums) func(p []float64) error { return func(p []float64) error { s.add(p); return nil } }
	if err := rows(add(own)); err != nil {
		return nil, err
	}
	l.Each(add(of))
	e := &Estimate{Verdict: Few, Examples: own.n, Labelled: of.n, Training: l.Training()}
	if own.n < LeastExamples || own.n+of.n <= 2*l.Classes {
		return e, nil
	}
	e.P = moved(own, of)
	top, found, err := fit(e.Training, rows)
	if err != nil {
		return nil, err
	}
	floats.Mul(top, e.Training)
	floats.Scale(1/floats.Sum(top), top)
	x, err := l.near(e.Training, top, float64(own.n), rows)
	if err == nil {
		x, err = l.near(e.Training, top, min(float64(own.n), x.size()), rows)
	}
	if err != nil {
		return nil, err
	}
	e.Shares = x.shares
	x.intervals(e)
	x.gains(e)
	if err := x.unexplained(e, rows); err != nil {
		return nil, err
	}
	e.Accuracy, e.Validation = x.accuracy(x.covariance, float64(own.n)), x.rightPlain()
	switch {
	case e.P >= Level:
		e.Verdict = Same
	case !found || e.Information < leastInformation || !(e.Gain >= LeastGain*e.Cost):
		e.Verdict = Alike
	case !(e.Checked[0] > oneSided*e.Checked[1]):
		e.Verdict = Uncalibrated
	case x.enough() && math.Abs(e.Unexplained[0]) > max(mostUnexplained, mostErrors*e.Unexplained[1]):
		e.Verdict = Otherwise
	default:
		e.Verdict = Moved
	}
	return e, nil
}

// moved returns the p-value of Hotelling's test that both have the same mean. The last class is what the others leave.
func moved(a, b *sums) float64 {
	n, m, q := float64(a.n), float64(b.n), float64(len(a.sum)-1)
	var pooled, of mat.SymDense
	pooled.ScaleSym(n-1, a.covariance())
	of.ScaleSym(m-1, b.covariance())
	pooled.AddSym(&pooled, &of)
	pooled.ScaleSym(1/(n+m-2), &pooled)
	inverted, _ := inverse(pooled.SliceSym(0, int(q)), leastValue)
	d := a.mean()
	floats.Sub(d, b.mean())
	t := quadratic(d[:int(q)], inverted) * n * m / (n + m)
	return distuv.F{D1: q, D2: n + m - q - 1}.Survival(t * (n + m - q - 1) / (q * (n + m - 2)))
}

// A neighbourhood is the likelihood near its top. r is p/(p·w).
type neighbourhood struct {
	of               *Labelled
	training, shares []float64
	w                []float64
	at               *point
	information      *mat.SymDense // the expected mean of r·rᵀ
	inverse          *mat.Dense
	counts           []float64     // labelled examples of each class
	covariance       *mat.SymDense // of the shares
	means            *mat.Dense    // of r, over the labelled examples of each class in a column
}

// near returns the likelihood at shares that are drawn towards those of training, as n examples with the shares top and half an example
// of each class are.
func (l *Labelled) near(training, top []float64, n float64, rows Rows) (*neighbourhood, error) {
	half := 0.5 * float64(l.Classes)
	x := &neighbourhood{of: l, training: training, shares: make([]float64, l.Classes)}
	for c := range x.shares {
		x.shares[c] = (n*top[c] + half*training[c]) / (n + half)
	}
	x.w = Factors(training, x.shares)
	var err error
	if x.at, err = newPoint(x.w, training, rows); err != nil {
		return nil, err
	}
	x.expect()
	x.count()
	x.spread()
	return x, nil
}

// expect computes the information that an example of data with the shares is expected to give. The labelled examples, with their
// probabilities for labels, tell it. The data itself lack the examples of a class whose share is almost 0.
func (x *neighbourhood) expect() {
	all, row := newSums(x.of.Classes), make([]float64, x.of.Classes)
	x.of.Each(func(p []float64) error {
		all.add(floats.ScaleTo(row, 1/math.Sqrt(floats.Dot(p, x.w)), p))
		return nil
	})
	x.information = all.second()
	x.inverse, _ = inverse(x.information, leastValue)
}

// size returns the number of labelled examples that would tell the shares as well.
func (x *neighbourhood) size() float64 {
	variance := func(shares []float64) float64 { return 1 - floats.Dot(shares, shares) }
	return max(variance(x.shares), variance(x.training)) / mat.Trace(x.covariance)
}

// count counts the labelled examples of each class.
func (x *neighbourhood) count() {
	x.counts = make([]float64, x.of.Classes)
	for _, label := range x.of.Labels {
		x.counts[label]++
	}
}

// mean returns the mean of values of each class over its labelled examples. For a class without any it is that over all examples, weighted
// by their probabilities of the class.
func (x *neighbourhood) mean(value func(i int, p []float64) float64) []float64 {
	sums, by, weight := make([]float64, x.of.Classes), make([]float64, x.of.Classes), x.sumsOf()
	i := 0
	x.of.Each(func(p []float64) error {
		v := value(i, p)
		sums[x.of.Labels[i]] += v
		floats.AddScaled(by, v, p)
		i++
		return nil
	})
	for c, n := range x.counts {
		if n > 0 {
			sums[c] /= n
		} else {
			sums[c] = by[c] / weight[c]
		}
	}
	return sums
}

// sumsOf returns the sums of the probabilities of the labelled examples.
func (x *neighbourhood) sumsOf() []float64 {
	return floats.ScaleTo(make([]float64, len(x.training)), float64(len(x.of.Labels)), x.training)
}

// spread computes the covariance of the shares. Both samples are chance: r of the data, and its means over the labelled classes. The
// latter's covariance takes the probabilities for labels, which holds for few examples too.
func (x *neighbourhood) spread() {
	n := x.of.Classes
	x.means = mat.NewDense(n, n, nil)
	weight, by, parts := x.sumsOf(), mat.NewDense(n, n, nil), make([]float64, n)
	for c, share := range x.shares {
		parts[c] = share * share / max(1, x.counts[c]) / weight[c]
	}
	total, r, i := mat.NewSymDense(n, nil), make([]float64, n), 0
	x.of.Each(func(p []float64) error {
		v := mat.NewVecDense(n, floats.ScaleTo(r, 1/floats.Dot(p, x.w), p))
		total.SymRankOne(total, floats.Dot(parts, p), v)
		by.RankOne(by, 1, v, mat.NewVecDense(n, p))
		column := x.means.ColView(x.of.Labels[i]).(*mat.VecDense)
		column.AddVec(column, v)
		i++
		return nil
	})
	for c := range n {
		mean := mat.NewVecDense(n, mat.Col(nil, c, by))
		mean.ScaleVec(1/weight[c], mean)
		total.SymRankOne(total, -parts[c]*weight[c], mean)
		column := x.means.ColView(c).(*mat.VecDense)
		if x.counts[c] > 0 {
			column.ScaleVec(1/x.counts[c], column)
		} else {
			column.CopyVec(mean)
		}
	}
	var own mat.SymDense
	own.SymRankOne(x.information, -1, mat.NewVecDense(n, x.training))
	own.ScaleSym(1/float64(x.at.r.n), &own)
	total.AddSym(total, &own)
	var half, all mat.Dense
	half.Mul(x.inverse, total)
	all.Mul(&half, x.inverse.T())
	x.covariance = mat.NewSymDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			x.covariance.SetSym(a, b, x.training[a]*x.training[b]*all.At(a, b))
		}
	}
}

// std returns the standard error of a share.
func (x *neighbourhood) std(c int) float64 { return math.Sqrt(max(0, x.covariance.At(c, c))) }

// intervals are about the shares that the labelled classes explain, which need no calibrated probabilities: a step from the estimate, with
// the slope of the likelihood.
func (x *neighbourhood) intervals(e *Estimate) {
	off := x.at.r.mean()
	var explained, step mat.VecDense
	explained.MulVec(x.means, mat.NewVecDense(len(x.shares), x.shares))
	floats.Sub(off, explained.RawVector().Data)
	step.MulVec(x.inverse, mat.NewVecDense(len(off), off))
	for c, share := range x.shares {
		middle, width := share+x.training[c]*step.AtVec(c), z*x.std(c)
		e.Low = append(e.Low, min(max(0, middle-width), share))
		e.High = append(e.High, max(min(1, middle+width), share))
	}
}

// gains computes the gain and the cost of the correction. The cost is half the trace of the covariance of log w times the curvature of the
// loss. A logarithm cannot be off by more than its share is.
func (x *neighbourhood) gains(e *Estimate) {
	q := x.at.r.mean()
	floats.Mul(q, x.w)
	second, told := x.at.r.second(), mat.NewSymDense(len(q), nil)
	logs := make([]float64, len(q))
	for a, w := range x.w {
		logs[a] = math.Log(w)
		for b, v := range x.w {
			curvature := -w * v * second.At(a, b)
			told.SetSym(a, b, w*v*x.information.At(a, b)/math.Sqrt(x.shares[a]*x.shares[b]))
			if a == b {
				curvature += q[a]
			}
			e.Cost += x.covariance.At(a, b) / ((x.shares[a] + x.std(a)) * (x.shares[b] + x.std(b))) * curvature / 2
		}
	}
	_, e.Information = inverse(told, 0)
	e.Gain = floats.Dot(q, logs) - x.at.value - floats.Dot(x.training, x.w)
	e.Checked = x.weighted(func(i int, p []float64) float64 { return logs[x.of.Labels[i]] - math.Log(floats.Dot(p, x.w)) })
}

// weighted returns the mean of a value of labelled examples, weighted to the shares, with its standard error.
func (x *neighbourhood) weighted(value func(i int, p []float64) float64) [2]float64 {
	means := x.mean(value)
	squares := x.mean(func(i int, p []float64) float64 {
		d := value(i, p) - means[x.of.Labels[i]]
		return d * d
	})
	variance := 0.0
	for c, share := range x.shares {
		if n := x.counts[c]; n > 1 {
			variance += share * share * squares[c] / (n - 1)
		}
	}
	return [2]float64{floats.Dot(means, x.shares), math.Sqrt(variance)}
}

// enough reports whether the labelled examples tell the mean confidence of data with the shares.
func (x *neighbourhood) enough() bool {
	each := 0.0
	for c, share := range x.shares {
		each += share * share / max(1, x.counts[c])
	}
	return each*leastEffective < 1
}

// unexplained compares the mean confidence with what the shares explain: the part of it that no change of the shares can move.
func (x *neighbourhood) unexplained(e *Estimate, rows Rows) error {
	confidences := x.mean(func(_ int, p []float64) float64 { return slices.Max(p) })
	floats.Mul(confidences, x.training)
	var slope mat.VecDense
	slope.MulVec(x.inverse, mat.NewVecDense(len(confidences), confidences))
	left := func(p []float64) float64 {
		return slices.Max(p) - floats.Dot(p, slope.RawVector().Data)/floats.Dot(p, x.w)
	}
	own := newSums(1)
	if err := rows(func(p []float64) error { own.add([]float64{left(p)}); return nil }); err != nil {
		return err
	}
	of := x.weighted(func(_ int, p []float64) float64 { return left(p) })
	e.Unexplained = [2]float64{own.mean()[0] - of[0], math.Sqrt(own.covariance().At(0, 0)/float64(own.n) + of[1]*of[1])}
	return nil
}

// accuracy returns the accuracy to expect of n examples after the correction, with its interval. covariance is that of the shares.
func (x *neighbourhood) accuracy(covariance mat.Symmetric, n float64) [3]float64 {
	q := make([]float64, x.of.Classes)
	right := func(i int, p []float64) float64 {
		floats.MulTo(q, p, x.w)
		if floats.MaxIdx(q) == x.of.Labels[i] {
			return 1
		}
		return 0
	}
	of := x.weighted(right)
	variance := of[1]*of[1] + of[0]*(1-of[0])/n
	if covariance != nil {
		variance += quadratic(x.mean(right), covariance)
	}
	width := z * math.Sqrt(variance)
	return [3]float64{of[0], max(0, of[0]-width), min(1, of[0]+width)}
}

// rightPlain returns the accuracy on the labelled examples.
func (x *neighbourhood) rightPlain() float64 {
	n, i := 0.0, 0
	x.of.Each(func(p []float64) error {
		if floats.MaxIdx(p) == x.of.Labels[i] {
			n++
		}
		i++
		return nil
	})
	return n / float64(i)
}

// Expect returns the accuracy to expect of n examples with known shares, with its interval, and that on the labelled examples.
func (l *Labelled) Expect(shares []float64, n int) (accuracy [3]float64, validation float64) {
	x := &neighbourhood{of: l, training: l.Training(), shares: shares}
	x.w = Factors(x.training, shares)
	x.count()
	return x.accuracy(nil, float64(n)), x.rightPlain()
}
