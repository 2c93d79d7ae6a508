package bnupdate

import (
	"context"
	"math"
	"math/rand/v2"
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
//
// Kills: batches weighed alike; K for K−1.
func TestScatter(t *testing.T) {
	batches := []Batch{{Images: 2, Mean: [][]float32{{1}}}, {Images: 2, Mean: [][]float32{{3}}}, {Images: 4, Mean: [][]float32{{4}}}}
	mean, se := scatter(batches, func(k int) float64 { return float64(batches[k].Mean[0][0]) })
	if mean != 3 || math.Abs(se-0.75) > 1e-12 {
		t.Errorf("mean %v, squared standard error %v, want 3 and 0.75", mean, se)
	}
}

// The noise of a layer is how far statistics of random batches really are from
// those of endless data: Gaussian elements of mean 0 and variance 1, 50 batches
// of 40 elements, whose mean has the squared standard error 1/2000, and whose
// variance 2/(39·50). The mean over 400 channels is known within 7 % for the
// actual squared error, and 1 % for the estimate: both get 5 times that.
func TestNoiseOfRandomBatches(t *testing.T) {
	t.Parallel()
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
	means, variances := p.noise(0, res.batches)
	var actual, actualVar float64
	for c := range int64(channels) {
		m, v := float64(res.Statistics[p.layers[0].mean.Offset+c]), float64(res.Statistics[p.layers[0].vari.Offset+c])-1
		actual, actualVar = actual+m*m/channels, actualVar+v*v/channels
	}
	for _, x := range []struct{ got, want, within float64 }{
		{means, 1. / 2000, 0.05}, {variances, 2. / (39 * 50), 0.05}, {actual, 1. / 2000, 0.35}, {actualVar, 2. / (39 * 50), 0.35},
	} {
		if math.Abs(x.got/x.want-1) > x.within {
			t.Errorf("squared error %v, want %v within %v", x.got, x.want, x.within)
		}
	}
}

// Split gives two halves of the batches that make up the whole, other ones each
// time.
func TestSplit(t *testing.T) {
	p := plan(t, 1, 1)
	all := given{{2, 1, 1}, {2, 3, 1}, {2, 5, 1}, {2, 7, 1}}
	res := recompute(t, p, all, Reference)
	if res.Batches() != 4 {
		t.Errorf("%d batches, want 4", res.Batches())
	}
	rng := rand.New(rand.NewPCG(1, 1))
	at := p.layers[0].mean.Offset
	seen := map[float32]bool{}
	for range 50 {
		a, b := p.Split(res, rng)
		if a[at]+b[at] != 8 {
			t.Fatalf("halves with means %v and %v, which do not average 4", a[at], b[at])
		}
		seen[a[at]] = true
	}
	if len(seen) != 5 { // 2, 3, 4 (twice), 5, 6
		t.Errorf("means of halves: %v, want all five", seen)
	}
	if want := recompute(t, p, all, Reference).Statistics; res.Statistics[at] != want[at] {
		t.Error("splitting changed the result")
	}
	odd := recompute(t, p, all[:3], EqualBatches)
	if a, b := p.Split(odd, rng); a[at] == b[at] {
		t.Error("of three batches, halves hold one each")
	}
}
