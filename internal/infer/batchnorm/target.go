package batchnorm

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/weights"
)

// Target is what a look at target data found. It needs no labels.
type Target struct {
	// Examples were looked at: all, or stretches from all over the data, in the order of the data.
	Examples int `json:"looked_at"`
	// Moved is how far the first layer's means are from those of the source, in its standard deviations.
	Moved float64 `json:"moved"`
	// Changed is the share of the examples whose predicted class adapting changed. Confidence is the mean probability of the
	// predicted class before adapting and after. Both are 0 for a task without classes.
	Changed    float64    `json:"changed,omitempty"`
	Confidence [2]float64 `json:"confidence,omitzero"`
	// Sorted says that neighbours are more alike than the order of a shuffle explains.
	Sorted bool `json:"sorted,omitempty"`
	// OneClass is the share of Class among the predictions of the adapted network, if most are of one class and that is implausible.
	OneClass float64 `json:"one_class,omitempty"`
	// Skewed is the share of Class with statistics of the target alone, if that is above Usual, its usual share, by more than chance.
	Skewed float64 `json:"skewed,omitempty"`
	Usual  float64 `json:"usual,omitempty"`
	Class  int     `json:"class,omitempty"`
	// Single is the share of Class among the predictions before adapting, if they are nearly all of it, and the target is. Usual is its
	// usual share.
	Single float64 `json:"-"`
}

// Compared are a network with its statistics of training, the same adapted, and the same with statistics of the target alone.
type Compared struct{ Plain, Adapted, Alone infer.Model }

// Usual describes data that are not from the target: by examples, or by how often each class is predicted. Both may be nil. A class
// that is frequent there may be frequent in the target.
type Usual struct {
	Data   dataset.Dataset
	Shares []float64
}

const (
	lookedAt  = 512 // examples of a look
	stretches = 16  // of consecutive examples, if the data has more
)

// looked returns the examples of a look, in the order of the data.
func looked(n int) (rows []int) {
	if n <= lookedAt {
		return dataset.Order{}.Indices(n)
	}
	each := lookedAt / stretches
	for s := range stretches {
		first := s * (n - each) / (stretches - 1)
		for i := range each {
			rows = append(rows, first+i)
		}
	}
	return rows
}

// Look compares a network with its adapted selves on target data.
func Look(ctx context.Context, run infer.Run, m Compared, target dataset.Dataset, usual Usual) (*Target, error) {
	run, ctx = run.Quiet(), tally.For(ctx, tally.Check("target data"))
	data := dataset.Picked(target, looked(target.Len()))
	t := &Target{Examples: data.Len()}
	features, err := values(data)
	if err != nil {
		return nil, err
	}
	if !m.Plain.Large() && !m.Plain.Scoreless() {
		var sums [3]infer.Sums
		for k, model := range []infer.Model{m.Plain, m.Adapted, m.Alone} {
			if err := run.Predict(ctx, model, data, &sums[k]); err != nil {
				return nil, err
			}
		}
		features = append(features, outcomes(&sums[0])...)
		if is := distributions(&sums[0]); is != nil {
			shares, known, err := usual.shares(ctx, run, m.Plain, len(is[0]))
			if err != nil {
				return nil, err
			}
			t.compare(is, distributions(&sums[1]), distributions(&sums[2]), shares, known)
		}
	}
	t.Sorted = sorted(features)
	return t, nil
}

// values returns the mean and the standard deviation of each example's numbers.
func values(data dataset.Dataset) ([][]float64, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	means, spreads, v := make([]float64, data.Len()), make([]float64, data.Len()), size.Make(1)
	all := make([]float64, 0, size.Floats+size.Ints)
	for i := range data.Len() {
		if err := data.Read(v, i); err != nil {
			return nil, err
		}
		all = all[:0]
		for _, x := range v.Floats {
			all = append(all, float64(x))
		}
		for _, x := range v.Ints {
			all = append(all, float64(x))
		}
		means[i], spreads[i] = stat.PopMeanStdDev(all, nil)
	}
	return [][]float64{means, spreads}, nil
}

