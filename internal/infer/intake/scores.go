package intake

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Raw holds the scores of a network for the examples of a sample, and the facts that decide their meaning.
type Raw struct {
	Task   string    // the name of the task
	Count  int       // scores of an example
	Scores []float32 // n×Count
	Batch  int       // examples of each batch that was run
	Labels truth.Truth
	// Foreign says that the data is from another domain: targets tell nothing there.
	Foreign bool
	Ending  infer.Ending
	// Known is the form that the graph proves or the model card names, or "".
	Known task.Form
	// Proven says that Known comes from the graph.
	Proven bool
}

// A Decision says whether scores are logits, probabilities or log-probabilities, and why.
type Decision struct {
	Form task.Form `json:"form"`
	// By names the source of the decision: "graph", "card", "values" or "labels". "default" stands for logits, because
	// no check found anything else.
	By string `json:"by"`
	// Why is the reason in words.
	Why string `json:"why"`
}

// An Unclear error says that the form of the scores is not clear, or that the graph, the
// model card and the values disagree. A user decides with --scores.
type Unclear struct {
	What string
	// Open says that no check decided. More examples or labels may help.
	Open  bool
	hints []string
}

func (e *Unclear) Error() string { return e.What }

// Hints returns the hint lines for the user.
func (e *Unclear) Hints() []string { return e.hints }

// unclear returns an error that tells the user to give --scores.
func unclear(format string, args ...any) *Unclear {
	return refused("say at "+setting.Fit.String()+" what the scores are: "+setting.Scores.With("logits")+", "+
		setting.Scores.With("probabilities")+" or "+
		setting.Scores.With("log-probabilities")+fmt.Sprintf("; %s, %s and the studies take it too where %s was not told", setting.Sample,
		setting.Score, setting.Fit), format, args...)
}

// refused returns an error with its own hint, for cases where --scores does not help.
func refused(hint, format string, args ...any) *Unclear {
	return &Unclear{What: fmt.Sprintf(format, args...), hints: strings.Split(hint, "\n")}
}

