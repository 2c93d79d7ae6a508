package swag_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func sampler(t testing.TB, p *swag.Posterior, opts swag.SampleOptions) *swag.Sampler {
	t.Helper()
	s, err := swag.NewSampler(p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// draw returns the given members.
func draw(t testing.TB, p *swag.Posterior, opts swag.SampleOptions, members ...int) [][]float32 {
	t.Helper()
	dst := make([][]float32, len(members))
	for j := range dst {
		dst[j] = make([]float32, p.Len())
	}
	if err := sampler(t, p, opts).Draw(t.Context(), dst, members); err != nil {
		t.Fatal(err)
	}
	return dst
}

// TestSequenceIsFixed pins the bits of normals and members: they are part of
// the format, and a failure here means that every stored ensemble changes.
func TestSequenceIsFixed(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		member int
		index  int64
		first  [3]uint64
		sum    string // of 100,000, which take every branch of the ziggurat
	}{
		{1, 0, 0, [3]uint64{0xbfea21c7259436d0, 0x3ff762df980a4c71, 0x3ff1db45a4215e0d}, "783a050651595ddf"},
		{1, 29, 1 << 35, [3]uint64{0x3ffd9cd062585658, 0xbfd2e1a10582a7f1, 0xbfd0bbf2e91e1d3c}, "6398328b02332c0b"},
		{math.MaxUint64, swag.MaxMembers - 1, 12345, [3]uint64{0xbff95cd864ba57f6, 0xbfe90ac7f9522968, 0xbffa455ecad684c7}, "a98cf35b4fa5f310"},
	} {
		z := make([]float64, 100_000)
		swag.Normals(z, c.seed, c.member, c.index)
		var first [3]uint64
		for i := range first {
			first[i] = math.Float64bits(z[i])
		}
		if sum := digest(z); first != c.first || sum != c.sum {
			t.Errorf("seed %d, member %d, index %d: %#x, %s", c.seed, c.member, c.index, first, sum)
		}
	}
	p := fit(t, iterates(flat(t, 5000), 6, func(t, i int) float64 { return float64((t*t+3)*(i%17)) / 16 }), swag.FitOptions{Rank: 4})
	const want = "a12102f96968e2ee"
	if got := digest(draw(t, p, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 3, 29)...); got != want {
		t.Errorf("members: %s", got)
	}
	const pairs = "e8d0b96de1568cbb"
	if got := digest(draw(t, p, swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: true}, 0, 1, 29)...); got != pairs {
		t.Errorf("members of pairs: %s", got)
	}
}

