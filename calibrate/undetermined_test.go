package calibrate_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// A fit knows whether its rows determine it. The rows are 3 classes with logits of ±2: right, and second best where wrong.
func TestUndetermined(t *testing.T) {
	const classes = 3
	row := func(label, predicted int) problem {
		z := []float64{-2, -2, -2}
		z[predicted], z[(predicted+1)%classes] = 2, 1
		return problem{z, classes, []int{label}}
	}
	rows := func(n int, of func(i int) problem) (p problem) {
		p.classes = classes
		for i := range n {
			one := of(i)
			p.logits, p.labels = append(p.logits, one.logits...), append(p.labels, one.labels...)
		}
		return p
	}
	right := func(i int) problem { return row(i%classes, i%classes) }
	second := func(i int) problem { return row((i+1)%classes, i%classes) }
	some := func(i int) problem { // a fifth is wrong
		if i%5 == 0 {
			return second(i)
		}
		return right(i)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name         string
		of           problem
		want, vector string // the beginning of the reason, or "" for a fit that is determined
	}{
		{"one row, right", rows(1, right), "it is fitted on 1 row, want at least 10", "it is fitted on 1 row,"},
		{"one row, wrong", rows(1, second), "it is fitted on 1 row,", "it is fitted on 1 row,"},
		{"two rows", rows(2, some), "it is fitted on 2 rows,", "it is fitted on 2 rows,"},
		{"three rows", rows(3, some), "it is fitted on 3 rows,", "it is fitted on 3 rows,"},
		{"nine rows", rows(9, some), "it is fitted on 9 rows,", "it is fitted on 9 rows,"},
		{"all right", rows(300, right), "every one of 300 rows is predicted correctly, so T falls to its bound 0.001", "all 300 rows are right after scaling"},
		{"all wrong", rows(300, second), "none of 300 rows is predicted correctly", ""},
		{"one class", rows(300, func(i int) problem { return row(0, []int{0, 0, 0, 0, 2}[i%5]) }), "all 300 rows have the same label", "all 300 rows have the same label"},
		{"two classes", rows(300, func(i int) problem { return row(i%2, []int{i % 2, 2}[i%5/4]) }), "", "classes without a label among the rows fitted on: 1 of 3, the first is 2;"},
		{"contradicted", rows(300, func(i int) problem {
			if i%10 == 0 {
				return right(i)
			}
			return row((i+2)%classes, i%classes) // the least probable
		}), "the predictions of 300 rows do not fit the labels, so T rises to its bound 1e+06", ""},
		{"random labels", rows(60, func(int) problem { return row(rng.IntN(classes), rng.IntN(classes)) }), "T", ""},
		{"a single mistake", rows(300, func(i int) problem {
			if i == 7 {
				return second(i)
			}
			return right(i)
		}), "", ""},
		{"usual", rows(300, some), "", ""},
		{"a few rows", rows(25, some), "", ""},
	} {
		fitted := tt.of.fit(t)
		if got := fitted.Undetermined(); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: T = %v ± %v: %q, want %q", tt.name, fitted.T, fitted.Error, got, tt.want)
		}
		if tt.vector == "" {
			continue
		}
		if got := tt.of.fitVector(t).Undetermined(len(tt.of.labels)); !strings.HasPrefix(got, tt.vector) {
			t.Errorf("%s: vector: %q, want %q", tt.name, got, tt.vector)
		}
		stream, err := calibrate.FitTemperatureStream(classes, func(use func([]float64, int)) error {
			for i, label := range tt.of.labels {
				use(tt.of.logits[i*classes:][:classes], label)
			}
			return nil
		})
		if err != nil || stream.Undetermined() != fitted.Undetermined() {
			t.Errorf("%s: %q from a stream, want %q: %v", tt.name, stream.Undetermined(), fitted.Undetermined(), err)
		}
	}
	// Cross-fits do not use what is not determined.
	p := rows(40, right)
	found, err := calibrate.CrossFitTemperature(calibrate.Softmax(nil, p.logits, classes, 1), p.labels, nil, 2, 3, 1)
	if err != nil || found.NLLAfter != found.NLLBefore {
		t.Errorf("cross-fitted NLL %v, and %v before: %v", found.NLLAfter, found.NLLBefore, err)
	}
	if slices.Max(p.labels) != classes-1 {
		t.Error("a class is missing")
	}
}