// Decide finds the form of a classifier's scores. It looks at the values first. Rows that are not negative and add up
// to 1 are probabilities. Rows whose exponentials add up to 1 are log-probabilities. For a single score, or
// independent labels, the graph ([infer.Ending]) or the labels decide.
//
// An [*Unclear] error says that no check decides, or that the values contradict the graph or the model card. The
// scores of a regression have no form: see [Raw.CheckNumbers].
func (r *Raw) Decide() (*Decision, error) {
	if !task.TraitsOf(r.Task).Form {
		return nil, nil
	}
	rows := r.usable()
	if len(rows) == 0 {
		return nil, nil // the run itself says what is wrong with them
	}
	v := look(rows)
	each, of := r.Count == 1 || task.TraitsOf(r.Task).Alone, r.classes
	if each {
		of = r.each
	}
	d, err := of(rows, v)
	if err == nil && (each || d.Form == task.Logits) {
		err = r.ordinal(rows, v, each, d.Form == task.Logits)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// usable returns the rows without NaN or +∞.
func (r *Raw) usable() (rows [][]float32) {
	for row := range slices.Chunk(r.Scores, r.Count) {
		if !slices.ContainsFunc(row, func(v float32) bool { return v != v || math.IsInf(float64(v), 1) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// values summarizes rows of scores.
type values struct {
	low, high float64
	distinct  int     // number of different rows, at most enough
	spread    float64 // standard deviation of a score between rows, in root mean square
}

// enough is the number of different rows for which a common sum is no coincidence.
const enough = 8

func look(rows [][]float32) values {
	v := values{low: math.Inf(1), high: math.Inf(-1), spread: spread(rows, func(x float64) float64 { return x })}
	var seen [][]float32
	for _, row := range rows {
		v.low, v.high = min(v.low, float64(slices.Min(row))), max(v.high, float64(slices.Max(row)))
		if len(seen) < enough && !slices.ContainsFunc(seen, func(s []float32) bool { return slices.Equal(s, row) }) {
			seen = append(seen, row)
		}
	}
	v.distinct = len(seen)
	return v
}

// spread returns the standard deviation of f(score) over the rows, as the root mean square of the columns.
func spread(rows [][]float32, f func(float64) float64) float64 {
	column, total := make([]float64, len(rows)), 0.0
	for k := range rows[0] {
		for i, row := range rows {
			column[i] = f(float64(row[k]))
		}
		_, variance := stat.PopMeanVariance(column, nil)
		total += variance / float64(len(rows[0]))
	}
	return math.Sqrt(total)
}

// How close to 1 sums must be. A softmax in float32 stays within 1e-6, one in a 16-bit type
// or with clipped probabilities within [task.SumTolerance]. The sums of a few rows of
// logits may be near 1 by chance, so there the tolerance is tighter.
const (
	fewTolerance  = 1e-5
	halfTolerance = 1e-3 // of a few rows of a 16-bit type
	// steady bounds the variation of the sums, as a share of the variation of the scores. The sums of logits that
	// hardly differ between examples hardly differ either.
	steady = 0.02
)

func (r *Raw) tolerance(v values) float64 {
	switch {
	case v.distinct >= enough:
		return task.SumTolerance
	case r.Ending.Half:
		return halfTolerance
	}
	return fewTolerance
}

// sums returns the mean of Σ f(score) over the rows, and whether all rows have this sum up to rounding.
func (r *Raw) sums(rows [][]float32, v values, f func(float64) float64) (same bool, mean float64) {
	totals, worst := make([]float64, len(rows)), 0.0
	for i, row := range rows {
		totals[i] = total(row, f)
	}
	mean, variance := stat.PopMeanVariance(totals, nil)
	for _, t := range totals {
		worst = max(worst, math.Abs(t-mean))
	}
	if v.distinct > 1 && math.Sqrt(variance) > steady*spread(rows, f) {
		return false, mean
	}
	return worst <= r.tolerance(v)*math.Abs(mean), mean
}

// total returns Σ f(score) of a row.
func total(row []float32, f func(float64) float64) (sum float64) {
	for _, x := range row {
		sum += f(float64(x))
	}
	return sum
}

// near reports whether every row adds up to 1, within the tolerance of the task.
func near(rows [][]float32) bool {
	return !slices.ContainsFunc(rows, func(row []float32) bool { return math.Abs(total(row, itself)-1) > task.SumTolerance })
}

func itself(x float64) float64 { return x }

// classes decides the form of scores for several classes that exclude each other.
func (r *Raw) classes(rows [][]float32, v values) (*Decision, error) {
	if v.low >= -task.Rounding {
		same, sum := r.sums(rows, v, itself)
		one := math.Abs(sum-1) <= r.tolerance(v)
		switch {
		case same && one && r.Known != "" && r.Known != task.Probabilities:
			return nil, unclear("every row of scores is non-negative and adds up to 1, as probabilities do, but the model card says %s",
				r.Known)
		case same && one:
			return r.decided(task.Probabilities, "values", "every row is non-negative and adds up to 1"), nil
		case r.Known == task.Logits:
			return r.decided(task.Logits, "", ""), nil
		case r.Known == task.Probabilities && near(rows):
			return r.decided(task.Probabilities, "", ""), nil
		case r.overBatch(rows):
			return nil, refused("export the network with the softmax over the classes (dim=1, or dim=-1), or without it",
				"the scores of each class add up to 1 over a batch: the softmax goes over the examples and not over the classes")
		case same && v.distinct >= enough && sum > 0:
			return nil, refused("end the network in its logits, or in probabilities that add up to 1; "+
				setting.Scores.With("logits")+" insists",
				"every row of scores is non-negative and adds up to %.6g, and not to 1: percentages, or probabilities that were scaled "+
					"or clipped", sum)
		case r.some(rows):
			return nil, unclear("some rows of scores are non-negative and add up to 1, as probabilities do, and others do not")
		}
	}
	if err := r.classLogs(rows, v); err != nil {
		return nil, err
	}
	same, sum := r.sums(rows, v, math.Exp)
	switch {
	case r.Known == task.LogProbabilities && (v.high > tinyAboveZero || math.Abs(sum-1) > clampedSum):
		return nil, r.contradicted("their exponentials add up to %.4g on average, and the largest score is %.4g", sum, v.high)
	case r.Known == "" && v.high <= tinyAboveZero && same && math.Abs(sum-1) <= r.tolerance(v):
		return r.decided(task.LogProbabilities, "values", "the exponentials of every row add up to 1"), nil
	case r.Known == task.Probabilities:
		return nil, r.contradicted("they are from %.4g to %.4g, and rows do not add up to 1", v.low, v.high)
	case r.Known != "":
		return r.decided(r.Known, "", ""), nil
	case r.Ending.Low >= 0 && r.Ending.High <= 1:
		return nil, unclear("the graph keeps each score in [0, 1], and rows do not add up to 1: these look like independent labels (%s)",
			setting.Task.With("labels"))
	case r.Ending.Low >= 0:
		return nil, unclear("the graph keeps all scores at 0 or above, and rows do not add up to 1: these look like evidence, rates or " +
			"distances, and not like logits")
	case r.Ending.Low >= -1 && r.Ending.High <= 1:
		return nil, unclear("the graph keeps all scores in [-1, 1]: logits are not bounded so")
	case !r.Ending.Affine && v.distinct > 1 && v.low >= -1.0001 && v.high <= 1.0001:
		return nil, unclear("all scores lie in [%.3g, %.3g], and the graph does not end in a layer that gives logits: cosines, or "+
			"probabilities that do not add up to 1", v.low, v.high)
	case !r.Ending.Affine && v.distinct >= enough && v.low >= 0:
		return nil, unclear("no score is negative, and the graph does not end in a layer that gives logits: evidence, percentages or " +
			"distances")
	}
	return r.decided(task.Logits, "default", "nothing speaks against logits"), nil
}

// tinyAboveZero is how far above 0 rounding may bring the logarithm of a probability.
// clampedSum is how far from 1 exponentials may add up of logarithms that were clamped.
const (
	tinyAboveZero = 1e-5
	clampedSum    = 0.1
)

// classLogs refuses logarithms of probabilities whose base is not e.
func (r *Raw) classLogs(rows [][]float32, v values) error {
	if v.high > tinyAboveZero || v.distinct < 2 || r.Known == task.Logits {
		return nil
	}
	for base, f := range map[string]func(float64) float64{"2": math.Exp2, "10": func(x float64) float64 { return math.Pow(10, x) }} {
		if same, sum := r.sums(rows, v, f); same && math.Abs(sum-1) <= r.tolerance(v) {
			return refused("end the network in natural logarithms (log_softmax), or in its logits",
				"the scores are logarithms of probabilities to base %s", base)
		}
	}
	return nil
}

// contradicted returns the error for scores that contradict the graph or the model card.
func (r *Raw) contradicted(format string, args ...any) *Unclear {
	who := "the model card says"
	if r.Proven {
		who = "the graph ends in an activation that gives"
	}
	return unclear("%s %s, but the scores are not such: %s", who, r.Known, fmt.Sprintf(format, args...))
}

// overBatch reports whether the scores of each class add up to 1 over the examples of each
// batch.
func (r *Raw) overBatch(rows [][]float32) bool {
	if r.Batch < 2 || len(rows)*r.Count != len(r.Scores) || len(rows) < r.Batch {
		return false
	}
	for first := 0; first+r.Batch <= len(rows); first += r.Batch {
		for k := range r.Count {
			total := 0.0
			for _, row := range rows[first : first+r.Batch] {
				total += float64(row[k])
			}
			if math.Abs(total-1) > halfTolerance {
				return false
			}
		}
	}
	return true
}

// some reports whether too many rows add up to 1 for chance, although not all do.
func (r *Raw) some(rows [][]float32) bool {
	count := 0
	for _, row := range rows {
		if math.Abs(total(row, itself)-1) <= fewTolerance && slices.Max(row) > 0 {
			count++
		}
	}
	return count >= enough && count*10 >= len(rows)
}

// each decides the form of independent scores: a single score of class 1, or one score for each label.
func (r *Raw) each(rows [][]float32, v values) (*Decision, error) {
	inside := v.low >= -task.Rounding && v.high <= 1+task.Rounding
	switch {
	case r.Known == task.Probabilities && !inside:
		return nil, r.contradicted("they are from %.4g to %.4g", v.low, v.high)
	case r.Known == task.LogProbabilities && v.high > 0:
		return nil, r.contradicted("the largest is %.4g, and a logarithm of a probability is never above 0", v.high)
	case r.Known != "":
		return r.decided(r.Known, "", ""), nil
	case inside && r.Ending.Low >= -task.Rounding && r.Ending.High <= 1+task.Rounding:
		return r.decided(task.Probabilities, "graph", "the graph keeps every score in [0, 1]"), nil
	case inside && r.Ending.Affine:
		return r.decided(task.Logits, "graph", "they lie in [0, 1] by chance: the graph ends in a layer that gives logits"), nil
	case inside:
		return r.byLabels(rows, v)
	case r.Ending.Low >= 0:
		return nil, unclear("the graph keeps all scores at 0 or above, up to %.4g here: these look like evidence, rates or percentages, "+
			"and not like logits", v.high)
	case r.Ending.High <= 0:
		return nil, unclear("the graph keeps all scores at 0 or below: these may be logarithms of probabilities")
	case r.Ending.Low >= -1 && r.Ending.High <= 1:
		return nil, unclear("the graph keeps all scores in [-1, 1]: logits are not bounded so")
	case !r.Ending.Affine && v.distinct >= enough && v.low >= 0:
		return nil, unclear("no score is negative, and the graph does not end in a layer that gives logits: evidence, percentages or " +
			"distances")
	case !r.Ending.Affine && v.distinct >= enough && v.low >= -1 && v.high <= 1:
		return nil, unclear("all scores lie in [%.3g, %.3g], and the graph does not end in a layer that gives logits: cosines, or a tanh",
			v.low, v.high)
	case !r.Ending.Affine && v.distinct >= enough && v.high <= 0:
		return nil, unclear("all scores are at 0 or below, and the graph does not end in a layer that gives logits: these may be " +
			"logarithms of probabilities")
	}
	return r.decided(task.Logits, "default", "nothing speaks against logits"), nil
}

// decided returns a Decision. A form that was known before keeps its own reason.
func (r *Raw) decided(f task.Form, by, why string) *Decision {
	switch {
	case r.Known == f && r.Proven:
		return &Decision{f, "graph", "the graph ends in an activation that gives them"}
	case r.Known == f:
		return &Decision{f, "card", "the model card says so"}
	}
	return &Decision{f, by, why}
}

// byLabels decides between probabilities and logits, both in [0, 1].
func (r *Raw) byLabels(rows [][]float32, v values) (*Decision, error) {
	scores, labels := r.labelled(rows)
	if f, ok := tell(scores, labels); ok {
		return r.decided(f, "labels", fmt.Sprintf("they lie in [0, 1], and %d labels go with %s only", len(labels), f)), nil
	}
	e := unclear("all scores lie in [%.3g, %.3g]: they may be probabilities, or logits by chance, and neither the graph nor the labels "+
		"tell which", v.low, v.high)
	e.Open = true
	return nil, e
}

// labelled returns the scores whose label is known, and these labels.
func (r *Raw) labelled(rows [][]float32) (scores []float64, labels []bool) {
	if len(rows)*r.Count != len(r.Scores) || r.Labels.Len() != len(rows) {
		return nil, nil
	}
	for i, row := range rows {
		switch l := r.Labels.At(i); {
		case r.Labels.Classes != nil:
			if c := l.Class(); c == 0 || c == 1 {
				scores, labels = append(scores, float64(row[0])), append(labels, c == 1)
			}
		case l.Width == len(row):
			for k, v := range l.Values {
				if v == 0 || v == 1 {
					scores, labels = append(scores, float64(row[k])), append(labels, v == 1)
				}
			}
		}
	}
	return scores, labels
}

// How sure labels must be: a form is rejected where, among the scores below ½ or among the
// others, labels are further from it than so many standard deviations. The other form must
// be nearer by a factor. Logits must agree with the labels too, also below ½: there the
// labels of an overconfident network's probabilities cannot look like logits' labels. Of
// 10,000 simulated networks, some of them overconfident, none was decided wrongly
// (scores_test.go).
const (
	rejected    = 5
	agrees      = 1.5
	nearer      = 2
	fewestKnown = 16
)

// tell decides whether scores in [0, 1] are probabilities or logits. It counts how often the label is 1, for low
// scores and for high ones. Logits in [0, 1] stand for probabilities from ½ to ¾. So a share of ones well below ½
// rules logits out, and so does a share near 1.
func tell(scores []float64, labels []bool) (task.Form, bool) {
	if len(scores) < fewestKnown {
		return "", false
	}
	as := func(p func(float64) float64) (worst, distance float64) {
		for _, high := range []bool{false, true} {
			expected, ones, variance, n := 0.0, 0.0, 0.0, 0.0
			for i, s := range scores {
				if (s >= 0.5) != high {
					continue
				}
				q := p(s)
				expected, variance, n = expected+q, variance+q*(1-q), n+1
				if labels[i] {
					ones++
				}
			}
			if n > 0 {
				off := math.Abs(ones - expected)
				worst = max(worst, off/math.Sqrt(max(variance, 0.25))) // at least that of one coin
				distance += off / float64(len(scores))
			}
		}
		return worst, distance
	}
	probability, far := as(itself)
	logit, farther := as(func(z float64) float64 { return 1 / (1 + math.Exp(-z)) })
	low := 0
	for _, s := range scores {
		if s < 0.5 {
			low++
		}
	}
	switch {
	case logit > rejected && farther > nearer*far:
		return task.Probabilities, true
	case probability > rejected && far > nearer*farther && logit < agrees && low >= 2*fewestKnown:
		return task.Logits, true
	}
	return "", false
}

// String describes the decision in one line.
func (d *Decision) String() string {
	return fmt.Sprintf("the scores are taken for %s: %s", d.Form, strings.TrimSuffix(d.Why, "."))
}
