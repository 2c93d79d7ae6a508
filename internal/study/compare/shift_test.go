package compare

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
)

// The corruptions and severities of an example are averaged, and the example is the unit: the interval is that of a paired
// t-test on the means of examples.
func TestShiftDifference(t *testing.T) {
	damaged := &dataset.Damaged{Each: 2, Examples: 3, Severities: []int{1, 5}, Rows: []int{7, 7, 2, 2, 4, 4}}
	r := &Result{Comparison: &Comparison{Shift: damaged}}
	method := func(losses ...[]float64) *Method {
		m := &Method{Shifted: &Shifted{}}
		for _, values := range append([][]float64{{9, 9, 9}}, losses...) { // of clean examples, which do not count
			m.Shifted.Steps = append(m.Shifted.Steps, &task.Evaluation{Losses: []task.Loss{{Key: "nll", Values: values}}})
		}
		m.Shifted.ofExamples(damaged)
		return m
	}
	a, b := method([]float64{1, 3, 0, 0, 2, 2}, []float64{5, 5, 1, 3, 0, 4}), method([]float64{0, 0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1, 1})
	for k, x := range [][]float64{{3, .5, 1.5}, {2, 0, 2}, {4, 1, 1}} { // by example: at both severities, at 1, at 5
		mean, std := stat.MeanStdDev(x, nil)
		if d := r.ShiftDifference(a, b, "nll", k); math.Abs(d.Mean-mean) > 1e-12 || math.Abs(d.Standard-std/math.Sqrt(3)) > 1e-12 || d.DoF != 2 {
			t.Errorf("%d: %v ± %v with %v degrees of freedom, want %v ± %v", k, d.Mean, d.Standard, d.DoF, mean, std/math.Sqrt(3))
		}
	}
}
