package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
)

// The figures of tokens equal those of package calibrate, which holds all of them. Only the ECE depends on cells.
func TestTokens(t *testing.T) {
	t.Parallel()
	const classes = 7
	p, labels := randomPositions(40, 500, classes, 3)
	all := calibrate.Predictions{Classes: classes, Probs: p, Labels: labels}
	var sum, unit calibrate.TokenSums
	entropy := 0.0
	for i, label := range labels {
		sum.Add(calibrate.JudgeRow(all.Row(i), label), calibrate.Entropy(all.Row(i)), i%4, i%5, &unit)
		entropy += calibrate.Entropy(all.Row(i))
	}
	n := int64(len(labels))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"perplexity", sum.Perplexity(), math.Exp(calibrate.NegLogLikelihood(all))},
		{"accuracy", float64(sum.Right) / float64(n), calibrate.Accuracy(all)},
		{"Brier", sum.Brier / float64(n), calibrate.Brier(all)},
		{"entropy", sum.Entropy, entropy},
		{"bits per character", sum.Bits(sum.Characters), calibrate.NegLogLikelihood(all) / math.Ln2 * float64(n) / float64(n/4*(0+1+2+3))},
		{"NLL of the unit", unit.NLL, sum.NLL},
	} {
		if math.Abs(c.got-c.want) > 1e-12*math.Abs(c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	want := calibrate.ECE(all, calibrate.ECEOptions{})
	if got := sum.ECE(20); math.Abs(got-want) > 1e-5 {
		t.Errorf("ECE %v, want %v", got, want)
	}
	if got := sum.SmoothECE(); math.Abs(got-smooth(all)) > 1e-5 {
		t.Errorf("smooth ECE %v, want %v", got, smooth(all))
	}
	back, err := calibrate.ParseTokenSums(sum.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sum, back, cmp.AllowUnexported(calibrate.TokenSums{})); diff != "" {
		t.Error(diff)
	}
	if !math.IsNaN((&calibrate.TokenSums{Positions: 1}).Bits(0)) {
		t.Error("bits per character of a text that is not known")
	}
	b := sum.Append(nil)
	for cut := 0; cut < len(b); cut += 11 {
		if _, err := calibrate.ParseTokenSums(b[:cut]); err == nil {
			t.Fatalf("%d of %d bytes are read as sums", cut, len(b))
		}
	}
}

// Confidences of large vocabularies are small, and still the ECE is that of all confidences in order.
func TestTokensOfLargeVocabulary(t *testing.T) {
	t.Parallel()
	const words, n = 300, 4000
	r := rand.New(rand.NewPCG(5, 5))
	var sum calibrate.TokenSums
	all := calibrate.Predictions{Classes: words}
	for i := range n {
		row := make([]float64, words)
		for c := range row {
			row[c] = math.Exp(0.3 * r.NormFloat64())
		}
		label := r.IntN(words)
		if row[i%words] *= 4 * math.Exp(0.7*r.NormFloat64()); r.IntN(90) == 0 {
			label = i % words
		}
		floats.Scale(1/floats.Sum(row), row)
		sum.Add(calibrate.JudgeRow(row, label), calibrate.Entropy(row), 0, 0, nil)
		all.Probs, all.Labels = append(all.Probs, row...), append(all.Labels, label)
	}
	want := calibrate.ECE(all, calibrate.ECEOptions{})
	if got := sum.ECE(20); math.Abs(got-want) > 1e-3*want {
		t.Errorf("ECE %v, want %v", got, want)
	}
	least, most := 1.0, 0.0
	for i := range n {
		top := floats.Max(all.Row(i))
		least, most = min(least, top), max(most, top)
	}
	bins := sum.Reliability(20)
	if first, last := bins[0].Lower, bins[len(bins)-1].Upper; len(bins) != 20 || first > least || first < 0.99*least || last < most || last > 1.01*most {
		t.Errorf("%d bins from %v to %v, want 20 from %v to %v", len(bins), first, last, least, most)
	}
}

// smooth returns the smooth ECE without cells.
func smooth(p calibrate.Predictions) float64 {
	var tops []calibrate.TopLabel
	for i, label := range p.Labels {
		tops = append(tops, calibrate.JudgeRow(p.Row(i), label).TopLabel)
	}
	return calibrate.SmoothECE(tops)
}
