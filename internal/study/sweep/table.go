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

func (r shown) rows() (rows []study.Row) {
	for i := range r.Points {
		rows = append(rows, r.row(&r.Points[i]))
	}
	return rows
}

// settings returns the scores on the validation data, if there are any, and on the test data. The latter has only the settings
// that may be shown.
func (r shown) settings() (sections []study.Section) {
	rows := r.rows()
	if r.Validation != nil {
		sections = append(sections, r.scored("validation", "validation_", rows))
	}
	visible := slices.DeleteFunc(slices.Clone(rows), func(row study.Row) bool { return row.Cell("test_shown").Value == false })
	test := r.scored("test", "", visible)
	if hidden := len(rows) - len(visible); hidden > 0 {
		test.Warnings = append(test.Warnings, fmt.Sprintf("test scores of %s that were not chosen are hidden: to look at them is to "+
			"choose on test data (%s shows them)", report.Plural(hidden, "setting"), setting.AllTest))
	}
	for _, w := range r.Warnings {
		test.Warnings = append(test.Warnings, "* "+w.Error())
	}
	return append(sections, test)
}

// scored shows the scores of settings on some data. prefix begins their keys.
func (r shown) scored(where, prefix string, rows []study.Row) study.Section {
	loss, columns := r.loss(), study.Keys("setting", "choice", "temperature")
	for _, m := range r.Points[0].Main() {
		if m.Key != loss.Key {
			columns = append(columns, study.Column{Key: prefix + m.Key, Optional: 1})
			continue
		}
		columns = append(columns, study.Column{Key: prefix + m.Key, Header: where + " " + m.Header})
		columns = append(columns, study.Keys(prefix+"difference", prefix+"interval")...)
	}
	return study.Section{Title: "Settings, " + where + " data", Columns: columns, Rows: rows, Notes: []string{
		fmt.Sprintf("\"both\" means that the paper's default is chosen. Each setting has its own %s. [95 %%] is the interval of %s − "+
			"%s(default) for new %s and other draws of the members.", r.by.Symbol, loss.Name, loss.Name, r.units()),
	}}
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

// curve returns the default setting's scores by the number of members.
func (r shown) curve() []study.Row {
	return study.Rows(r.Curve, func(p CurvePoint) study.Row {
		row := study.Row{study.Count("members", "members", p.Members).Aligned(report.Right)}
		for _, m := range p.Main() {
			row = append(row, study.Scores("", []task.Score{m})...)
			if m.Key == r.loss().Key {
				low, high := report.Fixed(p.AnyOrder.Low, m.Digits), report.Fixed(p.AnyOrder.High, m.Digits)
				row = append(row, study.Shown("any choice", report.Fixed(p.AnyOrder.Mean, m.Digits)),
					study.Shown("[90 %]", "["+low+", "+high+"]").Aligned(report.Left))
			}
		}
		return append(row, study.Fields("nll_any_choice_90", study.Interval("mean", p.AnyOrder))...)
	})
}

// members shows the scores at round numbers of members.
func (r shown) members() study.Section {
	of := ""
	if name := r.averagedLoss(); name != r.loss().Name {
		of = name + ", "
	}
	s := study.Section{Title: "Number of members", Notes: []string{fmt.Sprintf("%v. Any choice: %sthe mean over random choices of so "+
		"many of the %d members, and between which values 90 %% of them lie", r.Default(), of, r.Error.Members)}}
	for i, row := range r.curve() {
		if i == len(r.Curve)-1 || slices.Contains([]int{1, 2, 3, 5, 10, 20, 30, 50, 100, 200}, r.Curve[i].Members) {
			s.Rows = append(s.Rows, row)
		}
	}
	return s
}

// all returns all numbers, unrounded.
func (r shown) all() study.Row {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	e := r.Error
	return study.Fields("examples", r.Test.Len(), "validation_examples", validation, "seed", r.Seed,
		"ece_binning", calibrate.ECEOptions{}.Name(), "settings", r.rows(), "members_curve", r.curve(),
		"collected", study.Rows(r.Collected, r.collected),
		"members", study.Fields("members", e.Members, "nll_standard_error", e.Standard, "nll_excess", e.Excess,
			"nll_standard_error_of_examples", e.Images, "tolerance", e.Tolerance, "enough", e.Enough), // enough is 0 if unknown
		"choice", r.Choice.Row(), "next", r.Spell.Lines(r.Next()),
		"warnings", append(r.Statistics.Warnings(), study.Texts(r.Warnings)...), "data_notes", r.Statistics.Notes(),
		"batch_norm", r.Statistics.Records[0], "verdict", r.verdict())
}

// row returns a point, with null for test scores that are not shown.
func (r shown) row(p *Point) study.Row {
	visible := r.visible(p)
	row := append(settingRow(p.Setting), study.Shown("choice", r.mark(p)).Aligned(report.Left).Blank(),
		study.Cell{Key: "members", Value: p.Members})
	row[0].Header, row[0].Text = "setting", strings.TrimPrefix(r.name(p.Setting), "SWAG, ")
	test := func(e *task.Evaluation) study.Row {
		main := slices.Clone(e.Main())
		for i := range main {
			if !visible {
				main[i].Value = math.NaN()
			}
		}
		return study.Scores("", main)
	}
	t := ""
	if !math.IsNaN(p.Temperature) {
		t = task.ShortNumber(p.Temperature)
	} else if p.loose != "" {
		t = "*"
	}
	row = append(append(row, test(p.Evaluation)...), study.Number("temperature", r.by.Symbol, p.Temperature, t))
	row = append(row, study.Fields("without_temperature", test(p.Plain), "default", p.Default, "test_shown", visible)...)
	difference := func(prefix string, d chance.Interval, shown bool) {
		var v any
		if shown {
			v = study.Interval("mean", d) // zero for the default
		}
		mean, interval := report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4)
		if p.Default {
			mean, interval = "", ""
		}
		row = append(row, study.Cell{Key: prefix + "nll_difference_95", Value: v},
			study.Shown("− default", mean).Renamed(prefix+"difference"),
			study.Shown("[95 %]", interval).Renamed(prefix+"interval").Aligned(report.Left))
	}
	difference("", p.Difference, visible)
	if p.Validation != nil {
		row = append(row, study.Scores("validation_", p.Validation.Main())...)
		difference("validation_", p.ValidationDifference, true)
	}
	return row
}

func settingRow(s Setting) study.Row {
	covariance := s.Covariance.String()
	if s.SWA() {
		covariance = "swa"
	}
	return study.Fields("setting", s.String(), "covariance", covariance, "scale", s.Scale, "rank", s.Rank, "bn_recomputed", !s.Stale)
}
