package swag_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// lowRankCovariance returns Σ_lr, d×d.
func lowRankCovariance(p *swag.Posterior) []float64 {
	_, _, deviations := contents(p)
	d := int(p.Len())
	out := make([]float64, d*d)
	for _, column := range deviations {
		for i, a := range column {
			for j, b := range column {
				out[i*d+j] += float64(a) * float64(b) / float64(p.Options.Divisor)
			}
		}
	}
	return out
}

// TestFinalGolden compares Σ_lr with NumPy's singular value decomposition of
// all deviations from θ_SWA. The columns themselves are only determined up to
// their signs. D is stored in float32, hence 1e-6 of the two weights' standard
// deviations.
func TestFinalGolden(t *testing.T) {
	var cases []struct {
		Name     string
		Rank     int
		DiagOnly bool `json:"diag_only"`
		Theta0   weights.Slice
		Thetas   [][]float64
		Final    []float64
	}
	testfile.JSON(t, "testdata/golden.json", &cases)
	for _, c := range cases {
		if c.DiagOnly {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			it := iterates(small(t), len(c.Thetas), func(t, i int) float64 { return c.Thetas[t][i] })
			models := len(c.Thetas)
			if c.Theta0 != nil {
				it.Theta0 = &swag.Checkpoint{Path: "theta0.onnx", Theta: c.Theta0}
				models++
			}
			p := fit(t, it, swag.FitOptions{Rank: c.Rank, Deviations: swag.Final})
			want := swag.Options{Rank: c.Rank, Columns: min(c.Rank, models-1), Divisor: models - 1, Deviations: swag.Final, Models: models, Theta0: c.Theta0 != nil}
			if !reflect.DeepEqual(p.Options, want) {
				t.Errorf("options %+v, want %+v", p.Options, want)
			}
			_, variance, _ := contents(p)
			d := len(variance)
			for at, got := range lowRankCovariance(p) {
				bound := 1e-6*math.Sqrt(variance[at/d]*variance[at%d]) + 1e-12*math.Abs(c.Final[at])
				if math.Abs(got-c.Final[at]) > bound {
					t.Errorf("Σ_lr %d, %d: %v, want %v", at/d, at%d, got, c.Final[at])
				}
			}
		})
	}
}

// The best rank K of all T deviations is all of them where T−1 ≤ K, so the
// variances of the low-rank part are those of the iterates with divisor T−1.
func TestFinalIsExact(t *testing.T) {
	for _, T := range []int{2, 5, 21} {
		p := fit(t, iterates(flat(t, 5000), T, noisy(1, 1e-2)), swag.FitOptions{Deviations: swag.Final})
		_, variance, deviations := contents(p)
		for i, v := range variance {
			got := 0.0
			for _, column := range deviations {
				got += float64(column[i]) * float64(column[i]) / float64(p.Options.Divisor)
			}
			if want := v * float64(T) / float64(T-1); math.Abs(got/want-1) > 1e-5 {
				t.Fatalf("T = %d, weight %d: variance %v in the low-rank part, %v on the diagonal", T, i, got, want)
			}
		}
	}
}

// TestReferenceGolden wants the bits of the authors' arithmetic in PyTorch.
//
// Kills, where they are not asked for: float32 moments; the first deviation
// that is not zero; a divisor other than max_num_models−1.
func TestReferenceGolden(t *testing.T) {
	var golden struct {
		Iterates []weights.Slice
		Cases    []struct {
			Rank, Models   int
			Mean, Variance []float64
			Deviations     [][]float32
		}
	}
	testfile.JSON(t, "testdata/reference.json", &golden)
	for _, c := range golden.Cases {
		t.Run(fmt.Sprintf("T=%d K=%d", c.Models, c.Rank), func(t *testing.T) {
			it := iterates(flat(t, len(golden.Iterates[0])), c.Models, func(t, i int) float64 { return float64(golden.Iterates[t][i]) })
			p := fit(t, it, swag.FitOptions{Rank: c.Rank, Reference: true})
			if o := p.Options; o.Divisor != c.Rank-1 || o.Columns != min(c.Rank, c.Models) || o.Compat != "reference" {
				t.Errorf("options %+v", o)
			}
			mean, variance, deviations := contents(p)
			if !slices.Equal(mean, c.Mean) {
				t.Errorf("mean %v, want %v", mean, c.Mean)
			}
			if !slices.Equal(variance, c.Variance) {
				t.Errorf("variance %v, want %v", variance, c.Variance)
			}
			if !slices.EqualFunc(deviations, c.Deviations, slices.Equal) {
				t.Error("the deviations differ")
			}
			if c.Models <= c.Rank && slices.ContainsFunc(deviations[0], func(v float32) bool { return v != 0 }) {
				t.Error("the first deviation is not zero")
			}
			theta0 := it
			theta0.Theta0, theta0.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
			if c.Models > 2 && !slices.EqualFunc(third(contents(fit(t, theta0, swag.FitOptions{Rank: c.Rank, Reference: true}))), deviations, slices.Equal) {
				t.Error("θ0 is not a model like the others")
			}
		})
	}
}

