package sweep

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
)

// Verdict returns the result in plain words, the outcome first.
func (r *Result) Verdict() []string {
	out := []string{r.choiceVerdict(), r.sureness()}
	if r.Choice.Better() {
		out = append(out, "It is made with: swagwrap sample "+r.flags())
	}
	if !r.Choice.Validated {
		halves := "Both halves of the test images chose the same."
		if a, b := r.Choice.Halves[0], r.Choice.Halves[1]; a != b {
			halves = fmt.Sprintf("The halves of the test images disagree: %v, and %v.", a, b)
		}
		out = append(out, halves+" A choice on data of its own is sounder: --val FILE.")
	}
	out = append(out, r.membersVerdict())
	if stale := r.staleVerdict(); stale != "" {
		out = append(out, stale)
	}
	return out
}

// choiceVerdict compares the chosen setting with the default.
func (r *Result) choiceVerdict() string {
	c, d := r.Choice, r.Default().Setting
	gain := fmt.Sprintf("NLL %s %s", report.Signed(c.Gain.Mean, 4), report.Interval(c.Gain.Low, c.Gain.High, 4))
	switch {
	case c.Better():
		return fmt.Sprintf("%v is better than the paper's default, %v: %s on images that took no part in the choice.", c.Setting, d, gain)
	case c.Setting == d:
		return fmt.Sprintf("The paper's default, %v, has the lowest NLL of %d settings.", d, c.Candidates)
	}
	return fmt.Sprintf("No setting is better than the paper's default, %v, by more than chance. The lowest NLL of %d settings has %v, with a difference of %s on images that took no part in the choice.",
		d, c.Candidates, c.Setting, gain)
}

// flags returns the flags of sample that make the members of the choice.
func (r *Result) flags() string {
	s := r.Choice.Setting
	how := swag.SampleOptions{Seed: r.Seed, Scale: s.Scale, Covariance: s.Covariance}
	if s.Rank != r.Default().Rank { // which uses all columns
		how.Rank = s.Rank
	}
	return strings.Join(ensemble.FromSampling(how, r.Error.Members).Flags(), " ")
}

// sureness describes how the choice would fare on other images like these.
func (r *Result) sureness() string {
	c, images := r.Choice, r.Test.Len()
	what := "test"
	if c.Validated {
		what, images = "validation", r.Validation.Len()
	}
	text := fmt.Sprintf("Chosen on %s %s images: it is the best in %s of bootstrap resamples of them", report.Thousands(images), what, report.Percent(c.Share, 0))
	if c.Setting != r.Default().Setting {
		text += ", the default in " + report.Percent(c.DefaultShare, 0)
	}
	return text + "."
}

// membersVerdict says whether there were enough members.
func (r *Result) membersVerdict() string {
	n := r.Error
	change := fmt.Sprintf("infinitely many would change the %s by about %s, and %s would still be small", r.averagedLoss(), report.Fixed(n.Change(), 4), report.Fixed(n.Tolerance, 4))
	members, are := report.Plural(n.Members, "member"), "are"
	if n.Members == 1 {
		are = "is"
	}
	switch {
	case n.Enough == 0 || math.IsNaN(n.Change()):
		return fmt.Sprintf("%s %s too few to tell how many are needed.", members, are)
	case n.Enough <= n.Members:
		return fmt.Sprintf("%s %s enough, about %s would do: %s.", members, are, report.Thousands(n.Enough), change)
	}
	return fmt.Sprintf("%s %s not quite enough, about %s would be: %s.", members, are, report.Thousands(n.Enough), change)
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
			what, without, with = " of the validation images", p.Validation, d.Validation
		}
		return fmt.Sprintf("Without recomputed batch-norm statistics the NLL%s is %s in place of %s.", what, report.Fixed(r.nll(without), 4), report.Fixed(r.nll(with), 4))
	}
	return ""
}
