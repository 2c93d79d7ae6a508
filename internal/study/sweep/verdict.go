package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Verdict returns the result in plain words, the outcome first.
func (r *Result) Verdict() []string {
	out := []string{r.choiceVerdict(), r.Choice.String()}
	line := fmt.Sprintf("Recommended: %s.", r.name(r.recommended().Setting))
	if d := r.Choice.OverSWA; r.Choice.Setting != (Setting{}) && !r.Choice.Few {
		line = fmt.Sprintf("Compared with %s, which is one network, the chosen setting changes the NLL by %s %s. %s", r.name(Setting{}), report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4), line)
	}
	out = append(out, line)
	if !r.Choice.Validated {
		halves := fmt.Sprintf("Both halves of the test %s chose the same.", r.units())
		if a, b := r.Choice.Halves[0], r.Choice.Halves[1]; a != b {
			halves = fmt.Sprintf("The halves of the test %s disagree: %v, and %v.", r.units(), a, b)
		}
		out = append(out, halves+" A choice on other data is more reliable: --val FILE.")
	}
	out = append(out, r.membersVerdict())
	if stale := r.staleVerdict(); stale != "" {
		out = append(out, stale)
	}
	return out
}

// units returns the word for examples: "images" or "examples".
func (r *Result) units() string { return dataset.Unit(r.Test) + "s" }

// choiceVerdict compares the chosen setting with the default.
func (r *Result) choiceVerdict() string {
	c, d := r.Choice, r.Default().Setting
	gain := fmt.Sprintf("NLL %s %s on %s that took no part in the choice", report.Signed(c.Gain.Mean, 4), report.Interval(c.Gain.Low, c.Gain.High, 4), r.units())
	switch {
	case c.Setting == d:
		return fmt.Sprintf("The paper's default, %v, has the lowest NLL.", d)
	case c.Few:
		return fmt.Sprintf("With %s nobody can say whether another setting is better than the paper's default, %v. Give at least %d: --members %d.", report.Plural(r.Default().Members, "member"), d, fewMembers, ensemble.DefaultMembers)
	case c.Better():
		return fmt.Sprintf("%v is better than the paper's default, %v: %s. The interval counts other %s and other draws.", c.Setting, d, gain, r.units())
	}
	return fmt.Sprintf("No setting is better than the paper's default, %v, by more than the chance of %s and draws: %s.", d, r.units(), gain)
}

// recommended returns the point to deploy. SWA-Temp is one network, so members must be better than it by more than chance,
// and the choice must also be better than the default.
func (r *Result) recommended() *Point {
	d := r.Default()
	switch {
	case r.Choice.Better() && r.Choice.OverSWA.High < 0:
		return &r.Points[slices.IndexFunc(r.Points, func(p Point) bool { return p.Setting == r.Choice.Setting })]
	case !r.Choice.Few && r.difference(d.judged, r.Points[0].judged).High < 0:
		return d
	}
	return &r.Points[0]
}

// Next returns the commands that make and export the recommended ensemble.
func (r *Result) Next() []string {
	p := r.recommended()
	how := ensemble.FromSampling(r.Draws(p.Setting), p.Members)
	if !math.IsNaN(p.Temperature) {
		how.Temperature = p.Temperature
	}
	args := append([]string{"swagwrap", "sample", "-o", "ensemble.safetensors"}, how.Flags()...)
	if d := r.BatchNorm.Data; d != nil {
		args = append(append(args, "--bn-data", d.Sources()[0].Path), r.Recomputing...)
	}
	return []string{study.Shell(append(args, r.Network.Posterior.Path)...), study.Shell("swagwrap", "export", "-o", "ensemble.onnx", "ensemble.safetensors")}
}

// membersVerdict says whether there were enough members.
func (r *Result) membersVerdict() string {
	n := r.Error
	change := fmt.Sprintf("infinitely many would change the %s by about %s, and a change of %s is small", r.averagedLoss(), report.Fixed(n.Change(), 4), report.Fixed(n.Tolerance, 4))
	members, enough := report.Plural(n.Members, "member"), report.Plural(n.Enough, "member")
	switch {
	case n.Enough == 0 || math.IsNaN(n.Change()):
		return fmt.Sprintf("The number of members that is enough cannot be estimated from %s.", members)
	case n.Enough <= n.Members:
		return fmt.Sprintf("The number of members, %s, is enough. About %s would do: %s.", report.Thousands(n.Members), report.Thousands(n.Enough), change)
	}
	return fmt.Sprintf("The number of members, %s, is too low. About %s would be enough: %s.", report.Thousands(n.Members), enough, change)
}

// staleVerdict describes the cost of skipping the batch-norm update. That is not a setting to choose, but if there is
// other data, test scores are not used for it.
func (r *Result) staleVerdict() string {
	d := r.Default()
	stale := d.Setting
	stale.Stale = true
	for _, p := range r.Points {
		if p.Setting != stale {
			continue
		}
		what, without, with := "", p.Evaluation, d.Evaluation
		if p.Validation != nil {
			what, without, with = " of the validation "+r.units(), p.Validation, d.Validation
		}
		return fmt.Sprintf("Without recomputed batch-norm statistics the NLL%s is %s instead of %s, each at its own temperature.", what, report.Fixed(r.nll(without), 4), report.Fixed(r.nll(with), 4))
	}
	return ""
}
