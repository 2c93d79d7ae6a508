package calibration

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// answers is a rule that answers only confident examples, and its effect on the rows.
type answers struct {
	calibrate.Answering
	bound  float64            // upper bound on the risk
	stored *guarantee.Answers // for an ensemble; nil if there is none in float32
	rows   []answered
}

// answered is the effect of the rule on a file.
type answered struct {
	name           string
	n              int
	coverage, risk float64
}

// answer chooses the threshold for --threshold risk=R. Nothing is fitted to the same rows, or the guarantee would be lost.
func (s *Study) answer(producer string) (*Result, error) {
	if _, ok := s.Fit.Task.(task.Evident); !ok || s.Fit.stored != nil {
		return nil, fmt.Errorf("a risk is of answers that are right or wrong, and there are %s", s.Fit.Task.About().Size)
	}
	k := &Result{study: s, producer: producer}
	g := tops(s.Fit)
	rule, err := calibrate.FitAnswering(g, s.Criterion.Want)
	if err != nil {
		return nil, err
	}
	kept, _ := guarantee.NewAnswers(slices.Clone(g), s.Criterion.Want, s.Guarantee.Data) // NoAnswers has the error
	k.answers = &answers{rule, s.Criterion.Want, kept, []answered{{"chosen on", len(g), rule.Coverage, rule.Risk}}}
	if s.Test != nil {
		g := tops(s.Test)
		coverage, risk := rule.Judge(g)
		k.answers.rows = append(k.answers.rows, answered{"test", len(g), coverage, risk})
	}
	return k, nil
}

// tops returns the confidences of predictions, and whether they are right.
func tops(p *Predictions) (g []calibrate.TopLabel) {
	width := p.Task.About().Classes
	for i, label := range p.Known.Classes {
		g = append(g, calibrate.JudgeRow(p.Outcomes[i*width:][:width], label).TopLabel)
	}
	return g
}

func (a *answers) String() string {
	what := "all rows"
	if a.Threshold >= 0 {
		what = fmt.Sprintf("rows with a confidence above %s", report.Fixed(a.Threshold, 4))
	}
	return fmt.Sprintf("answer %s, %s here: with %g %% confidence at most %s of answers on new rows are wrong", what,
		report.Percent(a.Coverage, 1), 100*calibrate.RiskConfidence, report.Percent(a.bound, 1))
}

func (r answered) row() study.Row {
	wrong := ""
	if !math.IsNaN(r.risk) {
		w := chance.Exact(r.risk, int(math.Round(r.coverage*float64(r.n))))
		wrong = fmt.Sprintf("%s [%s, %s]", report.Percent(r.risk, 2), report.Percent(w.Low, 2), report.Percent(w.High, 2))
	}
	return study.Row{study.Name("name", "answers", r.name), study.Count("rows", "rows", r.n),
		study.Number("answered", "answered", r.coverage, report.Percent(r.coverage, 1)),
		study.Number("wrong", "wrong of them [95 %]", r.risk, wrong)}
}
