package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

const (
	standard        = 1 // place of the default in the settings and in the points
	resamples       = 1000
	resamplesStream = 0x7377656570 // "sweep": separates the resamples from other uses of a seed
)

// Choice is the setting with the lowest mean loss at its own temperature, with measures of how reliable the choice is. A
// scale that is too small gives overconfident probabilities. A temperature corrects that at no cost, so settings are not
// compared at T = 1.
type Choice struct {
	Setting
	// Temperature is fitted on all labels that may be used for the choice. NLL is the mean loss on them at this
	// temperature. Every setting has one fitted number, so the fits favour none.
	Temperature, NLL float64
	// Candidates is the number of settings to choose from. It excludes settings with stale statistics, which only
	// show the cost of skipping the update. Examples is the number of examples that choose. Of names those of a text.
	Candidates, Examples int
	Of                   string
	// Untried are the neighbours of the setting that the sweep did not try because of its limit: see [Sweep.Extend].
	// Without any the choice lies inside of the grid.
	Untried []Setting
	// Validated reports that validation data made the choice. Otherwise halves of the test data did, and Halves holds
	// the setting that each half chose.
	Validated bool
	Halves    [2]Setting
	// Gain is the loss of the chosen setting minus that of the default, each at its temperature, on images that took no
	// part in the choice and in the fits. OverSWA is the same minus that of SWA-Temp. The 95 % intervals are for new
	// images and other draws of as many members; negative is better.
	Gain, OverSWA chance.Interval
	// Share is the share of bootstrap resamples of the choosing images and of the members in which the setting is the
	// best. DefaultShare is that of the default.
	Share, DefaultShare float64
	// Few reports that there are too few members to call a setting better.
	Few bool
}

// Better reports whether the chosen setting beats the default by more than the chance of images and draws.
func (c *Choice) Better() bool { return c.Gain.High < 0 && !c.Few }

// String describes the choice and its basis.
func (c *Choice) String() string {
	at := ""
	if !math.IsNaN(c.Temperature) {
		at = " at T = " + task.ShortNumber(c.Temperature)
	}
	s := fmt.Sprintf("%v%s has the lowest NLL of %d settings on %s %s. It is the best in %s of bootstrap resamples.",
		c.Setting, at, c.Candidates, report.Thousands(c.Examples), cmp.Or(c.Of, "labelled examples"), report.Percent(c.Share, 0))
	if len(c.Untried) > 0 {
		s += fmt.Sprintf(" That is the edge of what was tried: %v was not.", c.Untried[0])
	}
	return s
}

// Row returns the choice for JSON.
func (c *Choice) Row() study.Row {
	on, halves, untried := "validation", []study.Row{}, []string{}
	if !c.Validated {
		on = "halves"
		for _, h := range c.Halves {
			halves = append(halves, settingRow(h))
		}
	}
	for _, u := range c.Untried {
		untried = append(untried, u.String())
	}
	return append(settingRow(c.Setting), study.Fields("temperature", c.Temperature, "nll", c.NLL, "of_settings", c.Candidates,
		"examples", c.Examples, "inside", len(untried) == 0, "untried", untried, "chosen_on", on, "halves", halves,
		"nll_difference_95", study.Interval("mean", c.Gain), "nll_difference_swa_95", study.Interval("mean", c.OverSWA),
		"better_than_default", c.Better(), "bootstrap_share", c.Share, "bootstrap_share_default", c.DefaultShare)...)
}

// Tune chooses among the settings on the validation data, as [Sweep.Run] does with the same data. Test data is not used
// and may be nil.
func (s *Sweep) Tune(ctx context.Context, run infer.Run) (*Choice, error) {
	on := s.tuning()
	r := &Result{Sweep: &on}
	if err := r.explore(ctx, run, on.Members); err != nil {
		return nil, err
	}
	return &r.Choice, nil
}

// tuning returns the sweep without test data.
func (s *Sweep) tuning() Sweep {
	on := *s
	on.Test, on.Validation, on.tunes = s.Validation, nil, true
	return on
}

// TuneImages returns the number of images that Tune sends through networks, without those of extensions.
func (s *Sweep) TuneImages() int64 {
	on := s.tuning()
	return on.Images(cmp.Or(on.Members, ensemble.DefaultMembers))
}

// explore tries the settings with recomputed statistics and chooses one. While the choice has untried neighbours, it
// tries these too, at most Extend times.
func (r *Result) explore(ctx context.Context, run infer.Run, members int) error {
	next, _ := r.settings()
	for round := 0; ; round++ {
		for _, set := range next {
			p, err := r.try(ctx, run, set, members)
			if err != nil {
				return err
			}
			if p.Default {
				members = p.Members
			}
		}
		r.choose()
		next = r.neighbours()
		if len(next) == 0 || round == r.Extend {
			r.Choice.Untried = next
			return ctx.Err()
		}
		more := r.images(next, members)
		r.total += more
		if r.Announce != nil {
			r.Announce(r.Choice.Setting, next, more)
		}
		if r.Resize != nil {
			r.Resize(r.total)
		}
	}
}

// neighbours returns the untried settings next to the choice: the same with the next smaller and larger scale, and with
// the next smaller and larger rank. Beyond the largest scale is its double. Below the smallest is SWA, which is always
// tried.
func (r *Result) neighbours() (list []Setting) {
	at := r.Choice.Setting
	if at.SWA() {
		return nil // its neighbours are the smallest scales
	}
	var scales []float64
	ranks := append([]int{0, r.Sweep.Default().Rank}, r.Ranks...)
	for _, p := range r.Points {
		scales = append(scales, p.Scale)
	}
	near := []Setting{at, at, at, at}
	near[0].Scale, near[1].Scale = around(scales, at.Scale, 0, 2*at.Scale)
	near[2].Rank, near[3].Rank = around(ranks, at.Rank, at.Rank, at.Rank)
	for _, set := range near {
		set.Covariance = swag.LowRankPlusDiagonal // unless the rank is 0
		if set = set.normal(); !slices.ContainsFunc(r.Points, func(p Point) bool { return p.Setting == set }) {
			list = append(list, set)
		}
	}
	return list
}

