package bnupdate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/weights"
)

// inputs is a Runner over batches of the input of batch-norm layers: of each
// its shape N×C×… and its elements, row-major. Layer i sees i+1 times them.
type inputs struct {
	Shapes [][]int64
	Data   [][]float64 `json:"batches"`
	layers int
	edit   func(k int, b *Batch) error // or nil
}

func (in *inputs) Batches() int { return len(in.Data) }

func (in *inputs) Run(ctx context.Context, k int) (Batch, error) {
	shape := in.Shapes[k]
	b := Batch{Images: int(shape[0])}
	for i := range in.layers {
		var mean, variance []float32
		for c := range int(shape[1]) {
			m, v := moments(channel(in.Data[k], shape, c))
			factor := float64(i + 1)
			mean, variance = append(mean, float32(factor*m)), append(variance, float32(factor*factor*v))
		}
		b.Mean, b.Var, b.Shapes = append(b.Mean, mean), append(b.Var, variance), append(b.Shapes, shape)
	}
	if in.edit != nil {
		return b, in.edit(k, &b)
	}
	return b, nil
}

// channel returns the elements of channel c.
func channel(x []float64, shape []int64, c int) (out []float64) {
	area := len(x) / int(shape[0]*shape[1])
	for n := range int(shape[0]) {
		at := (n*int(shape[1]) + c) * area
		out = append(out, x[at:at+area]...)
	}
	return out
}

// moments returns mean and population variance.
func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

// random gives batches of the given sizes whose means differ.
func random(layers int, shape []int64, sizes ...int64) *inputs {
	r := rand.New(rand.NewPCG(1, 2))
	in := &inputs{layers: layers}
	for _, n := range sizes {
		s := append([]int64{n}, shape...)
		elements, _ := weights.Elements(s)
		x, shift := make([]float64, elements), r.NormFloat64()
		for i := range x {
			x[i] = shift + 3*r.NormFloat64()
		}
		in.Shapes, in.Data = append(in.Shapes, s), append(in.Data, x)
	}
	return in
}

// plan is what NewPlan makes for the given number of layers. In its layout the
// variances come first, and a parameter lies in between.
func plan(t testing.TB, layers int, channels int64) *Plan {
	t.Helper()
	var tensors []weights.Tensor
	for i := range layers {
		for _, what := range []string{"var", "weight", "mean"} {
			role := weights.Statistic
			if what == "weight" {
				role = weights.Parameter
			}
			tensors = append(tensors, weights.Tensor{Name: fmt.Sprintf("bn%d.%s", i, what), Shape: []int64{channels}, DType: weights.F32, Role: role})
		}
	}
	l, err := weights.NewLayout(tensors)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{kept: make([]float32, l.Len(weights.Statistic))}
	for i := range layers {
		mean, _ := l.Find(fmt.Sprintf("bn%d.mean", i))
		vari, _ := l.Find(fmt.Sprintf("bn%d.var", i))
		p.layers = append(p.layers, layer{name: mean.Name, mean: mean, vari: vari})
	}
	return p
}

