package calibration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Guarantee describes a coverage that is wanted.
type Guarantee struct {
	Amount
	Method string // see [guarantee.Coverage]; "" for the default
	By     string
	// GroupOf names the group of an example by its number and name in a file of predictions. It is nil without groups.
	GroupOf func(p *Predictions) (func(k int) string, error)
	Data    guarantee.Data // of the predictions
	Tested  guarantee.Made // how those of the test were made
}

// Amount is how much is guaranteed: a share, or a mean size of sets. The zero value is nothing.
type Amount struct{ Level, Size float64 }

// Guarantees reports whether the study chooses a coverage, in addition to a calibration.
func (s *Study) Guarantees() bool { return s.Guarantee.Amount != (Amount{}) }

// CheckGuarantee returns an error if the predictions allow no such guarantee.
func (s *Study) CheckGuarantee() error {
	if !s.Guarantees() {
		return nil
	}
	err := guarantee.Possible(s.Fit.Task, s.Guarantee.Method, s.Guarantee.By)
	if s.Guarantee.Size > 0 {
		err = guarantee.PossibleSize(s.Fit.Task, s.Guarantee.Method, s.Guarantee.By, s.Guarantee.Size)
	}
	if err != nil {
		return err
	}
	if s.Fit.Stored() && s.Method != None {
		return &guarantee.Impossible{
			Why:     "a calibration and a coverage of pixels or tokens need different examples",
			Instead: "calibrate first, and choose the coverage on predictions of the calibrated ensemble",
		}
	}
	return nil
}

// guarantee runs the study, and chooses the thresholds of the guaranteed coverage. If a calibration is fitted too, it is fitted
// to one half of the examples, and the other half chooses the thresholds. Otherwise the guarantee would not hold.
func (s *Study) guarantee(producer string) (*Result, error) {
	own, rest := *s, s.Fit
	own.Guarantee.Amount = Amount{}
	k := &Result{study: s, producer: producer}
	if s.Method != None {
		fit, other := sets.Split(s.Fit.Len(), 0.5, s.Seed)
		first, second := *s.Fit, *s.Fit
		first.Saved, second.Saved = s.Fit.Part(fit), s.Fit.Part(other)
		own.Fit, rest = &first, &second
		var err error
		if k, err = own.Run(producer); err != nil {
			return nil, err
		}
		k.warn("the calibration is fitted to %s, and the coverage chosen on the other %s", report.Plural(first.Len(), "example"),
			report.Thousands(second.Len()))
	} else if s.Criterion.Name == detect.ByRisk {
		var err error
		if k, err = own.answer(producer); err != nil {
			return nil, err
		}
	}
	k.study.Guarantee = s.Guarantee
	return k, k.chooseCoverage(rest)
}

// chooseCoverage chooses the thresholds on predictions.
func (k *Result) chooseCoverage(p *Predictions) error {
	want := k.study.Guarantee
	f := &guarantee.Fitting{Task: p.Task, Level: want.Level, Size: want.Size, Method: want.Method, By: want.By, Seed: k.study.Seed}
	groupOf, err := want.groups(p)
	if err != nil {
		return err
	}
	err = k.eachCalibrated(p, func(i int, outcome []float64, label target.Target) error { return f.Add(outcome, label, groupOf(i)) })
	if err != nil {
		return err
	}
	if k.Coverage, err = f.Choose(want.Data); err != nil {
		return err
	}
	k.warnCoverage()
	if k.study.Test == nil {
		return nil
	}
	if groupOf, err = want.groups(k.study.Test); err != nil {
		return err
	}
	of := func(i int, _ string) string { return groupOf(i) }
	d, err := guarantee.NewDecider(&guarantee.Guarantee{Coverage: k.Coverage}, k.study.Test.Task, of)
	if err != nil {
		return err
	}
	return k.countHeld(k.study.Test, d, want.Tested, of)
}

// groups returns the groups of the examples of predictions: "" without any.
func (p *Guarantee) groups(of *Predictions) (func(k int) string, error) {
	if p.GroupOf == nil {
		return func(int) string { return "" }, nil
	}
	return p.GroupOf(of)
}

// eachCalibrated calls use with the calibrated outcomes.
func (k *Result) eachCalibrated(p *Predictions, use func(i int, outcome []float64, label target.Target) error) error {
	var scaled []float64
	return p.Each(func(i int, outcome []float64, label target.Target) error {
		if k.Fitted != nil {
			scaled = p.Task.Apply(scaled, k.Fitted, outcome)
			outcome = scaled
		}
		return use(i, outcome, label)
	})
}

