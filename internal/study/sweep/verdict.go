package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
)

// verdict returns the result in plain words, the recommendation first. It has about six lines on a screen of 80 columns.
func (r shown) verdict() []string {
	out := append(slices.Clone(r.Statistics.Twice), r.recommendation(), r.Choice.String())
	if !r.Choice.Validated {
		halves := fmt.Sprintf("Both halves of the test %s chose the same.", r.units())
		if a, b := r.Choice.Halves[0], r.Choice.Halves[1]; a != b {
			halves = fmt.Sprintf("The halves of the test %s disagree: %v, and %v.", r.units(), a, b)
		}
		out = append(out, halves+" Better: "+setting.Val.With("FILE")+".")
	}
	out = append(out, r.membersVerdict())
	if stale := r.staleVerdict(); stale != "" {
		out = append(out, stale)
	}
	return out
}

// units returns the word for examples: "images" or "examples".
func (r shown) units() string { return dataset.Unit(r.Test) + "s" }

// recommendation says what to deploy, with the differences that the choice makes on examples that took no part in it.
func (r shown) recommendation() string {
	p, swa, c := r.recommended(), r.name(Setting{}), r.Choice
	what := map[bool]string{true: "the paper's default, "}[p.Default] + r.name(p.Setting)
	if c.Few {
		return fmt.Sprintf("Deploy %s. Fewer than %d members cannot show whether a setting is better. Use %s.", what,
			chance.LeastMembers(r.Antithetic), setting.Members.With(strconv.Itoa(ensemble.DefaultMembers)))
	}
	differences := fmt.Sprintf("%s %s from %s", report.Signed(c.OverSWA.Mean, 4), report.Interval(c.OverSWA.Low, c.OverSWA.High, 4), swa)
	if c.Setting.SWA() {
		differences = ""
	}
	if c.Setting != r.Default().Setting {
		differences += map[bool]string{true: ", "}[differences != ""] + fmt.Sprintf("%s %s from the default",
			report.Signed(c.Gain.Mean, 4), report.Interval(c.Gain.Low, c.Gain.High, 4))
	}
	if p.Setting == c.Setting {
		return fmt.Sprintf("Deploy %s: its NLL differs by %s.", what, differences)
	}
	return fmt.Sprintf("Deploy %s. Nothing is better by more than chance: the lowest NLL differs by %s.", what, differences)
}

// recommended returns the point to deploy: the choice, the default or SWA-Temp. SWA-Temp is one network, so members must be
// better than it by more than chance. If the default is, the choice must also be better than the default.
func (r *Result) recommended() *Point {
	d := r.Default()
	pays := r.difference(d.judged, r.Points[0].judged).High < 0
	switch {
	case r.Choice.Few:
	case r.Choice.OverSWA.High < 0 && (r.Choice.Better() || !pays):
		return &r.Points[slices.IndexFunc(r.Points, func(p Point) bool { return p.Setting == r.Choice.Setting })]
	case pays:
		return d
	}
	return &r.Points[0]
}

// Next returns the steps that make and export the recommended ensemble.
func (r *Result) Next() []study.Step {
	p := r.recommended()
	how := ensemble.FromSampling(r.Draws(p.Setting), p.Members)
	if !math.IsNaN(p.Temperature) {
		how.Temperature = p.Temperature
	}
	made := study.Sample{
		Output:     "ensemble.safetensors",
		Members:    *how,
		Training:   study.Training(r.BatchNorm.Data),
		Posteriors: []string{r.Network.Posterior.Path},
	}
	return append([]study.Step{made}, study.ExportOf("ensemble.onnx", made.Output, p.Members, r.Network)...)
}

// membersVerdict says whether there were enough members.
func (r shown) membersVerdict() string {
	n := r.Error
	members, enough := report.Plural(n.Members, "member"), report.Thousands(n.Enough)
	if r.Antithetic {
		members += " in antithetic pairs"
	}
	switch {
	case r.Sweep.Members == 0 && r.Antithetic:
		return fmt.Sprintf("%s are as near to very many members as %d independent ones.", members, ensemble.DefaultMembers)
	case n.Enough == 0 || math.IsNaN(n.Change()):
		return fmt.Sprintf("The number of members that is enough cannot be estimated from %s.", members)
	case n.Enough <= n.Members:
		return fmt.Sprintf("%s are enough: about %s would do.", members, enough)
	}
	return fmt.Sprintf("%s are too few: about %s would be enough.", members, enough)
}

// staleVerdict describes the cost of skipping the batch-norm update. That is not a setting to choose, but if there is
// other data, test scores are not used for it.
func (r shown) staleVerdict() string {
	d := r.Default()
	stale := d.Setting
	stale.Stale = true
	for _, p := range r.Points {
		if p.Setting != stale {
			continue
		}
		without, with := p.Evaluation, d.Evaluation
		if p.Validation != nil {
			without, with = p.Validation, d.Validation
		}
		return fmt.Sprintf("Without recomputed batch-norm statistics the NLL is %s.",
			report.InsteadOf(r.nll(without), r.nll(with), report.Fixed, 4))
	}
	return ""
}
