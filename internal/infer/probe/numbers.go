package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// numbers holds the scores and the targets of a regression for its checks.
type numbers struct {
	*Record
	task.RegressionSpec
	rows    [][]float32
	y       target.Target // targets of the rows; none if they are missing or too few
	targets int
	means   infer.OutputProperties // of the first half with a variance head, else of all scores
	second  infer.OutputProperties // of the second half
}

// fewestTargets is the least number of examples with targets for a comparison.
const fewestTargets = 30

// CheckNumbers checks the scores of a regression, and compares them with the targets if there are some. It warns if
// the scores are probably not what the model card says. It fails if they cannot be that. [infer.NewNetwork] has
// refused networks whose graph alone disproves the model card.
func (r *Record) CheckNumbers(report *Report, stated task.RegressionSpec, first, second infer.OutputProperties) error {
	n := &numbers{Record: r, RegressionSpec: stated, targets: r.Count, means: first.Union(second), second: second}
	if stated.Head != "" {
		n.targets, n.means = r.Count/2, first
	}
	var held []int
	for i := range len(r.Scores) / r.Count {
		row := r.Scores[i*r.Count:][:r.Count]
		if !slices.ContainsFunc(row, infinite) {
			n.rows, held = append(n.rows, row), append(held, i)
		}
	}
	if r.Labels.Width == n.targets && r.Labels.Len()*r.Count == len(r.Scores) && r.Holds&Foreign == 0 && len(held) >= fewestTargets {
		n.y = r.Labels.Pick(held)
	}
	if len(n.rows) == 0 {
		return nil // the run itself says what is wrong with them
	}
	return report.Take(r.Holds, n.faults()...)
}

// faults lists what may be wrong with numbers.
func (n *numbers) faults() []Fault {
	text, byVariance, pairs := fmt.Sprintf, n.Head == regression.ByVariance, n.Head == "" && n.Count%2 == 0
	classes, means, outside, told := n.classes(), "", "", ""
	for k := 0; k < n.targets && means+outside+told == "" && !n.y.None(); k++ { // one target stands for the others
		if outside = n.outside(k); outside == "" {
			if means = n.mean(k); means == "" {
				told = n.spread(k)
			}
		}
	}
	half := pairs && n.Count > 1 && n.means.Low < 0 && n.second.Positive()
	negative, least := 0, 0.0
	for _, row := range n.rows {
		for _, v := range row[n.targets:] {
			if n.Head.Plain() && v < 0 {
				negative, least = negative+1, min(least, float64(v))
			}
		}
	}
	are, logs, plus := "variances are", byHead(regression.ByLogVariance)+", if these are logarithms of variances", regression.BySoftplus
	if n.Head == regression.ByStd {
		are, logs = "standard deviations are", byHead(regression.ByLogStd)+", if these are logarithms of standard deviations"
		plus = regression.BySoftplusStd
	}
	hint := "fit again with " + logs + ", or with " + byHead(plus) + ", if training applied a softplus to them\n" +
		"the means must stand before the variances"
	if means+told != "" {
		hint = means + told + "\n" + hint
	}
	return []Fault{
		{Name: "numbers are probabilities of classes", When: classes != "",
			Cause: text("the %s of every row add up to 1: they are probabilities of classes, and the model card says regression", classes),
			Hint:  "fit again with " + setting.Task.With("classes") + "; shares that add up to 1 pass where the targets do so too"},
		{Name: "standard deviations for variances", Severity: Warning, When: byVariance && n.second.Op == "Sqrt",
			Cause: "the second half of the scores comes out of a square root, and is taken for variances. Does it hold standard " +
				"deviations? Then fit again with " + byHead(regression.ByStd)},
		{Name: "logarithms for variances", Severity: Warning, When: n.Head.Plain() && n.second.Affine && n.second.Low < 0,
			Cause: text("the second half of the scores comes out of a layer that may give negative numbers, and %s not negative. Fit "+
				"again with %s. If training applied a softplus to them, use %s", are, logs, byHead(plus))},
		{Name: "variances for means", Severity: Warning, When: half,
			Cause: text("the second half of the scores is at 0 or above (%s), and is taken for means. Does it hold variances? "+
				"Then fit again with %s", n.second.Op, byHead(regression.ByVariance))},
		{Name: "quantiles for means", Severity: Warning,
			When: !half && n.Head == "" && n.Count > 2 && n.y.None() && len(n.rows) >= fewestTargets &&
				!slices.ContainsFunc(n.rows, func(row []float32) bool { return !slices.IsSorted(row) }),
			Cause: text("the %d scores ascend in every row, and are taken for means. Are they quantiles of one target? Then "+
				"export the median alone", n.Count)},
		{Name: "targets outside the graph's range", When: outside != "", Cause: outside,
			Hint: "if the network was trained on scaled targets, fit again with " + setting.Targets.With(`"mean=M std=S"`) +
				": a target is M + S times the network's number\nif these targets are scaled and those of training were not, score the " +
				"targets of training's units"},
		{Name: "another reading of means", Severity: Warning, When: means != "", Cause: means},
		{Name: "another reading of variances", Severity: Warning, When: told != "", Cause: told},
		{Name: "negative variances", When: negative > 0, Hint: hint,
			Cause: text("%d of %d %s negative, down to %.4g", negative, len(n.rows)*n.targets, are, least)},
	}
}

