package bnupdate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// A check by hand: one channel, epsilon 1, momentum 0.9, ten batches, and the last
// checkpoint's weights only. The one interval has f = 1: its squared error is that of
// the steps, or of two moving averages if it is more, and that of the images.
//
// Kills: epsilon left out; variances compared as they are; PyTorch's momentum for
// ONNX's; the noise of one moving average where there are two; the standard error
// left out.
func TestCheckByHand(t *testing.T) {
	p := plan(t, 1, 1)
	p.layers[0].epsilon, p.layers[0].momentum = 1, 0.9
	var g given
	for k := range 10 { // means 2 ± 0.1, variances 3 ± 0.6
		sign := float64(k%2*2 - 1)
		g = append(g, [3]float64{4, 2 + 0.1*sign, 3 + 0.6*sign})
	}
	res := recompute(t, p, g, Reference)
	// In the layout of plan, variances come first.
	row := func(mean, variance float32) []float32 {
		s := make([]float32, 2)
		s[p.layers[0].mean.Offset], s[p.layers[0].vari.Offset] = mean, variance
		return s
	}
	se := (10. * 0.01 / 10) / 9    // of the mean
	seVar := (10. * 0.36 / 10) / 9 // of the variance
	window := 2 * (0.1 / 1.9) * 10
	for _, tc := range []struct {
		name   string
		stored [][]float32
		want   LayerCheck
	}{
		{"moving averages are noisier than the steps", [][]float32{row(2.49, 7), row(2.5, 7)}, LayerCheck{
			Means: 0.5 / 2, Variances: math.Log(8. / 4),
			ExpectedMeans:     math.Sqrt((window + 1) * se / 4),
			ExpectedVariances: math.Sqrt((window + 1) * seVar / 16)}},
		{"steps are larger", [][]float32{row(2, 0), row(0, 15), row(2, 3)}, LayerCheck{
			ExpectedMeans:     math.Sqrt((4+4)/4./2 + se/4),
			ExpectedVariances: math.Sqrt((15*15+12*12)/16./2 + seVar/16)}},
	} {
		c := p.Check(tc.stored, []Result{res}, nil)
		if len(c.Layers) != 1 || c.Examples != 40 || c.Checkpoints != 1 || c.Unchecked != 0 {
			t.Fatalf("%s: %+v", tc.name, c)
		}
		got := c.Layers[0]
		for _, x := range [][2]float64{{got.Means, tc.want.Means}, {got.Variances, tc.want.Variances},
			{got.ExpectedMeans, tc.want.ExpectedMeans}, {got.ExpectedVariances, tc.want.ExpectedVariances}} {
			if math.Abs(x[0]-x[1]) > 1e-5 { // float32
				t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
				break
			}
		}
	}
	if c := p.Check([][]float32{row(1, 1), row(1, 1)}, []Result{res}, nil); c.Unchecked != 1 || len(c.Layers) != 0 || c.FirstOff() || c.Off() != nil {
		t.Errorf("frozen: %+v", c)
	}
	if c := p.Check([][]float32{row(1, 1), row(2, 2)}, []Result{recompute(t, p, g[:1], Reference)}, nil); c != nil {
		t.Errorf("one batch: %+v, want nothing", c)
	}
}

// The numbers of a check of several checkpoints are those of an independent
// computation in NumPy: testdata/check.py. Tolerance: statistics are float32.
func TestCheckGolden(t *testing.T) {
	var golden []struct {
		Name    string
		Epsilon float64
		Batches [][][2][]float64 // by checkpoint and batch: means and population variances
		Images  int              // of a batch, each of one element
		Stored  [][2][]float64
		Want    LayerCheck
	}
	testfile.JSON(t, "testdata/check.json", &golden)
	for _, g := range golden {
		channels := len(g.Stored[0][0])
		p := plan(t, 1, int64(channels))
		p.layers[0].epsilon = g.Epsilon
		single := func(v []float64) (out []float32) {
			for _, x := range v {
				out = append(out, float32(x))
			}
			return out
		}
		var stored [][]float32
		for _, s := range g.Stored {
			row := make([]float32, 2*channels)
			copy(row[p.layers[0].mean.Offset:], single(s[0]))
			copy(row[p.layers[0].vari.Offset:], single(s[1]))
			stored = append(stored, row)
		}
		var fresh []Result
		for _, batches := range g.Batches {
			r := Result{Images: g.Images * len(batches)}
			for _, b := range batches {
				r.batches = append(r.batches, Batch{Images: g.Images, Mean: [][]float32{single(b[0])}, Var: [][]float32{single(b[1])}, Shapes: [][]int64{{int64(g.Images), int64(channels)}}})
			}
			r.Statistics, _ = p.combine(p.kept, r.batches, Reference)
			fresh = append(fresh, r)
		}
		got := p.Check(stored, fresh, nil).Layers[0]
		for _, x := range [][2]float64{{got.Means, g.Want.Means}, {got.Variances, g.Want.Variances},
			{got.ExpectedMeans, g.Want.ExpectedMeans}, {got.ExpectedVariances, g.Want.ExpectedVariances}} {
			if math.Abs(x[0]/x[1]-1) > 1e-3 {
				t.Errorf("%s: %+v, want %+v", g.Name, got, g.Want)
				break
			}
		}
	}
}