func recompute(t testing.TB, p *Plan, r Runner, rule Rule) Result {
	t.Helper()
	res, err := Recompute(t.Context(), p, r, Options{Rule: rule, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// wantLayer compares layer i's statistics, at a relative tolerance of 1e-6 of
// the standard deviation or variance.
func wantLayer(t *testing.T, p *Plan, res Result, i int, mean, variance []float64) {
	t.Helper()
	for c := range mean {
		m, v := float64(res.Statistics[int(p.layers[i].mean.Offset)+c]), float64(res.Statistics[int(p.layers[i].vari.Offset)+c])
		if math.Abs(m-mean[c]) > 1e-6*math.Sqrt(variance[c]) || math.Abs(v-variance[c]) > 1e-6*variance[c] {
			t.Errorf("layer %d, channel %d: mean %v, variance %v, want %v, %v", i, c, m, v, mean[c], variance[c])
		}
	}
}

// TestGolden compares with PyTorch's layers: testdata/make.py.
func TestGolden(t *testing.T) {
	var cases []struct {
		Name string
		inputs
		Rules map[string][2][]float64 // mean and variance
	}
	testfile.JSON(t, "testdata/golden.json", &cases)
	for _, c := range cases {
		c.layers = 1
		p := plan(t, 1, c.Shapes[0][1])
		for _, rule := range []Rule{Reference, EqualBatches, Pooled} {
			t.Run(c.Name+"/"+rule.String(), func(t *testing.T) {
				want, ok := c.Rules[rule.String()]
				if !ok {
					t.Fatal("no such rule in golden.json")
				}
				wantLayer(t, p, recompute(t, p, &c.inputs, rule), 0, want[0], want[1])
			})
		}
	}
}

// TestRecursion compares with PyTorch's running update, step by step.
//
// Kills: ONNX's momentum for PyTorch's (inverted); a biased variance; a short
// last batch weighted as a full one (Reference), or not (EqualBatches).
func TestRecursion(t *testing.T) {
	const layers = 3
	in := random(layers, []int64{4, 2, 2}, 8, 8, 8, 8, 2)
	p := plan(t, layers, 4)
	for rule, momentum := range map[Rule]func(k, b, n float64) float64{
		Reference:    func(_, b, n float64) float64 { return b / (n + b) },
		EqualBatches: func(k, _, _ float64) float64 { return 1 / (k + 1) },
	} {
		res := recompute(t, p, in, rule)
		if res.Images != 34 || len(res.Statistics) != 2*4*layers || len(res.BetweenShare) != layers {
			t.Errorf("%v: %d images, %d statistics, %d shares", rule, res.Images, len(res.Statistics), len(res.BetweenShare))
		}
		mean, variance := make([]float64, 4), []float64{1, 1, 1, 1}
		n := 0.0
		for k, x := range in.Data {
			b := float64(in.Shapes[k][0])
			m := momentum(float64(k), b, n)
			for c := range mean {
				elements := channel(x, in.Shapes[k], c)
				mu, v := moments(elements)
				unbiased := v * float64(len(elements)) / float64(len(elements)-1)
				mean[c] = (1-m)*mean[c] + m*mu
				variance[c] = (1-m)*variance[c] + m*unbiased
			}
			n += b
		}
		for i := range layers {
			m, v, f := make([]float64, 4), make([]float64, 4), float64(i+1)
			for c := range m {
				m[c], v[c] = f*mean[c], f*f*variance[c]
			}
			wantLayer(t, p, res, i, m, v)
		}
	}
}

// Kills: a layer's element count taken from its images alone, or from another
// layer. Of 3 images, the layers see 3 and 12 elements per channel.
func TestUnbiasedByElements(t *testing.T) {
	p := plan(t, 2, 1)
	in := random(2, []int64{1}, 3)
	in.edit = func(_ int, b *Batch) error {
		b.Mean, b.Var = [][]float32{{0}, {0}}, [][]float32{{1}, {1}}
		b.Shapes = [][]int64{{3, 1}, {3, 1, 2, 2}}
		return nil
	}
	for _, rule := range []Rule{Reference, EqualBatches, Pooled} {
		res := recompute(t, p, in, rule)
		wantLayer(t, p, res, 0, []float64{0}, []float64{3. / 2})
		wantLayer(t, p, res, 1, []float64{0}, []float64{12. / 11})
	}
}

// Kills: batches combined in the order in which workers finish. Two means of
// 10¹⁷ cancel, and what they swallow before depends on the order.
func TestSameBits(t *testing.T) {
	p := plan(t, 2, 4)
	in := random(2, []int64{4, 3}, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 3)
	huge := func(k int, b *Batch) error {
		b.Mean[0][0] += map[int]float32{0: 1e17, 6: -1e17}[k]
		return nil
	}
	in.edit = huge
	want := recompute(t, p, in, Reference)
	last := make(chan struct{})
	for _, workers := range []int{0, 1, 3, 12} {
		if workers == 12 { // batch 0 comes last
			in.edit = func(k int, b *Batch) error {
				switch k {
				case 11:
					close(last)
				case 0:
					<-last
				}
				return huge(k, b)
			}
		}
		if got, err := Recompute(t.Context(), p, in, Options{Workers: workers}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %v, %v, want %v", workers, got, err, want)
		}
	}
}

// TestBetweenShare: class-sorted data, 10 classes whose means are 1 standard
// deviation from each other, loses most of its variance, and says so; shuffled it does not.
func TestBetweenShare(t *testing.T) {
	const n, b = 1000, 128
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i*10/n) + r.NormFloat64()
	}
	p := plan(t, 1, 1)
	_, pooled := moments(x)
	for _, c := range []struct {
		name                                 string
		minShare, maxShare, minLeft, maxLeft float64 // what is left of the variance
	}{
		{"sorted", 0.8, 0.9, 0.1, 0.2},
		{"shuffled", 0, 0.02, 0.98, 1.02},
	} {
		in := &inputs{layers: 1}
		for at := 0; at < n; at += b {
			batch := x[at:min(at+b, n)]
			in.Data, in.Shapes = append(in.Data, batch), append(in.Shapes, []int64{int64(len(batch)), 1})
		}
		res := recompute(t, p, in, Reference)
		left := float64(res.Statistics[0]) / pooled
		if s := res.BetweenShare[0]; s < c.minShare || s > c.maxShare || left < c.minLeft || left > c.maxLeft {
			t.Errorf("%s: share between batches %.3f, variance left %.3f", c.name, s, left)
		}
		r.Shuffle(n, func(i, j int) { x[i], x[j] = x[j], x[i] })
	}
	same := random(1, []int64{1}, 4, 4)
	clear(same.Data[0])
	clear(same.Data[1])
	if s := recompute(t, p, same, Reference).BetweenShare[0]; s != 0 {
		t.Errorf("share of a constant channel: %v", s)
	}
}

func TestRecomputeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	at := func(k int, f func(b *Batch)) func(int, *Batch) error {
		return func(i int, b *Batch) error {
			if i == k {
				f(b)
			}
			return nil
		}
	}
	for _, c := range []struct {
		name string
		in   *inputs
		edit func(int, *Batch) error
		want []string
	}{
		{"no batches", random(2, []int64{3}), nil, []string{"no batches"}},
		// Kills: the variance 0 that ONNX Runtime gives for one element taken as it is.
		{"one image left over", random(2, []int64{3}, 4, 4, 1), nil, []string{`"bn0.mean"`, "batch 2", "one element per channel"}},
		{"NaN mean", random(2, []int64{3}, 4, 4), at(1, func(b *Batch) { b.Mean[0][2] = nan }), []string{`"bn0.mean"`, "batch 1", "channel 2", "NaN"}},
		{"infinite variance", random(2, []int64{3}, 4, 4), at(0, func(b *Batch) { b.Var[1][0] = inf }), []string{`"bn1.mean"`, "batch 0", "channel 0", "+Inf"}},
		{"variance beyond float32 once it is unbiased", random(2, []int64{3}, 4, 4), func(_ int, b *Batch) error { b.Var[1][0] = 3.3e38; return nil },
			[]string{`"bn1.mean"`, "channel 0", "beyond float32", "+Inf"}},
		{"channels", random(2, []int64{3}, 4, 4), at(1, func(b *Batch) { b.Var[1] = b.Var[1][:2] }), []string{`"bn1.mean"`, "batch 1", "want 3"}},
		{"runner", random(2, []int64{3}, 4, 4), func(int, *Batch) error { return errFire }, []string{errFire.Error()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.edit = c.edit
			_, err := Recompute(t.Context(), plan(t, 2, 3), c.in, Options{Workers: 2})
			for _, part := range c.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want one with %q", err, part)
				}
			}
		})
	}
}

