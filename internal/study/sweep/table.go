package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Heading has the settings in a line.
func (r *Result) Heading() string {
	s := fmt.Sprintf("%s test images, %s, seed %d", report.Thousands(r.Test.Len()), report.Plural(r.Error.Members, "member"), r.Seed)
	if r.Validation != nil {
		s += fmt.Sprintf("; settings chosen on %s validation images", report.Thousands(r.Validation.Len()))
	}
	return s
}

// Tables are the settings, and the curve of the members.
func (r *Result) Tables() []*report.Table {
	return []*report.Table{r.settingsTable(), r.membersTable()}
}

func (r *Result) settingsTable() *report.Table {
	loss := r.task.Losses()[0].Name
	columns := []report.Column{{Header: "setting"}, {Header: "members", Align: report.Right}}
	for _, m := range study.MainMetrics(r.task) {
		columns = append(columns, report.Column{Header: m.Header, Align: report.Decimal})
	}
	t := report.NewTable(append(columns, report.Column{Header: loss + " − " + loss + "(default)", Align: report.Decimal},
		report.Column{Header: "[95 %]"}, report.Column{Header: " ", Empty: " "})...)
	for _, p := range r.Points {
		var marks []string
		diff, interval := "", ""
		if p.Default {
			marks = append(marks, "default")
		} else {
			diff, interval = report.Signed(p.Differences[0].Mean, 4), report.Interval(p.Differences[0].Low, p.Differences[0].High, 4)
		}
		if p.Setting == r.Choice.Setting {
			marks = append(marks, "chosen")
		}
		cells := []string{p.String(), report.Thousands(p.Members)}
		for i, m := range study.MainMetrics(r.task) {
			cells = append(cells, study.Cell(m, p.Values[i]))
		}
		t.Row(append(cells, diff, interval, strings.Join(marks, ", "))...)
	}
	for _, w := range r.Warnings {
		t.Note("* " + w.Error())
	}
	return t
}

// membersTable shows the default setting's scores at round numbers of members.
func (r *Result) membersTable() *report.Table {
	loss := r.task.Losses()[0].Key
	columns := []report.Column{{Header: "members", Align: report.Right}}
	for _, m := range study.MainMetrics(r.task) {
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
		for i, m := range study.MainMetrics(r.task) {
			cells = append(cells, study.Cell(m, p.Values[i]))
			if m.Key == loss {
				cells = append(cells, report.Fixed(p.AnyOrder.Mean, m.Digits), "["+report.Fixed(p.AnyOrder.Low, m.Digits)+", "+report.Fixed(p.AnyOrder.High, m.Digits)+"]")
			}
		}
		t.Row(cells...)
	}
	t.Note(fmt.Sprintf("%v. Any choice: the mean over random choices of so many of the %d members, and between which values 90 %% of them lie", r.Default(), r.Error.Members))
	return t
}

// JSON is everything, unrounded.
func (r *Result) JSON() any {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	points, curve := []study.Object{}, []study.Object{}
	for _, p := range r.Points {
		row := append(settingJSON(p.Setting), r.scoresJSON(p.Members, p.Evaluation)...)
		row = append(row, study.Fields("default", p.Default)...)
		for k, l := range r.task.Losses() {
			d := calibrate.Interval{}
			if p.Differences != nil {
				d = p.Differences[k]
			}
			row = append(row, study.Fields(l.Key+"_difference_95", study.Interval("mean", d))...)
		}
		points = append(points, row)
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
			"nll_standard_error_of_images", study.Finite(e.Images), "tolerance", study.Finite(e.Tolerance), "enough", e.Enough), // enough 0: not known
		"choice", choice, "warnings", append(r.Statistics.Warnings(), study.Texts(r.Warnings)...), "batch_norm", r.Statistics.Records[0], "verdict", r.Verdict())
}

func (r *Result) scoresJSON(members int, e *task.Evaluation) study.Object {
	out := study.Fields("members", members)
	for i, m := range study.MainMetrics(r.task) {
		out = append(out, study.Fields(m.Key, study.Finite(e.Values[i]))...)
	}
	return out
}

func settingJSON(s Setting) study.Object {
	covariance := s.Covariance.String()
	if s.SWA() {
		covariance = "swa"
	}
	return study.Fields("setting", s.String(), "covariance", covariance, "scale", s.Scale, "rank", s.Rank, "bn_recomputed", !s.Stale)
}
