package calibrate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// The order is that of a stable comparison, also of equal numbers, of numbers that share their upper bits, and of 0.
func TestSortKeyed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() float64{
		"any":        r.Float64,
		"equal":      func() float64 { return 0.25 },
		"few values": func() float64 { return float64(r.IntN(5)) / 4 },
		"near 1":     func() float64 { return 1 - 1e-12*r.Float64() },
		"tiny":       func() float64 { return math.Exp(-800 * r.Float64()) },
		"zeros":      func() float64 { return []float64{0, math.Copysign(0, -1), 5e-324, 1}[r.IntN(4)] },
	} {
		for _, n := range []int{0, 1, 2, fewToRadix - 1, fewToRadix, 1000} {
			values := make([]keyed, n)
			for i := range values {
				values[i] = keyed{orderedBits(draw()), int32(i)}
			}
			want := slices.Clone(values)
			slices.SortStableFunc(want, func(a, b keyed) int {
				return cmp.Compare(math.Float64frombits(a.key), math.Float64frombits(b.key))
			})
			if got := sortKeyed(values, make([]keyed, n)); !slices.Equal(got, want) {
				t.Errorf("%s, %d values: another order", name, n)
			}
		}
	}
}

// place finds what order finds.
func TestPlace(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var all, some ranking
	for _, n := range []int{2, 10, 300} {
		row := make([]float64, n)
		for c := range row {
			row[c] = float64(r.IntN(n)) / float64(n)
		}
		for class := range row {
			got := some.place(row, class, 0.5)
			all.order(row, 0.5)
			at := slices.IndexFunc(all.classes, func(x ranked) bool { return x.class == class })
			if want := all.classes[at].standing; got != want {
				t.Errorf("class %d of %d: %v, want %v", class, n, got, want)
			}
		}
	}
}

// Fits to parts of rows have the bits of fits to these rows alone, whatever the number of cores.
func TestTemperatureFits(t *testing.T) {
	const n, classes = 300, 1000
	r := rand.New(rand.NewPCG(5, 6))
	logits, labels := make([]float64, n*classes), make([]int, n)
	for i := range labels {
		labels[i] = r.IntN(classes)
		for c := range classes {
			logits[i*classes+c] = 3 * r.NormFloat64()
		}
		logits[i*classes+labels[i]] += 5 * r.Float64()
	}
	fits, err := NewTemperatureFits(logits, classes, labels)
	if err != nil {
		t.Fatal(err)
	}
	was := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(was)
	for k, rows := range append(Folds(n, 3, 1), allRows(n)) {
		var some []float64
		var of []int
		for _, i := range rows {
			some, of = append(some, logits[i*classes:][:classes]...), append(of, labels[i])
		}
		runtime.GOMAXPROCS(1)
		want, err := FitTemperature(some, classes, of)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GOMAXPROCS(4)
		if got := fits.Fit(rows); got != want {
			t.Errorf("part %d: %+v, want %+v", k, got, want)
		}
	}
}