func third[A, B, C any](_ A, _ B, c C) C { return c }

// fits lists the ways to fit; all must go through the tests below.
var fits = map[string]swag.FitOptions{
	"running":       {Rank: 3},
	"running, long": {Rank: 20},
	"final":         {Rank: 3, Deviations: swag.Final},
	"final, long":   {Rank: 20, Deviations: swag.Final},
	"diagonal":      {DiagOnly: true},
	"reference":     {Rank: 3, Reference: true},
}

func TestFitSameBits(t *testing.T) {
	t.Parallel()
	const d = 2*4096 + 5
	for name, opts := range fits {
		t.Run(name, func(t *testing.T) {
			it := iterates(flat(t, d), 6, noisy(1, 0.1))
			want := fitBytes(t, it, opts)
			for _, opts.BlockLen = range []int{1, 7, 4096, d} {
				for _, opts.Workers = range []int{1, 2, 8} {
					if opts.BlockLen == 1 && opts.Workers > 1 {
						continue
					}
					var last, size int64
					opts.Progress = func(done, total int64) {
						if done < last || done > total {
							t.Errorf("progress %d of %d after %d", done, total, last)
						}
						last, size = done, total
					}
					if got := fitBytes(t, it, opts); !bytes.Equal(got, want) {
						t.Errorf("block %d, %d workers: another file", opts.BlockLen, opts.Workers)
					}
					passes := int64(1)
					if opts.Deviations == swag.Final {
						passes = 2
					}
					if last != size || size != passes*4*6*d {
						t.Errorf("block %d, %d workers: progress ends at %d of %d", opts.BlockLen, opts.Workers, last, size)
					}
				}
			}
		})
	}
}

// A fit that is continued gives the file of one that never stopped, whatever is
// known of the old checkpoints.
func TestFitContinues(t *testing.T) {
	t.Parallel()
	for name, opts := range fits {
		for _, theta0 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", θ0 ", theta0), func(t *testing.T) {
				whole := iterates(flat(t, 9000), 9, noisy(1, 0.1))
				if theta0 {
					whole.Theta0, whole.Checkpoints = &whole.Checkpoints[0], whole.Checkpoints[1:]
				}
				want := fitBytes(t, whole, opts)
				for _, cut := range [][]int{{2}, {7}, {2, 3, 6}} {
					it := whole
					it.Checkpoints = whole.Checkpoints[:cut[0]]
					data := fitBytes(t, it, opts)
					for i, from := range cut {
						to := len(whole.Checkpoints)
						if i+1 < len(cut) {
							to = cut[i+1]
						}
						previous, err := swag.Parse("p.swag", data)
						if err != nil {
							t.Fatal(err)
						}
						next := swag.Input{Layout: whole.Layout, Previous: previous, Checkpoints: whole.Checkpoints[from:to]}
						if opts.Deviations == swag.Final || opts.Reference {
							wantError(t, swag.Fit(t.Context(), new(memory), next, swag.FitOptions{}), "p.swag: ")
							return
						}
						data = fitBytes(t, next, swag.FitOptions{})
					}
					if !bytes.Equal(data, want) {
						t.Errorf("continued at %v: another file than from all at once", cut)
					}
				}
			})
		}
	}
}

func TestFitContinuesRefuses(t *testing.T) {
	p := fit(t, iterates(flat(t, 50), 4, noisy(0, 1)), swag.FitOptions{})
	next := iterates(flat(t, 50), 1, noisy(0, 1))
	next.Previous, next.Theta0 = p, &next.Checkpoints[0]
	wantError(t, swag.Fit(t.Context(), new(memory), next, swag.FitOptions{}), "p.swag", "another network")
	other := iterates(flat(t, 51), 1, noisy(0, 1))
	other.Previous = p
	wantError(t, swag.Fit(t.Context(), new(memory), other, swag.FitOptions{}), "p.swag", "another network")
	next.Theta0 = nil
	wantError(t, swag.Fit(t.Context(), new(memory), next, swag.FitOptions{ReferToCheckpoints: true}), "anew")
}

