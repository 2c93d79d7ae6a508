package settling

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// shown is the largest number of rules in a table.
const shown = 10

// Section shows some of the rules, and marks the chosen one.
func (r *Result) Section() *study.Section {
	s := &study.Section{}
	stride := (len(r.Curve)-1)/shown + 1
	for i := range r.Curve {
		if rule := &r.Curve[i]; i%stride == 0 || rule == r.Chosen {
			s.Rows = append(s.Rows, r.row(rule))
		}
	}
	s.Note("the divergence from the prediction of all members chooses the rule: its bound keeps the guarantee, from the smallest " +
		"tolerance up to the chosen one. It is the expected rise of the NLL if all members are right about their probabilities")
	if len(r.Curve) > 0 && r.Curve[0].Cost.Labelled {
		s.Note("the labels choose nothing. They show how the NLL changes, which their small number makes uncertain")
	}
	s.Note("each bound holds with a confidence of 95 %. The changed decisions are an estimate. The corrections of each example were " +
		"fitted without it, in 5 folds")
	return s
}

func (r *Result) row(rule *ensemble.Stopping) study.Row {
	c := rule.Cost
	left := func(header, text string) study.Cell { return study.Shown(header, text).Aligned(report.Left) }
	row := study.Row{
		left("tolerance, nats", fmt.Sprintf("%.2g", rule.Tolerance)),
		left("members", report.Fixed(c.Members, 1)),
		left("fewer", report.Fixed(float64(r.all)/c.Members, 1)+" ×"),
		left("divergence", report.Fixed(c.Divergence, 5)),
		left(atMost, report.Fixed(c.DivergenceMost, 5)),
	}
	if c.Labelled {
		row = append(row, left("NLL of labels", report.Signed(c.NLL, 5)), left(atMost, report.Signed(c.NLLMost, 5)).Renamed("NLL at most"))
	}
	if c.Changed >= 0 {
		row = append(row, left("changed decisions", report.Percent(float64(c.Changed)/float64(c.Examples), 2)))
	}
	return append(row, study.Marked(map[bool]string{true: "chosen"}[rule == r.Chosen]))
}

// atMost is the header of one-sided bounds.
const atMost = "at most (95 %)"

// Describe says in a sentence what a rule costs and saves.
func Describe(s *ensemble.Stopping, members int) string {
	c := s.Cost
	parts := []string{fmt.Sprintf("%s of %d members on average (%s × fewer passes)", report.Fixed(c.Members, 1), members,
		report.Fixed(float64(members)/c.Members, 1))}
	if c.DivergenceMost > 0 {
		parts = append(parts, fmt.Sprintf("expected rise of the NLL %s nats%s", report.Fixed(c.Divergence, 5),
			bounded(report.Fixed(c.DivergenceMost, 5))))
	}
	if c.Labelled {
		known := ""
		if c.NLLMost != 0 {
			known = bounded(report.Signed(c.NLLMost, 5))
		}
		parts = append(parts, fmt.Sprintf("by the labels %s%s", report.Signed(c.NLL, 5), known))
	}
	if c.Changed >= 0 {
		parts = append(parts, fmt.Sprintf("%d of %s decisions changed%s", c.Changed, report.Thousands(c.Examples),
			bounded(report.Percent(chance.MostShare(c.Changed, c.Examples), 2))))
	}
	return parts[0] + ": " + strings.Join(parts[1:], ", ")
}

func bounded(bound string) string { return " (95 %: at most " + bound + ")" }
