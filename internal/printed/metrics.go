package printed

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A reading is a value of a metric by one of its definitions. Words say which, or are "" for the usual one.
type reading struct {
	value float64
	words string
}

// A metric is a figure of an evaluation, by the names that frameworks give it. Its readings are its usual definitions: frameworks differ,
// and none of them is wrong.
type metric struct {
	names string
	kind  metricKind
	of    func(f *figures) []reading
}

// metricKind has the properties of a metric, a bit each.
type metricKind int

const (
	share   metricKind = 1 << iota // from 0 to 1
	counted                        // the share of the examples that are right, or wrong
	further                        // not among the main measures of a task
)

func (m *metric) is(kind metricKind) bool { return m.kind&kind != 0 }

var metrics = []metric{
	{"accuracy acc acc1 top1 top_1 top1_acc top1_accuracy acc_1 categorical_accuracy sparse_categorical_accuracy binary_accuracy " +
		"pixel_accuracy pixel_acc", share | counted, (*figures).accuracy},
	{"error err error_rate top1_error err1", share | counted, func(f *figures) (all []reading) {
		for _, r := range f.accuracy() {
			all = append(all, reading{1 - r.value, r.words})
		}
		return all
	}},
	{"loss cross_entropy crossentropy ce ce_loss bce bce_loss cross_entropy_loss criterion", 0, (*figures).loss},
	{"nll nll_loss negative_log_likelihood logloss log_loss", 0, (*figures).nll},
	{"brier brier_score", 0, func(f *figures) []reading {
		one := f.value("brier")
		return slices.Concat(one, scaled(one, 0.5, "half of it"), scaled(one, 2, "summed over both classes"))
	}},
	{"ece expected_calibration_error", further, func(f *figures) []reading {
		return append(f.value("ece"), f.named("ece_equal_width_15", "in 15 bins of equal width")...)
	}},
	{"auroc auc roc_auc rocauc", share, func(f *figures) []reading { return f.value("auroc") }},
	{"average_precision ap pr_auc auprc", share, func(f *figures) []reading { return f.value("average_precision") }},
	{"map mean_average_precision", share, func(f *figures) []reading { return f.value("map") }},
	{"top5 top_5 acc5 acc_5 top5_acc top5_accuracy top_k_categorical_accuracy", share | further, func(f *figures) []reading {
		return f.value("top5")
	}},
	{"perplexity ppl", 0, func(f *figures) (all []reading) {
		for _, r := range f.value("nll") {
			all = append(all, reading{math.Exp(r.value), ""})
		}
		return all
	}},
	{"miou mean_iou iou jaccard jaccard_index", share, func(f *figures) []reading { return f.value("mean_iou") }},
	{"dice mean_dice", share | further, func(f *figures) []reading { return f.value("mean_dice") }},
	{"rmse root_mean_squared_error", 0, func(f *figures) []reading {
		return append(f.value("rmse"), roots(f.squares())...)
	}},
	{"mse mean_squared_error squared_error l2", 0, (*figures).squares},
	{"mae mean_absolute_error absolute_error l1", 0, (*figures).absolute},
	{"crps", 0, func(f *figures) []reading { return f.value("crps") }},
}

// figures are what the metrics are read from.
type figures struct {
	*task.Evaluation
	std       []float64 // units of the network of a regression, or nil
	smoothing float64   // of labels in the loss
	uniform   float64   // mean of −log p over positions and classes
	right     float64   // share of the labels that are right, of several
	subset    float64   // share of the examples whose labels are all right
	examples  int
	positions int
	noiseless bool // a regression that predicts means alone, and has no likelihood
}

func (f *figures) named(key, words string) []reading {
	if !f.Has(key) || f.noiseless && key != "rmse" && key != "mae" {
		return nil
	}
	v := f.Value(key)
	if v-v != 0 {
		return nil
	}
	return []reading{{v, words}}
}

// names returns the first name of each metric that the task has.
func (f *figures) names() (names []string) {
	for i, m := range metrics {
		if len(m.of(f)) > 0 {
			names = append(names, known()[i])
		}
	}
	return names
}

func (f *figures) value(key string) []reading { return f.named(key, "") }

func scaled(of []reading, by float64, words string) (all []reading) {
	for _, r := range of {
		all = append(all, reading{r.value * by, join(r.words, words)})
	}
	return all
}

