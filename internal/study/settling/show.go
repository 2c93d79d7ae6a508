package settling

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// shown is the largest number of rules in a table.
const shown = 10

// Table shows some of the rules, and marks the chosen one.
func (r *Result) Table() *report.Table {
	columns := []report.Column{{Header: "tolerance, nats"}, {Header: "members"}, {Header: "fewer"}, {Header: "divergence"},
		{Header: atMost}}
	labelled := len(r.Curve) > 0 && r.Curve[0].Cost.Labelled
	if labelled {
		columns = append(columns, report.Column{Header: "NLL of labels"}, report.Column{Header: atMost})
	}
	decides := len(r.Curve) > 0 && r.Curve[0].Cost.Changed >= 0
	if decides {
		columns = append(columns, report.Column{Header: "changed decisions"})
	}
	t := report.NewTable(append(columns, report.Column{Header: " ", Empty: " "})...)
	stride := (len(r.Curve)-1)/shown + 1
	for i := range r.Curve {
		rule := &r.Curve[i]
		if i%stride != 0 && rule != r.Chosen {
			continue
		}
		c := rule.Cost
		cells := []string{fmt.Sprintf("%.2g", rule.Tolerance), report.Fixed(c.Members, 1), report.Fixed(float64(r.all)/c.Members, 1) + " ×",
			report.Fixed(c.Divergence, 5), report.Fixed(c.DivergenceMost, 5)}
		if labelled {
			cells = append(cells, report.Signed(c.NLL, 5), report.Signed(c.NLLMost, 5))
		}
		if decides {
			cells = append(cells, report.Percent(float64(c.Changed)/float64(c.Examples), 2))
		}
		mark := ""
		if rule == r.Chosen {
			mark = "chosen"
		}
		t.Row(append(cells, mark)...)
	}
	t.Note("the divergence from the prediction of all members chooses the rule: its bound keeps the promise, from the smallest " +
		"tolerance up to the chosen one. It is the expected rise of the NLL if all members are right about their probabilities")
	if labelled {
		t.Note("the labels choose nothing. They show how the NLL changes, which their small number makes uncertain")
	}
	t.Note("each bound holds with a confidence of 95 %. The changed decisions are an estimate. The corrections of each example were " +
		"fitted without it, in 5 folds")
	return t
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