// outcomes returns the numbers of the outcomes as features. Many are added up to few, with random signs.
func outcomes(s *infer.Sums) (features [][]float64) {
	const few = 16
	width, rng := len(s.Outcome)/len(s.Entropy), rand.New(rand.NewPCG(targetStream, 0))
	n := min(width, few)
	for range n {
		features = append(features, make([]float64, len(s.Entropy)))
	}
	for c := range width {
		sign := float64(1 - 2*int(rng.Uint64()&1))
		for i := range s.Entropy {
			features[c%n][i] += float64(sign * s.Outcome[i*width+c])
		}
	}
	return append(features, s.Entropy)
}

// targetStream separates the uses of random numbers: "target" in ASCII.
const targetStream = 0x746172676574

// distributions returns the probabilities of classes of each example, or nil for a task without classes.
func distributions(s *infer.Sums) (rows [][]float64) {
	classes, width := s.Task.About().Classes, len(s.Outcome)/len(s.Entropy)
	for i := range s.Entropy {
		p := slices.Clone(s.Outcome[i*width:][:width])
		if width == 1 && classes == 2 {
			p = []float64{1 - p[0], p[0]}
		}
		sum := 0.0
		for c := range p {
			p[c] /= s.Weight
			sum += p[c]
		}
		if len(p) < 2 || len(p) != classes || math.Abs(sum-1) > 1e-3 {
			return nil
		}
		rows = append(rows, p)
	}
	return rows
}

// shares returns how often a network predicts each class on usual data, and at least 1/classes. known is false if nothing is known
// of such data.
func (u Usual) shares(ctx context.Context, run infer.Run, m infer.Model, classes int) (shares []float64, known bool, err error) {
	counted := u.Shares
	if u.Data != nil {
		var sums infer.Sums
		order := dataset.Order{Shuffle: true, Seed: targetStream, Limit: lookedAt / 2}
		if err := run.Predict(ctx, m, dataset.Subset(u.Data, order), &sums); err != nil {
			return nil, false, err
		}
		counted, _ = predicted(distributions(&sums))
	}
	shares = slices.Repeat([]float64{1 / float64(classes)}, classes)
	if len(counted) != classes {
		return shares, false, nil
	}
	for c := range shares {
		shares[c] = max(shares[c], counted[c])
	}
	return shares, true, nil
}

// predicted returns how often each class is predicted, and the mean probability of the predicted one.
func predicted(rows [][]float64) (shares []float64, confidence float64) {
	shares = make([]float64, len(rows[0]))
	for _, p := range rows {
		c := floats.MaxIdx(p)
		shares[c] += 1 / float64(len(rows))
		confidence += p[c] / float64(len(rows))
	}
	return shares, confidence
}

// Limits of a class that most predictions are of. mostOdds is how many times the odds of the class may be above those of usual
// data.
//
// Heavy damage drives a network to one class, too. With statistics of the target alone it predicts all classes again. A share that is
// then above the usual one by mostErrors standard errors tells of other shares of the classes: fixtures/adapt/skew.py chose it. Of
// one class alone such statistics leave no trace in some networks, so both rules are needed.
const (
	leastOneClass = 0.5
	mostOdds      = 4
	mostErrors    = 3.5
	// nearlyAll is the least share of a class that nearly all predictions are of. Damage may do that too, and then the class is not
	// frequent with statistics of the target alone: by leastErrors it must be. Of 30 damaged targets with all classes, no share was.
	nearlyAll, leastErrors = 0.9, 3
)

// compare compares predictions before adapting, after it, and with statistics of the target alone.
func (t *Target) compare(before, after, alone [][]float64, usual []float64, known bool) {
	_, t.Confidence[0] = predicted(before)
	shares, confidence := predicted(after)
	t.Confidence[1] = confidence
	for i := range before {
		if floats.MaxIdx(before[i]) != floats.MaxIdx(after[i]) {
			t.Changed += 1 / float64(len(before))
		}
	}
	own, _ := predicted(alone)
	excess := func(c int) float64 { return (own[c] - usual[c]) / math.Sqrt(usual[c]*(1-usual[c])/float64(len(alone))) }
	plain, _ := predicted(before)
	if c, ok := OneClass(plain, usual); ok && known && plain[c] >= nearlyAll && excess(c) > leastErrors {
		t.Single, t.Usual, t.Class = plain[c], usual[c], c
	}
	if c, ok := OneClass(shares, usual); ok {
		t.OneClass, t.Class = shares[c], c
		return
	}
	most := 0.0
	for c, u := range usual {
		if errors := excess(c); known && u < 1 && errors > max(most, mostErrors) {
			most, t.Skewed, t.Usual, t.Class = errors, own[c], u, c
		}
	}
}

