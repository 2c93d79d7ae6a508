package show

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
)

// answers are short ones to what a reader of the page asks besides the verdict: other seeds, the data, the checkpoints.
func (r sentences) answers() []report.Fact {
	facts := []report.Fact{{Name: "other seeds", Value: r.ofSeeds()}, {Name: "your data", Value: r.ofData()}, {
		Name:  "your checkpoints",
		Value: r.ofCheckpoints(),
	}}
	if proof := r.Runs[0].Network.Posterior.Card.Parity; proof != nil {
		facts = append(facts, report.Fact{Name: "parity with training", Value: proof.String()})
	}
	if r.Measured != "" {
		facts = append(facts, report.Fact{Name: "your own evaluation", Value: r.Measured})
	}
	return facts
}

// ofSeeds says whether other draws, and other runs of training, would change the choice.
func (r sentences) ofSeeds() string {
	runs := "Other runs of training: not compared."
	if len(r.Runs) > 1 {
		runs = "Other runs of training: several were given."
	}
	switch m := r.verdict.Choice; {
	case m == nil:
		return runs
	case !m.Drawn():
		return "The same with each. " + runs
	default:
		return r.Loss().Name + " ±" + report.Fixed(m.Draws.Standard(), 4) + " (standard error). " + runs
	}
}

// ofData says what the checks of the data found.
func (r sentences) ofData() string {
	reports := r.BatchNorm.Probe
	switch {
	case len(r.BatchNorm.Warnings()) > 0:
		return "See the warnings."
	case slices.ContainsFunc(reports, func(i *probe.Report) bool { return r.Inputs.BatchNorm.Data == nil && i != nil }):
		return "No fault found. Not compared with training: no " + setting.BNData.String() + "."
	}
	return "No fault found. Like that of training."
}

// ofCheckpoints says what fit found about the checkpoints, in a few words.
func (r sentences) ofCheckpoints() string {
	found := study.Findings(r.Averages, r.Networks()...)
	switch {
	case slices.ContainsFunc(found, func(f report.Finding) bool { return f.Serious }):
		return "Doubtful: read their health first."
	case len(found) == 0:
		return "Not judged."
	}
	return "Usable."
}