// Deviations that are found again in the checkpoints have the bits of stored
// ones, and so do the members.
func TestReferToCheckpoints(t *testing.T) {
	t.Parallel()
	for name, opts := range fits {
		for _, theta0 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", θ0 ", theta0), func(t *testing.T) {
				it := iterates(flat(t, 9000), 7, noisy(1, 0.1))
				if theta0 {
					it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
				}
				stored := fit(t, it, opts)
				opts := opts
				opts.ReferToCheckpoints = true
				if opts.Reference {
					wantError(t, swag.Fit(t.Context(), new(memory), it, opts), "reference")
					return
				}
				data := fitBytes(t, it, opts)
				p, err := swag.Parse("r.swag", data)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Verify(); err != nil {
					t.Error(err)
				}
				if stored.Options.Columns == 0 {
					if len(p.Needs()) != 0 || !reflect.DeepEqual(p.Options, stored.Options) {
						t.Errorf("a diagonal needs no checkpoints: %v", p.Needs())
					}
					return
				}
				if _, err := swag.NewSampler(p, swag.SampleOptions{Scale: 0.5}); err == nil {
					t.Error("sampled without checkpoints")
				}
				if _, err := swag.NewSampler(p, swag.SampleOptions{Scale: 1, Covariance: swag.Diagonal}); err != nil {
					t.Errorf("the diagonal needs no checkpoints: %v", err)
				}
				all := it.Checkpoints
				if theta0 {
					all = append([]swag.Checkpoint{*it.Theta0}, all...)
				}
				var vectors []weights.Vector
				for _, c := range p.Needs() {
					i := slices.IndexFunc(all, func(o swag.Checkpoint) bool { return o.SHA256 == c.SHA256 })
					vectors = append(vectors, all[i].Theta)
				}
				wantError(t, p.Attach(vectors[1:], nil), "r.swag", "want")
				if err := p.Attach(vectors, nil); err != nil {
					t.Fatal(err)
				}
				if len(p.Needs()) != 0 {
					t.Error("needs more")
				}
				_, _, got := contents(p)
				_, _, want := contents(stored)
				if !slices.EqualFunc(got, want, slices.Equal) {
					t.Error("the deviations differ")
				}
				o := swag.SampleOptions{Seed: 3, Scale: 0.5}
				if !slices.EqualFunc(draw(t, p, o, 0, 5), draw(t, stored, o, 0, 5), slices.Equal) {
					t.Error("the members differ")
				}
			})
		}
	}
}

// TestVarianceRatio prints how much of the variance the low-rank part has when
// the iterates are independent, as facts about the method that a user of few
// checkpoints should know, and checks it against theory. For rows θ_i − θ̄_i of
// i.i.d. iterates E[dev_i²] = σ²(1 − 1/i), i counted from 1.
func TestVarianceRatio(t *testing.T) {
	t.Parallel()
	const d, K = 20_000, 20
	t.Logf("low-rank variance over true variance, i.i.d. iterates, K = %d", K)
	t.Logf("%6s %12s %14s %10s", "T", "running", "reference's", "final")
	for _, T := range []int{5, 10, 20, 140} {
		r := rand.New(rand.NewPCG(uint64(T), 1))
		it := iterates(flat(t, d), T, func(_, _ int) float64 { return 1 + 0.01*r.NormFloat64() })
		ratio := func(opts swag.FitOptions) float64 {
			p := fit(t, it, opts)
			_, _, deviations := contents(p)
			sum := 0.0
			for _, column := range deviations {
				for _, v := range column {
					sum += float64(v) * float64(v)
				}
			}
			return sum / float64(p.Options.Divisor) / d / 1e-4
		}
		columns := min(K, T)
		squares := 0.0
		for i := T - columns + 1; i <= T; i++ {
			squares += 1 - 1/float64(i)
		}
		// The leading 20 of 139 equal directions: all of them when T−1 ≤ K.
		wantFinal, tolerance := 1.0, 0.02
		if T-1 > K {
			wantFinal = float64(K) / float64(T-1) * 1.1 // eigenvalues spread by √(T/d) about the mean
			tolerance = 0.1 * wantFinal
		}
		running, reference, final := ratio(swag.FitOptions{}), ratio(swag.FitOptions{Reference: true}), ratio(swag.FitOptions{Deviations: swag.Final})
		t.Logf("%6d %12.2f %14.2f %10.2f", T, running, reference, final)
		for _, c := range []struct{ got, want, tolerance float64 }{
			{running, squares / float64(columns-1), 0.02},
			{reference, squares / (K - 1), 0.02},
			{final, wantFinal, tolerance},
		} {
			if math.Abs(c.got-c.want) > c.tolerance {
				t.Errorf("T = %d: ratio %.3f, want %.3f", T, c.got, c.want)
			}
		}
	}
}
