package averages

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A run makes the files of one training run.
type run struct {
	r    *rand.Rand
	size int // weights
}

func newRun(seed uint64, size int) *run { return &run{rand.New(rand.NewPCG(seed, 7)), size} }

// sgd returns iterates of SGD with momentum about a minimum, as an AR(2) process with a curvature for each weight. The rate falls by
// the factor decay from file to file. A share of the weights is frozen.
func (r *run) sgd(files int, noise, decay, frozen float64) (out [][]float32) {
	x, v, curvature := make([]float64, r.size), make([]float64, r.size), make([]float64, r.size)
	for i := range x {
		x[i], curvature[i] = 0.1*r.r.NormFloat64()+0.3, math.Exp(-4*r.r.Float64())
	}
	centre := slices.Clone(x)
	for i := range x {
		x[i] += 0.05 * r.r.NormFloat64()
	}
	rate := 0.1
	for range files {
		for range 10 {
			for i := range x {
				if float64(i) < frozen*float64(r.size) {
					continue
				}
				v[i] = 0.9*v[i] - rate*(curvature[i]*(x[i]-centre[i])+noise*r.r.NormFloat64())
				x[i] += v[i]
			}
		}
		out = append(out, rounded(x))
		rate *= decay
	}
	return out
}

func rounded(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// mean returns a mean in float32, as programs compute it.
func mean(files [][]float32, weights ...float64) []float32 {
	out := make([]float32, len(files[0]))
	for k, f := range files {
		w := 1 / float32(len(files))
		if weights != nil {
			w = float32(weights[k])
		}
		for i, v := range f {
			out[i] += w * v
		}
	}
	return out
}

// half rounds to float16 (for normal numbers), and bfloat to bfloat16.
func half(x []float32) []float32   { return cut(x, 13) }
func bfloat(x []float32) []float32 { return cut(x, 16) }

func cut(x []float32, bits int) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		b := math.Float32bits(v) + 1<<(bits-1)
		out[i] = math.Float32frombits(b >> bits << bits)
	}
	return out
}

func filesOf(found []Mean) (files []int) {
	for _, m := range found {
		files = append(files, m.File)
	}
	return files
}

// Averages of iterates are found in every place, type and number, and no iterate is called one.
func TestFind(t *testing.T) {
	for name, with := range map[string]func(r *run, s [][]float32) (files [][]float32, want []int){
		"none":      func(r *run, s [][]float32) ([][]float32, []int) { return s, nil },
		"all, last": func(r *run, s [][]float32) ([][]float32, []int) { return append(s, mean(s)), []int{len(s)} },
		"all, first": func(r *run, s [][]float32) ([][]float32, []int) {
			return append([][]float32{mean(s)}, s...), []int{0}
		},
		"all, in the middle": func(r *run, s [][]float32) ([][]float32, []int) {
			return slices.Insert(slices.Clone(s), len(s)/2, mean(s)), []int{len(s) / 2}
		},
		"the last three": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), mean(s[len(s)-3:])), []int{len(s)}
		},
		"two": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), mean([][]float32{s[0], s[3]})), []int{len(s)}
		},
		"the best": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), mean([][]float32{s[0], s[2], s[3], s[5], s[6]})), []int{len(s)}
		},
		"two averages": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), mean(s), mean(s[4:])), []int{len(s), len(s) + 1}
		},
		"two averages of the best": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), mean([][]float32{s[0], s[2], s[3], s[5], s[6]}), mean([][]float32{s[1], s[3], s[6]})), []int{len(s), len(s) + 1}
		},
		"float16": func(r *run, s [][]float32) ([][]float32, []int) {
			return append(slices.Clone(s), half(mean(s))), []int{len(s)}
		},
		"of float16": func(r *run, s [][]float32) ([][]float32, []int) {
			s = slices.Clone(s)
			for i := range s {
				s[i] = half(s[i])
			}
			return append(s, half(mean(s))), []int{len(s)}
		},
		"a moving average of each": func(r *run, s [][]float32) (files [][]float32, want []int) {
			e := mean(s[:2], 0.3, 0.7)
			for _, f := range s {
				e = mean([][]float32{e, f}, 0.8, 0.2)
				want = append(want, len(files)+1)
				files = append(files, f, e)
			}
			return files, want
		},
		"a moving average, at the end": func(r *run, s [][]float32) ([][]float32, []int) {
			e := s[0]
			for _, f := range s[1:] {
				e = mean([][]float32{e, f}, 0.7, 0.3)
			}
			return append(slices.Clone(s), e), []int{len(s)}
		},
		"running means": func(r *run, s [][]float32) (files [][]float32, want []int) {
			files = append(files, s[0])
			for k := 2; k <= len(s); k++ {
				want = append(want, len(files)+1)
				files = append(files, s[k-1], mean(s[:k]))
			}
			return files, want
		},
	} {
		for seed := range uint64(6) {
			r := newRun(seed, []int{60, 700, 5000}[seed%3])
			s := r.sgd([]int{7, 10, 14, 20}[seed%4], 0.3, 1, []float64{0, 0.5}[seed%2])
			files, want := with(r, s)
			if got := filesOf(Find(files)); !slices.Equal(got, want) {
				t.Errorf("%s, seed %d, %d weights, %d iterates: %v, want %v", name, seed, r.size, len(s), got, want)
			}
		}
	}
}