// A simulated training: stored statistics are averages over batches, with weights
// that do a random walk, which moves the statistics along. On the right images no
// check in a hundred raises an alarm, at any speed of the walk and however the
// network averages, whatever the graph says of it. Images whose means are shifted are
// found, at most one in a hundred missed, also if the walk goes further from one checkpoint to the next. That
// holds from 64 images upwards.
func TestCheckOfSimulatedTraining(t *testing.T) {
	const channels, steps, checkpoints, perBatch = 16, 60, 12, 64
	type training struct {
		speed    float64
		momentum float64 // ONNX's; 0 is a cumulative average
		graph    float64 // the momentum that the graph has, right or wrong
		batches  int
		size     int // of a batch in the check
	}
	const shift = 0.5
	// simulate checks the right images and shifted ones after one training.
	simulate := func(t *testing.T, seed uint64, of training) (right, shifted *Check) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 5))
		p := plan(t, 1, channels)
		p.layers[0].momentum = of.graph
		mean, spread := make([]float64, channels), make([]float64, channels)
		batch := func(size int, noise [][2]float64, shift float64) Batch {
			b := Batch{Images: size, Mean: [][]float32{nil}, Var: [][]float32{nil}, Shapes: [][]int64{{int64(size), channels}}}
			for c := range channels {
				sd, n := math.Exp(spread[c]), float64(size)
				m := mean[c] + sd*(shift+noise[c][0]/math.Sqrt(n))
				v := sd * sd * (1 + noise[c][1]*math.Sqrt(2/n)) * (n - 1) / n // about χ²
				b.Mean[0], b.Var[0] = append(b.Mean[0], float32(m)), append(b.Var[0], float32(v))
			}
			return b
		}
		draw := func() (noise [][2]float64) {
			for range channels {
				noise = append(noise, [2]float64{r.NormFloat64(), r.NormFloat64()})
			}
			return noise
		}
		var images [][][2]float64 // the noise of the check's batches: the same at each checkpoint
		for range of.batches {
			images = append(images, draw())
		}
		var stored [][]float32
		var fresh [2][]Result // of the right images, and of shifted ones
		running, seen := make([]float64, 2*channels), 0
		for k := range checkpoints {
			for range steps {
				for c := range channels {
					mean[c] += of.speed * r.NormFloat64()
					spread[c] += of.speed * r.NormFloat64()
				}
				b, keep := batch(perBatch, draw(), 0), of.momentum
				if seen++; keep == 0 {
					keep = 1 - 1/float64(seen)
				}
				for c := range channels {
					m, v := &running[int(p.layers[0].mean.Offset)+c], &running[int(p.layers[0].vari.Offset)+c]
					*m = keep**m + (1-keep)*float64(b.Mean[0][c])
					*v = keep**v + (1-keep)*b.variance(0, c)
				}
			}
			row := make([]float32, len(running))
			for i, v := range running {
				row[i] = float32(v)
			}
			stored = append(stored, row)
			if k < checkpoints-Compared {
				continue
			}
			for i := range fresh {
				res := Result{Images: of.batches * of.size}
				for _, noise := range images {
					res.batches = append(res.batches, batch(of.size, noise, float64(i)*shift))
				}
				res.Statistics, _ = p.combine(p.kept, res.batches, Reference)
				fresh[i] = append(fresh[i], res)
			}
		}
		return p.Check(stored, fresh[0], nil), p.Check(stored, fresh[1], nil)
	}
	for _, of := range []training{
		{0, 0.9, 0.9, 8, 128}, {0.001, 0.9, 0.9, 8, 128}, {0.01, 0.9, 0.9, 8, 128}, {0.03, 0.9, 0.9, 8, 128},
		{0.001, 0.99, 0.9, 8, 128}, {0.01, 0.99, 0.9, 8, 128}, {0.03, 0.99, 0.99, 8, 128},
		{0.001, 0, 0.9, 8, 128}, {0.01, 0, 0.9, 8, 128}, {0.01, 0, 1, 8, 128}, {0.03, 0, 1, 8, 128},
		{0.001, 0.9, 0.9, 4, 16}, {0.01, 0.9, 0.9, 4, 16}, {0.001, 0, 1, 4, 16}, {0.01, 0, 1, 4, 16},
	} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			t.Parallel()
			alarms, missed := 0, 0
			worst, least := 0.0, math.Inf(1)
			for seed := range uint64(100) {
				right, shifted := simulate(t, seed, of)
				worst = max(worst, right.Score(0))
				if right.FirstOff() {
					alarms++
				}
				least = min(least, shifted.Score(0))
				if !shifted.FirstOff() {
					missed++
				}
			}
			t.Logf("%+v: %d false alarms, largest score %.2f, %d missed, smallest score %.2f", of, alarms, worst, missed, least)
			if alarms > 1 || missed > 1 {
				t.Errorf("%+v: %d false alarms and %d missed in 100, want 1 and 1 at most", of, alarms, missed)
			}
		})
	}
}

