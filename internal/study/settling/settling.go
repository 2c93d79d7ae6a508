// Package settling chooses a stopping rule for an ensemble on validation data: how soon an example needs no more
// members. See [ensemble.Stopping].
//
// # Invariants
//
// All members run over the validation data once. Each candidate rule is then judged from their predictions. The
// corrections of an example are fitted without it. Labels never change the choice: they show what it costs.
package settling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Usual is the guarantee by default.
var Usual = ensemble.StoppingGuarantee{NLL: 0.0005, Decisions: 0.999}

const (
	// standardErrors is the distance from another decision that a settled example must have. On MNIST and CIFAR-10 a
	// distance of 3 leaves at most 0.04 % of decisions changed, and costs less than 0.2 members.
	standardErrors = 3
	// Candidates for the tolerance are largest·step^k, down to least, in nats.
	largest, least, step = 0.1, 1e-10, 1.3
	folds                = 5
	// A correction needs this many settled examples, and this share of all. Otherwise it joins the next one.
	stageExamples, stageShare = 50, 0.02
	// most is the memory for the members' outcomes, in bytes. With more examples, some are left out. It decides the rule, so
	// it must not depend on the machine or on a limit.
	most = 512 << 20
)

// Study chooses a rule.
type Study struct {
	Scoring   ensemble.Scoring // of the validation data; its labels are used if all examples have one
	Guarantee ensemble.StoppingGuarantee
	Data      string // name of the data
	Seed      uint64
}

// Result is a rule with its alternatives.
type Result struct {
	Chosen *ensemble.Stopping
	Curve  []ensemble.Stopping // from the largest tolerance to the smallest
	all    int                 // members
	Used   int                 // examples
	Of     int
}

// ErrTooFew is the error for an ensemble with too few members to stop early.
var ErrTooFew = fmt.Errorf("too few members: nothing is checked before member %d, so at least 5 are needed", ensemble.LeastMembers)

var (
	// ErrBroken is the error for a guarantee that no candidate keeps.
	ErrBroken = errors.New("every rule changes more than the guarantee allows")
	// ErrNone is the error where all candidates run all members.
	ErrNone = errors.New("the members differ so much that no example can skip any")
)

// seen is the members' predictions for the validation data. Examples without a result are left out.
type seen struct {
	task      task.Settling
	ensemble  *ensemble.Ensemble
	labels    target.Target // of the examples; none if some have none
	threshold float64       // decides on calibrated probabilities
	seed      uint64
	members   [][]float32 // each member's outcome for each example, S×Width; until look
	entropies [][]float64
	order     []int
	checks    []int
	weights   [][]float64            // see [ensemble.Stopping]
	expected  []ensemble.Expectation // likewise
	full      []task.Average         // over all members, by example
	early     [][]task.Average       // the averages so far, by check and example
	spread    [][]float64            // the numbers of [task.Settling]
	doubt     [][]float64
	errors    [][]float64
	nats      [][]float64 // the expected increase of the NLL
	before    []float64   // loss of each example with all members; nil without labels
}

// Run runs all members over the data, and chooses the largest tolerance that keeps the guarantee.
func (s *Study) Run(ctx context.Context, run infer.Run) (*Result, error) {
	x, err := s.see(ctx, run)
	if err != nil {
		return nil, err
	}
	n := len(x.members)
	if n < 2*folds {
		return nil, fmt.Errorf("%s: %s, want at least %d", s.Data, report.Plural(n, "example"), 2*folds)
	}
	x.look()
	r, err := x.choose(s.Guarantee, s.Data)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.Scoring.Ensemble.Path, err)
	}
	r.Used, r.Of = n, s.Scoring.Data.Len()
	return r, nil
}

