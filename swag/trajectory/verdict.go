package trajectory

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/swag"
)

// Limits of the verdict. They come from the network of fixtures/mnist, trained for 30 more epochs from theta0 at
// several learning rates. At rate 0.1 the spread was 0.2, and members disagreed with θ_SWA on 3 % of the test images.
// At 0.01 it was 0.007, and they disagreed on 0.1 %. At 0.001 it was 0.001, they disagreed on 0.03 %, and the NLL
// changed by 5e-5.
//
// The drift grew from ½, a random walk, to 0.67 as the trajectory became more of a line. With a weight decay that let
// the drift reach 0.59, SWAG was much worse than SWA.
const (
	leastSpread = 0.002
	// In testdata/runs.py, eight networks of different seeds have 0.68, and eight fine-tunes of one network 0.006. All 40
	// ensembles of five seeds in fixtures/uci are above the limit too, and none of the 40 runs there.
	mostSpread = 0.5
	// Six runs of docs/results.md have more, 0.34 to 0.45: MNIST with 250 images, and with 1,000 at rate 0.3. SWAG had a higher NLL
	// than SWA-Temp in all of them, and a higher one than SWA in four. On badly damaged images those at rate 0.3 were the best.
	usefulSpread = 0.33
	mostDrift    = 0.6
	// testdata/runs.py trains networks at constant and at falling rates. At constant rates, steps shrank to 0.28 at most,
	// and the trend was −0.81 or more. Those of a cosine schedule shrank to 0.02, of a linear one to 0.12, and of an
	// exponential one by a factor of ten to 0.16. The last two had a trend below −0.96.
	leastSlowing = 0.1
	mostSlowing  = 0.25
	steadyTrend  = -0.9
	// Simulated random walks of at least eight steps in at least 20 directions all stayed below 3. Networks whose
	// batch norm leaves the size of the weights free walk like this, and SWAG works on them.
	leastEffective = 3
	mostUnmoved    = 0.1
	leastLowRank   = 0.5
	// The last K of T deviations of a long random walk from its running mean have about 2−K/T times the variance of the walk.
	// In docs/results.md 5 of 38 have 1.8 times. With a spread of 0.25 SWAG lost all that it gains with deviations from the
	// final mean. With a spread of 0.08 it made no difference.
	mostLowRank = 1.5
	wideSpread  = 0.1
	// Independent iterates of one run count as many as they are, too. But runs at constant rates in testdata/runs.py count
	// 2.3 of 20 at most.
	independent = 0.9
	// Distances in testdata/runs.py: 0.06 for an average over all batches of the checkpoints' epochs, 0.27 for an
	// exponential moving average, 1.48 for the last iterate, and 2.67 for the network before training. At 1, half of the
	// variance is the distance.
	mostOffset = 1.5
	// SWA and SWAG, each with its temperature, had a lower NLL with 38 checkpoints than with 20 in all seven runs of docs/results.md.
	manyCheckpoints = 38
	fewCheckpoints  = 10
	tooFew          = 5
)

// Finding is one problem of a trajectory, in plain words.
type Finding struct {
	Serious bool   // members are hardly worth drawing; false for a mere remark
	Saw     string // the observation, with its number
	Means   string // its meaning for SWAG
	Do      string
}

func (f Finding) String() string { return f.Saw + ": " + f.Means + "; " + f.Do }

// Names returns the function that gives checkpoints their names in a verdict: those of their files. If two files have one
// name, the names begin with the files' folders.
func Names(p *swag.Posterior) func(checkpoint int) string {
	var names, long []string
	twice := false
	for _, c := range p.Checkpoints {
		name := path.Base(c.Path)
		twice = twice || slices.Contains(names, name)
		names, long = append(names, name), append(long, path.Join(path.Base(path.Dir(c.Path)), name))
	}
	if twice {
		names = long
	}
	return func(i int) string { return names[i] }
}

// OtherAverages is the advice where the average of other checkpoints may be better. Validation data show whether it is.
func OtherAverages() string {
	return setting.Compare.With(setting.Val.With("FILE")) + " shows whether the average of the last ones is better. If it is not, " +
		"train longer before the first checkpoint, or at a higher learning rate"
}

// Verdict returns the problems of the trajectory, worst first, or nil if it is sound. The function name returns the
// name of a checkpoint.
func (h Health) Verdict(name func(checkpoint int) string) []Finding {
	if h.Checkpoints < 2 {
		return nil
	}
	if found := h.differentRuns(name); found != nil {
		return append(found, h.poor()...)
	}
	found := append(h.elsewhere(), h.inDoubt(name)...)
	if h.comparable(found) {
		found = append(found, h.unsettled(name)...)
	}
	if h.Spread < leastSpread {
		found = append(found, Finding{true,
			fmt.Sprintf("the weights vary by %s of their size only", percent(h.Spread)),
			"members will predict as the mean does",
			"train the SWAG epochs at a higher constant learning rate"})
	}
	if h.Spread > usefulSpread {
		found = append(found, Finding{false,
			fmt.Sprintf("the weights vary by %s of their size", percent(h.Spread)),
			"members may be too far from the mean to predict well. From a third on, SWAG lost to SWA with a temperature in all our " +
				"runs, on clean data",
			"try smaller scales, or a lower learning rate"})
	}
	sound := len(found) == 0
	found = append(found, h.poor()...)
	if sound && h.Checkpoints >= tooFew && h.Effective > independent*float64(h.Checkpoints) {
		found = append(found, Finding{false,
			"the checkpoints are equally far from one another, in any order",
			"they may be of different runs that began at one network, and then their average may be good or bad",
			setting.Compare.String() + " shows that average, SWA, next to the ensemble of all of them"})
	}
	return found
}

