package sets

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// golden has what MAPIE and TorchCP give for the same probabilities: see testdata/make.py.
type golden struct {
	Cases []struct {
		Classes        int
		Level          float64
		Probs, Test    []float64
		Labels         []int
		MAPIE          [2]float64 `json:"mapie_lac"` // threshold, and mean size on the test
		LAC, APS, RAPS [2]float64
		ByClass        []float64 `json:"by_class"`
	}
	Regression struct {
		Mean, Std, Target, Low, High []float64
		Level                        float64
	}
}

func read(t *testing.T) (g golden) {
	t.Helper()
	js, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(js, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The thresholds are those of other libraries within 1e-9, and the sets have their sizes.
func TestGolden(t *testing.T) {
	for _, c := range read(t).Cases {
		rows := make([]int, len(c.Labels))
		for i := range rows {
			rows[i] = i
		}
		for _, m := range []struct {
			rule Rule
			want [2]float64
		}{{Rule{Method: LAC}, c.MAPIE}, {Rule{Method: LAC}, c.LAC}, {Rule{Method: APS}, c.APS}, {Rule{Method: RAPS, Penalty: 1. / 64, Free: 2}, c.RAPS}} {
			got := m.rule.Fit(c.Probs, c.Classes, c.Labels, rows, c.Level)
			if math.Abs(got.Exact-m.want[0]) > 1e-9 {
				t.Errorf("%s of %d classes: threshold %v, want %v", m.rule.Method, c.Classes, got.Exact, m.want[0])
			}
			m.rule.Cuts = []float32{got.Cut}
			if c.Classes == 3 && m.rule.Method != LAC {
				continue // the threshold is 1, and rounding of their sums decides whether the last class is below it
			}
			if size := meanSize(&m.rule, c.Test, c.Classes); math.Abs(size-m.want[1]) > 1e-9 {
				t.Errorf("%s of %d classes: mean size %v, want %v", m.rule.Method, c.Classes, size, m.want[1])
			}
		}
		for k, want := range c.ByClass {
			own := slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return c.Labels[i] != k })
			if got := (&Rule{Method: LAC}).Fit(c.Probs, c.Classes, c.Labels, own, c.Level); math.Abs(got.Exact-want) > 1e-7 { // theirs are float32
				t.Errorf("class %d: threshold %v, want %v", k, got.Exact, want)
			}
		}
	}
}

func meanSize(r *Rule, probs []float64, classes int) (size float64) {
	var k Ranking
	set := make([]bool, classes)
	for i := 0; i < len(probs); i += classes {
		k.Make(set, r, probs[i:i+classes])
		for _, in := range set {
			if in {
				size++
			}
		}
	}
	return size / float64(len(probs)/classes)
}

// The intervals are those of MAPIE.
func TestGoldenIntervals(t *testing.T) {
	r := read(t).Regression
	var scores []float64
	for i, y := range r.Target {
		scores = append(scores, math.Abs(y-r.Mean[i])/r.Std[i])
	}
	q, ok := Quantile(scores, r.Level)
	for i, mean := range r.Mean {
		if low, high := mean-q*r.Std[i], mean+q*r.Std[i]; !ok || math.Abs(low-r.Low[i]) > 1e-9 || math.Abs(high-r.High[i]) > 1e-9 {
			t.Fatalf("row %d: %v to %v, want %v to %v", i, low, high, r.Low[i], r.High[i])
		}
	}
}

// A level needs 1/α − 1 examples. With one fewer the threshold is infinite.
func TestLeast(t *testing.T) {
	for level, want := range map[float64]int{0.5: 1, 0.8: 4, 0.9: 9, 0.95: 19, 0.99: 99, 0.999: 999, 0.7: 3} {
		if got := Least(level); got != want {
			t.Errorf("level %v: %d examples, want %d", level, got, want)
		}
		for n := max(1, want-1); n <= want; n++ {
			scores, m := make([]float64, n), Missed{}
			for range n {
				m.Add(0.5)
			}
			_, ok := Quantile(scores, level)
			_, lowest := m.Lowest(level)
			if ok != (n >= want) || lowest != ok {
				t.Errorf("level %v, %d examples: finite %v and %v", level, n, ok, lowest)
			}
		}
	}
	if q, ok := Quantile(nil, 0.9); ok || !math.IsInf(q, 1) {
		t.Errorf("no examples: %v %v", q, ok)
	}
}

// With one true class for each example, risk control is the quantile, with ties too.
func TestMissedIsQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 57))
	for range 300 {
		n, level := 1+r.IntN(200), 0.5+0.49*r.Float64()
		var m Missed
		var scores []float64
		for range n {
			p := float64(1+r.IntN(30)) / 30
			m.Add(p)
			scores = append(scores, -p)
		}
		q, ok := Quantile(scores, level)
		p, found := m.Lowest(level)
		if ok != found || ok && -q != p {
			t.Fatalf("%d examples, level %v: %v %v, want %v %v", n, level, p, found, -q, ok)
		}
	}
}

