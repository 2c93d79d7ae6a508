// Package rounding measures how a precision below float32 changes an ensemble's predictions, compared with the Monte
// Carlo error of the ensemble itself.
//
// # Concurrency
//
// Functions use as many goroutines as the engine has workers.
package rounding

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// fewest is the number of members that a Change is measured on, if there are as many. leastExamples is the number of
// examples that tell enough. share is the largest acceptable share of the Monte Carlo error.
const (
	fewest        = 4
	leastExamples = 16
	share         = 0.2
)

// costs is the part of a job's runs that may measure whether a lower precision suits: one in so many.
const costs = 10

// Affordable returns the number of runs that may measure a precision before a job of so many runs.
func Affordable(runs int) int { return runs / costs }

// Pays returns the number of future runs of one network on one example above which a lower precision saves more than it
// costs. Measuring its effect costs time.
func Pays() int { return costs * 2 * fewest * leastExamples }

// A Change is how a precision changes an ensemble's averaged probabilities, measured on some members and examples. It
// also holds the Monte Carlo error, which the finite number of drawn members causes. Mean, Largest and RMS are of the
// absolute changes over examples and classes.
type Change struct {
	Provider  string `json:"provider,omitempty"`   // made the predictions, compared with its own float32
	BatchNorm string `json:"batch_norm,omitempty"` // computed batch-norm statistics, compared with float32
	Examples  int    `json:"examples"`
	Members   int    `json:"members"` // members that were run
	Of        int    `json:"of"`      // members of the whole ensemble
	// Unusable examples could not be read or have no usable scores in float32. They are left out. Lost examples have
	// no usable scores in the lower precision only.
	Unusable int     `json:"unusable,omitempty"`
	Lost     int     `json:"lost,omitempty"`
	Mean     float64 `json:"mean"`
	Largest  float64 `json:"largest"`
	RMS      float64 `json:"rms"`
	// NLL is the change of the NLL, nil without labels.
	NLL *float64 `json:"nll,omitempty"`
	// Amplified is the largest change on the CPU if each weight moves by one rounding of float32. It is measured if a GPU
	// changes more than most networks explain.
	Amplified float64 `json:"amplified,omitempty"`
	// MonteCarlo is the root mean square of the standard error of the probabilities' average over all members. It is
	// 0 if there is only one member of each kind.
	MonteCarlo float64 `json:"monte_carlo"`
	// Seconds is the time of the last member in both precisions, the exact one first. Shaders were compiled before. A GPU
	// works beside the processor, so no time is taken unless [Options].Timed asks for it.
	Seconds [2]float64       `json:"seconds,omitzero"`
	took    [3]time.Duration // of the whole measurement, and of each engine
	// CPUNodes counts the nodes of all graphs so far that the provider left to the CPU's, by operator.
	CPUNodes map[string]int `json:"cpu_nodes,omitempty"`
	// Used is the precision that was used in the end. Insisted says that the user demanded it in spite of an
	// [Change.Objection].
	Used     string `json:"used"`
	Insisted bool   `json:"insisted,omitempty"`
}

// OnGPU reports whether a GPU's float32 is compared with the CPU's.
func (c *Change) OnGPU() bool {
	return c.Used == ort.F32 && (c.Provider+c.BatchNorm) != "" && c.gpu() != ""
}

// gpu returns the provider if it is a GPU's.
func (c *Change) gpu() string {
	for _, p := range []string{c.Provider, c.BatchNorm} {
		if name, _, _ := strings.Cut(p, " "); (ort.Provider{Name: name}).GPU() {
			return p
		}
	}
	return ""
}

// farFromCPU is the largest difference of a probability between a GPU's float32 and the CPU's that sums in another order
// explain in most networks. On lavapipe it was at most 5e-7. TensorFloat-32 makes 1e-3. A deep network may amplify
// rounding: an untrained ResNet-50 changed by 2.7e-4 on an H100. So a larger change is far only if it is also more than
// closeToCPU of the Monte Carlo error, and more than amplified times what one rounding of each weight changes on the CPU.
const farFromCPU, closeToCPU, amplified = 1e-4, 0.02, 30

// GPUExamples is the number of examples on which a GPU is compared with the CPU. Wrong kernels show on few: see
// TestPower. ChoiceExamples is their number if a precision of the GPU is chosen.
const GPUExamples, ChoiceExamples = leastExamples, 64