// Sets of iterates, in hard cases, hold no average.
func TestFindNone(t *testing.T) {
	tried := 0
	none := func(name string, files [][]float32) {
		t.Helper()
		tried++
		if got := Find(files); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for seed := range uint64(8) {
		for _, size := range []int{1, 2, 3, 5, 12, 40, 400} {
			for _, files := range []int{2, 3, 4, 5, 9, 24} {
				name := fmt.Sprintf("seed %d, %d weights, %d files", seed, size, files)
				s := newRun(seed, size).sgd(files, 0.3, 1, 0)
				none(name, s)
				none(name+", falling rate", newRun(seed, size).sgd(files, 0.3, 0.3, 0))
				none(name+", little noise", newRun(seed, size).sgd(files, 1e-4, 1, 0))
				none(name+", no noise", newRun(seed, size).sgd(files, 0, 1, 0))
				none(name+", frozen", newRun(seed, size).sgd(files, 0.3, 1, 0.9))
				for i := range s {
					s[i] = half(s[i])
				}
				none(name+", float16", s)
				for i := range s {
					s[i] = bfloat(s[i])
				}
				none(name+", bfloat16", s)
				if files > 3 {
					s[2] = slices.Clone(s[0])
					none(name+", a copy", s)
				}
			}
		}
	}
	t.Logf("%d sets", tried)
}

// Steps of gradient descent, without noise, lie on a smooth path. A constant step puts each file in the middle of its neighbours.
func TestFindSmooth(t *testing.T) {
	for _, rate := range []float64{1e-4, 1e-2, 0.1, 0.5} {
		for files := 3; files < 15; files++ {
			var line, descent, spiral [][]float32
			for k := range files {
				a, b, c := make([]float64, 500), make([]float64, 500), make([]float64, 500)
				for i := range a {
					begin := math.Sin(float64(i * i))
					a[i] = begin + rate*float64(k)*math.Cos(float64(i))
					b[i] = 0.2 + begin*math.Pow(1-rate*math.Exp(-float64(i%7)), float64(k))
					c[i] = begin + math.Pow(0.8, float64(k))*math.Cos(float64(k)+float64(i))
				}
				line, descent, spiral = append(line, rounded(a)), append(descent, rounded(b)), append(spiral, rounded(c))
			}
			for name, s := range map[string][][]float32{"line": line, "descent": descent, "spiral": spiral} {
				if got := Find(s); got != nil {
					t.Errorf("%s, rate %g, %d files: %v", name, rate, files, got)
				}
			}
		}
	}
}

func BenchmarkFind(b *testing.B) {
	s := newRun(1, 1<<15).sgd(20, 0.3, 1, 0)
	for b.Loop() {
		Find(s)
	}
}
