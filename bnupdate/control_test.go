package bnupdate

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// set writes a layer's means and variances into a vector of statistics.
func set(statistics []float32, l layer, means, variances []float32) {
	copy(statistics[l.mean.Offset:], means)
	copy(statistics[l.vari.Offset:], variances)
}

// A correction by hand. The first channel lies 4 above the control, with twice its
// standard deviation: the control's mean moves by ½, so this one by 1, and both
// variances grow by one half. The second channel is dead in the control, which then
// knows nothing of its noise; the third is dead in the member, and stays so. The
// second layer keeps its statistics, although the control's differ.
//
// Kills: means moved by as much as the control's; the ratio of variances for that of
// standard deviations; the correction inverted; a division by 0; kept layers moved.
func TestCorrectByHand(t *testing.T) {
	p := plan(t, 2, 3)
	vector := func(means, variances, kept []float32) []float32 {
		s := make([]float32, len(p.kept))
		set(s, p.layers[0], means, variances)
		set(s, p.layers[1], kept, kept)
		return s
	}
	kept := []float32{7, 8, 9}
	control := Control{
		Some: vector([]float32{1, 0, 1}, []float32{2, 0, 2}, []float32{1, 1, 1}),
		All:  vector([]float32{1.5, 3, 4}, []float32{3, 5, 8}, []float32{2, 2, 2}),
	}
	got := vector([]float32{5, 6, 3}, []float32{8, 7, 0}, kept)
	want := vector([]float32{6, 6, 3}, []float32{12, 7, 0}, kept)
	p.layers = p.layers[:1]
	p.Correct(got, control)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A channel that hardly any image excites may be nearly dead in the control's few
// batches and alive in all: a member's is changed by the bounds, and no more.
//
// Kills: a factor of a million.
func TestCorrectIsBounded(t *testing.T) {
	p := plan(t, 1, 2)
	vector := func(means, variances []float32) []float32 {
		s := make([]float32, len(p.kept))
		set(s, p.layers[0], means, variances)
		return s
	}
	got := vector([]float32{3, 3}, []float32{4, 4})
	p.Correct(got, Control{
		Some: vector([]float32{0, 1}, []float32{1e-6, 1}),
		All:  vector([]float32{1, 0}, []float32{1, 1e-6}),
	})
	if want := vector([]float32{4, 2}, []float32{8, 2}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The control is corrected to what all batches give, to the last bit: SWA's
// statistics are the same however it comes by them.
func TestCorrectOfControl(t *testing.T) {
	p := plan(t, 3, 40)
	r := rand.New(rand.NewPCG(4, 1))
	draw := func() []float32 {
		s := make([]float32, len(p.kept))
		for _, l := range p.layers {
			for c := range l.mean.Len() {
				s[l.mean.Offset+c] = float32(10 * r.NormFloat64())
				s[l.vari.Offset+c] = float32(math.Exp(2 * r.NormFloat64()))
			}
		}
		return s
	}
	for range 100 {
		control := Control{Some: draw(), All: draw()}
		got := slices.Clone(control.Some)
		p.Correct(got, control)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(control.All[i]) {
				t.Fatalf("statistic %d: %v, want %v of %v", i, got[i], control.All[i], control.Some[i])
			}
		}
	}
}

// The first batches of a result are a result of these batches alone, by its own
// rule, and leave it as it was.
func TestFirst(t *testing.T) {
	in := random(2, []int64{3, 2}, 4, 4, 4, 4, 4, 2)
	p := plan(t, 2, 3)
	for _, rule := range []Rule{Reference, EqualBatches, Pooled} {
		whole := recompute(t, p, in, rule)
		before := whole.Statistics
		for _, n := range []int{1, 4, 6, 7} {
			few := *in
			few.Shapes, few.Data = in.Shapes[:min(n, 6)], in.Data[:min(n, 6)]
			got, want := p.First(whole, n), recompute(t, p, &few, rule)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %d batches: %+v, want %+v", rule, n, got, want)
			}
		}
		if again := recompute(t, p, in, rule); !reflect.DeepEqual(whole, again) || !slices.Equal(before, again.Statistics) {
			t.Errorf("%v: the whole result changed: %+v, want %+v", rule, whole, again)
		}
	}
}