// Objection returns the reason against the provider and its precision, or "". For a precision below float32 it is a
// change of more than a fifth of the Monte Carlo error. For a GPU it is a change that rounding does not explain.
// An unknown change is a reason too.
func (c *Change) Objection() string {
	what := cmp.Or(c.Used, ort.BF16)
	if c.OnGPU() {
		what = c.gpu()
	}
	switch {
	case c.Lost > 0:
		return fmt.Sprintf("%s leaves %d of %d examples without usable scores", what, c.Lost, c.Lost+c.Examples)
	case c.Examples+c.Unusable == 0:
		return fmt.Sprintf("to measure what %s changes takes more than a part in %d of the work", what, costs)
	case c.Examples == 0:
		return "no example tells what " + what + " changes"
	case c.isFar():
		return fmt.Sprintf("%s changes a probability by %.2g, and rounding explains at most %.0e", what, c.Largest,
			max(farFromCPU, amplified*c.Amplified))
	case c.OnGPU():
		return ""
	case c.RMS > share*c.MonteCarlo:
		return what + " changes more than a fifth of the Monte Carlo error"
	}
	return ""
}

// isFar reports whether rounding does not explain what a GPU changes in float32.
func (c *Change) isFar() bool {
	return c.OnGPU() && !(c.Largest <= max(farFromCPU, amplified*c.Amplified)) && !(c.RMS <= closeToCPU*c.MonteCarlo)
}

// String describes the change in one line.
func (c *Change) String() string {
	what := c.Provider
	switch {
	case what == "":
		what = "batch norm by " + c.BatchNorm
	case c.BatchNorm != "":
		what += ", batch norm too,"
	}
	against := ort.F32
	if c.gpu() != "" {
		against = ort.Provider{}.String()
	}
	s := fmt.Sprintf("%s against %s, %d of %d members on %d examples: ", what, against, c.Members, c.Of, c.Examples)
	if left := c.Unusable + c.Lost; left > 0 {
		s += fmt.Sprintf("%d more without usable scores; ", left)
	}
	if c.Examples == 0 {
		return s + "nothing is known"
	}
	s += fmt.Sprintf("probabilities change by %.2g on average, by %.2g at most", c.Mean, c.Largest)
	if c.NLL != nil {
		s += fmt.Sprintf(", NLL by %+.1g", *c.NLL)
	}
	if c.MonteCarlo == 0 {
		return s + "; too few members tell no Monte Carlo error"
	}
	return s + fmt.Sprintf("; in root mean square by %.2g, %.2g %% of the Monte Carlo error of %d members, %.2g", c.RMS,
		100*c.RMS/c.MonteCarlo, c.Of, c.MonteCarlo)
}

// Took says how long the measurement took.
func (c *Change) Took() string {
	sentence := fmt.Sprintf("the comparison took %.2f s: float32 %.2f s, %s %.2f s", c.took[0].Seconds(), c.took[1].Seconds(), c.Used,
		c.took[2].Seconds())
	if c.gpu() != "" {
		sentence += ", side by side"
	}
	return sentence
}

// Options say how a Change is measured.
type Options struct {
	Most       int  // examples at most; 0 stands for [probe.Examples]
	Antithetic bool // members come in pairs that are not independent
	// Timed asks for the time of the last member. The engines then predict one after the other with it, on as many examples
	// as a batch has.
	Timed bool
	// SkipErrors leaves out an example that has no usable scores, like [infer.Options]. Otherwise such an example
	// ends the measurement.
	SkipErrors bool
	// Runs bounds the runs of one network on one example, in both precisions together. 0 stands for as many as
	// [probe.Examples] take. Making is the number of runs that make one of the members.
	Runs, Making int
	// Ran, if not nil, gets what a run of the asked engine then does not do again: the sessions and, if the examples are all of
	// the data, the scores. A GPU leaves nothing, since its memory is for the runs.
	Ran *infer.Ran
}

// examples returns the number of examples that so many members may run on, in both precisions.
func (o Options) examples(members int) int {
	most := cmp.Or(o.Most, probe.Examples)
	if o.Runs == 0 {
		return most
	}
	n := (o.Runs - o.Making*members) / (2 * members)
	if n < leastExamples {
		return 0
	}
	return min(n, most)
}

// Measure measures how the engine's precision changes the average of models.
func Measure(ctx context.Context, e *infer.Engine, m infer.MemberSource, opts Options, data dataset.Dataset) (*Change, error) {
	p := e.Provider()
	r := &Change{Provider: p.String(), Used: p.Precision, CPUNodes: e.Options().Left}
	return r, r.Measure(ctx, []Side{{m, e.With(p.Exact(), e.Options().Passes), e}}, opts, data)
}

