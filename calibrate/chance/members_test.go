package chance_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// The error of an average, against 4,000 averages over other members: invented
// probabilities μ_i·(1 + u_i·a_m + b_mi), a_m shared by all images. The delta
// method leaves out the third order, 1 % here, and the spread of the estimate over
// 4,000 members is below 5 %.
func TestMonteCarloError(t *testing.T) {
	t.Parallel()
	const images, S, repeats = 40, 10, 4000
	rng := rand.New(rand.NewPCG(1, 2))
	member := func() []float64 {
		p, a := make([]float64, images), 0.1*rng.NormFloat64()
		for i := range p {
			p[i] = (0.2 + 0.6*float64(i)/images) * (1 + a + 0.1*rng.NormFloat64())
		}
		return p
	}
	nll := func(members [][]float64) (losses []float64) {
		losses = make([]float64, images)
		for i := range losses {
			for _, p := range members {
				losses[i] += p[i] / float64(len(members))
			}
			losses[i] = -math.Log(losses[i])
		}
		return losses
	}
	var all [][]float64
	var values []float64
	for range repeats {
		var members [][]float64
		for range S {
			members = append(members, member())
		}
		values = append(values, stat.Mean(nll(members), nil))
		all = append(all, members...)
	}
	n := chance.NewMonteCarloError(all[:4000], false, 0.01)
	mean, sd := stat.MeanStdDev(values, nil)
	if got, want := n.Standard*math.Sqrt(4000.0/S), sd; math.Abs(got/want-1) > 0.05 {
		t.Errorf("standard error of %d members %v, want %v", S, got, want)
	}
	infinite := stat.Mean(nll(all), nil)
	if got, want := n.Excess*4000/S, mean-infinite; math.Abs(got/want-1) > 0.1 {
		t.Errorf("excess of %d members %v, want %v", S, got, want)
	}
	// Enough is the least m with v/m + (e/m)² within the tolerance.
	change := func(m int) float64 {
		return math.Hypot(n.Standard*math.Sqrt(4000/float64(m)), n.Excess*4000/float64(m))
	}
	if n.Enough < 2 || change(n.Enough) > 0.01 || change(n.Enough-1) <= 0.01 {
		t.Errorf("%d members are said to be enough: change %v, and %v with one less", n.Enough, change(n.Enough), change(n.Enough-1))
	}
	if few := chance.NewMonteCarloError(all[:4], false, 0.01); few.Enough != 0 {
		t.Errorf("four members are said to tell that %d are enough", few.Enough)
	}
	same := [][]float64{all[0], all[0], all[0], all[0], all[0]}
	if n := chance.NewMonteCarloError(same, false, 0); n.Change() > 1e-12 || n.Enough != 1 {
		t.Errorf("equal members: %+v", n)
	}
}

// One member tells nothing of how members differ, but of how images do.
func TestMonteCarloErrorOfOneMember(t *testing.T) {
	e := chance.NewMonteCarloError([][]float64{{0.5, 0.25, 0.125}}, false, 0)
	// −log2 of them are 1, 2 and 3, with the standard deviation 1.
	if want := math.Ln2 / math.Sqrt(3); !math.IsNaN(e.Standard) || !math.IsNaN(e.Excess) || math.Abs(e.Images-want) > 1e-15 || e.Tolerance != e.Images/4 || e.Enough != 0 {
		t.Errorf("%+v, want an error of images of %v", e, want)
	}
}

// Of two members there are two orders, and in 200 draws each comes more often than
// the percentiles cut off.
func TestNLLByMembers(t *testing.T) {
	a, b := []float64{0.5, 0.25}, []float64{0.125, 0.5}
	got, err := chance.NLLByMembers(t.Context(), [][]float64{a, b}, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	testfile.Near(t, "one member, low", got[0].Low, 1.5*math.Ln2) // a: 1 and 2 bits
	testfile.Near(t, "one member, high", got[0].High, 2*math.Ln2) // b: 3 and 1 bits
	all := -math.Log(0.3125*0.375) / 2
	testfile.Near(t, "both", got[1], chance.Interval{Mean: all, Low: all, High: all})
	if got[0].Mean <= got[0].Low || got[0].Mean >= got[0].High {
		t.Errorf("one member, mean: %+v", got[0])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chance.NLLByMembers(ctx, [][]float64{a, b}, false, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
