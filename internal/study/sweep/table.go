package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Heading returns the settings in one line.
func (r *Result) Heading() string {
	s := fmt.Sprintf("%s test images, %s, seed %d", report.Thousands(r.Test.Len()), report.Plural(r.Error.Members, "member"), r.Seed)
	if r.Validation != nil {
		s += fmt.Sprintf("; settings chosen on %s validation images", report.Thousands(r.Validation.Len()))
	}
	return s
}

// Tables returns the table of settings and the curve of the members.
func (r *Result) Tables() []*report.Table {
	return []*report.Table{r.settingsTable(), r.membersTable()}
}

// settingsTable shows first the scores that decided the choice, and then the test scores that may be shown.
func (r *Result) settingsTable() *report.Table {
	loss := r.loss()
	difference := func(where string) []report.Column {
		return []report.Column{{Header: where + loss.Name + " − " + loss.Name + "(default)", Align: report.Decimal}, {Header: "[95 %]"}}
	}
	columns := []report.Column{{Header: "setting"}, {Header: "members", Align: report.Right}}
	if r.Validation != nil {
		columns = append(append(columns, report.Column{Header: "validation " + loss.Name, Align: report.Decimal}), difference("validation ")...)
	}
	columns = append(columns, study.Columns(r.Points[0].Main())...)
	t := report.NewTable(append(append(columns, difference("")...), report.Column{Header: " ", Empty: " "})...)
	hidden := 0
	for i := range r.Points {
		p := &r.Points[i]
		var marks []string
		if p.Default {
			marks = append(marks, "default")
		}
		if p.Setting == r.Choice.Setting {
			marks = append(marks, "chosen")
		}
		cells := []string{p.String(), report.Thousands(p.Members)}
		if p.Validation != nil {
			cells = append(append(cells, report.Fixed(r.nll(p.Validation), 4)), r.differenceCells(p.ValidationDifferences)...)
		}
		if r.shown(p) {
			cells = append(append(cells, study.Cells(p.Main())...), r.differenceCells(p.Differences)...)
		} else {
			cells = append(cells, make([]string, len(p.Main())+2)...)
			hidden++
		}
		t.Row(append(cells, strings.Join(marks, ", "))...)
	}
	if hidden > 0 {
		t.Warn(fmt.Sprintf("test scores of %s that were not chosen are hidden: to look at them is to choose on test data (--all-test shows them)", report.Plural(hidden, "setting")))
	}
	for _, w := range r.Warnings {
		t.Warn("* " + w.Error())
	}
	return t
}

// differenceCells returns the cells of a difference in the first loss, which are empty for the default.
func (r *Result) differenceCells(differences map[string]calibrate.Interval) []string {
	d, ok := differences[r.loss().Key]
	if !ok {
		return []string{"", ""}
	}
	return []string{report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4)}
}

// membersTable shows the default setting's scores at round numbers of members.
func (r *Result) membersTable() *report.Table {
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
				cells = append(cells, report.Fixed(p.AnyOrder.Mean, m.Digits), "["+report.Fixed(p.AnyOrder.Low, m.Digits)+", "+report.Fixed(p.AnyOrder.High, m.Digits)+"]")
			}
		}
		t.Row(cells...)
	}
	of := ""
	if name := r.averagedLoss(); name != r.loss().Name {
		of = name + ", "
	}
	t.Note(fmt.Sprintf("%v. Any choice: %sthe mean over random choices of so many of the %d members, and between which values 90 %% of them lie", r.Default(), of, r.Error.Members))
	return t
}

// JSON returns all numbers, unrounded.
func (r *Result) JSON() any {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	points, curve := []study.Object{}, []study.Object{}
	for i := range r.Points {
		points = append(points, r.pointJSON(&r.Points[i]))
	}
	for _, p := range r.Curve {
		curve = append(curve, append(r.scoresJSON(p.Members, p.Evaluation), study.Fields("nll_any_choice_90", study.Interval("mean", p.AnyOrder))...))
	}
	e, c := r.Error, r.Choice
	choice := append(settingJSON(c.Setting), study.Fields("of_settings", c.Candidates)...) // without those with stale statistics
	if c.Validated {
		choice = append(choice, study.Fields("chosen_on", "validation")...)
	} else {
		choice = append(choice, study.Fields("chosen_on", "halves", "halves", []study.Object{settingJSON(c.Halves[0]), settingJSON(c.Halves[1])})...)
	}
	choice = append(choice, study.Fields("nll_difference_95", study.Interval("mean", c.Gain), "better_than_default", c.Better(),
		"bootstrap_share", c.Share, "bootstrap_share_default", c.DefaultShare)...)
	return study.Fields("images", r.Test.Len(), "validation_images", validation, "seed", r.Seed, "ece_binning", r.ECE.Name(),
		"settings", points, "members_curve", curve,
		"members", study.Fields("members", e.Members, "nll_standard_error", study.Finite(e.Standard), "nll_excess", study.Finite(e.Excess),
			"nll_standard_error_of_images", study.Finite(e.Images), "tolerance", study.Finite(e.Tolerance), "enough", e.Enough), // "enough" is 0 if unknown
		"choice", choice, "warnings", append(r.Statistics.Warnings(), study.Texts(r.Warnings)...), "batch_norm", r.Statistics.Records[0], "verdict", r.Verdict())
}

// pointJSON returns a point, with null for test scores that are not shown.
func (r *Result) pointJSON(p *Point) study.Object {
	shown := r.shown(p)
	row := append(settingJSON(p.Setting), study.Fields("members", p.Members)...)
	main := slices.Clone(p.Main())
	for i := range main {
		if !shown {
			main[i].Value = math.NaN()
		}
	}
	row = append(row, study.Scores("", main)...)
	row = append(row, study.Fields("default", p.Default, "test_shown", shown)...)
	differences := func(prefix string, of map[string]calibrate.Interval, shown bool) {
		for _, l := range p.Losses {
			var d any
			if shown {
				d = study.Interval("mean", of[l.Key]) // zero for the default
			}
			row = append(row, study.Fields(prefix+l.Key+"_difference_95", d)...)
		}
	}
	differences("", p.Differences, shown)
	if p.Validation != nil {
		row = append(row, study.Scores("validation_", p.Validation.Main())...)
		differences("validation_", p.ValidationDifferences, true)
	}
	return row
}

func (r *Result) scoresJSON(members int, e *task.Evaluation) study.Object {
	return append(study.Fields("members", members), study.Scores("", e.Main())...)
}

func settingJSON(s Setting) study.Object {
	covariance := s.Covariance.String()
	if s.SWA() {
		covariance = "swa"
	}
	return study.Fields("setting", s.String(), "covariance", covariance, "scale", s.Scale, "rank", s.Rank, "bn_recomputed", !s.Stale)
}