// Measure sets the fields from the results of the sides on the data. The first side has an exact engine.
func (c *Change) Measure(ctx context.Context, sides []Side, opts Options, data dataset.Dataset) error {
	ctx = tally.For(ctx, tally.Rounding)
	parts := sides[0].Parts()
	for _, p := range parts {
		c.Of += p.Count
		c.Members += measured(p, len(parts), opts)
	}
	examples := opts.examples(c.Members)
	if examples == 0 {
		return nil
	}
	held, err := probe.HoldFew(data, examples, sides[0].Exact.Memory().Checked(), sides[0].Exact.Threads())
	if err != nil && (held == nil || !opts.SkipErrors) {
		return err
	}
	c.Unusable = held.Unreadable
	if held.Len() == 0 {
		return nil
	}
	p := &pairing{Change: c, opts: opts, held: held, whole: held.Len() == data.Len(), beside: c.gpu() != ""}
	began := time.Now()
	strata, unusable, t, err := p.strata(ctx, sides, parts)
	if err != nil {
		return err
	}
	c.took = [3]time.Duration{time.Since(began), p.took[0], p.took[1]}
	exactly := average(strata[0])
	labels := c.leaveOut(strata[:], unusable, held.Labels())
	if c.Examples == 0 {
		return nil
	}
	was, is := average(strata[0]), average(strata[1])
	for i, v := range is {
		d := math.Abs(v - was[i])
		c.Mean += d / float64(len(is))
		c.RMS += d * d / float64(len(is))
		c.Largest = max(c.Largest, d)
	}
	c.RMS = math.Sqrt(c.RMS)
	c.MonteCarlo = monteCarlo(strata[0])
	if c.isFar() {
		side := Side{sides[0].MemberSource, p.engine(sides[0], 0), nil}
		if c.Amplified, err = side.amplify(ctx, opts, held, exactly); err != nil {
			return err
		}
	}
	c.NLL = changeOfNLL(t, was, is, labels)
	return nil
}

// strata runs the models of all parts. It returns the outcomes of the exact engine, and of the asked one.
func (p *pairing) strata(ctx context.Context, sides []Side, parts []infer.Part) (strata [2][]stratum, unusable [2][]bool,
	t task.Task, err error) {
	first := 0
	for k, part := range parts {
		both, err := p.run(ctx, sides, first, measured(part, len(parts), p.opts), k+1 == len(parts))
		if err != nil {
			return strata, unusable, t, err
		}
		for j, exact := range both[0] {
			exact.skipPadding(both[1][j])
		}
		for i, outcomes := range both {
			of := stratum{count: part.Count, pairs: p.opts.pairs(part)}
			for j, o := range outcomes {
				if i == 1 {
					o = o.worst(both[0][j], p.held.Len())
				}
				t, of.weight, of.outcomes = o.task, o.weight*float64(part.Count), append(of.outcomes, o.mean)
				if unusable[i] == nil {
					unusable[i] = make([]bool, len(o.unusable))
				}
				for row, bad := range o.unusable {
					unusable[i][row] = unusable[i][row] || bad
				}
			}
			strata[i] = append(strata[i], of)
		}
		first += part.Count
	}
	return strata, unusable, t, nil
}

// pairs reports whether the members of a part come in pairs. Of an odd number the last one is alone.
func (o Options) pairs(p infer.Part) bool { return o.Antithetic && p.Count > 1 }

// measured returns the number of members of a part to run, if there are so many parts.
func measured(p infer.Part, parts int, opts Options) int {
	run := max(2, (fewest+parts-1)/parts)
	if opts.pairs(p) {
		run *= 2 // a pair tells as much as one draw
	}
	return min(p.Count, run)
}

// leaveOut removes the examples that have no usable scores from all outcomes, counts them,
// and returns the labels of the others.
func (c *Change) leaveOut(precisions [][]stratum, unusable [2][]bool, labels target.Target) target.Target {
	var rows []int
	for i, exactly := range unusable[0] {
		switch {
		case exactly:
			c.Unusable++
		case unusable[1][i]:
			c.Lost++
		default:
			rows = append(rows, i)
		}
	}
	c.Examples = len(rows)
	if c.Examples == len(unusable[0]) {
		return labels
	}
	for _, strata := range precisions {
		for _, s := range strata {
			for k, outcomes := range s.outcomes {
				width := len(outcomes) / len(unusable[0])
				var kept []float64
				for _, row := range rows {
					kept = append(kept, outcomes[row*width:][:width]...)
				}
				s.outcomes[k] = kept
			}
		}
	}
	return labels.Pick(rows)
}