// warnCoverage says which thresholds are infinite, and which are those of all examples.
func (k *Result) warnCoverage() {
	c := k.Coverage
	least := report.Thousands(c.Least(k.study.Fit.Task))
	if c.Infinite() {
		what := "every set has all classes"
		if c.Intervals() {
			what = "the intervals have no ends"
		}
		k.warn("the threshold is infinite, and %s: a coverage of %g %% needs at least %s labelled examples, and there are %s", what,
			guarantee.Rounded(100*c.Level), least, report.Thousands(slices.Min(c.Cells[0].Examples)))
	}
	if c.Method == string(sets.APS) && slices.ContainsFunc(c.Cells, func(e guarantee.Cell) bool {
		return slices.Contains(e.Cuts, sets.Everything(sets.APS))
	}) && !c.Infinite() {
		k.warn("a threshold of aps is next to the sum of all probabilities, so that its sets have all classes: lac makes smaller ones")
	}
	var few []string
	for _, e := range c.Cells {
		for i, n := range e.Examples {
			if tied := c.Tied(&e, i); tied > 1 && 100*tied > n && (c.Intervals() || e.Cuts[i] != sets.Everything(sets.APS)) {
				k.warn("%d of %d examples have equal or nearly equal scores at a threshold, such as those of rounded probabilities. It "+
					"covers them all, %s of the examples instead of %g %%: %s are larger than they need be. Numbers with more digits have "+
					"fewer ties", tied, n, report.Percent(float64(min(n, e.Upper[i]-1))/float64(n), 1), guarantee.Rounded(100*c.Level),
					map[bool]string{true: "intervals", false: "sets"}[c.Intervals()])
				break
			}
		}
		for _, i := range e.Whole {
			name := e.Group
			if c.By == guarantee.ByClass {
				name = fmt.Sprintf("class %d", i)
			}
			few = append(few, fmt.Sprintf("%s (%d)", name, e.Examples[i]))
		}
	}
	few = slices.Compact(few)
	if n := len(few); n > 20 {
		few = append(few[:20], fmt.Sprintf("and %d more", n-20))
	}
	if few != nil {
		k.warn("fewer than %s examples, so that they take the threshold of all examples, which guarantees nothing for them alone: %s",
			least,
			strings.Join(few, ", "))
	}
}

// Guarantee returns what was chosen, or nil.
func (k *Result) Guarantee() *guarantee.Guarantee {
	g := &guarantee.Guarantee{Coverage: k.Coverage}
	if k.answers != nil {
		g.Answers = k.answers.stored
	}
	if g.Empty() {
		return nil
	}
	return g
}

func (k *Result) guaranteed() (s study.Section) {
	c := k.Coverage
	for _, e := range c.Cells {
		for i, q := range e.Thresholds {
			name := "all"
			switch {
			case e.Group != "":
				name = e.Group
			case c.By == guarantee.ByClass:
				name = fmt.Sprintf("class %d", i)
			case len(e.Thresholds) > 1:
				name = fmt.Sprintf("target %d", i)
			}
			value, covers := "infinite", ""
			if q != nil {
				value = report.Fixed(*q, 4)
			}
			if low, high, ok := c.Range(&e, i); ok {
				covers = fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high)
			}
			s.Rows = append(s.Rows, study.Row{
				study.Shown("guarantee", name).Aligned(report.Left),
				study.Shown("examples", report.Thousands(e.Examples[i])),
				study.Shown("threshold", value),
				study.Shown("95 % of thresholds cover", covers),
			})
		}
	}
	if more := len(s.Rows) - 30; more > 0 {
		s.Rows = s.Rows[:30]
		s.Note(fmt.Sprintf("and %s more", report.Thousands(more)))
	}
	s.Note(c.Guarantee(k.study.Fit.Task) + ". It holds for examples from the same source as these (docs/guarantees.md)")
	if k.Fitted == nil { // otherwise another table shows them
		for _, w := range k.warnings {
			s.Warn("* " + w)
		}
	}
	return s
}

// describeCoverage returns the guarantee as a sentence.
func (k *Result) describeCoverage() string {
	c := k.Coverage
	how := c.Method
	if c.Method == string(sets.RAPS) {
		how = fmt.Sprintf("%s with the penalty %g above rank %d", how, c.Penalty, c.Free)
	}
	how += ", chosen on " + report.Plural(c.Data.Examples, "example")
	if spread := c.Spread(); spread != "" {
		how += "; " + spread
	}
	text := fmt.Sprintf("%s (%s)", c.Guarantee(k.study.Fit.Task), how)
	for _, line := range k.realised.Finish(false).Lines(nil) {
		text += "; test: " + line
	}
	if strange := k.realised.Strange(); strange != "" {
		text += "; test: " + strange
	}
	if k.realised != nil && k.realised.Void {
		text += "; test: void, " + strings.Join(k.realised.Because, "; ")
	}
	return text
}

// Names returns the names of the examples: the column path, which score writes. They are nil for arrays, and for a table
// without this column.
func (p *Predictions) Names() ([]string, error) {
	all, err := namesOf(p.Path)
	if all == nil {
		return nil, err
	}
	var names []string
	for _, row := range p.Rows {
		names = append(names, all[row])
	}
	return names, nil
}

// NoAnswers is the reason why an ensemble cannot store the threshold of answers, or nil.
func (k *Result) NoAnswers() error {
	if k.answers == nil || k.answers.stored != nil {
		return nil
	}
	return fmt.Errorf("no threshold shows the risk for probabilities in float32, which models give: %s is too small",
		setting.Threshold.With(k.study.Criterion.String()))
}