var errFire = errors.New("session on fire")

func TestRecomputeStops(t *testing.T) {
	p := plan(t, 1, 3)
	in := random(1, []int64{3}, 4, 4, 4, 4, 4, 4, 4, 4)
	ran := 0
	in.edit = func(int, *Batch) error { ran++; return errFire }
	if _, err := Recompute(t.Context(), p, in, Options{}); !errors.Is(err, errFire) || ran != 1 {
		t.Errorf("runner's error: %v after %d batches", err, ran)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in.edit = func(int, *Batch) error { cancel(); return nil }
	if _, err := Recompute(ctx, p, in, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Of data sorted by class much variance lies between batches; shuffled by image it is
// about 1/b. 10 classes, whose means differ by a standard deviation.
func TestBetweenShareSorted(t *testing.T) {
	const n, b, channels = 4100, 32, 6
	r := rand.New(rand.NewPCG(1, 2))
	class := make([]int, n)
	means := make([]float64, 10*channels)
	for i := range means {
		means[i] = r.NormFloat64()
	}
	for i := range class {
		class[i] = i * 10 / n
	}
	for _, sorted := range []bool{true, false} {
		if !sorted {
			r.Shuffle(n, func(i, j int) { class[i], class[j] = class[j], class[i] })
		}
		in := &inputs{layers: 1}
		for at := 0; at < n; at += b {
			var x []float64
			for i := at; i < min(at+b, n); i++ {
				for c := range channels {
					x = append(x, means[class[i]*channels+c]+r.NormFloat64())
				}
			}
			in.Data, in.Shapes = append(in.Data, x), append(in.Shapes, []int64{int64(len(x) / channels), channels})
		}
		share := recompute(t, plan(t, 1, channels), in, Reference).BetweenShare[0]
		if sorted && share < 0.4 || !sorted && (share < 0.5/b || share > 1.5/b) {
			t.Errorf("sorted %v: %v", sorted, share)
		}
	}
}