// see runs all members over the data.
func (s *Study) see(ctx context.Context, run infer.Run) (*seen, error) {
	job := s.Scoring
	of := job.Ensemble
	if len(of.StoppingChecks()) == 0 {
		return nil, fmt.Errorf("%s: %w", of.Path, ErrTooFew)
	}
	job.Choosing, job.Want.Members = true, 1
	scorer, err := ensemble.NewScorer(ctx, run.Engine, job)
	if err != nil {
		return nil, err
	}
	if task.Missing(scorer.Task()) != nil {
		return nil, fmt.Errorf("%s: nothing says how far targets are from the means, so no likelihood says when a mean is good enough",
			of.Path)
	}
	x := &seen{task: scorer.Task().(task.Settling), ensemble: of, seed: s.Seed, threshold: scorer.Threshold()}
	width, every := x.task.About().Width, 1
	for 4*job.Data.Len()/every*of.Members()*width > most {
		every++
	}
	var rows []int // of the data
	err = scorer.Run(ctx, 0, run.Progress, func(c *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err
		}
		for i := range c.Len {
			if at := c.First + i; at%every == 0 && c.Errs[i] == nil {
				rows = append(rows, at)
				x.members = append(x.members, slices.Clone(c.Members[i*of.Members()*width:][:of.Members()*width]))
				x.entropies = append(x.entropies, slices.Clone(c.Entropies[i*of.Members():][:of.Members()]))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.known(scorer.Labels(), rows)
	return x, nil
}

// look orders the members, weighs them at each check, and predicts how much the NLL of each example increases if it stops there. All
// examples share the order. The weights of an example are fitted without it, and so is the prediction, to averages of the other
// examples. look frees the outcomes of each member.
func (x *seen) look() {
	x.full = make([]task.Average, len(x.members))
	all := x.rows()
	of := x.units(all)
	x.order, x.checks = of.members(of.order()), x.ensemble.StoppingChecks()
	x.weights = of.weights(x.order, x.checks)
	x.make()
	split := calibrate.Folds(len(all), folds, x.seed)
	weigh := func(rows []int) ([][]float64, error) { return x.units(rows).weights(x.order, x.checks), nil }
	calibrate.CrossFit(split, weigh, x.run)
	x.members, x.entropies = nil, nil
	predict := func(rows []int) ([]ensemble.Expectation, error) { return x.expect(rows), nil }
	x.expected, _ = predict(all)
	calibrate.CrossFit(split, predict, x.predict)
}

// make allocates the averages and numbers of each example at each check.
func (x *seen) make() {
	n := len(x.full)
	x.early = make([][]task.Average, len(x.checks))
	for k := range x.checks {
		x.early[k] = make([]task.Average, n)
	}
	for _, of := range []*[][]float64{&x.spread, &x.doubt, &x.errors, &x.nats} {
		*of = make([][]float64, len(x.checks))
		for k := range *of {
			(*of)[k] = make([]float64, n)
		}
	}
}

// outcomesOf returns the outcomes of the members for an example.
func (x *seen) outcomesOf(i int) (outcomes [][]float64) {
	for kept := range slices.Chunk(x.members[i], x.task.About().Width) {
		outcome := make([]float64, len(kept))
		task.Widen(x.task, outcome, kept)
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// run averages the members in their order with the given weights at each check, for some examples.
func (x *seen) run(weights [][]float64, rows []int) {
	all := len(x.order)
	own, threshold := x.ensemble.Weights(), x.ensemble.RawThreshold(x.task, x.threshold)
	for _, i := range rows {
		outcomes := x.outcomesOf(i)
		running := infer.NewRunning(x.task, &infer.Settling{Checks: x.checks, Unit: x.ensemble.Unit(), Weights: weights})
		for ran, k := range x.order {
			running.Add(outcomes[k], x.entropies[i][k], own[k]*float64(all))
			if at, check := slices.BinarySearch(x.checks, ran+1); check {
				a, variance := running.Average(all)
				x.early[at][i], x.doubt[at][i] = a, task.Doubt(x.task, a.Outcome)
				x.spread[at][i], x.errors[at][i] = x.task.Unsettled(a.Outcome, variance, threshold)
			}
		}
		x.full[i], _ = running.Average(all)
	}
}

// mostExpected is the largest increase of the NLL in a fit, in nats. One of an impossible label is infinite.
const mostExpected = 100

// expect fits the expected increase of the NLL at each check to the increases of the given examples: the logarithm by least
// squares, and then the mean.
func (x *seen) expect(rows []int) (of []ensemble.Expectation) {
	before := x.outcomes(rows, func(i int) []float64 { return x.full[i].Outcome })
	width := x.task.About().Width
	for k := range x.checks {
		stage := x.fit(slices.Repeat([]int{k}, len(x.full)), dataset.Order{}.Indices(len(x.checks)), rows)[k]
		after := x.outcomes(rows, func(i int) []float64 { return x.completed(i, k, stage) })
		of = append(of, ensemble.Expectation{})
		e := &of[k]
		system, right, increase, predicted := mat.NewSymDense(3, nil), mat.NewVecDense(3, nil), 0.0, 0.0
		for at, i := range rows {
			nats := min(task.Increase(x.task, before[at*width:][:width], after[at*width:][:width]), mostExpected)
			increase += nats
			row := mat.NewVecDense(3, []float64{1, ensemble.Logarithm(x.spread[k][i]), ensemble.Logarithm(x.doubt[k][i])})
			system.SymRankOne(system, 1, row)
			right.AddScaledVec(right, ensemble.Logarithm(nats), row)
		}
		for c := range 3 {
			system.SetSym(c, c, system.At(c, c)+1e-3) // a number that is the same for all examples has no slope
		}
		var solved mat.VecDense
		if err := solved.SolveVec(system, right); err == nil {
			*e = ensemble.Expectation{Level: solved.AtVec(0), Spread: solved.AtVec(1), Doubt: solved.AtVec(2)}
		}
		for _, i := range rows {
			predicted += e.Increase(x.spread[k][i], x.doubt[k][i])
		}
		if increase > 0 {
			e.Level += math.Log(increase / predicted)
		}
	}
	return of
}

// predict stores the expectations of some examples.
func (x *seen) predict(expected []ensemble.Expectation, rows []int) {
	for k, e := range expected {
		for _, i := range rows {
			x.nats[k][i] = e.Increase(x.spread[k][i], x.doubt[k][i])
		}
	}
}

// completed returns the outcome of an example that stops at a check.
func (x *seen) completed(i, check int, stage task.Stage) []float64 {
	early := x.early[check][i]
	a := task.Average{Outcome: slices.Clone(early.Outcome), Entropy: early.Entropy}
	x.task.Complete(&a, stage)
	return a.Outcome
}

// known sets the labels if every example has one.
func (x *seen) known(labels target.Target, rows []int) {
	if !labels.None() && !slices.ContainsFunc(rows, func(i int) bool { return !labels.At(i).Known() }) {
		x.labels = labels.Pick(rows)
	}
}

// choose judges all candidates, and takes the one with the largest tolerance for which it and all smaller ones keep the
// guarantee. The bound of the divergence holds for the chosen rule too, because the search from the smallest tolerance on ends
// at the first failure (fixed-sequence testing; Angelopoulos et al., "Learn then test", 2021).
func (x *seen) choose(guarantee ensemble.StoppingGuarantee, data string) (*Result, error) {
	before := x.outcomes(x.rows(), func(i int) []float64 { return x.full[i].Outcome })
	if !x.labels.None() {
		losses, err := x.losses(before)
		if err != nil {
			return nil, err
		}
		x.before = losses
	}
	r := &Result{all: x.ensemble.Members()}
	for tolerance := largest; tolerance > least; tolerance /= step {
		rule := ensemble.Stopping{
			Tolerance: tolerance,
			Errors:    standardErrors,
			Order:     x.order,
			Checks:    x.checks,
			Weights:   x.weights,
			Expected:  x.expected,
			Guarantee: guarantee,
		}
		if err := x.judge(&rule, before); err != nil {
			return nil, err
		}
		rule.Cost.Data = data
		if last := len(r.Curve) - 1; last >= 0 && r.Curve[last].Cost.Members == rule.Cost.Members {
			continue // the same examples stop
		}
		if rule.Cost.Members > float64(r.all)-0.01 {
			break
		}
		r.Curve = append(r.Curve, rule)
	}
	if len(r.Curve) == 0 {
		return nil, ErrNone
	}
	if r.Chosen = kept(r.Curve); r.Chosen == nil {
		return r, ErrBroken
	}
	return r, nil
}

// kept returns the last rule before the first that breaks its guarantee, from the end of the curve on, or nil.
func kept(curve []ensemble.Stopping) (chosen *ensemble.Stopping) {
	for i := len(curve) - 1; i >= 0 && keeps(&curve[i]); i-- {
		chosen = &curve[i]
	}
	return chosen
}

// keeps reports whether a rule keeps its guarantee: the divergence with a confidence of 95 %, the decisions as an estimate.
func keeps(rule *ensemble.Stopping) bool {
	c, p := rule.Cost, rule.Guarantee
	return c.DivergenceMost <= p.NLL && float64(c.Changed) <= (1-p.Decisions)*float64(c.Examples)
}

// rows lists all examples.
func (x *seen) rows() []int { return dataset.Order{}.Indices(len(x.full)) }

// outcomes returns calibrated outcomes of some examples, n×Width.
func (x *seen) outcomes(rows []int, of func(i int) []float64) []float64 {
	var all []float64
	for _, i := range rows {
		at := len(all)
		all = append(all, of(i)...)
		x.ensemble.Calibrated(x.task, all[at:])
	}
	return all
}

func (x *seen) losses(outcomes []float64) ([]float64, error) {
	losses, err := task.Losses(x.task, outcomes, x.labels, task.EvaluateOptions{Threshold: x.threshold})
	if err != nil {
		return nil, err
	}
	return losses[0].Values, nil
}

// judge fits the stages of a rule, and sets its cost.
func (x *seen) judge(rule *ensemble.Stopping, before []float64) error {
	n, stops := len(x.full), append(slices.Clone(x.checks), x.ensemble.Members())
	at := make([]int, n) // the check at which an example stops, or len(checks)
	for i := range at {
		for at[i] < len(x.checks) && !(x.nats[at[i]][i] <= rule.Tolerance && x.errors[at[i]][i] >= rule.Errors) {
			at[i]++
		}
		rule.Cost.Members += float64(stops[at[i]]) / float64(n)
	}
	stages := x.stages(at)
	fit := func(rows []int) ([]task.Stage, error) { return x.fit(at, stages, rows), nil }
	rule.Stages, _ = fit(x.rows())
	matched := make([][]float64, n)
	calibrate.CrossFit(calibrate.Folds(n, folds, x.seed), fit, func(fitted []task.Stage, rows []int) {
		for _, i := range rows {
			if matched[i] = x.full[i].Outcome; at[i] < len(x.checks) {
				matched[i] = x.completed(i, at[i], fitted[at[i]])
			}
		}
	})
	after := x.outcomes(x.rows(), func(i int) []float64 { return matched[i] })
	width := x.task.About().Width
	rule.Cost.Examples = n
	for i := range n {
		if x.task.Changed(after[i*width:][:width], before[i*width:][:width], x.threshold) {
			rule.Cost.Changed++
		}
	}
	if x.task.About().Classes == 0 {
		rule.Cost.Changed = -1
	}
	divergences := make([]float64, n)
	for i := range divergences {
		divergences[i] = task.Increase(x.task, before[i*width:][:width], after[i*width:][:width])
	}
	rule.Cost.Divergence, rule.Cost.DivergenceMost = stat.Mean(divergences, nil), chance.MostMean(divergences)
	if x.before == nil {
		return nil
	}
	losses, err := x.losses(after)
	if err != nil {
		return err
	}
	for i, loss := range losses {
		if losses[i] = loss - x.before[i]; loss == x.before[i] { // also if both are infinite
			losses[i] = 0
		}
	}
	rule.Cost.Labelled, rule.Cost.NLL, rule.Cost.NLLMost = true, stat.Mean(losses, nil), chance.MostMean(losses)
	return nil
}

// stages assigns a group to each check, so that every group has enough examples that stop in it.
func (x *seen) stages(at []int) (group []int) {
	count := make([]int, len(x.checks)+1)
	for _, k := range at {
		count[k]++
	}
	enough := max(stageExamples, int(stageShare*float64(len(at))))
	groups, have := 0, 0
	for k := range x.checks {
		group = append(group, groups)
		if have += count[k]; have >= enough {
			groups, have = groups+1, 0
		}
	}
	for k := range group { // the last examples join the group before
		if have < enough && groups > 0 {
			group[k] = min(group[k], groups-1)
		}
	}
	return group
}

// fit returns a stage for each check, from the given examples.
func (x *seen) fit(at, group, rows []int) []task.Stage {
	few, all := make([][]task.Average, len(group)), make([][]task.Average, len(group))
	for _, i := range rows {
		if k := at[i]; k < len(group) {
			g := group[k]
			few[g], all[g] = append(few[g], x.early[k][i]), append(all[g], x.full[i])
		}
	}
	stages := make([]task.Stage, len(group))
	for k, g := range group {
		switch {
		case k > 0 && g == group[k-1]:
			stages[k] = stages[k-1]
		case len(few[g]) < stageExamples/2:
			stages[k] = task.NoStage
		default:
			stages[k] = x.task.Match(few[g], all[g])
		}
	}
	return stages
}