// digest returns the first eight bytes of the values' SHA-256.
func digest[T any](values ...T) string {
	h := sha256.New()
	for _, v := range values {
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// A member has the same bits for any number of workers, in any block, and in any list of members, with pairs and without. So an ensemble
// that is continued begins with the members that it had.
func TestDrawIsPure(t *testing.T) {
	t.Parallel()
	const d = 70_000 // two blocks of Draw
	p := fit(t, iterates(flat(t, d), 5, noisy(0, 1)), swag.FitOptions{Rank: 4})
	for _, antithetic := range []bool{false, true} {
		opts := swag.SampleOptions{Seed: 7, Scale: 0.5, Workers: 1, Antithetic: antithetic}
		want := draw(t, p, opts, 0, 1, 2, 3, 4, 5, 6)
		for _, workers := range []int{1, 2, 8} {
			opts.Workers = workers
			for _, members := range [][]int{{5}, {3, 0}, {6, 5, 4, 3, 2, 1, 0}, {2, 2}, {1, 0, 1}, {}} {
				for j, got := range draw(t, p, opts, members...) {
					if !slices.EqualFunc(got, want[members[j]], sameBits) {
						t.Errorf("antithetic %v, %d workers: member %d of %v differs", antithetic, workers, members[j], members)
					}
				}
			}
		}
		for _, at := range [][2]int{{0, 1}, {1, 4095}, {4095, 2}, {5000, 9001}, {d - 1, 1}, {d, 0}} {
			off, n := at[0], at[1]
			members := []int{6, 0, 1, 2, 4, 3}
			dst := make([][]float32, len(members))
			for j := range dst {
				dst[j] = make([]float32, n)
			}
			if err := sampler(t, p, opts).Block(t.Context(), dst, members, int64(off)); err != nil {
				t.Fatal(err)
			}
			for j, m := range members {
				if !slices.EqualFunc(dst[j], want[m][off:off+n], sameBits) {
					t.Errorf("antithetic %v, block of %d at %d: member %d differs", antithetic, n, off, m)
				}
			}
		}
		opts.Seed = 8
		if slices.Equal(draw(t, p, opts, 0)[0], want[0]) {
			t.Error("two seeds give one member")
		}
	}
}

// A member that is drawn when it is read is the member.
func TestVector(t *testing.T) {
	p := fit(t, iterates(flat(t, 10_000), 5, noisy(0, 1)), swag.FitOptions{})
	opts := swag.SampleOptions{Seed: 7, Scale: 0.5}
	want := draw(t, p, opts, 4)[0]
	v := sampler(t, p, opts).Vector(t.Context(), 4)
	if v.Len() != p.Len() {
		t.Errorf("%d weights", v.Len())
	}
	for _, at := range [][2]int{{0, 10_000}, {9_999, 1}, {1023, 3000}, {5, 0}} {
		got := make([]float32, at[1])
		if err := v.ReadAt(got, int64(at[0])); err != nil || !slices.Equal(got, want[at[0]:at[0]+at[1]]) {
			t.Errorf("%d weights at %d: %v, or not the member's", at[1], at[0], err)
		}
	}
}

// The members of an antithetic pair lie opposite each other about the mean, and
// the even ones are those that are drawn without pairs.
func TestAntithetic(t *testing.T) {
	p := fit(t, iterates(flat(t, 3000), 5, noisy(0, 1)), swag.FitOptions{})
	mean, _, _ := contents(p)
	for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
		opts := swag.SampleOptions{Seed: 7, Scale: 0.5, Covariance: c}
		plain := draw(t, p, opts, 0, 1, 2)
		opts.Antithetic = true
		pairs := draw(t, p, opts, 3, 0, 1, 2) // in any order, alone or not
		if !slices.Equal(pairs[1], plain[0]) || !slices.Equal(pairs[3], plain[2]) || slices.Equal(pairs[2], plain[1]) {
			t.Errorf("%v: even members must be as without pairs, odd ones not", c)
		}
		for j, k := range []int{3, 0, 1, 2} { // a member that is drawn alone shares no random part
			if alone := draw(t, p, opts, k)[0]; !slices.EqualFunc(alone, pairs[j], sameBits) {
				t.Errorf("%v: member %d has other bits beside its partner", c, k)
			}
		}
		for i, m := range mean {
			for _, pair := range [][2]int{{1, 2}, {3, 0}} {
				a, b := float64(pairs[pair[0]][i]), float64(pairs[pair[1]][i])
				if math.Abs((a+b)/2-m) > 1e-6*max(math.Abs(a), math.Abs(b)) {
					t.Fatalf("%v, weight %d: %v and %v about %v", c, i, a, b, m)
				}
			}
		}
	}
}

// The z2 of the pairs in a block of K are at right angles. Those of other blocks are independent. Each is N(0, I): its mean, covariance
// and fourth moments are those of many seeds.
func TestOrthogonal(t *testing.T) {
	const columns, seeds = 4, 20000
	p := fit(t, iterates(flat(t, 300), 6, noisy(0, 1)), swag.FitOptions{Rank: columns})
	for _, pair := range []int{0, 2, 3, 4, 6} {
		var mean [columns]float64
		var square, fourth [columns][columns]float64
		across := 0.0 // with the same place of another block
		for seed := range seeds {
			s, err := swag.NewSampler(p, swag.SampleOptions{Seed: uint64(seed), Scale: 0.5, Antithetic: true, Orthogonal: true})
			if err != nil {
				t.Fatal(err)
			}
			z := swag.Orthogonal(s, 2*pair)
			if own := swag.Z2(uint64(seed), 2*pair, columns); pair%columns == 0 && !slices.Equal(z, own) {
				t.Fatalf("pair %d, the first of a block: %v, want %v", pair, z, own)
			}
			for other := pair / columns * columns; other < pair; other++ {
				if dot := floats.Dot(z, swag.Orthogonal(s, 2*other)); math.Abs(dot) > 1e-12*floats.Norm(z, 2) {
					t.Fatalf("pairs %d and %d: product %v", other, pair, dot)
				}
			}
			across += floats.Dot(z, swag.Orthogonal(s, 2*(pair+columns))) / seeds
			for a := range columns {
				mean[a] += z[a] / seeds
				for b := range columns {
					square[a][b] += z[a] * z[b] / seeds
					fourth[a][b] += z[a] * z[a] * z[b] * z[b] / seeds
				}
			}
		}
		near := func(name string, got, want, variance float64) {
			if math.Abs(got-want) > 5*math.Sqrt(variance/seeds) {
				t.Errorf("pair %d, %s: %.4f, want %v", pair, name, got, want)
			}
		}
		near("product across blocks", across, 0, columns)
		for a := range columns {
			near("mean", mean[a], 0, 1)
			for b := range columns {
				if a == b {
					near("variance", square[a][a], 1, 2)
					near("fourth moment", fourth[a][a], 3, 96)
					continue
				}
				near("covariance", square[a][b], 0, 1)
				near("product of squares", fourth[a][b], 1, 8)
			}
		}
	}

	// Pairs are mirrored, the first of a block is that of independent pairs, and nothing depends on the order of the draws.
	opts := swag.SampleOptions{Seed: 7, Scale: 0.5, Antithetic: true}
	plain := draw(t, p, opts, 0, 1, 2, 3, 8)
	opts.Orthogonal = true
	got, again := draw(t, p, opts, 0, 1, 2, 3, 8), draw(t, p, opts, 8, 3, 2)
	for i, same := range []bool{true, true, false, false, true} {
		if slices.Equal(got[i], plain[i]) != same {
			t.Errorf("member %d of 0, 1, 2, 3, 8: other right angles than expected", i)
		}
	}
	for i, j := range map[int]int{4: 0, 3: 1, 2: 2} {
		if !slices.EqualFunc(got[i], again[j], sameBits) {
			t.Errorf("draw %d depends on the order", i)
		}
	}
	if _, err := swag.NewSampler(p, swag.SampleOptions{Scale: 0.5, Orthogonal: true}); err == nil {
		t.Error("orthogonal draws without pairs")
	}
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// One seed has the same random numbers at every scale, with either covariance
// and from every posterior.
func TestCommonRandomNumbers(t *testing.T) {
	z := func(p *swag.Posterior, scale float64, c swag.Covariance) []float64 {
		mean, variance, _ := contents(p)
		out := make([]float64, len(mean))
		for i, v := range draw(t, p, swag.SampleOptions{Seed: 5, Scale: scale, Covariance: c}, 2)[0] {
			out[i] = (float64(v) - mean[i]) / math.Sqrt(scale*variance[i])
		}
		return out
	}
	p := fit(t, iterates(flat(t, 500), 5, noisy(0, 1)), swag.FitOptions{})
	other := fit(t, iterates(flat(t, 500), 8, noisy(3, 10)), swag.FitOptions{DiagOnly: true})
	want := make([]float64, 500)
	swag.Normals(want, 5, 2, 0)
	for name, got := range map[string][]float64{"scale ½": z(p, 0.5, swag.Diagonal), "scale 2": z(p, 2, swag.Diagonal), "another posterior": z(other, 1, swag.Diagonal)} {
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-4 { // members are float32
				t.Fatalf("%s, weight %d: z1 = %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	low := lowRank(t, p, 5, 0.5, 2)
	for i, v := range lowRank(t, p, 5, 2, 2) {
		if math.Abs(v-2*low[i]) > 1e-5 {
			t.Fatalf("weight %d: low-rank part %v at scale 2, %v at scale ½", i, v, low[i])
		}
	}
}

// TestNormals compares ten million variates with the normal distribution: the
// first six moments, the tail beyond the ziggurat's, and χ² over bins that are
// narrower than its layers.
func TestNormals(t *testing.T) {
	t.Parallel()
	const n, bins, width, tail = 10_000_000, 160, 0.05, 3.654152885361009
	count := make([]float64, bins)
	var moment [7]float64
	beyond := 0.0
	z := make([]float64, 100_000)
	for at := 0; at < n; at += len(z) {
		swag.Normals(z, 2026, 11, int64(at))
		for _, v := range z {
			power := 1.0
			for k := range moment {
				moment[k] += power / n
				power *= v
			}
			if i := int(math.Floor(v/width)) + bins/2; i >= 0 && i < bins {
				count[i]++
			}
			if math.Abs(v) > tail {
				beyond++
			}
		}
	}
	for k, want := range []float64{1, 0, 1, 0, 3, 0, 15} {
		sd := math.Sqrt([]float64{0, 1, 2, 15, 96, 945, 10170}[k] / n)
		if math.Abs(moment[k]-want) > 4.5*sd+1e-9 {
			t.Errorf("moment %d: %v, want %v ± %v", k, moment[k], want, sd)
		}
	}
	cdf := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	if want := 2 * n * cdf(-tail); math.Abs(beyond-want) > 4.5*math.Sqrt(want) {
		t.Errorf("%v beyond the last layer, want %.0f", beyond, want)
	}
	chi2 := 0.0
	for i, got := range count {
		lo := float64(i-bins/2) * width
		want := n * (cdf(lo+width) - cdf(lo))
		chi2 += (got - want) * (got - want) / want
	}
	if limit := bins + 4.5*math.Sqrt(2*bins); chi2 > limit {
		t.Errorf("χ² = %.0f over %d bins, want less than %.0f", chi2, bins, limit)
	}
}

func TestScaleZeroIsMean(t *testing.T) {
	for _, fitOpts := range []swag.FitOptions{{Rank: 3}, {DiagOnly: true}} {
		p := fit(t, iterates(small(t), 5, noisy(1, 0.3)), fitOpts)
		mean, _, _ := contents(p)
		for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
			for i, got := range draw(t, p, swag.SampleOptions{Seed: 1, Covariance: c}, 4)[0] {
				if got != float32(mean[i]) {
					t.Errorf("%v, weight %d: %v, want %v", c, i, got, float32(mean[i]))
				}
			}
		}
	}
}

// TestDistribution compares 20,000 draws with equation (1): mean, every entry
// of the covariance, cross-tensor ones included, and the normal shape of every
// weight. Bounds are five standard errors, for a covariance those of a Wishart
// entry, √((C_ij² + C_ii·C_jj)/S), and the 0.1 % point of Kolmogorov's D.
func TestDistribution(t *testing.T) {
	t.Parallel()
	const S = 20_000
	l := small(t)
	value := noisy(0, 1)
	theta := func(t, i int) float64 { // tensors of different scales, weights that move together
		return 1 + []float64{1, 1e-2, 1e-4}[i/4]*(value(t, i)+float64(t*t)/10)
	}
	members := make([]int, S)
	for j := range members {
		members[j] = j
	}
	for _, c := range []struct {
		name        string
		checkpoints int
		opts        swag.SampleOptions
	}{
		{"paper's SWAG", 6, swag.SampleOptions{Scale: 0.5}},
		{"scale 2", 6, swag.SampleOptions{Scale: 2}},
		{"fewer checkpoints than the rank", 3, swag.SampleOptions{Scale: 0.5}},
		{"SWAG-Diagonal", 6, swag.SampleOptions{Scale: 1, Covariance: swag.Diagonal}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := fit(t, iterates(l, c.checkpoints, theta), swag.FitOptions{Rank: 4})
			mean, variance, deviations := contents(p)
			k := p.Options.Columns
			cov := func(i, j int) float64 { // α·(Σ_diag + D̂·D̂ᵀ/(K−1))
				var v float64
				if c.opts.Covariance == swag.LowRankPlusDiagonal {
					for n := range k {
						v += float64(deviations[n][i]) * float64(deviations[n][j]) / float64(k-1)
					}
				}
				if i == j {
					v += variance[i]
				}
				return c.opts.Scale * v
			}
			draws := draw(t, p, c.opts, members...)
			for i := range mean {
				sum, z := 0.0, make([]float64, S)
				for s, d := range draws {
					z[s] = (float64(d[i]) - mean[i]) / math.Sqrt(cov(i, i))
					sum += z[s]
				}
				if m := sum / S; math.Abs(m) > 5/math.Sqrt(S) {
					t.Errorf("weight %d: mean is off by %.3f standard deviations", i, m)
				}
				if d := kolmogorov(z); d*math.Sqrt(S) > 1.95 {
					t.Errorf("weight %d is not normal: D = %.4f", i, d)
				}
				for j := range i + 1 {
					got := 0.0
					for _, d := range draws {
						got += (float64(d[i]) - mean[i]) * (float64(d[j]) - mean[j]) / S
					}
					want, bound := cov(i, j), 5*math.Sqrt((cov(i, j)*cov(i, j)+cov(i, i)*cov(j, j))/S)
					if math.Abs(got-want) > bound {
						t.Errorf("covariance %d, %d: %.3g, want %.3g ± %.1g", i, j, got, want, bound)
					}
				}
			}
		})
	}
}

// kolmogorov is the greatest distance of z's distribution from N(0, 1).
func kolmogorov(z []float64) (d float64) {
	slices.Sort(z)
	n := float64(len(z))
	for i, v := range z {
		f := math.Erfc(-v/math.Sqrt2) / 2
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d
}

// Kills: streams of members, chunks or seeds that overlap or are correlated,
// such as z2 taken from the numbers of z1.
func TestStreamsAreIndependent(t *testing.T) {
	t.Parallel()
	const stretch = 4096
	var streams [][]float64
	for _, seed := range []uint64{0, 1, 2} {
		for _, member := range []int{0, 1, 2, 29, swag.MaxMembers - 1} {
			for _, first := range []int64{0, stretch, 2 * stretch, 1 << 39, swag.Z2Index - 2*stretch} {
				z := make([]float64, stretch)
				swag.Normals(z, seed, member, first)
				streams = append(streams, z)
			}
			streams = append(streams, swag.Z2(seed, member, stretch))
		}
	}
	seen := map[float64]bool{}
	for i, a := range streams {
		for _, v := range a[:1000] { // 32-bit numbers: a few coincide by chance
			seen[v] = true
		}
		for j, b := range streams[:i] {
			r := 0.0
			for k := range a {
				r += a[k] * b[k] / stretch
			}
			if math.Abs(r) > 5/math.Sqrt(stretch) {
				t.Errorf("streams %d and %d: correlation %.3f", i, j, r)
			}
		}
	}
	if n := 1000 * len(streams); len(seen) < n-10 {
		t.Errorf("%d of %d normals differ", len(seen), n)
	}
}

// lowRank returns what the low-rank part adds to a member: a SWAG and a
// SWAG-Diagonal draw share z1.
func lowRank(t *testing.T, p *swag.Posterior, seed uint64, scale float64, member int) []float64 {
	swagDraw := draw(t, p, swag.SampleOptions{Seed: seed, Scale: scale}, member)[0]
	diagonal := draw(t, p, swag.SampleOptions{Seed: seed, Scale: scale, Covariance: swag.Diagonal}, member)[0]
	out := make([]float64, len(diagonal))
	for i := range out {
		out[i] = float64(swagDraw[i]) - float64(diagonal[i])
	}
	return out
}

// Kills: the variance used as the standard deviation.
func TestVarianceIsNotTheDeviation(t *testing.T) {
	p := fit(t, iterates(flat(t, 50), 2, func(t, _ int) float64 { return float64(1 + 4*t) }), swag.FitOptions{}) // mean 3, variance 4
	z1 := make([]float64, 50)
	swag.Normals(z1, 9, 6, 0)
	for i, got := range draw(t, p, swag.SampleOptions{Seed: 9, Scale: 1, Covariance: swag.Diagonal}, 6)[0] {
		if got != float32(3+2*z1[i]) {
			t.Fatalf("weight %d: %v, want 3 + 2·%v", i, got, z1[i])
		}
	}
}

// Kills: a scale on the standard deviation instead of the covariance.
func TestScaleIsOfTheCovariance(t *testing.T) {
	p := fit(t, iterates(flat(t, 50), 5, noisy(0, 1)), swag.FitOptions{Rank: 3})
	mean, _, _ := contents(p)
	quarter := draw(t, p, swag.SampleOptions{Scale: 0.25}, 0)[0]
	whole := draw(t, p, swag.SampleOptions{Scale: 1}, 0)[0]
	for i, m := range mean {
		if math.Abs(float64(whole[i])-m-2*(float64(quarter[i])-m)) > 1e-6 {
			t.Fatalf("weight %d: %v at scale 1, %v at ¼, mean %v: want twice the distance", i, whole[i], quarter[i], m)
		}
	}
}

// Kills: the low-rank part divided by the asked-for rank less 1, or by the
// number of columns. The divisor is the number of columns less 1.
func TestDivisorIsColumnsLessOne(t *testing.T) {
	for _, rank := range []int{2, 3, 20} {
		p := fit(t, iterates(flat(t, 50), 3, noisy(0, 1)), swag.FitOptions{Rank: rank})
		_, _, deviations := contents(p)
		k := p.Options.Columns
		for i, got := range lowRank(t, p, 3, 0.5, 11) {
			want := 0.0
			for n, z := range swag.Z2(3, 11, k) {
				want += math.Sqrt(0.5) * float64(deviations[n][i]) * z / math.Sqrt(float64(min(rank, 3)-1))
			}
			if math.Abs(got-want) > 2e-6 {
				t.Fatalf("rank %d, weight %d: low-rank part %v, want %v", rank, i, got, want)
			}
		}
	}
}

// Kills: a fresh z2 for each tensor or block. All weights have the same
// iterates, so the low-rank part moves all of them alike.
func TestOneZ2ForAllTensors(t *testing.T) {
	l := layout(t,
		weights.Tensor{Name: "a", Shape: []int64{10}, DType: weights.F32, Role: weights.Parameter},
		weights.Tensor{Name: "b", Shape: []int64{70_000}, DType: weights.F32, Role: weights.Parameter},
	)
	p := fit(t, iterates(l, 4, func(t, _ int) float64 { return float64(t * t) }), swag.FitOptions{Rank: 3})
	part := lowRank(t, p, 1, 0.5, 2)
	for i, v := range part {
		if math.Abs(v-part[0]) > 1e-5 || v == 0 {
			t.Fatalf("weight %d moves by %v, weight 0 by %v", i, v, part[0])
		}
	}
}

func TestSamplerRefuses(t *testing.T) {
	it := iterates(small(t), 4, noisy(0, 1))
	p, diagonal := fit(t, it, swag.FitOptions{}), fit(t, it, swag.FitOptions{DiagOnly: true})
	for _, scale := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := swag.NewSampler(p, swag.SampleOptions{Scale: scale})
		wantError(t, err, "scale", "at least 0")
	}
	_, err := swag.NewSampler(diagonal, swag.SampleOptions{Scale: 0.5})
	wantError(t, err, "p.swag: holds the diagonal alone")

	dst := [][]float32{make([]float32, 12)}
	s := sampler(t, p, swag.SampleOptions{Scale: 0.5})
	for _, member := range []int{-1, swag.MaxMembers} {
		wantError(t, s.Draw(t.Context(), dst, []int{member}), fmt.Sprintf("member %d: want 0 to", member))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Draw(ctx, dst, []int{0}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	huge := sampler(t, p, swag.SampleOptions{Scale: 1e300, Covariance: swag.Diagonal})
	wantError(t, huge.Draw(t.Context(), dst, []int{3}), `p.swag: member 3: tensor "conv.weight": value `, " at index 0, want finite weights of less than 1.8e+19")
}

func TestCovarianceWords(t *testing.T) {
	for c, scale := range map[swag.Covariance]float64{swag.LowRankPlusDiagonal: 0.5, swag.Diagonal: 1, swag.Isotropic: 0.5} {
		if got, err := swag.ParseCovariance(c.String()); got != c || err != nil || c.DefaultScale() != scale {
			t.Errorf("%v: parsed as %v, %v, scale %v", c, got, err, c.DefaultScale())
		}
	}
	_, err := swag.ParseCovariance("full")
	wantError(t, err, `"full": want swag, swag-diag or isotropic`)
}
