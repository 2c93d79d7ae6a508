package geometry_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

func geometryOf(t testing.TB, p *swag.Posterior, rank int) *geometry.Geometry {
	t.Helper()
	g, err := geometry.New(t.Context(), p, rank)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// read returns a whole vector in float64.
func read(t testing.TB, v weights.Vector) []float64 {
	t.Helper()
	out := make([]float32, v.Len())
	if err := v.ReadAt(out, 0); err != nil {
		t.Fatal(err)
	}
	return widened(out)
}

func widened(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// project returns the coordinates v_iᵀ·(θ − θ_SWA), and ‖θ − θ_SWA‖.
func project(t testing.TB, p *swag.Posterior, g *geometry.Geometry, theta weights.Vector) (along []float64, distance float64) {
	t.Helper()
	delta, mean := read(t, theta), make([]float64, p.Len())
	p.Mean(mean, 0)
	for i, m := range mean {
		delta[i] -= m
	}
	for i := range g.Directions() {
		along = append(along, dot(read(t, g.Direction(t.Context(), i)), delta))
	}
	return along, math.Sqrt(dot(delta, delta))
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// close reports whether got is want but for tol of scale.
func close(got, want, tol, scale float64) bool { return math.Abs(got-want) <= tol*scale }

// TestGeometryGolden compares with NumPy's singular value decomposition and dense
// d×d matrices. D̂ is stored in float32, which rounds an element by up to 6e-8 of
// itself, and so are directions: hence 1e-6.
func TestGeometryGolden(t *testing.T) {
	var golden struct {
		Thetas [][]float64
		Cases  []struct {
			Deviations         string
			Models, Rank       int
			Eigenvalues        []float64
			Directions         [][]float64
			Covariance         [][]float64
			Traces, Dimensions [2]float64
			Iterates           [][]float64
			Distances          []float64
		}
	}
	testfile.JSON(t, "testdata/geometry.json", &golden)
	const tol = 1e-6
	for _, c := range golden.Cases {
		it := iterates(flat(t, len(golden.Thetas[0])), c.Models, func(t, i int) float64 { return golden.Thetas[t][i] })
		p := fit(t, it, swag.FitOptions{Rank: c.Rank, Deviations: swag.Deviations(c.Deviations)})
		g := geometryOf(t, p, 0)
		if g.Directions() != len(c.Eigenvalues) {
			t.Fatalf("%s, %d models: %d directions, want %d", c.Deviations, c.Models, g.Directions(), len(c.Eigenvalues))
		}
		for name, v := range map[string][2]float64{
			"tr(Σ_diag)": {g.DiagonalTrace, c.Traces[0]}, "tr(Σ_lr)": {g.LowRankTrace, c.Traces[1]},
			"dimension": {g.Dimension, c.Dimensions[0]}, "dimension of Σ_lr": {g.LowRankDimension, c.Dimensions[1]},
		} {
			if !close(v[0], v[1], tol, v[1]) {
				t.Errorf("%s, %d models: %s = %v, want %v", c.Deviations, c.Models, name, v[0], v[1])
			}
		}
		sign := make([]float64, g.Directions())
		for i, want := range c.Eigenvalues {
			if !close(g.Eigenvalues[i], want, tol, c.Eigenvalues[0]) {
				t.Errorf("%s, %d models: eigenvalue %d is %v, want %v", c.Deviations, c.Models, i, g.Eigenvalues[i], want)
			}
			sign[i] = dot(read(t, g.Direction(t.Context(), i)), c.Directions[i])
			if !close(math.Abs(sign[i]), 1, tol, 1) {
				t.Errorf("%s, %d models: direction %d is at cos %v of the golden one", c.Deviations, c.Models, i, sign[i])
			}
		}
		for i, row := range c.Covariance {
			for j, want := range row {
				if got := sign[i] * sign[j] * g.Covariance(i, j); !close(got, want, tol, c.Covariance[0][0]) {
					t.Errorf("%s, %d models: covariance %d, %d is %v, want %v", c.Deviations, c.Models, i, j, got, want)
				}
			}
		}
		found := g.Positions()
		if len(found) != len(c.Iterates) {
			t.Fatalf("%s, %d models: %d iterates, want %d", c.Deviations, c.Models, len(found), len(c.Iterates))
		}
		for n, it := range found {
			for i, want := range c.Iterates[n] {
				if got := sign[i] * it.Along[i]; !close(got, want, tol, c.Distances[n]) {
					t.Errorf("%s, %d models: iterate %d is at %v along direction %d, want %v", c.Deviations, c.Models, n, got, i, want)
				}
			}
			// What five principal directions of nine models leave out is not known.
			if whole := c.Deviations == "running" || c.Models <= c.Rank; whole && !close(it.Distance, c.Distances[n], tol, c.Distances[n]) {
				t.Errorf("%s, %d models: iterate %d is %v away, want %v", c.Deviations, c.Models, n, it.Distance, c.Distances[n])
			}
			if want := c.Models - len(found) + n; it.Model != want {
				t.Errorf("iterate %d is said to be model %d, want %d", n, it.Model, want)
			}
		}
	}
}

// Where an iterate is reported to be from the deviations is where its weights are, in
// whatever way the deviations are kept, and over many blocks.
func TestPositionsAreProjections(t *testing.T) {
	t.Parallel()
	it := iterates(flat(t, 70_000), 6, noisy(1, 0.1))
	theta0 := it
	theta0.Theta0 = &swag.Checkpoint{Path: "theta0", Theta: iterates(it.Layout, 1, noisy(2, 0.3)).Checkpoints[0].Theta}
	given := it
	given.Mean = &swag.Checkpoint{Path: "mean", Theta: iterates(it.Layout, 1, noisy(1, 0.05)).Checkpoints[0].Theta}
	for name, c := range map[string]struct {
		it   swag.Input
		opts swag.FitOptions
		rank int
	}{
		"given":               {given, swag.FitOptions{Rank: 4}, 0},
		"given, lower rank":   {given, swag.FitOptions{}, 3},
		"running":             {it, swag.FitOptions{Rank: 4}, 0},
		"running, lower rank": {it, swag.FitOptions{}, 3},
		"running, θ0":         {theta0, swag.FitOptions{Rank: 4}, 0},
		"rising":              {it, swag.FitOptions{Rank: 4, Power: 3}, 0},
		"referenced":          {it, swag.FitOptions{Rank: 4, ReferToCheckpoints: true}, 0},
		"reference":           {it, swag.FitOptions{Rank: 4, Reference: true}, 0},
		"final":               {it, swag.FitOptions{Rank: 3, Deviations: swag.Final}, 0},
		"final, lower rank":   {it, swag.FitOptions{Deviations: swag.Final}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := attach(t, fit(t, c.it, c.opts), c.it)
			g := geometryOf(t, p, c.rank)
			found := g.Positions()
			if len(found) < 3 {
				t.Fatalf("%d iterates", len(found))
			}
			for n, it := range found {
				theta := c.it.Checkpoints[len(c.it.Checkpoints)-len(found)+n].Theta
				along, distance := project(t, p, g, theta)
				for i, want := range along {
					if !close(it.Along[i], want, 1e-5, distance) {
						t.Errorf("model %d: %v along direction %d, want %v", it.Model, it.Along[i], i, want)
					}
				}
				if c.opts.Deviations != swag.Final && !close(it.Distance, distance, 1e-5, distance) {
					t.Errorf("model %d: %v away, want %v", it.Model, it.Distance, distance)
				}
			}
		})
	}
}

// TestDirections: they are orthonormal, and a point at t is θ_SWA and t_i along
// each, over many blocks and in any stretch.
func TestDirections(t *testing.T) {
	t.Parallel()
	const d = 70_000
	p := fit(t, iterates(flat(t, d), 5, noisy(0, 1)), swag.FitOptions{})
	g := geometryOf(t, p, 0)
	if g.Directions() != 4 { // the first deviation is 0
		t.Fatalf("%d directions of 5 iterates", g.Directions())
	}
	var v [][]float64
	for i := range g.Directions() {
		v = append(v, read(t, g.Direction(t.Context(), i)))
		for j := range i + 1 {
			if want := float64(1 - min(1, i-j)); !close(dot(v[i], v[j]), want, 1e-6, 1) {
				t.Errorf("v_%d·v_%d = %v", i, j, dot(v[i], v[j]))
			}
		}
	}
	mean := make([]float64, d)
	p.Mean(mean, 0)
	at := []float64{0.5, -2, 3}
	point := g.Point(t.Context(), at)
	whole := read(t, point)
	for i, got := range whole {
		if want := mean[i] + at[0]*v[0][i] + at[1]*v[1][i] + at[2]*v[2][i]; !close(got, want, 1e-6, 1) {
			t.Fatalf("weight %d: %v, want %v", i, got, want)
		}
	}
	part := make([]float32, 5000)
	if err := point.ReadAt(part, 64_000); err != nil || !slices.Equal(widened(part), whole[64_000:69_000]) {
		t.Errorf("a stretch differs from the whole: %v", err)
	}
	// The origin is the SWA member.
	sampler, err := swag.NewSampler(p, swag.SampleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	swa := make([]float32, d)
	if err := sampler.Draw(t.Context(), [][]float32{swa}, []int{0}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read(t, g.Point(t.Context(), make([]float64, 4))), widened(swa)) {
		t.Error("the origin is not θ_SWA")
	}
	along, _ := project(t, p, g, weights.Slice(swa))
	for i, a := range along {
		if math.Abs(a) > 1e-5 { // float32 of 70,000 weights of about 0.4
			t.Errorf("θ_SWA is at %v along direction %d", a, i)
		}
	}
}

// One direction in closed form: iterates ∓s about m have the mean m and the
// deviations 0 and s, whose divisor is 1.
func TestGeometryClosedForm(t *testing.T) {
	const d = 9000 // three blocks
	s := func(i int) float64 { return float64(1 + i%3) }
	p := fit(t, iterates(flat(t, d), 2, func(t, i int) float64 { return 5 + float64(2*t-1)*s(i) }), swag.FitOptions{})
	g := geometryOf(t, p, 0)
	const squares, fourths = d / 3 * (1 + 4 + 9), d / 3 * (1 + 16 + 81) // Σs², Σs⁴
	for name, v := range map[string][2]float64{
		"eigenvalue":        {g.Eigenvalues[0], squares},
		"diagonal part":     {g.Diagonal[0][0], fourths / float64(squares)},
		"tr(Σ_diag)":        {g.DiagonalTrace, squares},
		"tr(Σ_lr)":          {g.LowRankTrace, squares},
		"dimension of Σ_lr": {g.LowRankDimension, 1},
		// tr(Σ²) = Σs⁴ + 2Σs⁴ + (Σs²)²
		"dimension": {g.Dimension, 4 * squares * squares / (3*fourths + float64(squares*squares))},
	} {
		if !close(v[0], v[1], 1e-12, v[1]) {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
	if g.Directions() != 1 || !close(read(t, g.Direction(t.Context(), 0))[4], s(4)/math.Sqrt(squares), 1e-7, 1) {
		t.Errorf("%d directions, the first with %v", g.Directions(), read(t, g.Direction(t.Context(), 0))[4])
	}
	for n, sign := range []float64{-1, 1} {
		if it := g.Positions()[n]; !close(it.Along[0], sign*math.Sqrt(squares), 1e-12, math.Sqrt(squares)) || it.Model != n {
			t.Errorf("iterate %d: %+v", n, it)
		}
	}
}

// Equal eigenvalues and columns that repeat each other leave an orthonormal basis
// of as many directions as there are.
func TestGeometryTies(t *testing.T) {
	for name, c := range map[string]struct {
		theta func(t, i int) float64
		want  int
	}{
		// Final deviations of the corners of a regular simplex: all eigenvalues equal.
		"simplex": {func(t, i int) float64 { return map[bool]float64{true: 1}[i == t] }, 4},
		// Five iterates on a line.
		"line": {func(t, i int) float64 { return float64(t * (i + 1)) }, 1},
	} {
		p := fit(t, iterates(flat(t, 50), 5, c.theta), swag.FitOptions{Deviations: swag.Final})
		g := geometryOf(t, p, 0)
		if g.Directions() != c.want || !close(g.Eigenvalues[0], g.Eigenvalues[c.want-1], 1e-6, g.Eigenvalues[0]) {
			t.Errorf("%s: eigenvalues %v, want %d equal ones", name, g.Eigenvalues, c.want)
		}
		for i := range g.Directions() {
			for j := range i + 1 {
				want := float64(1 - min(1, i-j))
				if got := dot(read(t, g.Direction(t.Context(), i)), read(t, g.Direction(t.Context(), j))); !close(got, want, 1e-6, 1) {
					t.Errorf("%s: v_%d·v_%d = %v", name, i, j, got)
				}
			}
		}
	}
}

func TestGeometryRefuses(t *testing.T) {
	it := iterates(flat(t, 12), 4, noisy(0, 1))
	_, err := geometry.New(t.Context(), fit(t, it, swag.FitOptions{DiagOnly: true}), 0)
	wantError(t, err, "p.swag: holds the diagonal alone")
	_, err = geometry.New(t.Context(), fit(t, it, swag.FitOptions{ReferToCheckpoints: true}), 0)
	wantError(t, err, "not attached")
	p := fit(t, it, swag.FitOptions{})
	_, err = geometry.New(t.Context(), p, 9)
	wantError(t, err, "rank 9", "2 to 4")
	ctx, cancel := context.WithCancel(t.Context())
	point := geometryOf(t, p, 0).Point(ctx, []float64{1})
	cancel()
	if err := geometryOf(t, p, 0).Direction(ctx, 0).ReadAt(make([]float32, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled direction: %v", err)
	}
	if err := point.ReadAt(make([]float32, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := geometry.New(ctx, p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