// OneClass returns the class that most predictions are of, and whether its share is implausible, given the usual shares.
func OneClass(shares, usual []float64) (class int, implausible bool) {
	class = floats.MaxIdx(shares)
	of, most := shares[class], usual[class]
	return class, of > leastOneClass && of*(1-most) > mostOdds*most*(1-of)
}

// A look finds sorted data if a statistic of the order is above those of all permutations, and by leastExcess above their mean.
const (
	permutations = 499
	blocks       = 8
	leastExcess  = 1.5
)

// sorted reports whether neighbours resemble each other more than a shuffle explains. It is a permutation test of two statistics:
// the spread of the means of blocks, which finds drift, and the products of neighbours, which find short runs.
func sorted(features [][]float64) bool {
	rows := standardised(features)
	if len(rows) == 0 || len(rows[0]) == 0 {
		return false
	}
	rng := rand.New(rand.NewPCG(targetStream, 1))
	order := dataset.Order{}.Indices(len(rows))
	was := statistics(rows, order)
	var most, mean [2]float64
	for range permutations {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for k, v := range statistics(rows, order) {
			most[k], mean[k] = max(most[k], v), mean[k]+v/permutations
		}
	}
	for k := range was {
		if was[k] > most[k] && was[k] > leastExcess*math.Abs(mean[k]) {
			return true
		}
	}
	return false
}

// standardised returns the features of each example with mean 0 and variance 1. Constant ones are left out.
func standardised(features [][]float64) [][]float64 {
	var rows [][]float64
	for _, f := range features {
		mean, std := stat.PopMeanStdDev(f, nil)
		if !(std > 1e-9*math.Abs(mean)) || math.IsInf(std, 1) {
			continue
		}
		for i, v := range f {
			if len(rows) < len(f) {
				rows = append(rows, nil)
			}
			rows[i] = append(rows[i], (v-mean)/std)
		}
	}
	return rows
}

// statistics returns both statistics of an order.
func statistics(rows [][]float64, order []int) (of [2]float64) {
	n := len(order)
	for b := range blocks {
		first, end := b*n/blocks, (b+1)*n/blocks
		for c := range rows[0] {
			sum := 0.0
			for _, i := range order[first:end] {
				sum += rows[i][c]
			}
			of[0] += sum * sum / float64(max(1, end-first))
		}
	}
	for k := 1; k < n; k++ {
		for c, v := range rows[order[k]] {
			of[1] += v * rows[order[k-1]][c]
		}
	}
	return of
}

// Adaptation mixes statistics of target data, which need no labels, into those of a network: see [bnupdate.Plan.Mix].
type Adaptation struct {
	Target dataset.Dataset
	Weight float64
	Seed   uint64 // of the choice of examples, and of their order
}

// Bounds of target data. LeastTarget is the fewest examples whose statistics help: fixtures/adapt has the figures.
// mostTarget is how many a network sees. More change the statistics by less than chance does.
const (
	LeastTarget = 64
	mostTarget  = 1024
)

// DefaultWeight is the share of the target in the statistics: fixtures/adapt/README.md says how it was chosen.
const DefaultWeight = 0.2

// Examples returns the number of examples that a network sees.
func (a Adaptation) Examples() int { return min(mostTarget, a.Target.Len()) }

// Statistics returns the statistics of a network with the given weights, adapted from those of the source, and how far the
// target moves the first layer: see [bnupdate.Plan.Moved]. adapting is the network's [infer.Network.Adapting].
func (a Adaptation) Statistics(ctx context.Context, run infer.Run, adapting *infer.Network, parameters weights.Vector,
	source []float32) (mixed []float32, moved float64, err error) {
	order := dataset.Order{Shuffle: true, Seed: a.Seed, Limit: a.Examples()}
	r, err := Recompute(ctx, run, adapting, parameters, Training{Data: a.Target, Order: order, source: source})
	if err != nil {
		return nil, 0, err
	}
	plan := adapting.Passes.Plan
	return plan.Mix(source, r.Statistics, a.Weight), plan.Moved(source, r.Statistics), nil
}
