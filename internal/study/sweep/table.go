package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// heading returns the settings in one line.
func (r shown) heading() string {
	s := fmt.Sprintf("%s, %s, seed %d", report.Plural(r.Test.Len(), "test "+dataset.Unit(r.Test)),
		report.Plural(r.Error.Members, "member"), r.Seed)
	if r.Validation != nil {
		s += fmt.Sprintf("; settings chosen on %s", report.Plural(r.Validation.Len(), "validation "+dataset.Unit(r.Validation)))
	}
	return s
}

// settingsTables returns the scores on the validation data, if there are any, and on the test data. The latter has only
// the settings that may be shown.
func (r shown) settingsTables() (out []*report.Table) {
	if r.Validation != nil {
		out = append(out, r.settingsTable("validation ", func(p *Point) (*task.Evaluation, chance.Interval) {
			return p.Validation, p.ValidationDifference
		}))
	}
	hidden := 0
	t := r.settingsTable("test ", func(p *Point) (*task.Evaluation, chance.Interval) {
		if !r.visible(p) {
			hidden++
			return nil, chance.Interval{}
		}
		return p.Evaluation, p.Difference
	})
	if hidden > 0 {
		t.Warn(fmt.Sprintf("test scores of %s that were not chosen are hidden: to look at them is to choose on test data (%s shows them)",
			report.Plural(hidden, "setting"), setting.AllTest))
	}
	for _, w := range r.Warnings {
		t.Warn("* " + w.Error())
	}
	return append(out, t)
}

// settingsTable has a row for each setting. The function of returns its scores, or nil for a setting without a row.
func (r shown) settingsTable(where string, of func(*Point) (*task.Evaluation, chance.Interval)) *report.Table {
	loss := r.loss()
	columns := []report.Column{{Header: "setting"}, {Header: "choice", Empty: " "}, {Header: r.by.Symbol, Align: report.Decimal}}
	for _, m := range r.Points[0].Main() {
		c := report.Column{Header: m.Header, Align: report.Decimal, Optional: 1}
		if m.Key == loss.Key {
			c.Header, c.Optional = where+c.Header, 0
		}
		columns = append(columns, c)
		if m.Key == loss.Key {
			columns = append(columns, report.Column{Header: "− default", Align: report.Decimal}, report.Column{Header: "[95 %]"})
		}
	}
	t := report.NewTable(columns...)
	for i := range r.Points {
		p := &r.Points[i]
		e, d := of(p)
		if e == nil {
			continue
		}
		cells := []string{strings.TrimPrefix(r.name(p.Setting), "SWAG, "), r.mark(p), ""}
		if !math.IsNaN(p.Temperature) {
			cells[2] = task.ShortNumber(p.Temperature)
		} else if p.loose != "" {
			cells[2] = "*"
		}
		for _, m := range e.Main() {
			cells = append(cells, study.Cell(m))
			if m.Key == loss.Key && p.Default {
				cells = append(cells, "", "")
			} else if m.Key == loss.Key {
				cells = append(cells, report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4))
			}
		}
		t.Row(cells...)
	}
	t.Note(fmt.Sprintf("\"both\" means that the paper's default is chosen. Each setting has its own %s. [95 %%] is the interval of %s − "+
		"%s(default) for new %s and other draws of the members.", r.by.Symbol, loss.Name, loss.Name, r.units()))
	return t
}

// name returns a setting's name. SWA has its own temperature here, if the data determine one.
func (r shown) name(s Setting) string {
	if s.SWA() && r.Points[0].loose == "" {
		return strings.Replace(s.String(), "SWA", "SWA-"+r.by.Name, 1)
	}
	return s.String()
}

// mark says whether a point is the default or chosen.
func (r shown) mark(p *Point) string {
	switch chosen := p.Setting == r.Choice.Setting; {
	case chosen && p.Default:
		return "both"
	case chosen:
		return "chosen"
	case p.Default:
		return "default"
	}
	return ""
}