// classes names what of the scores adds up to 1, as probabilities of classes do, and the targets do not. Else it returns "".
func (n *numbers) classes() string {
	if n.Head != "" || n.Count < 2 {
		return ""
	}
	v := look(n.rows)
	if _, one, _ := n.sums(v.high <= tinyAboveZero, n.rows, v, math.Exp); one {
		return "exponentials of the scores"
	}
	_, one, _ := n.sums(v.low >= -task.Rounding, n.rows, v, itself)
	shares := n.y.Len() > 0
	for i := range n.y.Len() {
		shares = shares && math.Abs(floats.Sum(n.y.At(i).Values)-1) < task.SumTolerance
	}
	if shares || !one {
		return ""
	}
	return "scores"
}

func (n *numbers) column(c int) (out []float64) {
	for _, row := range n.rows {
		out = append(out, float64(row[c]))
	}
	return out
}

// known returns target k of each row.
func (n *numbers) known(k int) (out []float64) {
	for i := range n.rows {
		out = append(out, n.y.Values[i*n.targets+k])
	}
	return out
}

// outside says that the graph bounds the means to a range that misses nearly all targets.
func (n *numbers) outside(k int) string {
	const nearly = 0.9
	u, y := n.UnitsOf(k), n.known(k)
	low, high, count := u.Target(n.means.Low), u.Target(n.means.High), 0.0
	for _, v := range y {
		if v < low || v > high {
			count++
		}
	}
	if count < nearly*float64(len(y)) {
		return ""
	}
	return fmt.Sprintf("target %d: the graph keeps its predictions between %.4g and %.4g, but the targets are from %.4g to %.4g", k, low,
		high, slices.Min(y), slices.Max(y))
}

// How large the mean squared error of another reading of the means may be. A network that was
// trained on the targets predicts them better than their mean does.
const (
	ofPoor     = 0.25 // of that of predictions that are about as good as the mean
	ofWorse    = 0.5  // of that of predictions that are worse than the mean
	explains   = 0.9  // of the targets' variance
	muchBetter = 0.8  // of that of the predictions, where all targets are counts: exp
	hopeless   = 5.   // median error, in standard deviations of the targets
	far        = 4.   // of the targets' variance, where a straight line of any slope is named
)

// A reading is another meaning of the scores.
type reading struct {
	values    []float64
	what, fix string
	counts    bool // exp, where all targets are counts
}