// Off has the layers that are off, in the network's order. Variances count at the
// first layer only, and small differences nowhere.
func TestChecksOff(t *testing.T) {
	near := LayerCheck{Means: 0.1, Variances: 0.1, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	far := LayerCheck{Means: 10, Variances: 0.1, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	wide := LayerCheck{Means: 0.1, Variances: 10, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	small := LayerCheck{Means: leastMeans, Variances: leastVariances, ExpectedMeans: 1e-4, ExpectedVariances: 1e-4}
	for _, tc := range []struct {
		layers []LayerCheck
		off    []int
	}{{[]LayerCheck{near, far, near, wide}, []int{1}}, {[]LayerCheck{wide, near, far}, []int{0, 2}}, {[]LayerCheck{small, small}, nil}} {
		c := &Check{Layers: tc.layers}
		if off := c.Off(); !slices.Equal(off, tc.off) || c.FirstOff() != (len(off) > 0 && off[0] == 0) {
			t.Errorf("%+v: off: %v, want %v; the first: %v", tc.layers, off, tc.off, c.FirstOff())
		}
	}
}

// Two layers with the same statistics, whose running averages go all the way and a fifth of it from checkpoint to checkpoint. The
// images are right.
//
// Kills: one pace for layers with other momenta, or with other numbers of updates.
func TestCheckTwoMomenta(t *testing.T) {
	const channels, checkpoints = 16, 6
	r := rand.New(rand.NewPCG(7, 7))
	p := plan(t, 2, channels)
	for i := range p.layers {
		p.layers[i].epsilon, p.layers[i].momentum = 1e-5, []float64{0.9, 0.99}[i]
	}
	mean, fast, slow := make([]float64, channels), make([]float64, channels), make([]float64, channels)
	var stored [][]float32
	var fresh []Result
	for range checkpoints {
		row := make([]float32, len(p.kept))
		for c := range channels {
			way := 0.5 * r.NormFloat64()
			const updates = 20
			for range updates {
				mean[c] += way / updates
				fast[c] += (mean[c] - fast[c]) * (1 - math.Pow(0.001, 1./updates))
				slow[c] += (mean[c] - slow[c]) * (1 - math.Pow(0.8, 1./updates))
			}
			for i, m := range []float64{fast[c], slow[c]} {
				row[int(p.layers[i].mean.Offset)+c], row[int(p.layers[i].vari.Offset)+c] = float32(m), 1+float32(m)/100
			}
		}
		stored = append(stored, row)
		var batches []Batch
		for range 8 {
			b := Batch{Images: 64, Shapes: [][]int64{{64, channels, 2, 2}, {64, channels, 2, 2}}}
			for range p.layers {
				var means, variances []float32
				for c := range channels {
					means, variances = append(means, float32(mean[c]+0.05*r.NormFloat64())), append(variances, 1+float32(mean[c])/100)
				}
				b.Mean, b.Var = append(b.Mean, means), append(b.Var, variances)
			}
			batches = append(batches, b)
		}
		fresh = append(fresh, recompute(t, p, taken(batches), Reference))
	}
	if c := p.Check(stored, fresh[1:], nil); len(c.Off()) > 0 {
		t.Errorf("layers %v of %+v are off", c.Off(), c.Layers)
	}
	p.layers[0].momentum = p.layers[1].momentum
	if c := p.Check(stored, fresh[1:], nil); len(c.Off()) == 0 {
		t.Error("one pace for both layers makes no difference: the test shows nothing")
	}
	counted := p.Counted(map[string]int64{p.layers[0].name: 600, p.layers[1].name: 20})
	if c := counted.Check(stored, fresh[1:], nil); len(c.Off()) > 0 {
		t.Errorf("counted updates: layers %v of %+v are off", c.Off(), c.Layers)
	}
}

// taken are batches that were computed before.
type taken []Batch

func (b taken) Batches() int                                { return len(b) }
func (b taken) Run(_ context.Context, k int) (Batch, error) { return b[k], nil }
