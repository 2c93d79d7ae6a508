package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Decide finds the form of a classifier's scores: the first row that fits decides. The values come first: rows that are not negative
// and add up to 1 are probabilities, and rows whose exponentials add up to 1 their logarithms. Of independent scores, or a single one,
// the graph ([infer.OutputProperties]) or the labels decide.
//
// A [*Fault] is the error if no check decides, or if the values contradict the graph or the model card. The scores of a regression
// have no form: see [Record.CheckNumbers].
func (r *Record) Decide() (*Decision, error) {
	if !task.TraitsOf(r.Task).Form || len(r.usable()) == 0 { // the run itself says what is wrong with them
		return nil, nil
	}
	f := First(r.forms(), r.Holds)
	d := f.Decision
	switch {
	case d == nil:
		f.Hint = cmp.Or(f.Hint, fmt.Sprintf("say at %s what the scores are: %s, %s or %s; %s, %s and the studies take it too "+
			"where %s was not told", setting.Fit, setting.Scores.With("logits"), setting.Scores.With("probabilities"),
			setting.Scores.With("log-probabilities"), setting.Sample, setting.Score, setting.Fit))
		return nil, f
	case r.Known == d.Form && r.Proven: // a form that was known before keeps its own reason
		d.By, d.Why = "graph", "the graph ends in an activation that gives them"
	case r.Known == d.Form:
		d.By, d.Why = "card", "the model card says so"
	}
	if f = First(r.steps(d.Form == task.Logits), r.Holds); f != nil {
		return nil, f
	}
	return d, nil
}

