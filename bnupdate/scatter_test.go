package bnupdate

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// given is a Runner over statistics: of each batch its images, and the mean and
// the unbiased variance of one channel of one layer, of 4 elements an image.
type given [][3]float64

func (g given) Batches() int { return len(g) }

func (g given) Run(_ context.Context, k int) (Batch, error) {
	images := int64(g[k][0])
	m := float64(4 * images)
	return Batch{
		Images: int(images),
		Mean:   [][]float32{{float32(g[k][1])}},
		Var:    [][]float32{{float32(g[k][2] * (m - 1) / m)}},
		Shapes: [][]int64{{images, 1, 2, 2}},
	}, nil
}

// The standard error by hand. Images 2, 2 and 4, so weights ¼, ¼ and ½; means
// 1, 3 and 4 average 3, and Σ w·d² = ¼·4 + ½·1 = 1.5, over K−1 = 2: SE² = 0.75.
// Variances 2, 6 and 4 average 4, and SE² = (¼·4 + ¼·4)/2 = 1. Batches hold
// float32, so the tolerance is some of its 6e-8.
//
// Kills: batches weighed alike; K for K−1; population variances; a variance's
// error taken for the standard deviation's; epsilon left out.
func TestStandardError(t *testing.T) {
	batches := given{{2, 1, 2}, {2, 3, 6}, {4, 4, 4}}
	for _, tc := range []struct{ epsilon, want float64 }{
		{0, math.Sqrt(0.75/4 + 1./(4*16))},
		{1, math.Sqrt(0.75/5 + 4*1./(4*125))},
	} {
		p := plan(t, 1, 1)
		p.layers[0].epsilon = tc.epsilon
		if got := recompute(t, p, batches, Reference).StandardError; math.Abs(got/tc.want-1) > 1e-6 {
			t.Errorf("epsilon %v: standard error %v, want %v", tc.epsilon, got, tc.want)
		}
	}
	p := plan(t, 1, 1)
	if got := recompute(t, p, batches[:1], Reference).StandardError; !math.IsInf(got, 1) {
		t.Errorf("one batch: standard error %v", got)
	}
	// A channel that is always the same has no error, with epsilon or without.
	if got := recompute(t, p, given{{2, 1, 0}, {2, 1, 0}}, Reference).StandardError; got != 0 {
		t.Errorf("constant channel: standard error %v", got)
	}
}

// The standard error is a root mean square over channels and over layers: with
// constant variances, and means that differ between channels and layers.
//
// Kills: layers weighed by their channels; a sum for a mean.
func TestStandardErrorAverages(t *testing.T) {
	p := plan(t, 2, 2)
	s := newScatter(p)
	for _, sign := range []float32{-1, 1} {
		s.add(Batch{Images: 1, Mean: [][]float32{{sign, 2 * sign}, {0, 3 * sign}}, Var: [][]float32{{1, 1}, {1, 1}},
			Shapes: [][]int64{{1, 2, 1e6}, {1, 2, 1e6}}})
	}
	// ±x in two batches: SE² = x².
	want := math.Sqrt(((1.+4)/2 + (0.+9)/2) / 2)
	if got := s.standardError(); math.Abs(got/want-1) > 1e-5 { // the variances are unbiased, of 10⁶ elements
		t.Errorf("standard error %v, want %v", got, want)
	}
}

// The standard error says how far statistics of random batches really are from
// those of endless data: Gaussian elements of mean 0 and variance 1, 50 batches
// of 40 elements, whose mean has the standard error 1/√2000, and whose variance
// √(2/(39·50)). The root mean square over 400 channels is known within 3.5 %
// for the actual error, and 0.4 % for the estimate: both get 5 times that.
func TestStandardErrorOfRandomBatches(t *testing.T) {
	const channels, batches, images = 400, 50, 10
	r := rand.New(rand.NewPCG(1, 2))
	in := &inputs{layers: 1}
	for range batches {
		x := make([]float64, images*channels*4)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		in.Data, in.Shapes = append(in.Data, x), append(in.Shapes, []int64{images, channels, 2, 2})
	}
	p := plan(t, 1, channels)
	res := recompute(t, p, in, Reference)
	actual := 0.0
	for c := range int64(channels) {
		m, v := float64(res.Statistics[p.layers[0].mean.Offset+c]), float64(res.Statistics[p.layers[0].vari.Offset+c])-1
		actual += (m*m + v*v/4) / channels
	}
	actual = math.Sqrt(actual)
	want := math.Sqrt(1./2000 + 2./(39*50)/4)
	if math.Abs(res.StandardError/want-1) > 0.02 || math.Abs(actual/want-1) > 0.175 {
		t.Errorf("standard error %v, actual error %v, want %v", res.StandardError, actual, want)
	}
}

// noise gives batches of 8 images of random elements, in order.
func noise(layers, batches int, seed uint64) *inputs {
	r := rand.New(rand.NewPCG(seed, 3))
	in := &inputs{layers: layers}
	for range batches {
		x := make([]float64, 8*6)
		for i := range x {
			x[i] = 2 + r.ExpFloat64() // skewed, as activations are
		}
		in.Data, in.Shapes = append(in.Data, x), append(in.Shapes, []int64{8, 6})
	}
	return in
}

// A pass ends at the first batch whose standard error is small enough, which is
// what the same batches alone give, whatever the number of workers; a smaller
// tolerance needs no fewer; one out of reach takes all.
func TestTolerance(t *testing.T) {
	const all = 200
	p, in := plan(t, 2, 6), noise(2, all, 1)
	last := all * 8
	seen := map[int]bool{}
	for _, tolerance := range []float64{1e-9, 0.04, 0.05, 0.07, 0.1, 10} {
		want, err := Recompute(t.Context(), p, in, Options{Tolerance: tolerance})
		if err != nil {
			t.Fatal(err)
		}
		if want.Images > last {
			t.Errorf("tolerance %v: %d images, more than with a smaller one", tolerance, want.Images)
		}
		last = want.Images
		seen[want.Images] = true
		part := &inputs{layers: 2, Data: in.Data[:want.Images/8], Shapes: in.Shapes[:want.Images/8]}
		if alone := recompute(t, p, part, Reference); !reflect.DeepEqual(alone, want) {
			t.Errorf("tolerance %v: differs from its %d images alone", tolerance, want.Images)
		}
		switch k := want.Images / 8; {
		case k < all && want.StandardError > tolerance:
			t.Errorf("tolerance %v: ended at %v", tolerance, want.StandardError)
		case k > minBatches:
			part.Data, part.Shapes = in.Data[:k-1], in.Shapes[:k-1]
			if before := recompute(t, p, part, Reference); before.StandardError <= tolerance {
				t.Errorf("tolerance %v: %d batches, but one fewer was enough", tolerance, k)
			}
		}
		for _, workers := range []int{2, 7, 300} {
			if got, err := Recompute(t.Context(), p, in, Options{Tolerance: tolerance, Workers: workers}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("tolerance %v: %d workers differ from one: %v", tolerance, workers, err)
			}
		}
	}
	if !seen[all*8] || !seen[minBatches*8] || len(seen) < 4 {
		t.Errorf("numbers of images: %v, want all, the least, and some between", seen)
	}
}