// mean returns a warning if another reading of the scores fits target k much better.
func (n *numbers) mean(k int) string {
	y, z, u := n.known(k), n.column(k), n.UnitsOf(k)
	mapped := func(from []float64, f func(float64) float64) []float64 {
		out := make([]float64, len(from))
		for i, v := range from {
			out[i] = f(v)
		}
		return out
	}
	predicted := mapped(z, u.Target)
	plain, variance := distance(y, predicted), stat.PopVariance(y, nil)
	counts := !slices.ContainsFunc(y, func(v float64) bool { return v < 0 || v != math.Trunc(v) })
	all := []reading{
		{values: mapped(predicted, math.Exp), what: "exp of the outputs",
			fix: "Are they log-rates (Poisson), or were the targets of training logarithms? Then export the network with Exp at its end"},
		{values: mapped(predicted, math.Log), what: "log of the outputs",
			fix: "Are the targets logarithms? Then export the network without its Exp, or give the targets without the logarithm"},
	}
	if counts && n.Head == "" && n.Units == nil {
		all[0].counts = true
	}
	if n.Units != nil {
		all = append(all, reading{values: z, what: "the outputs without the units of the model card",
			fix: "Fit again without mean and std of " +
				setting.Targets.String() + " if the network itself returns the targets' units. If these targets are standardised, give " +
				"them in the units of the model card"})
	}
	for c := range n.Count {
		if c != k {
			all = append(all, reading{values: mapped(n.column(c), u.Target), what: fmt.Sprintf("score %d", c),
				fix: "Export all means first, in the order of the targets, and then all variances"})
		}
	}
	if a, b := line(predicted, y); b < 0.5 || b > 2 || plain > far*variance { // not for NaN
		r := reading{values: mapped(predicted, func(v float64) float64 {
			return a + b*v
		}), what: fmt.Sprintf("%.4g + %.4g × the predictions", a, b),
			fix: "The units differ. Do training and these data have the same units and the same mean and std of " +
				setting.Targets.String() + "?"}
		if n.Units == nil {
			r.fix = fmt.Sprintf("Was the network trained on scaled targets? Then fit again with %s, which takes their mean and standard "+
				"deviation from a file of the training targets", setting.Targets.With("FILE"))
		}
		all = append(all, r)
	}
	best, least := reading{}, math.Inf(1)
	for _, r := range all {
		d := distance(y, r.values)
		fits := plain > variance/2 && d < ofPoor*plain
		switch {
		case r.counts:
			fits = d < muchBetter*plain
		case plain > variance:
			fits = d < ofWorse*plain && d < explains*variance
		}
		if fits && d < least/2 { // of readings that are alike, the first
			best, least = r, d
		}
	}
	switch {
	case variance == 0:
		return ""
	case best.what == "":
		errors := make([]float64, len(y))
		for i := range y {
			errors[i] = math.Abs(y[i] - predicted[i])
		}
		slices.Sort(errors)
		if m := errors[len(errors)/2]; m > hopeless*math.Sqrt(variance) {
			return fmt.Sprintf("target %d: half of the predictions are further than %.4g from the targets, whose standard deviation is "+
				"%.4g. Are these the targets and the units that the network was trained on?", k, m, math.Sqrt(variance))
		}
		return ""
	}
	return fmt.Sprintf("target %d: %s fits the targets better than the predictions do (RMSE %.4g, not %.4g). %s", k, best.what,
		math.Sqrt(least), math.Sqrt(plain), best.fix)
}

// distance returns the mean squared error.
func distance(y, predicted []float64) (mean float64) {
	for i := range y {
		d := y[i] - predicted[i]
		mean += d * d / float64(len(y))
	}
	return mean
}

// line returns the straight line of least squares, y = a + b·x, with b > 0. It returns NaN for b if there is none.
func line(x, y []float64) (a, b float64) {
	if a, b = stat.LinearRegression(x, y, nil, false); !(b > 0) || stat.PopVariance(x, nil) == 0 {
		return 0, math.NaN()
	}
	return a, b
}

// Limits of the median of squared standardised residuals, as a part of that of a Gaussian.
// One large error does not move it. Networks that were trained with SGD are often overconfident by a factor of 3 in the
// standard deviation, which is 9 here.
const (
	medianSquare = 0.454936 // of a standard normal variable
	unlikely     = 36.      // a warning needs another reading that fits
	impossible   = 100.     // a warning needs none
	fitting      = 9.
	// tie is how much worse the negative log-likelihood of another reading may be than that of
	// the present one with the best factor. A wrong factor is a matter of calibration.
	tie = 0.3
)