// Last returns the number of checkpoints that are left if those on the way to the others are left out, as the verdict advises.
func (h Health) Last() int {
	name := strconv.Itoa
	if h.Start == 0 || h.differentRuns(name) != nil || !h.comparable(append(h.elsewhere(), h.inDoubt(name)...)) {
		return h.Checkpoints
	}
	return h.Checkpoints - h.approach()
}

// comparable reports whether early checkpoints can be compared with late ones. The set must be right first: found has what is wrong
// with it.
func (h Health) comparable(found []Finding) bool {
	return h.falls() || len(found) == 0 && h.Spread >= leastSpread
}

// approach returns the number of checkpoints on the way to the others, if there is a start.
func (h Health) approach() int { return max(h.Start, len(h.Outliers)) }

// differentRuns finds checkpoints that do not seem to come from one run.
func (h Health) differentRuns(name func(int) string) []Finding {
	saw, runs := "", float64(h.Checkpoints)
	switch n := len(h.Groups); {
	case n > 0:
		var sets []string
		for _, set := range h.Groups[:min(n, 4)] {
			sets = append(sets, fmt.Sprintf("%s and %d more", name(set[0]), len(set)-1))
		}
		saw, runs = fmt.Sprintf("the checkpoints fall into %d groups, far from one another (%s)", n, strings.Join(sets, "; ")), float64(n)
	case h.Restarts != nil:
		saw, runs = "training seems to begin anew at "+list(h.Restarts, name), float64(len(h.Restarts)+1)
	case h.Outliers == nil && h.Spread*math.Sqrt(runs/(runs-1)) > mostSpread && 2*h.Effective > runs:
		saw = fmt.Sprintf("the checkpoints have little in common: their weights vary by %s of their size", percent(h.Spread))
	default:
		return nil
	}
	means := "the checkpoints seem to be of different runs, which began at one network. The average of their weights may be good or bad"
	if h.Spread*math.Sqrt(runs/(runs-1)) > mostSpread { // as if there were very many runs
		means = "the checkpoints seem to be of different runs. SWA and SWAG are useless, because the average of such weights is no " +
			"trained network"
	}
	return []Finding{{true, saw, means,
		fmt.Sprintf("fit each run by itself, and give all posteriors to %s. Or take the checkpoints as a deep ensemble: %s",
			setting.Compare, setting.Line(setting.Sample.With(setting.Method.With("iterates"))))}}
}

// elsewhere finds a given mean that is far from the checkpoints.
func (h Health) elsewhere() []Finding {
	if h.Offset <= mostOffset {
		return nil
	}
	return []Finding{{h.Offset > 2*mostOffset,
		fmt.Sprintf("the given mean is %.1f times as far from the checkpoints' own mean as the checkpoints are", h.Offset),
		fmt.Sprintf("%s of the variance is this distance", percent(h.Offset*h.Offset/(1+h.Offset*h.Offset))),
		"take the average over the period of the checkpoints, from the same run, or leave out " + setting.Mean.String()}}
}

// falls reports whether the steps shrink, as those of a falling learning rate do. Steps of vanishing gradients shrink too.
func (h Health) falls() bool {
	return h.Checkpoints >= 8 && (h.Slowing < leastSlowing || h.Slowing < mostSlowing && h.Trend < steadyTrend)
}

// inDoubt finds checkpoints that are in the wrong place or do not belong to the trajectory.
func (h Health) inDoubt(name func(int) string) (found []Finding) {
	if len(h.Order) > 0 {
		f := Finding{Serious: true,
			Means: "the running mean and the last K deviations are those of another trajectory",
			Do:    "give the checkpoints in the order of training"}
		if m := len(h.Misplaced); m <= 3 && 4*m <= len(h.Order) {
			var places []string
			for _, t := range h.Misplaced {
				places = append(places, name(t)+" belongs "+h.place(t, name))
			}
			f.Saw = "going by their weights, not all checkpoints are in training order: " + strings.Join(places, ", ")
		} else {
			f.Saw = "the checkpoints are not in training order, which by their weights is " + list(h.Order, name) + ", or the reverse"
		}
		found = append(found, f)
	}
	// Outliers that are exactly the first checkpoints belong to an approach, which unsettled reports.
	n := len(h.Outliers)
	approach := n > 0 && h.Outliers[n-1] == n-1 && (h.Start > 0 || h.falls())
	if n > 0 && !approach {
		saw := list(h.Outliers, name) + " stands apart from the others"
		if n > 1 {
			saw = list(h.Outliers, name) + " stand apart from the others"
		}
		found = append(found, Finding{true, saw + ", more than four steps away",
			"the mean is pulled off and the variance is mostly this distance",
			"leave out what diverged, or is not of this run at this learning rate"})
	}
	return found
}

