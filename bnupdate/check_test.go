package bnupdate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A check by hand: one channel, epsilon 1, momentum 0.9, ten batches.
//
// Kills: the standard deviation of the wrong side; epsilon left out; variances
// compared as they are; PyTorch's momentum for ONNX's; the noise of one moving
// average where there are two; the standard error left out.
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
		{"steps are larger", [][]float32{row(0, 0), row(2, 15), row(2, 3)}, LayerCheck{
			ExpectedMeans:     math.Sqrt((4./16+0)/2 + se/4),
			ExpectedVariances: math.Sqrt((math.Pow(math.Log(1./16), 2)+math.Pow(math.Log(16./4), 2))/2 + seVar/16)}},
	} {
		c := p.Check(tc.stored, res)
		if len(c.Layers) != 1 || c.Images != 40 || c.Unchecked != 0 {
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
		if want := math.Sqrt((math.Pow(got.Means/got.ExpectedMeans, 2) + math.Pow(got.Variances/got.ExpectedVariances, 2)) / 2); math.Abs(got.Score()-want) > 1e-12 {
			t.Errorf("%s: score %v, want %v", tc.name, got.Score(), want)
		}
	}
	if c := p.Check([][]float32{row(1, 1), row(1, 1)}, res); c.Unchecked != 1 || len(c.Layers) != 0 || c.FirstOff() || c.Off() != nil {
		t.Errorf("frozen: %+v", c)
	}
	if c := p.Check([][]float32{row(1, 1), row(2, 2)}, recompute(t, p, g[:7], Reference)); c != nil {
		t.Errorf("seven batches: %+v, want nothing", c)
	}
}

// A simulated training: stored statistics are moving averages over batches, with
// weights that do a random walk, which moves the statistics along. On the right
// images no check in a hundred raises an alarm, at any speed of the walk; images
// whose means are shifted by half a standard deviation are always found, unless
// the walk itself goes as far from one checkpoint to the next.
func TestCheckOfSimulatedTraining(t *testing.T) {
	const channels, steps, checkpoints, perBatch = 16, 60, 12, 64
	simulate := func(t *testing.T, seed uint64, speed, shift float64) *Check {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 5))
		p := plan(t, 1, channels)
		p.layers[0].momentum = 0.9
		mean, spread := make([]float64, channels), make([]float64, channels)
		batch := func(shift float64) Batch {
			b := Batch{Images: perBatch, Mean: [][]float32{nil}, Var: [][]float32{nil}, Shapes: [][]int64{{perBatch, channels}}}
			for c := range channels {
				sd := math.Exp(spread[c])
				m := mean[c] + sd*(shift+r.NormFloat64()/math.Sqrt(perBatch))
				v := sd * sd * (1 + r.NormFloat64()*math.Sqrt(2./perBatch)) // about χ²
				b.Mean[0], b.Var[0] = append(b.Mean[0], float32(m)), append(b.Var[0], float32(v))
			}
			return b
		}
		var stored [][]float32
		running := make([]float64, 2*channels)
		for range checkpoints {
			for range steps {
				for c := range channels {
					mean[c] += speed * r.NormFloat64()
					spread[c] += speed * r.NormFloat64()
				}
				b := batch(0)
				for c := range channels {
					m, v := &running[int(p.layers[0].mean.Offset)+c], &running[int(p.layers[0].vari.Offset)+c]
					*m = 0.9**m + 0.1*float64(b.Mean[0][c])
					*v = 0.9**v + 0.1*b.variance(0, c)
				}
			}
			row := make([]float32, len(running))
			for i, v := range running {
				row[i] = float32(v)
			}
			stored = append(stored, row)
		}
		var batches []Batch
		for range 16 {
			batches = append(batches, batch(shift))
		}
		res := Result{batches: batches, Images: 16 * perBatch}
		res.Statistics, _ = p.combine(batches, Reference)
		return p.Check(stored, res)
	}
	for _, speed := range []float64{0, 0.001, 0.01, 0.03} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			t.Parallel()
			alarms, missed := 0, 0
			worst := 0.0
			for seed := range uint64(100) {
				c := simulate(t, seed, speed, 0)
				worst = max(worst, c.Layers[0].Score())
				if c.FirstOff() {
					alarms++
				}
				if !simulate(t, seed, speed, 0.5).FirstOff() {
					missed++
				}
			}
			t.Logf("speed %v: %d false alarms, largest score %.2f, %d missed", speed, alarms, worst, missed)
			if alarms > 1 || speed <= 0.01 && missed > 0 {
				t.Errorf("speed %v: %d false alarms and %d missed in 100, want 1 and 0 at most", speed, alarms, missed)
			}
		})
	}
}

// Off has the layers that are off, whichever they are, in the network's order.
func TestChecksOff(t *testing.T) {
	near := LayerCheck{Layer: "near", Means: 0.1, Variances: 0.1, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	far := LayerCheck{Layer: "far", Means: 10, Variances: 0.1, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	wide := LayerCheck{Layer: "wide", Means: 0.1, Variances: 10, ExpectedMeans: 0.1, ExpectedVariances: 0.1}
	c := &Check{Layers: []LayerCheck{near, far, near, wide}}
	if off := c.Off(); len(off) != 2 || off[0] != far || off[1] != wide || c.FirstOff() {
		t.Errorf("off: %+v, the first: %v", off, c.FirstOff())
	}
}