// spread returns a warning if the residuals of target k do not fit the standard deviations. It names the meaning of
// the scores that fits.
func (n *numbers) spread(k int) string {
	u, y, z := n.UnitsOf(k), n.known(k), n.column(k)
	off := make([]float64, len(y))
	for i := range y {
		off[i] = y[i] - u.Target(z[i])
	}
	if n.Head == "" {
		if len(n.Noise) == 0 {
			return ""
		}
		std := n.Noise[min(k, len(n.Noise)-1)]
		r, _, _ := judged(off, off, func(float64) float64 { return std * std })
		if r > 1/impossible && r < impossible {
			return ""
		}
		return fmt.Sprintf("target %d: %s of the noise. Is %s in the targets' units?", k, ratio(r), setting.NoiseStd)
	}
	raw := n.column(n.targets + k)
	head := variance(n.Head)
	now, _, scaled := judged(off, raw, func(x float64) float64 { return head(x) * u.Std * u.Std })
	if now > 1/unlikely && now < unlikely {
		return ""
	}
	best, least := "", math.Inf(1)
	for _, alternative := range n.readings() {
		for _, scale := range []float64{u.Std * u.Std, 1} {
			if alternative.head == n.Head && alternative.fix == "" && scale == u.Std*u.Std {
				continue // the reading that the command uses already
			}
			r, nll, _ := judged(off, raw, func(x float64) float64 { return scale * alternative.variance(x) })
			if certain := now != now || now > impossible || now < 1/impossible; !certain && nll > scaled+tie {
				continue // a wrong scale explains the residuals as well
			}
			if r > 1/fitting && r < fitting && nll < least {
				best, least = cmp.Or(alternative.fix, byHead(alternative.head)), nll
				if scale != u.Std*u.Std {
					best += ", in the targets' units and not in the network's"
				}
			}
		}
	}
	stated := fmt.Sprintf("target %d: %s of the standard deviations that the model card implies", k, ratio(now))
	switch {
	case best == "" && (now > impossible || now < 1/impossible):
		return fmt.Sprintf("%s. Do %s, mean and std of %s fit the network?", stated, byHead(n.Head), setting.Targets)
	case best == "":
		return ""
	case now != now:
		return fmt.Sprintf("target %d: the second half of the scores gives no variances by %s. The targets fit %s", k, byHead(n.Head), best)
	}
	return fmt.Sprintf("%s (%s). The targets fit %s", stated, byHead(n.Head), best)
}

// ratio describes the size of residuals in words.
func ratio(r float64) string {
	return fmt.Sprintf("the errors are typically %.3g times as large as expected", math.Sqrt(r))
}

// judged returns the median r of the squared standardised residuals, as a multiple of the median of a Gaussian. It
// also returns the negative log-likelihood nll, and the same after all variances have been scaled by the best factor.
// All are NaN if a variance is not positive.
func judged(off, raw []float64, variance func(float64) float64) (r, nll, scaled float64) {
	squares, logs := make([]float64, len(off)), 0.0
	for i, d := range off {
		v := variance(raw[i])
		if !(v > 0) || math.IsInf(v, 1) {
			return math.NaN(), math.NaN(), math.NaN()
		}
		squares[i] = d * d / v
		logs += math.Log(v) / float64(len(off))
	}
	mean := stat.Mean(squares, nil)
	slices.Sort(squares)
	return squares[len(squares)/2] / medianSquare, (logs + mean) / 2, (logs + math.Log(mean) + 1) / 2
}

// A spreading is a possible meaning of the second half of the scores.
type spreading struct {
	head     regression.VarianceHead
	fix      string // "" where the head says it all
	variance func(float64) float64
}

// byHead names the setting that says what the second half of the scores holds.
func byHead(h regression.VarianceHead) string { return setting.Targets.With("head=" + string(h)) }

// variance returns the function from a score to a variance. It gives NaN for scores that the head refuses.
func variance(h regression.VarianceHead) func(float64) float64 {
	return func(x float64) float64 {
		v, err := h.Variance(x)
		if err != nil {
			return math.NaN()
		}
		return v
	}
}

// readings lists the possible meanings of the second half of the scores. Scores that the graph keeps at 0 or above are
// no logarithms.
func (n *numbers) readings() (all []spreading) {
	all = []spreading{
		{regression.ByVariance, "", variance(regression.ByVariance)},
		{regression.ByStd, "", variance(regression.ByStd)},
		{regression.ByVariance, "precisions (1/variance): export their reciprocals, and fit again with " + byHead(regression.ByVariance),
			func(x float64) float64 {
				return 1 / x
			}},
	}
	if n.second.Positive() {
		return all
	}
	return append(all,
		spreading{regression.ByLogVariance, "", variance(regression.ByLogVariance)},
		spreading{regression.BySoftplus, "", variance(regression.BySoftplus)},
		spreading{regression.ByLogStd, "", variance(regression.ByLogStd)},
		spreading{regression.BySoftplusStd, "", variance(regression.BySoftplusStd)})
}