// membersTable shows the default setting's scores at round numbers of members.
func (r shown) membersTable() *report.Table {
	loss := r.loss().Key
	columns := []report.Column{{Header: "members", Align: report.Right}}
	for _, m := range r.Points[0].Main() {
		columns = append(columns, report.Column{Header: m.Header, Align: report.Decimal})
		if m.Key == loss {
			columns = append(columns, report.Column{Header: "any choice", Align: report.Decimal}, report.Column{Header: "[90 %]"})
		}
	}
	t := report.NewTable(columns...)
	for i, p := range r.Curve {
		if m := p.Members; i < len(r.Curve)-1 && !slices.Contains([]int{1, 2, 3, 5, 10, 20, 30, 50, 100, 200}, m) {
			continue
		}
		cells := []string{report.Thousands(p.Members)}
		for _, m := range p.Main() {
			cells = append(cells, study.Cell(m))
			if m.Key == loss {
				cells = append(cells, report.Fixed(p.AnyOrder.Mean, m.Digits),
					"["+report.Fixed(p.AnyOrder.Low, m.Digits)+", "+report.Fixed(p.AnyOrder.High, m.Digits)+"]")
			}
		}
		t.Row(cells...)
	}
	of := ""
	if name := r.averagedLoss(); name != r.loss().Name {
		of = name + ", "
	}
	t.Note(fmt.Sprintf("%v. Any choice: %sthe mean over random choices of so many of the %d members, and between which values 90 %% of "+
		"them lie", r.Default(), of, r.Error.Members))
	return t
}

// json returns all numbers, unrounded.
func (r shown) json() any {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	points, curve := []study.Object{}, []study.Object{}
	for i := range r.Points {
		points = append(points, r.pointJSON(&r.Points[i]))
	}
	for _, p := range r.Curve {
		curve = append(curve, slices.Concat(study.Fields("members", p.Members), study.Scores("", p.Main()),
			study.Fields("nll_any_choice_90", study.Interval("mean", p.AnyOrder))))
	}
	collected := []study.Object{}
	for i := range r.Collected {
		collected = append(collected, r.Collected[i].json())
	}
	e := r.Error
	return study.Fields("examples", r.Test.Len(), "validation_examples", validation, "seed", r.Seed, "ece_binning",
		calibrate.ECEOptions{}.Name(),
		"settings", points, "members_curve", curve, "collected", collected,
		"members", study.Fields("members", e.Members, "nll_standard_error", study.Finite(e.Standard), "nll_excess", study.Finite(e.Excess),
			// "enough" is 0 if unknown
			"nll_standard_error_of_examples", study.Finite(e.Images), "tolerance", study.Finite(e.Tolerance), "enough", e.Enough),
		"choice", r.Choice.JSON(), "next", r.Spell.Lines(r.Next()), "warnings",
		append(r.Statistics.Warnings(), study.Texts(r.Warnings)...), "data_notes", r.Statistics.Notes(), "batch_norm",
		r.Statistics.Records[0], "verdict", r.verdict())
}

// pointJSON returns a point, with null for test scores that are not shown.
func (r shown) pointJSON(p *Point) study.Object {
	visible := r.visible(p)
	row := append(settingJSON(p.Setting), study.Fields("members", p.Members)...)
	test := func(e *task.Evaluation) study.Object {
		main := slices.Clone(e.Main())
		for i := range main {
			if !visible {
				main[i].Value = math.NaN()
			}
		}
		return study.Scores("", main)
	}
	row = append(append(row, test(p.Evaluation)...),
		study.Fields("temperature", study.Finite(p.Temperature), "without_temperature", test(p.Plain), "default", p.Default,
			"test_shown", visible)...)
	difference := func(key string, d chance.Interval, shown bool) {
		var v any
		if shown {
			v = study.Interval("mean", d) // zero for the default
		}
		row = append(row, study.Fields(key, v)...)
	}
	difference("nll_difference_95", p.Difference, visible)
	if p.Validation != nil {
		row = append(row, study.Scores("validation_", p.Validation.Main())...)
		difference("validation_nll_difference_95", p.ValidationDifference, true)
	}
	return row
}

func settingJSON(s Setting) study.Object {
	covariance := s.Covariance.String()
	if s.SWA() {
		covariance = "swa"
	}
	return study.Fields("setting", s.String(), "covariance", covariance, "scale", s.Scale, "rank", s.Rank, "bn_recomputed", !s.Stale)
}
