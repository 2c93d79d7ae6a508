package settling

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// shown is the largest number of rules in a table.
const shown = 10

// Table shows some of the rules, and marks the chosen one.
func (r *Result) Table() *report.Table {
	columns := []report.Column{{Header: "tolerance, nats"}, {Header: "members"}, {Header: "fewer"}, {Header: r.measure()}, {Header: "95 %"}}
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
			report.Signed(c.NLL, 5), report.Interval(c.Low, c.High, 5)}
		if decides {
			cells = append(cells, report.Percent(float64(c.Changed)/float64(c.Examples), 2))
		}
		mark := ""
		if rule == r.Chosen {
			mark = "chosen"
		}
		t.Row(append(cells, mark)...)
	}
	if len(r.Curve) > 0 && !r.Curve[0].Cost.Labelled {
		t.Note("without labels the NLL is unknown. The divergence from the prediction of all members takes its place")
	}
	t.Note("the corrections of each example were fitted without it, in 5 folds. The choice uses an estimate that also looks at the divergence from all members, and never rises as the tolerance falls")
	return t
}

func (r *Result) measure() string {
	if len(r.Curve) > 0 && !r.Curve[0].Cost.Labelled {
		return "divergence"
	}
	return "NLL"
}

// Describe says in a sentence what a rule costs and saves.
func Describe(s *ensemble.Stopping, members int) string {
	c := s.Cost
	what := "NLL"
	if !c.Labelled {
		what = "divergence from all members"
	}
	out := fmt.Sprintf("%s of %d members on average (%s × fewer passes): %s %s nats (95 %%: %s)", report.Fixed(c.Members, 1), members, report.Fixed(float64(members)/c.Members, 1),
		what, report.Signed(c.NLL, 5), report.Interval(c.Low, c.High, 5))
	if c.Changed >= 0 {
		most := chance.Wilson(float64(c.Changed)/float64(c.Examples), c.Examples).High
		out += fmt.Sprintf(", %d of %s decisions changed (95 %%: at most %s)", c.Changed, report.Thousands(c.Examples), report.Percent(most, 2))
	}
	return out
}
