package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// sure returns the logits of n rows and labels that are drawn from their softmax at the given temperature.
func sure(n, classes int, temperature float64) (logits []float64, labels []int) {
	r := rand.New(rand.NewPCG(8, uint64(classes)))
	for range n {
		z := make([]float64, classes)
		for c := range z {
			z[c] = 1.5 * r.NormFloat64()
		}
		label, u := 0, r.Float64()
		for p := softmax(z, 1); label < classes-1 && u > p[label]; label++ {
			u -= p[label]
		}
		for _, v := range z {
			logits = append(logits, v*temperature)
		}
		labels = append(labels, label)
	}
	return logits, labels
}

// exactNLL is the mean NLL of the rows at temperature 1/beta, without probabilities.
func exactNLL(logits []float64, labels []int, beta float64) (nll float64) {
	classes := len(logits) / len(labels)
	for i, label := range labels {
		row := logits[i*classes:][:classes]
		sum := 0.0
		for _, z := range row {
			sum += math.Exp((z - slices.Max(row)) * beta)
		}
		nll += (math.Log(sum) - (row[label]-slices.Max(row))*beta) / float64(len(labels))
	}
	return nll
}

// exactTemperature finds the temperature where the NLL changes equally on both sides.
func exactTemperature(logits []float64, labels []int) float64 {
	low, high := 1e-9, 1e4
	for high > low*(1+1e-12) {
		mid := math.Sqrt(low * high)
		if exactNLL(logits, labels, mid*(1+1e-4)) > exactNLL(logits, labels, mid/(1+1e-4)) {
			high = mid
		} else {
			low = mid
		}
	}
	return 1 / low
}

// Logits of any size are calibrated as logits: their probabilities would be 0 and 1. The NLL of the rows as saved is finite.
func TestLargeLogits(t *testing.T) {
	t.Parallel()
	for _, temperature := range []float64{0.01, 1, 100, 300, 1000, 10_000} {
		t.Run(fmt.Sprint(temperature), func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{2, 10} {
				logits, labels := sure(600, n, temperature)
				fit := newPredictions(t, logits, n, false, labels)
				k := run(t, Study{Method: task.ByTemperature, Folds: 5, Fit: fit})
				want := exactTemperature(logits, labels)
				checkTemperature(t, k, want, exactNLL(logits, labels, 1/want), exactNLL(logits, labels, 1))
				if temperature < 1 {
					continue // a ridge pulls scales towards 1
				}
				vector := run(t, Study{Method: task.ByVector, Folds: 5, Fit: fit})
				if vector.Undetermined() != "" || vector.after > k.after+1e-9 || math.IsInf(vector.crossed, 0) {
					t.Errorf("vector scaling of %d classes: %q, NLL %v, cross-fitted %v; a temperature has %v", n, vector.Undetermined(), vector.after, vector.crossed, k.after)
				}
			}
		})
	}
}

func checkTemperature(t *testing.T, k *Result, want, after, before float64) {
	t.Helper()
	if have := k.Fitted.Temperature; math.Abs(have-want) > 1e-6*want || k.Undetermined() != "" {
		t.Errorf("T = %v, want %v; %s", have, want, k.Undetermined())
	}
	if math.Abs(k.after-after) > 1e-9 || math.Abs(k.before-before) > 1e-9*before || math.IsInf(k.crossed, 0) {
		t.Errorf("NLL from %v to %v, want from %v to %v; cross-fitted %v", k.before, k.after, before, after, k.crossed)
	}
}

// Log-odds of labels are the logits of two classes.
func TestLargeLogOdds(t *testing.T) {
	t.Parallel()
	for _, temperature := range []float64{0.01, 300, 10_000} {
		logits, labels := sure(600, 2, temperature)
		rows := &predictions.Rows{Len: len(labels) / 2, Values: map[string][]float64{}}
		for i, y := range labels {
			rows.Values["labels"] = append(rows.Values["labels"], float64(y))
			rows.Values["logits"] = append(rows.Values["logits"], logits[2*i+1]-logits[2*i])
		}
		saved, err := restoreLabels(rows)
		if err != nil {
			t.Fatal(err)
		}
		want := exactTemperature(logits, labels)
		k := run(t, Study{Method: task.ByTemperature, Folds: 5, Fit: &Predictions{Saved: saved}})
		checkTemperature(t, k, want, exactNLL(logits, labels, 1/want), exactNLL(logits, labels, 1))
		if temperature < 1 {
			continue // a ridge pulls a towards 1
		}
		for _, by := range []task.Method{task.ByTemperatures, task.ByPlatt} {
			if other := run(t, Study{Method: by, Folds: 5, Fit: &Predictions{Saved: saved}}); other.after > k.after+1e-9 || other.Undetermined() != "" {
				t.Errorf("%s: NLL %v %s; one temperature has %v", by, other.after, other.Undetermined(), k.after)
			}
		}
	}
}

// Rows of sure networks have the same probabilities, 0 and 1. They are not the same rows.
func TestSureRowsDiffer(t *testing.T) {
	t.Parallel()
	logits, labels := sure(600, 3, 10_000)
	a, b := newPredictions(t, logits[:900], 3, false, labels[:300]), newPredictions(t, logits[900:], 3, false, labels[300:])
	a.SHA256, b.SHA256 = "a", "b"
	if n := a.InCommon(b); n > 0 {
		t.Errorf("%d rows in common", n)
	}
	if n := a.InCommon(a); n != 300 {
		t.Errorf("%d rows in common with itself", n)
	}
}
