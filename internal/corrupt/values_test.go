package corrupt

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// Numbers change as documented: shares, standard deviations, and one drift for all examples.
func TestRow(t *testing.T) {
	const n, mean, std = 20000, 10., 3.
	of := func(name string) Corruption {
		c, err := Parse(name, Numbers)
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	columns := slices.Repeat([]Column{{Mean: mean, Std: std}}, n)
	columns[1], columns[2] = Column{Mean: .5, Std: .5, Binary: true}, Column{Mean: mean, Std: std, Fixed: true}
	for severity := 1; severity <= Severities; severity++ {
		size := sizes[severity-1]
		damaged := func(name string, seed uint64) []float64 {
			row := slices.Repeat([]float32{13}, n)
			row[1] = 1
			of(name).Row(row, columns, severity, seed, 7)
			if row[2] != 13 || name != "missing" && row[1] != 1 {
				t.Errorf("%s changed a fixed or binary number: %v", name, row[:3])
			}
			out := make([]float64, n-3)
			for i := range out {
				out[i] = float64(row[i+3]) - 13
			}
			return out
		}
		// Three standard errors of a share, and of a standard deviation.
		if share := -stat.Mean(damaged("missing", 1), nil) / std; math.Abs(share-size) > 3*math.Sqrt(size*(1-size)/n) {
			t.Errorf("severity %d: a share of %.4f is missing, want %.2f", severity, share, size)
		}
		if got := stat.StdDev(damaged("noise", 1), nil) / std; math.Abs(got/(2*size)-1) > 3/math.Sqrt(2*n) {
			t.Errorf("severity %d: noise of %.4f standard deviations, want %.2f", severity, got, 2*size)
		}
		drifted := damaged("drift", 1)
		if !slices.Equal(drifted, damaged("drift", 2)) {
			t.Error("two examples drift differently")
		}
		seen := map[float64]int{}
		for _, v := range drifted {
			seen[math.Round(1e4*v)/1e4]++
		}
		for _, want := range []float64{2 * size * 3, 0, -2 * size * 3} { // 13 lies one standard deviation above the mean
			if share := float64(seen[math.Round(1e4*want)/1e4]) / n; want != 0 && math.Abs(share-.25) > .02 || want == 0 && math.Abs(share-.5) > .02 {
				t.Errorf("severity %d: a share of %.3f drifts by %v: %v", severity, share, want, seen)
			}
		}
	}
}

// Lists keep their ends. Only swapped tokens change their order.
func TestList(t *testing.T) {
	const n = 20000
	all, err := Parse("all", Tokens)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for severity := 1; severity <= Severities; severity++ {
			from, size := c.List(n, severity, 3), sizes[severity-1]
			if from[0] != 0 || from[len(from)-1] != n-1 {
				t.Fatalf("%s: ends %d and %d", c.Name, from[0], from[len(from)-1])
			}
			changed := n - len(from)
			for i, f := range from {
				if c.Name != "drop" && f != i {
					changed++
				}
			}
			want := size
			if c.Name == "swap" { // two tokens change, and none of them is exchanged again
				want = 2 * size / (1 + size)
			}
			if share := float64(changed) / n; math.Abs(share-want) > 4*math.Sqrt(want*(1-want)/n) {
				t.Errorf("%s, severity %d: a share of %.4f changes, want %.4f", c.Name, severity, share, want)
			}
			if sorted := slices.Sorted(slices.Values(from)); c.Name == "drop" && !slices.IsSorted(from) || c.Name == "swap" && sorted[1] != 1 || c.Name == "swap" && sorted[n-2] != n-2 {
				t.Errorf("%s loses the order or a token", c.Name)
			}
		}
		for n := range 3 { // nothing lies between the ends
			if from := c.List(n, Severities, 1); len(from) != n || slices.Contains(from, -1) || !slices.IsSorted(from) {
				t.Errorf("%s of %d tokens: %v", c.Name, n, from)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"fogg", "noise", "fog,fog", "common,fog", ""} {
		if c, err := Parse(bad, Pictures); err == nil {
			t.Errorf("%q: %v", bad, c)
		}
	}
	for list, want := range map[string]int{"common": 15, "all": 19, "fog, snow": 2} {
		if c, err := Parse(list, Pictures); err != nil || len(c) != want {
			t.Errorf("%q: %d, %v", list, len(c), err)
		}
	}
}