func roots(of []reading) (all []reading) {
	for _, r := range of {
		all = append(all, reading{math.Sqrt(r.value), join(r.words, "as the root of the mean over all targets")})
	}
	return all
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

func (f *figures) accuracy() []reading {
	if all := f.value("accuracy"); all != nil || f.right != f.right {
		return all
	}
	return []reading{{f.right, "of single labels"}, {f.subset, "of examples with all labels right"}}
}

func (f *figures) nll() []reading {
	all := f.value("nll")
	if f.smoothing > 0 {
		for i := range all {
			all[i].value += f.smoothing * (f.uniform - all[i].value)
		}
	}
	if !f.Has("rmse") {
		return all
	}
	for _, r := range all {
		all = append(all, reading{r.value - math.Log(2*math.Pi)/2, "without its constant"})
	}
	return all
}

// loss returns the usual losses of the task.
func (f *figures) loss() []reading {
	all := f.nll()
	if !f.Has("rmse") {
		return all
	}
	squares := f.squares()
	all = append(all, squares...)
	all = append(all, scaled(squares, 0.5, "half of it")...)
	return append(all, f.absolute()...)
}

// squares returns the mean squared error, in the units of the targets and in those of the network.
func (f *figures) squares() []reading {
	return f.errors("rmse", "mean squared error", func(v float64) float64 { return v * v })
}

func (f *figures) absolute() []reading {
	return f.errors("mae", "mean absolute error", func(v float64) float64 { return v })
}

// errors returns the mean over targets of a function of an error.
func (f *figures) errors(key, words string, of func(v float64) float64) []reading {
	parts := f.Parts
	if parts == nil {
		parts = []task.Part{{Scores: f.Scores}}
	}
	sum, units := 0.0, 0.0
	for k, p := range parts {
		one := p.Evaluation()
		if !one.Has(key) {
			return nil
		}
		v := one.Value(key)
		sum += of(v)
		if f.std != nil {
			units += of(v / f.std[min(k, len(f.std)-1)])
		}
	}
	n := float64(len(parts))
	all := []reading{{sum / n, words}}
	if f.std != nil {
		all = append(all, reading{units / n, words + " in the units of the network"})
	}
	return all
}

// agrees returns the reading that is nearest to a number, and its distance in units of what may differ: up to 1 they agree.
func agrees(x *Number, all []reading, slack float64) (r reading, distance float64) {
	r, distance = reading{value: math.NaN()}, math.Inf(1)
	for i, one := range all {
		d := math.Abs(one.value-x.value) / (x.half + slack)
		if i == 0 || d <= 1 && d < distance { // otherwise the usual definition
			r, distance = one, d
		}
	}
	return r, distance
}

// Of float32, the order of sums changes a mean by far less than this. TensorFloat-32 changes it by less, too.
const slack = 1e-4

// slack is how far a figure of the same network may differ: two examples whose two best classes are equal within rounding.
func (f *figures) slack(x *Number) float64 {
	switch {
	case !x.metric.is(share):
		return slack * math.Abs(x.value)
	case f.positions > f.examples: // pixels or tokens
		return slack + 2/float64(f.positions)
	}
	return 2 / float64(f.examples)
}

// A counter takes examples one at a time.
type counter interface {
	add(t task.Task, outcome []float64, label target.Target) error
}

// A trial has readings for each number.
type trial interface {
	counter
	readings() [][]reading
}

// plainly evaluates examples. Changes of the labels are made before.
type plainly struct {
	of        *Check
	label     func(target.Target) target.Target // nil for none
	smoothing float64
	first     int // takes as many examples, or all if 0

	evaluator                     *task.Evaluator
	noiseless                     bool
	examples, positions, terms    int
	uniform, rights, both, labels float64
}

func (c *plainly) add(t task.Task, outcome []float64, label target.Target) error {
	if c.first > 0 && c.examples == c.first {
		return nil
	}
	if c.label != nil {
		label = c.label(label)
	}
	if c.evaluator == nil {
		c.evaluator = task.NewEvaluator(t, task.EvaluateOptions{MainOnly: !c.of.further(), NoIntervals: true, NoLosses: true})
	}
	c.examples++
	_, several := task.OnePosition(t).(task.Paired)
	err := task.EachKnown(t, outcome, label, func(_ int, row []float64, one target.Target) error {
		c.positions++
		if c.smoothing > 0 {
			shown, _ := task.OnePosition(t).Shown(row)
			for _, p := range shown {
				c.uniform -= math.Log(max(p, math.SmallestNonzeroFloat64))
			}
			c.terms += len(shown)
		}
		if several {
			c.count(t, row, one)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if task.Missing(t) != nil {
		c.noiseless = true
		outcome = t.Apply(nil, task.UnitNoise(label.Width), outcome) // errors of means do not depend on it
	}
	return c.evaluator.Add(outcome, label)
}

// count counts the right ones of several labels.
func (c *plainly) count(t task.Task, row []float64, one target.Target) {
	shown, _ := task.OnePosition(t).Shown(row)
	all := 1.0
	for k, p := range shown {
		if one.Values[k] < 0 {
			continue
		}
		c.labels++
		if (p >= 0.5) == (one.Values[k] > 0.5) {
			c.rights++
		} else {
			all = 0
		}
	}
	c.both += all
}

func (c *plainly) figures() *figures {
	f := &figures{
		Evaluation: c.evaluator.Evaluation(),
		smoothing:  c.smoothing,
		uniform:    c.uniform / float64(c.terms),
		right:      c.rights / c.labels,
		subset:     c.both / float64(c.positions),
		examples:   c.examples,
		positions:  c.positions,
		noiseless:  c.noiseless,
	}
	if t := c.of.Network.Posterior.Card.Targets; t != nil {
		f.std = t.Std
	}
	return f
}

func (c *plainly) readings() (all [][]reading) {
	f := c.figures()
	for i := range c.of.List {
		all = append(all, c.of.List[i].metric.of(f))
	}
	return all
}

// distance returns the largest distance of a number from its readings: see [agrees]. A share alone is explained by an equal number of
// right ones only: many changes come near it.
func (x *Numbers) distance(all [][]reading, base *figures) (largest float64) {
	shares := !slices.ContainsFunc(x.List, func(one Number) bool { return !one.metric.is(share) })
	for i := range x.List {
		slack := base.slack(&x.List[i])
		if shares {
			slack = 0.5 / float64(max(base.positions, base.examples))
		}
		_, d := agrees(&x.List[i], all[i], slack)
		largest = max(largest, d)
	}
	return largest
}

// says lists numbers with what the network gives for them.
func (x *Numbers) says(f *figures) (text []string, equal bool) {
	equal = true
	for i := range x.List {
		one := &x.List[i]
		r, distance := agrees(one, one.metric.of(f), f.slack(one))
		line := fmt.Sprintf("%s %s", one.Name, one.shown(r.value))
		if r.words != "" {
			line += " (" + r.words + ")"
		}
		if distance > 1 {
			equal = false
			line += fmt.Sprintf(", and you have %s", one.typed())
		}
		text = append(text, line)
	}
	return text, equal
}
