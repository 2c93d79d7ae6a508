package task

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// textOutcomes makes averaged outcomes of n examples of t tokens, and their labels. Tokens of one document share an error,
// and a document ends within an example.
func textOutcomes(t *testing.T, of dense, n int, seed uint64) (outcomes [][]float64, labels []truth.Truth) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	const document = 3 // examples, and half of one
	shared := map[int]float64{}
	for i := range n {
		sum := make([]float64, of.about.Width)
		label := truth.Truth{Positions: of.Positions(), Text: &truth.Text{}}
		for range 2 { // members
			scores := make([]float32, of.Positions()*of.Count)
			for k := range scores {
				scores[k] = float32(r.NormFloat64())
			}
			for p := range of.Positions() {
				unit := (i*of.Positions() + p) * 2 / (of.Positions() * (2*document + 1))
				if _, ok := shared[unit]; !ok {
					shared[unit] = r.NormFloat64()
				}
				scores[p*of.Count+1] += float32(2 + shared[unit])
			}
			if _, err := of.AddOutcome(sum, scores, 0.5); err != nil {
				t.Fatal(err)
			}
		}
		for p := range of.Positions() {
			class := 1
			if r.IntN(3) == 0 {
				class = r.IntN(of.Count)
			}
			if i == 2 && p < 2 {
				class = truth.Unknown
			}
			label.Classes = append(label.Classes, class)
			label.Text.Unit = append(label.Text.Unit, (i*of.Positions()+p)*2/(of.Positions()*(2*document+1)))
			label.Text.Characters, label.Text.Bytes = append(label.Text.Characters, 1+class), append(label.Text.Bytes, 2+class)
		}
		outcomes, labels = append(outcomes, sum), append(labels, label)
	}
	return outcomes, labels
}

func newText(t *testing.T, positions, words int) dense {
	t.Helper()
	of, err := Of(NextToken, OutputSpec{Output: "y", Count: words, Axis: -1, Positions: positions, Sides: [3]int{positions}})
	if err != nil {
		t.Fatal(err)
	}
	return of.(dense)
}

// The figures are those of all labelled tokens together. Rows that score wrote give the same ones. The unit of chance is
// the document, also where it ends within an example.
func TestNextToken(t *testing.T) {
	t.Parallel()
	const n, positions, words = 40, 6, 9
	of := newText(t, positions, words)
	outcomes, labels := textOutcomes(t, of, n, 1)
	flat := calibrate.Predictions{Classes: words}
	documents := map[int]bool{}
	characters, unit := 0, map[int][2]float64{}
	whole, rows := of.NewEvaluator(EvaluateOptions{}), of.NewEvaluator(EvaluateOptions{NoLosses: true})
	var reading Reading
	want := RowOptions{Truth: true, Each: true}
	for i := range outcomes {
		for p, class := range labels[i].Classes {
			if class < 0 {
				continue
			}
			row, _ := of.Row(outcomes[i], p)
			flat.Probs, flat.Labels = append(flat.Probs, row...), append(flat.Labels, class)
			u := labels[i].Text.Unit[p]
			unit[u] = [2]float64{unit[u][0] - math.Log(row[class]), unit[u][1] + 1}
			documents[u], characters = true, characters+1+class
		}
		if err := whole.Add(outcomes[i], labels[i]); err != nil {
			t.Fatal(err)
		}
		if err := of.Read(&reading, want, Average{Outcome: outcomes[i]}, labels[i]); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, c := range of.Columns(want) {
			size += c.Len()
		}
		if len(reading.Values) != size {
			t.Fatalf("a row of %d values, want %d", len(reading.Values), size)
		}
		if !rows.AddRow(reading.Values, -1, reading.Sums) {
			t.Fatalf("row %d has no labels", i)
		}
	}
	e := whole.Evaluation()
	nll := calibrate.NegLogLikelihood(flat)
	for key, want := range map[string]float64{
		"perplexity": math.Exp(nll), "nll": nll, "accuracy": calibrate.Accuracy(flat), "brier": calibrate.Brier(flat),
		"bits_per_token": nll / math.Ln2, "bits_per_character": nll / math.Ln2 * float64(len(flat.Labels)) / float64(characters),
		"tokens": float64(len(flat.Labels)),
	} {
		if got := e.Value(key); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s %v, want %v", key, got, want)
		}
	}
	if len(e.Parts) != len(documents) || len(e.Losses[0].Values) != len(documents) {
		t.Errorf("%d parts and %d losses, want %d", len(e.Parts), len(e.Losses[0].Values), len(documents))
	}
	for i, p := range e.Parts {
		if want := unit[i][0] / unit[i][1]; p.Scores[0].Key != "perplexity" || math.Abs(p.Scores[1].Value-want) > 1e-12 {
			t.Errorf("document %s: %+v, want NLL %v", p.Name, p.Scores, want)
		}
	}
	again := rows.Evaluation()
	for i, s := range e.Scores {
		if a := again.Scores[i]; math.Abs(a.Value-s.Value) > 1e-12 {
			t.Errorf("%s from rows: %v, want %v", s.Key, a.Value, s.Value)
		}
	}
	if low, high := e.Value("perplexity_low"), e.Value("perplexity_high"); !(low < math.Exp(nll) && math.Exp(nll) < high) ||
		math.Abs(math.Log(low)-e.Value("nll_low")) > 1e-12 {
		t.Errorf("perplexity %v to %v, NLL %v to %v", low, high, e.Value("nll_low"), e.Value("nll_high"))
	}
	for cut := range reading.Sums {
		if s := newTokenSums(); s.parse(reading.Sums[:cut]) == nil && cut != len(s.append(nil)) {
			t.Fatalf("%d of %d bytes are read as sums", cut, len(reading.Sums))
		}
	}
	if _, err := Of(NextToken, OutputSpec{Output: "y", Count: 5}); err == nil {
		t.Error("a language model with one prediction for a text")
	}
}