// forms lists what scores may be, and what may be wrong with them: of classes that exclude each other, of scores that each stand for
// themselves, or of both. Numbers that many scores take long to give are left out where an earlier row decides. No hint asks what the
// scores are.
func (r *Record) forms() []Fault {
	known, end, text, rows := r.Known, r.OutputProperties, fmt.Sprintf, r.usable()
	each, classes, v := r.each(), !r.each(), look(rows)
	not := text("the model card says %s, but the scores are not such: ", known)
	if r.Proven {
		not = text("the graph ends in an activation that gives %s, but the scores are not such: ", known)
	}
	many, positive, inside := v.distinct >= enough, v.low >= -task.Rounding, v.low >= -task.Rounding && v.high <= 1+task.Rounding
	within := text("all scores lie in [%.3g, %.3g]", v.low, v.high)
	same, one, sum := r.sums(positive && classes, rows, v, itself)
	open := classes && !one
	logs := open && v.high <= tinyAboveZero && v.distinct > 1 && known != task.Logits
	_, base2, _ := r.sums(logs, rows, v, math.Exp2)
	_, base10, _ := r.sums(logs, rows, v, func(x float64) float64 { return math.Pow(10, x) })
	_, natural, exps := r.sums(open, rows, v, math.Exp)
	var told task.Form
	scores, labels := r.labelled(rows)
	if each && inside && known == "" {
		told, _ = tell(scores, labels)
	}
	const endNatural = "end the network in natural logarithms (log_softmax), or in its logits"
	const cosines = ", and the graph does not end in a layer that gives logits: cosines, or "
	return []Fault{
		{Name: "probabilities, and the card says otherwise", When: one && known != "" && known != task.Probabilities,
			Cause: text("every row of scores is non-negative and adds up to 1, as probabilities do, but the model card says %s", known)},
		{When: one, Decision: &Decision{task.Probabilities, "values", "every row is non-negative and adds up to 1"}},
		{When: classes && positive && (known == task.Logits || known == task.Probabilities && !slices.ContainsFunc(rows,
			func(row []float32) bool { return math.Abs(total(row, itself)-1) > task.SumTolerance })), Decision: &Decision{Form: known}},
		{Name: "softmax over the batch", When: open && positive && r.overBatch(rows),
			Cause: "the scores of each class add up to 1 over a batch: the softmax goes over the examples and not over the classes",
			Hint:  "export the network with the softmax over the classes (dim=1, or dim=-1), or without it"},
		{Name: "percentages", When: same && many && sum > 0,
			Cause: text("every row of scores is non-negative and adds up to %.6g, and not to 1: percentages, or probabilities that were "+
				"scaled or clipped", sum),
			Hint: "end the network in its logits, or in probabilities that add up to 1; " + setting.Scores.With("logits") + " insists"},
		{Name: "some rows are probabilities", When: open && positive && r.some(rows),
			Cause: "some rows of scores are non-negative and add up to 1, as probabilities do, and others do not"},
		{Name: "logarithms to base 2", When: base2, Cause: "the scores are logarithms of probabilities to base 2", Hint: endNatural},
		{Name: "logarithms to base 10", When: base10, Cause: "the scores are logarithms of probabilities to base 10", Hint: endNatural},
		{Name: "no log-probabilities of classes",
			When:  classes && known == task.LogProbabilities && (v.high > tinyAboveZero || math.Abs(exps-1) > clampedSum),
			Cause: not + text("their exponentials add up to %.4g on average, and the largest score is %.4g", exps, v.high)},
		{When: known == "" && v.high <= tinyAboveZero && natural,
			Decision: &Decision{task.LogProbabilities, "values", "the exponentials of every row add up to 1"}},
		{Name: "no probabilities of classes", When: classes && known == task.Probabilities,
			Cause: not + text("they are from %.4g to %.4g, and rows do not add up to 1", v.low, v.high)},
		{Name: "no probabilities", When: each && known == task.Probabilities && !inside,
			Cause: not + text("they are from %.4g to %.4g", v.low, v.high)},
		{Name: "no log-probabilities", When: each && known == task.LogProbabilities && v.high > 0,
			Cause: not + text("the largest is %.4g, and a logarithm of a probability is never above 0", v.high)},
		{When: known != "", Decision: &Decision{Form: known}},
		{When: each && inside && end.Low >= -task.Rounding && end.High <= 1+task.Rounding,
			Decision: &Decision{task.Probabilities, "graph", "the graph keeps every score in [0, 1]"}},
		{When: each && inside && end.Affine,
			Decision: &Decision{task.Logits, "graph", "they lie in [0, 1] by chance: the graph ends in a layer that gives logits"}},
		{When: told != "",
			Decision: &Decision{told, "labels", text("they lie in [0, 1], and %d labels go with %s only", len(labels), told)}},
		{Name: "probabilities or logits", Severity: Question, When: each && inside,
			Cause: within + ": they may be probabilities, or logits by chance, and neither the graph nor the labels tell which"},
		{Name: "independent labels", When: classes && end.Low >= 0 && end.High <= 1, Cause: text("the graph keeps each score in [0, 1], "+
			"and rows do not add up to 1: these look like independent labels (%s)", setting.Task.With("labels"))},
		{Name: "evidence of classes", When: classes && end.Low >= 0, Cause: "the graph keeps all scores at 0 or above, and rows do not " +
			"add up to 1: these look like evidence, rates or distances, and not like logits"},
		{Name: "evidence", When: each && end.Low >= 0, Cause: text("the graph keeps all scores at 0 or above, up to %.4g here: these "+
			"look like evidence, rates or percentages, and not like logits", v.high)},
		{Name: "scores below 0", When: each && end.High <= 0,
			Cause: "the graph keeps all scores at 0 or below: these may be logarithms of probabilities"},
		{Name: "tanh", When: end.Low >= -1 && end.High <= 1, Cause: "the graph keeps all scores in [-1, 1]: logits are not bounded so"},
		{Name: "cosines of classes", When: classes && !end.Affine && v.distinct > 1 && v.low >= -1.0001 && v.high <= 1.0001,
			Cause: within + cosines + "probabilities that do not add up to 1"},
		{Name: "no score is negative", When: !end.Affine && many && v.low >= 0, Cause: "no score is negative, and the graph does not end " +
			"in a layer that gives logits: evidence, percentages or distances"},
		{Name: "cosines", When: each && !end.Affine && many && v.low >= -1 && v.high <= 1, Cause: within + cosines + "a tanh"},
		{Name: "no score is positive", When: each && !end.Affine && many && v.high <= 0, Cause: "all scores are at 0 or below, and the " +
			"graph does not end in a layer that gives logits: these may be logarithms of probabilities"},
		{When: true, Decision: &Decision{task.Logits, "default", "nothing speaks against logits"}},
	}
}