// around returns the largest of the values below x and the smallest above x, or low and high if there are none.
func around[N int | float64](values []N, x, low, high N) (below, above N) {
	slices.Sort(values)
	below, above = low, high
	for _, v := range values {
		if v < x {
			below = v
		}
	}
	for _, v := range slices.Backward(values) {
		if v > x {
			above = v
		}
	}
	return below, above
}

// choose sets the choice among the points with recomputed statistics.
func (r *Result) choose() {
	all := dataset.Order{}.Indices(len(r.Points[0].choosing.own))
	best := r.lowest(all, func(p *Point) []float64 { return p.choosing.own })
	p := &r.Points[best]
	shares := r.shares()
	c := Choice{
		Setting:      p.Setting,
		Temperature:  p.Temperature,
		NLL:          p.NLL,
		Candidates:   len(r.Points),
		Examples:     len(all),
		Validated:    r.Validation != nil,
		Share:        shares[best],
		DefaultShare: shares[standard],
		Few:          r.Points[standard].Members < chance.LeastMembers(r.Antithetic),
	}
	if cut, ok := dataset.CutOf(cmp.Or(r.Validation, r.Test)); ok {
		c.Of = map[bool]string{true: "blocks of the text", false: "documents"}[cut.Documents == nil]
	}
	chosen := p.judged
	if !c.Validated {
		chosen = losses{own: make([]float64, len(all)), without: make([][]float64, len(r.weights))}
		for g := range chosen.without {
			chosen.without[g] = make([]float64, len(all))
		}
		for k, rows := range r.folds {
			// Each half chooses by its own labels alone, and the other half judges.
			other := &r.Points[r.lowest(r.folds[1-k], func(p *Point) []float64 { return p.within })]
			c.Halves[1-k] = other.Setting
			for _, i := range rows {
				chosen.own[i] = other.judged.own[i]
				for g := range chosen.without {
					chosen.without[g][i] = other.judged.group(g)[i]
				}
			}
		}
	}
	c.Gain, c.OverSWA = r.difference(chosen, r.Points[standard].judged), r.difference(chosen, r.Points[0].judged)
	r.Choice = c
}

// lowest returns the place of the point with the lowest mean loss over some images. In a tie the default wins, then the
// first.
func (r *Result) lowest(rows []int, of func(*Point) []float64) int {
	best, value := standard, meanOf(of(&r.Points[standard]), rows)
	for i := range r.Points {
		if m := meanOf(of(&r.Points[i]), rows); m < value {
			best, value = i, m
		}
	}
	return best
}

// shares returns the share of resamples in which each point is the best. A resample draws images and members with
// replacement. The effect of the members is that of first order: with the influences D of [chance.NewDraws] and a
// member drawn c_g times, the mean loss changes by −Σ (c_g−1)·D̄_g/G.
func (r *Result) shares() []float64 {
	rng := rand.New(rand.NewPCG(r.Seed, resamplesStream))
	groups, n := len(r.weights), len(r.Points[0].choosing.own)
	wins, rows, drawn := make([]float64, len(r.Points)), make([]int, n), make([]float64, groups)
	for range resamples {
		for i := range rows {
			rows[i] = rng.IntN(n)
		}
		for g := range drawn {
			drawn[g] = -1
		}
		for range groups {
			drawn[rng.IntN(groups)]++
		}
		best, least := 0, 0.0
		for i := range r.Points {
			p := &r.Points[i]
			value := meanOf(p.choosing.own, rows)
			for g, d := range p.influence {
				value -= drawn[g] * d / float64(groups)
			}
			if i == 0 || value < least || value == least && i == standard {
				best, least = i, value
			}
		}
		wins[best] += 1. / resamples
	}
	return wins
}

// losses are the losses of an average by image.
type losses struct {
	own     []float64
	without [][]float64 // of the averages without one group of members, by group and image; nil for a single network
}

// group returns the losses without group g.
func (l losses) group(g int) []float64 {
	if l.without == nil {
		return l.own
	}
	return l.without[g]
}

// influence returns the mean influence of each group on the loss: see [chance.NewDraws].
func (l losses) influence(weights []float64) (out []float64) {
	total := floats.Sum(weights)
	for g, without := range l.without {
		d := (total/weights[g] - 1) * (stat.Mean(without, nil) - stat.Mean(l.own, nil))
		if math.IsNaN(d) || math.IsInf(d, 0) { // an infinite loss has no influence
			return nil
		}
		out = append(out, d)
	}
	return out
}

// difference returns the mean of a−b, with its 95 % interval for new images and other draws. All settings share their
// draws, so what these have in common cancels. The temperatures are fitted on the same labels, and their errors nearly
// cancel too.
func (r *Result) difference(a, b losses) chance.Interval {
	own := minus(a.own, b.own)
	d := chance.NewDifference(own, 0)
	if a.without == nil && b.without == nil || d.Low == d.High {
		return d.Interval
	}
	var without [][]float64
	for g := range r.weights {
		without = append(without, minus(a.group(g), b.group(g)))
	}
	return d.OtherDraws(chance.NewDraws(own, without, r.weights))
}

func minus(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }

func meanOf(values []float64, rows []int) float64 {
	sum := 0.0
	for _, i := range rows {
		sum += values[i]
	}
	return sum / float64(len(rows))
}