// place describes the place of checkpoint t in the more likely order.
func (h Health) place(t int, name func(int) string) string {
	for i, v := range h.Order {
		if v == t && i > 0 {
			return "after " + name(h.Order[i-1])
		}
	}
	return "before " + name(h.Order[1])
}

// unsettled finds trajectories that do not vary around one centre.
func (h Health) unsettled(name func(int) string) (found []Finding) {
	switch {
	case h.Start > 0:
		first := h.approach()
		found = append(found, Finding{true,
			fmt.Sprintf("%d of %d checkpoints, those before %s, are on the way to the others", first, h.Checkpoints, name(first)),
			"they pull the mean back and widen the variance",
			fmt.Sprintf("start at %s, with the last %d", name(first), h.Checkpoints-first)})
	case h.Checkpoints < 8: // too short for a judgement
	case h.falls():
		found = append(found, Finding{true,
			fmt.Sprintf("the steps shrink to %s of what they were: the learning rate fell, or the gradients vanished", percent(h.Slowing)),
			"the variance shows how training came to rest, not how uncertain the weights are. The last checkpoint is probably the best one",
			"go on from the last checkpoint for 20 epochs at a constant rate, a higher one if the rate was constant. Or use the last " +
				"one alone, with a temperature: give it to fit"})
	case h.Drift > mostDrift:
		found = append(found, Finding{true,
			fmt.Sprintf("the weights still drift: %s of their variance lies between the two halves", percent(h.Drift)),
			"the mean lies behind the end of training, and the variance is the way there",
			OtherAverages()})
	case h.Effective < leastEffective:
		do := setting.Compare.With(setting.Tune.String()) + " shows whether SWAG is better than SWA, and at which scale"
		if h.Checkpoints < manyCheckpoints {
			do = "collect for 40 epochs or more: 38 were better than 20 in all our runs. For SWA every second checkpoint was enough. " +
				"Then " + do
		}
		found = append(found, Finding{false,
			fmt.Sprintf("the %d checkpoints tell as much as %.1f unrelated ones", h.Checkpoints, h.Effective),
			"this is common at a constant learning rate, where the weights wander. It does not hurt SWA. The variance of SWAG grows " +
				"with the number of checkpoints", do})
	}
	return found
}

// poor finds variances that are known badly or not at all.
func (h Health) poor() (found []Finding) {
	lowRank := len(h.Spectrum) > 0 && h.LowRank < leastLowRank
	switch {
	case h.Checkpoints < fewCheckpoints:
		f := Finding{h.Checkpoints < tooFew,
			fmt.Sprintf("only %d checkpoints", h.Checkpoints),
			// the relative standard error of a variance from T normal values
			"variances are off by " + percent(math.Sqrt(2/float64(h.Checkpoints-1))) + " or so, even if they are independent",
			"collect 20 or more"}
		if lowRank {
			f.Means += ", and the low-rank part has only " + percent(h.LowRank) + " of them"
		}
		found = append(found, f)
	case lowRank:
		found = append(found, Finding{false,
			fmt.Sprintf("the low-rank part has only %s of the diagonal's variance", percent(h.LowRank)),
			"members vary less together than the checkpoints did",
			"keep more columns, or collect more checkpoints"})
	case h.LowRank > mostLowRank && h.Spread > wideSpread:
		found = append(found, Finding{false,
			fmt.Sprintf("the low-rank part has %s of the diagonal's variance", percent(h.LowRank)),
			"the last deviations from the running mean are larger than the others. Members vary more than the checkpoints did",
			"fit again with " + setting.Deviations.With("final") + ", or keep more columns (" + setting.Rank.String() + ")"})
	}
	if h.SubUlp > mostUnmoved {
		found = append(found, Finding{false,
			fmt.Sprintf("%s of the weights have a standard deviation below float32's resolution", percent(h.SubUlp)),
			"sampling cannot move them",
			"train at a higher learning rate, if they are not meant to rest"})
	}
	if h.Frozen > mostUnmoved {
		found = append(found, Finding{false,
			fmt.Sprintf("%s of the weights never moved", percent(h.Frozen)),
			"all members share them",
			"nothing, if they were frozen or not used on purpose"})
	}
	return found
}

// list returns the names of at most six checkpoints and the number of the others.
func list(some []int, name func(int) string) string {
	const most = 6
	var names []string
	for _, t := range some[:min(most, len(some))] {
		names = append(names, name(t))
	}
	if more := len(some) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

// percent formats a share with two digits.
func percent(share float64) string {
	p := 100 * share
	if p >= 10 {
		return fmt.Sprintf("%.0f %%", p)
	}
	p, _ = strconv.ParseFloat(fmt.Sprintf("%.1e", p), 64)
	return strconv.FormatFloat(p, 'g', -1, 64) + " %"
}
