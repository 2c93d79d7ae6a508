package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A population of examples of two classes with known targets. The logit of an example's SWA is x ~ N(0, spread²). Its
// class is 1 with probability σ(target·x). If target is 0 it is σ(x/√(1 + π/8·(scatter² + growth²x²))), about what infinitely
// many members predict (MacKay 1992). A member has the logit (1 + growth·v)x + scatter·u·φ, with draws v ~ N(0, 1) and u ~ N(0, I) of its own and a direction φ of
// the example, a unit vector. So some members are more certain than others, and members err together on some examples, as
// networks do. Infinitely many members predict E σ(x + √(scatter² + growth²x²) z).
type population struct{ spread, target, scatter, growth float64 }

const directions = 4

// draw is what a member draws.
type draw struct {
	v float64
	u [directions]float64
}

func (d draw) mirrored() draw {
	d.v = -d.v
	for k := range d.u {
		d.u[k] = -d.u[k]
	}
	return d
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// normal integrates f over z ~ N(0, 1), to 1e-10 for functions as smooth as these.
func normal(f func(z float64) float64) (sum float64) {
	const step = 0.05
	for z := -8.0; z <= 8; z += step {
		sum += f(z) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * step
	}
	return sum
}

// probability is that of class 1 at x.
func (p population) probability(x float64) float64 {
	if p.target == 0 {
		return sigmoid(x / math.Sqrt(1+math.Pi/8*(p.scatter*p.scatter+p.growth*p.growth*x*x)))
	}
	return sigmoid(p.target * x)
}

func (p population) members(x float64) float64 {
	return normal(func(z float64) float64 { return sigmoid(x + math.Hypot(p.scatter, p.growth*x)*z) })
}

// nll is the expected loss at x of a prediction q.
func (p population) nll(x, q float64) float64 {
	pi := p.probability(x)
	return -pi*math.Log(q) - (1-pi)*math.Log1p(-q)
}

// loss is the NLL of all examples, given the prediction of a method at x.
func (p population) loss(of func(x float64) float64) float64 {
	return normal(func(z float64) float64 { return p.nll(p.spread*z, of(p.spread*z)) })
}

// few is the expected NLL of so many members minus that of infinitely many. Members of an example are independent, or
// antithetic pairs, so their common effects do not matter here.
func (p population) few(members, tested int, antithetic bool) (sum float64) {
	examples := fresh(tested)
	rng := rand.New(rand.NewPCG(99, 0))
	for range examples {
		x, q, z := p.spread*rng.NormFloat64(), 0.0, 0.0
		for k := range members {
			if z = -z; !antithetic || k%2 == 0 {
				z = rng.NormFloat64()
			}
			q += sigmoid(x+math.Hypot(p.scatter, p.growth*x)*z) / float64(members)
		}
		sum += (p.nll(x, q) - p.nll(x, p.members(x))) / float64(examples)
	}
	return sum
}

// fresh is the number of examples for a true difference. Its standard error is then below a third of that of the tested
// examples.
func fresh(tested int) int { return max(40_000, 10*tested) }

// sample is a sample of examples.
type sample struct {
	dataset.Dataset
	x      []float64
	phi    [][directions]float64
	labels target.Target
}

func (s *sample) Len() int              { return len(s.x) }
func (s *sample) Labels() target.Target { return s.labels }

func (p population) sample(rng *rand.Rand, n int) *sample {
	s := &sample{}
	for range n {
		x, label := p.spread*rng.NormFloat64(), 0
		if rng.Float64() < p.probability(x) {
			label = 1
		}
		var phi [directions]float64
		norm := 0.0
		for k := range phi {
			phi[k] = rng.NormFloat64()
			norm += phi[k] * phi[k]
		}
		for k := range phi {
			phi[k] /= math.Sqrt(norm)
		}
		s.x, s.phi, s.labels = append(s.x, x), append(s.phi, phi), s.labels.Append(target.Target{Classes: []int{label}})
	}
	return s
}

// member is what one network says: SWA where it draws zero.
func (p population) member(t task.Task, d draw, test, validation *sample) *baseline.Predicted {
	says := func(s *sample) *infer.Sums {
		sums := &infer.Sums{}
		sums.Init("", s.Len(), t)
		for i, x := range s.x {
			x *= 1 + p.growth*d.v
			for k, phi := range s.phi[i] {
				x += p.scatter * d.u[k] * phi
			}
			sums.Add(i, []float64{sigmoid(-x), sigmoid(x)}, 0, 1)
		}
		sums.Members, sums.Weight = 1, 1
		return sums
	}
	return &baseline.Predicted{Members: 1, Data: []*infer.Sums{says(test)}, Validation: says(validation)}
}

// trial is one repetition of a comparison, with the draws of its ensemble.
type trial struct {
	*Result
	draws []draw
}

// compared compares SWA, SWA-Temp and SWAG on a sample, by the functions that Run calls.
func (p population) compared(t *testing.T, seed uint64, examples, validation, members int, antithetic bool) trial {
	t.Helper()
	binary, err := task.New("binary", task.OutputSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	test, val := p.sample(rng, examples), p.sample(rng, validation)
	b := &builder{Comparison: &Comparison{Inputs: baseline.Inputs{Seed: seed}, Test: test, Validation: val}, run: infer.Run{}, shared: map[*infer.Model]*shared{}}
	b.task = binary
	add := func(q *baseline.Predicted, key string, by task.Method) {
		m := &Method{Key: key, Name: key, Members: q.Members}
		outcomes := q.Data[0].Mean()
		if by != "" {
			validation := q.Validation.Mean()
			scaled, s, err := b.scale(binary.Calibrators()[0], outcomes, validation)
			if err != nil {
				t.Fatal(err)
			}
			m.Scaling = s
			if err := b.refit(m, s, outcomes, validation); err != nil {
				t.Fatal(err)
			}
			outcomes = scaled
		}
		losses, err := task.Losses(binary, outcomes, test.labels, task.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Evaluation = &task.Evaluation{Losses: losses}
		if err := b.redraw(m, q); err != nil {
			t.Fatal(err)
		}
		b.methods = append(b.methods, m)
	}
	swa := p.member(binary, draw{}, test, val)
	add(swa, baseline.SWA, "")
	add(swa, baseline.SWATemp, task.OneNumber)
	swag := &baseline.Predicted{Drawn: true, Grouped: true, Antithetic: antithetic, Data: []*infer.Sums{{}}, Validation: &infer.Sums{}}
	out := trial{}
	for k := range members {
		d := draw{v: rng.NormFloat64()}
		for j := range d.u {
			d.u[j] = rng.NormFloat64()
		}
		if antithetic && k%2 == 1 {
			d = out.draws[k-1].mirrored()
		}
		out.draws = append(out.draws, d)
		swag.Take(p.member(binary, d, test, val), k)
	}
	add(swag, baseline.SWAG, "")
	out.Result = &Result{Comparison: b.Comparison, Task: binary, Kept: true, Methods: b.methods}
	out.compare()
	out.adjust()
	return out
}

// deployed is the true difference of this ensemble to SWA, on all examples, with the temperature that was fitted.
func (p population) deployed(tr trial, rng *rand.Rand) (sum float64) {
	examples := fresh(tr.Test.Len())
	beta := 1 / tr.Methods[1].Scaling.Values()[0]
	unseen := p.sample(rng, examples)
	for i, x := range unseen.x {
		q := 0.0
		for _, d := range tr.draws {
			z := x * (1 + p.growth*d.v)
			for k, phi := range unseen.phi[i] {
				z += p.scatter * d.u[k] * phi
			}
			q += sigmoid(z) / float64(len(tr.draws))
		}
		sum += (p.nll(x, q) - p.nll(x, sigmoid(beta*x))) / float64(examples)
	}
	return sum
}

// Intervals of 95 % hold the true difference between SWAG and SWA-Temp in 93 to 97 % of samples, for three questions: of
// these networks on new examples, of as many members with another seed, and of infinitely many. Antithetic pairs are the units of chance. The verdict claims a
// difference that is not so in at most 5 %. With every change the same is asked of a few samples, of which chance may take
// several. At night the limits allow for the chance of the repetitions: three binomial standard errors.
func TestSimulation(t *testing.T) {
	t.Parallel()
	type drawn struct {
		members    int
		antithetic bool
	}
	repetitions, sizes, slack := reliability.Figure(6, 1000), []int{1000}, 0.4
	counts := []drawn{{30, false}, {8, true}}
	if repetitions > 100 {
		sizes, slack = []int{500, 5000, 50_000}, 0.02
		counts = []drawn{{10, false}, {30, false}, {100, false}, {6, true}, {10, true}, {16, true}, {30, true}}
	}
	for name, p := range map[string]population{
		"alike":  {spread: 3, target: 0.7, scatter: 1.4, growth: 0.3},
		"worse":  {spread: 4, target: 0.8, scatter: 2.2, growth: 0.3},
		"better": {spread: 3, scatter: 3, growth: 0.8},
	} {
		many := p.loss(p.members)
		for _, examples := range sizes {
			for _, of := range counts {
				members := of.members
				t.Run(fmt.Sprintf("%s/%d examples/%d members, antithetic %v", name, examples, members, of.antithetic), func(t *testing.T) {
					t.Parallel()
					repetitions := repetitions
					if examples == 50_000 {
						repetitions = min(repetitions, 200)
					}
					few, wrong, swaTemp := p.few(members, examples, of.antithetic), 0, 0.0
					intervals := map[string][]chance.Interval{}
					var deployed []float64
					for seed := range repetitions {
						tr := p.compared(t, uint64(seed), examples, max(500, examples/4), members, of.antithetic)
						m := tr.Methods[2]
						d := tr.Main(m)
						deployed = append(deployed, p.deployed(tr, rand.New(rand.NewPCG(uint64(seed), 1))))
						beta := 1 / tr.Methods[1].Scaling.Values()[0]
						swaTemp += p.loss(func(x float64) float64 { return sigmoid(beta * x) }) / float64(repetitions)
						for question, interval := range map[string]chance.Interval{"these networks": d.Interval, "another seed": d.OtherDraws(m.Draws), "very many": d.ManyDraws(m.Draws)} {
							intervals[question] = append(intervals[question], interval)
						}
						if sign := tr.Told(m, "nll"); float64(sign)*deployed[seed] < 0 {
							wrong++
						}
					}
					held := map[string]int{}
					for question, list := range intervals {
						for k, i := range list {
							want := map[string]float64{"these networks": deployed[k], "another seed": many + few - swaTemp, "very many": many - swaTemp}[question]
							if i.Low <= want && want <= i.High {
								held[question]++
							}
						}
					}
					for question, n := range held {
						share := float64(n) / float64(repetitions)
						chance := 3*math.Sqrt(0.05*0.95/float64(repetitions)) + slack
						t.Logf("%s: %.3f of %d intervals", question, share, repetitions)
						if share < 0.93-chance || share > 0.97+chance {
							t.Errorf("%s: the true difference is in %.1f %% of %d intervals", question, 100*share, repetitions)
						}
					}
					t.Logf("true difference %.5f with very many members, %.5f with these; %d wrong verdicts", many-swaTemp, many+few-swaTemp, wrong)
					if float64(wrong) > (0.05+slack)*float64(repetitions) {
						t.Errorf("the verdict is wrong in %d of %d", wrong, repetitions)
					}
				})
			}
		}
	}
}
