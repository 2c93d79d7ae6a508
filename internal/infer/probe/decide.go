package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A scoreRow is what scores may be, or what may be wrong with them. It is a doubt if it names no form.
type scoreRow struct {
	of   string // the scores: classes that exclude each other, each score for itself, or any
	when bool
	form task.Form
	by   string // see [Decision]
	what string // the reason, or the cause
	hint string // what to type; "" asks what the scores are
}

const (
	classes, each, anyScores = "classes", "each", "any"

	undecided = "open" // more examples or labels may settle the doubt
)

// Decide finds the form of a classifier's scores: the first row that fits decides. The values come first: rows that are not negative
// and add up to 1 are probabilities, and rows whose exponentials add up to 1 their logarithms. Of independent scores, or a single one,
// the graph ([infer.OutputProperties]) or the labels decide.
//
// An [*Unclear] error says that no check decides, or that the values contradict the graph or the model card. The scores of a
// regression have no form: see [Raw.CheckNumbers].
func (r *Raw) Decide() (*Decision, error) {
	rows := r.usable()
	if !task.TraitsOf(r.Task).Form || len(rows) == 0 { // the run itself says what is wrong with them
		return nil, nil
	}
	v, of := look(rows), classes
	if r.Count == 1 || task.TraitsOf(r.Task).Alone {
		of = each
	}
	for _, row := range r.scoreRows(rows, v, of) {
		if !row.when || row.of != of && row.of != anyScores {
			continue
		}
		if row.form == "" {
			e := refused(cmp.Or(row.hint, fmt.Sprintf("say at %s what the scores are: %s, %s or %s; %s, %s and the studies take it too "+
				"where %s was not told", setting.Fit, setting.Scores.With("logits"), setting.Scores.With("probabilities"),
				setting.Scores.With("log-probabilities"), setting.Sample, setting.Score, setting.Fit)), "%s", row.what)
			e.Open = row.by == undecided
			return nil, e
		}
		d := &Decision{row.form, row.by, row.what}
		switch { // a form that was known before keeps its own reason
		case r.Known == d.Form && r.Proven:
			d.By, d.Why = "graph", "the graph ends in an activation that gives them"
		case r.Known == d.Form:
			d.By, d.Why = "card", "the model card says so"
		}
		if of == each || d.Form == task.Logits {
			if err := r.ordinal(rows, v, of == each, d.Form == task.Logits); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return nil, nil
}

// scoreRows lists the rows. Numbers that many scores take long to give are left out where an earlier row decides.
func (r *Raw) scoreRows(rows [][]float32, v values, of string) []scoreRow {
	known, end, text := r.Known, r.OutputProperties, fmt.Sprintf
	not := text("the model card says %s, but the scores are not such: ", known)
	if r.Proven {
		not = text("the graph ends in an activation that gives %s, but the scores are not such: ", known)
	}
	// adds returns Σ f(score) of a row, and whether it is the same in all rows, and 1.
	adds := func(when bool, f func(float64) float64) (same, one bool, sum float64) {
		if when {
			same, sum = r.sums(rows, v, f)
		}
		return same, same && math.Abs(sum-1) <= r.tolerance(v), sum
	}
	many, positive, inside := v.distinct >= enough, v.low >= -task.Rounding, v.low >= -task.Rounding && v.high <= 1+task.Rounding
	within := text("all scores lie in [%.3g, %.3g]", v.low, v.high)
	same, one, sum := adds(positive && of == classes, itself)
	open := of == classes && !one
	logs := open && v.high <= tinyAboveZero && v.distinct > 1 && known != task.Logits
	_, base2, _ := adds(logs, math.Exp2)
	_, base10, _ := adds(logs, func(x float64) float64 { return math.Pow(10, x) })
	_, natural, exps := adds(open, math.Exp)
	var told task.Form
	scores, labels := r.labelled(rows)
	if of == each && inside && known == "" {
		told, _ = tell(scores, labels)
	}
	const endNatural = "end the network in natural logarithms (log_softmax), or in its logits"
	const cosines = ", and the graph does not end in a layer that gives logits: cosines, or "
	return []scoreRow{
		{classes, one && known != "" && known != task.Probabilities, "", "",
			text("every row of scores is non-negative and adds up to 1, as probabilities do, but the model card says %s", known), ""},
		{classes, one, task.Probabilities, "values", "every row is non-negative and adds up to 1", ""},
		{classes, positive && (known == task.Logits || known == task.Probabilities && !slices.ContainsFunc(rows, func(row []float32) bool {
			return math.Abs(total(row, itself)-1) > task.SumTolerance
		})), known, "", "", ""},
		{classes, open && positive && r.overBatch(rows), "", "",
			"the scores of each class add up to 1 over a batch: the softmax goes over the examples and not over the classes",
			"export the network with the softmax over the classes (dim=1, or dim=-1), or without it"},
		{classes, same && many && sum > 0, "", "",
			text("every row of scores is non-negative and adds up to %.6g, and not to 1: percentages, or probabilities that were "+
				"scaled or clipped", sum),
			"end the network in its logits, or in probabilities that add up to 1; " + setting.Scores.With("logits") + " insists"},
		{classes, open && positive && r.some(rows), "", "",
			"some rows of scores are non-negative and add up to 1, as probabilities do, and others do not", ""},
		{classes, base2, "", "", "the scores are logarithms of probabilities to base 2", endNatural},
		{classes, base10, "", "", "the scores are logarithms of probabilities to base 10", endNatural},
		{classes, known == task.LogProbabilities && (v.high > tinyAboveZero || math.Abs(exps-1) > clampedSum), "", "",
			not + text("their exponentials add up to %.4g on average, and the largest score is %.4g", exps, v.high), ""},
		{classes, known == "" && v.high <= tinyAboveZero && natural, task.LogProbabilities, "values",
			"the exponentials of every row add up to 1", ""},
		{classes, known == task.Probabilities, "", "",
			not + text("they are from %.4g to %.4g, and rows do not add up to 1", v.low, v.high), ""},
		{each, known == task.Probabilities && !inside, "", "", not + text("they are from %.4g to %.4g", v.low, v.high), ""},
		{each, known == task.LogProbabilities && v.high > 0, "", "",
			not + text("the largest is %.4g, and a logarithm of a probability is never above 0", v.high), ""},
		{anyScores, known != "", known, "", "", ""},
		{each, inside && end.Low >= -task.Rounding && end.High <= 1+task.Rounding, task.Probabilities, "graph",
			"the graph keeps every score in [0, 1]", ""},
		{each, inside && end.Affine, task.Logits, "graph",
			"they lie in [0, 1] by chance: the graph ends in a layer that gives logits", ""},
		{each, told != "", told, "labels", text("they lie in [0, 1], and %d labels go with %s only", len(labels), told), ""},
		{each, inside, "", undecided,
			within + ": they may be probabilities, or logits by chance, and neither the graph nor the labels tell which", ""},
		{classes, end.Low >= 0 && end.High <= 1, "", "", text("the graph keeps each score in [0, 1], and rows do not add up to 1: these "+
			"look like independent labels (%s)", setting.Task.With("labels")), ""},
		{classes, end.Low >= 0, "", "", "the graph keeps all scores at 0 or above, and rows do not add up to 1: these look like " +
			"evidence, rates or distances, and not like logits", ""},
		{each, end.Low >= 0, "", "", text("the graph keeps all scores at 0 or above, up to %.4g here: these look like evidence, rates or "+
			"percentages, and not like logits", v.high), ""},
		{each, end.High <= 0, "", "", "the graph keeps all scores at 0 or below: these may be logarithms of probabilities", ""},
		{anyScores, end.Low >= -1 && end.High <= 1, "", "", "the graph keeps all scores in [-1, 1]: logits are not bounded so", ""},
		{classes, !end.Affine && v.distinct > 1 && v.low >= -1.0001 && v.high <= 1.0001, "", "",
			within + cosines + "probabilities that do not add up to 1", ""},
		{anyScores, !end.Affine && many && v.low >= 0, "", "",
			"no score is negative, and the graph does not end in a layer that gives logits: evidence, percentages " +
				"or distances", ""},
		{each, !end.Affine && many && v.low >= -1 && v.high <= 1, "", "", within + cosines + "a tanh", ""},
		{each, !end.Affine && many && v.high <= 0, "", "", "all scores are at 0 or below, and the graph does not end in a layer that " +
			"gives logits: these may be logarithms of probabilities", ""},
		{anyScores, true, task.Logits, "default", "nothing speaks against logits", ""},
	}
}