// Sets down to the lowest probability miss at most the guaranteed share of the examples that chose it. Sets that end a
// little higher miss more than the correction for one more example allows.
func TestMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 57))
	for range 100 {
		var m Missed
		var all [][]float64
		for range 40 + r.IntN(100) {
			var probs []float64
			for range r.IntN(20) {
				probs = append(probs, r.Float64())
			}
			if len(probs) > 0 {
				all = append(all, probs)
			}
			m.Add(slices.Clone(probs)...)
		}
		if m.Len() != len(all) {
			t.Fatalf("%d examples, want %d", m.Len(), len(all))
		}
		const level = 0.9
		p, ok := m.Lowest(level)
		missed := func(cut float64) (sum float64) { // probabilities below the cut are missed
			for _, probs := range all {
				for _, v := range probs {
					if v < cut {
						sum += 1 / float64(len(probs))
					}
				}
			}
			return sum
		}
		n := float64(len(all))
		if bound := (1-level)*(n+1) - 1; !ok || missed(p) > bound+1e-6 || missed(math.Nextafter(p, 2)) <= bound-1e-6 {
			t.Fatalf("lowest %v: misses %v, a little higher %v, bound %v", p, missed(p), missed(math.Nextafter(p, 2)), bound)
		}
	}
}

// Two runtimes give probabilities that differ in the last bits. The examples that chose a threshold are in their sets in
// both.
func TestCutsAreBeyond(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 57))
	for _, classes := range []int{2, 10, 1000} {
		for _, method := range []Method{LAC, APS, RAPS} {
			probs, labels, rows := make([]float64, 0, 60*classes), []int{}, []int{}
			for i := range 60 {
				row, sum := make([]float64, classes), 0.0
				for c := range row {
					row[c] = math.Exp(3 * r.NormFloat64())
					sum += row[c]
				}
				for c := range row {
					row[c] /= sum
				}
				probs, labels, rows = append(probs, row...), append(labels, r.IntN(classes)), append(rows, i)
			}
			rule := &Rule{Method: method}
			if method == RAPS {
				rule.Penalty, rule.Free = 0.02, 3
			}
			got := rule.Fit(probs, classes, labels, rows, 0.9)
			rule.Cuts = []float32{got.Cut}
			if err := rule.Check(classes); err != nil {
				t.Fatal(err)
			}
			covered := func(noise float64) (n int) {
				set, row := make([]bool, classes), make([]float64, classes)
				var k Ranking
				for i, label := range labels {
					for c := range row {
						row[c] = probs[i*classes+c] * (1 + noise*r.NormFloat64())
					}
					if k.Make(set, rule, row); set[label] {
						n++
					}
				}
				return n
			}
			want := Rank(0.9, 60)
			for _, noise := range []float64{0, 1e-7, 3e-7} {
				if n := covered(noise); n < want {
					t.Errorf("%s of %d classes, noise %g: %d covered, want %d", method, classes, noise, n, want)
				}
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, r := range []Rule{
		{Method: "thr", Cuts: []float32{0}}, {Method: LAC}, {Method: LAC, Cuts: make([]float32, 2)}, {Method: APS, Penalty: 1, Cuts: []float32{1}},
		{Method: RAPS, Penalty: math.NaN(), Cuts: []float32{1}}, {Method: RAPS, Free: -1, Cuts: []float32{1}}, {Method: LAC, Cuts: []float32{float32(math.NaN())}}, {Method: LAC, Cuts: []float32{-2}},
	} {
		if r.Check(3) == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
}

// The cut of a mean size is that of the definition: every cut is tried, from the lowest on. MAPIE 1.6 has no such loss.
func TestCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for _, digits := range []float64{0, 10} {
		for _, size := range []float64{0.5, 1, 1.7, 3.9} {
			const n, classes, positions = 40, 4, 3
			var c Counted
			all := make([][]float64, n)
			for i := range all {
				for range classes * positions {
					p := r.Float64()
					if digits > 0 {
						p = math.Round(p*digits) / digits
					}
					all[i] = append(all[i], p)
				}
				c.Add(positions, all[i]...)
			}
			mean := func(cut float64) (sum float64) {
				for _, probs := range all {
					for _, p := range probs {
						if p > cut {
							sum += 1.0 / positions
						}
					}
				}
				return (sum + classes) / (n + 1)
			}
			want := -1.0
			for _, cut := range slices.Sorted(slices.Values(append(slices.Concat(all...), -1))) {
				if want = cut; mean(cut) <= size+1e-9 {
					break
				}
			}
			if got, ok := c.Highest(size, classes); !ok || got != want {
				t.Errorf("size %v: %v, %v, want %v", size, got, ok, want)
			}
		}
	}
	var few Counted
	few.Add(1, 0.5, 0.5)
	if _, ok := few.Highest(0.9, 2); ok {
		t.Error("one example shows a size of 0.9 of two classes")
	}
	if p, ok := few.Highest(1.5, 2); !ok || p != 0.5 {
		t.Errorf("%v, %v: one example of two classes allows one class more in each of two sets", p, ok)
	}
}