// A stratum is the outcomes of some members of one kind in an ensemble.
type stratum struct {
	weight   float64 // weight of all members of the kind together
	count    int     // number of all members of the kind
	pairs    bool    // members 2j and 2j+1 belong together; pairs are independent
	outcomes [][]float64
}

// units returns the averages of the independent draws among the outcomes, and how many members each has: of an odd number of members
// in pairs the last is alone.
func (s stratum) units() (units [][]float64, sizes []float64) {
	unit := 1
	if s.pairs {
		unit = 2
	}
	for some := range slices.Chunk(s.outcomes, unit) {
		units, sizes = append(units, average([]stratum{{weight: 1, outcomes: some}})), append(sizes, float64(len(some)))
	}
	return units, sizes
}

// average returns Σ w·p̄ over the strata, with weights that add up to 1.
func average(strata []stratum) []float64 {
	total := 0.0
	for _, s := range strata {
		total += s.weight
	}
	out := make([]float64, len(strata[0].outcomes[0]))
	for _, s := range strata {
		for _, o := range s.outcomes {
			for i, v := range o {
				out[i] += s.weight / total / float64(len(s.outcomes)) * v
			}
		}
	}
	return out
}

// monteCarlo returns the root mean square, over the numbers of an outcome, of the standard error of the average over
// all members. The standard error is √(Σ w²·v·k/n) over the strata. Here v is the variance of the average over the k measured ones of n
// members. With shares h of k in G independent draws, v = G/(G−1)·Σ h²(u−ū)², for equal ones s²/G. A stratum with a single draw has no
// such error.
func monteCarlo(strata []stratum) float64 {
	total, sum := 0.0, 0.0
	for _, s := range strata {
		total += s.weight
	}
	for _, s := range strata {
		units, sizes := s.units()
		draws, measured := float64(len(units)), float64(len(s.outcomes))
		if draws < 2 {
			continue
		}
		mean, w := average([]stratum{{weight: 1, outcomes: s.outcomes}}), s.weight/total
		for i, m := range mean {
			squares := 0.0
			for j, u := range units {
				d := sizes[j] / measured * (u[i] - m)
				squares += d * d
			}
			sum += w * w * squares * draws / (draws - 1) * measured / float64(s.count) / float64(len(mean))
		}
	}
	return math.Sqrt(sum)
}

// changeOfNLL returns nil without labels, with labels of another task, and for tasks without a likelihood.
func changeOfNLL(t task.Task, was, is []float64, labels target.Target) *float64 {
	for i := range labels.Len() {
		if l := labels.At(i); !l.Known() || t.CheckLabel(l) != nil {
			return nil
		}
	}
	if labels.None() {
		return nil
	}
	change := 0.0
	before, after := t.Likelihoods(was, labels), t.Likelihoods(is, labels)
	if len(before) == 0 {
		return nil
	}
	for i := range before {
		change -= (math.Log(after[i]) - math.Log(before[i])) / float64(len(before))
	}
	return &change
}

// amplify returns the largest change of the averages was, if each weight moves by one rounding. Products that are rounded
// once more do the same to a network as sums in another order.
func (s Side) amplify(ctx context.Context, opts Options, held dataset.Dataset, was []float64) (largest float64, err error) {
	var strata []stratum
	parts, first := s.Parts(), 0
	for _, p := range parts {
		of := stratum{count: p.Count, pairs: opts.pairs(p)}
		err := s.Each(ctx, first, measured(p, len(parts), opts), func(m infer.Model) error {
			sums := infer.Sums{}
			_, err := s.Exact.PredictUsable(ctx, m.With(moved{m.Filled.Parameters}), held, opts.SkipErrors, &sums)
			if err == nil {
				of.weight, of.outcomes = m.Weight*float64(p.Count), append(of.outcomes, sums.Mean())
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		strata, first = append(strata, of), first+p.Count
	}
	for i, v := range average(strata) {
		if d := math.Abs(v - was[i]); d > largest {
			largest = d
		}
	}
	return largest, nil
}

// moved is weights that one more rounding of float32 moved up or down.
type moved struct{ weights.Vector }

func (v moved) ReadAt(dst []float32, off int64) error {
	const one = 1.0 / (1 << 23)
	err := v.Vector.ReadAt(dst, off)
	for i, w := range dst {
		if splitmix.Mix(uint64(off)+uint64(i))&1 == 0 {
			dst[i] = w * (1 + one)
		} else {
			dst[i] = w * (1 - one)
		}
	}
	return err
}
