package task

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/target"
)

// textOutcomes makes averaged outcomes of n examples of t tokens, and their labels. Tokens of one document share an error,
// and a document ends within an example.
func textOutcomes(t *testing.T, of several, n int, seed uint64) (outcomes [][]float64, labels []target.Target) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	const document = 3 // examples, and half of one
	shared := map[int]float64{}
	for i := range n {
		sum := make([]float64, of.about.Width)
		label := target.Target{Positions: of.Positions, Text: &target.Text{}}
		for range 2 { // members
			scores := make([]float32, of.Positions*of.Count)
			for k := range scores {
				scores[k] = float32(r.NormFloat64())
			}
			for p := range of.Positions {
				unit := (i*of.Positions + p) * 2 / (of.Positions * (2*document + 1))
				if _, ok := shared[unit]; !ok {
					shared[unit] = r.NormFloat64()
				}
				scores[p*of.Count+1] += float32(2 + shared[unit])
			}
			if _, err := AddPositions(of, sum, scores, 0.5, 0, len(scores)/of.Count); err != nil {
				t.Fatal(err)
			}
		}
		for p := range of.Positions {
			class := 1
			if r.IntN(3) == 0 {
				class = r.IntN(of.Count)
			}
			if i == 2 && p < 2 {
				class = target.Unknown
			}
			label.Classes = append(label.Classes, class)
			label.Text.Unit = append(label.Text.Unit, (i*of.Positions+p)*2/(of.Positions*(2*document+1)))
			label.Text.Characters, label.Text.Bytes = append(label.Text.Characters, 1+class), append(label.Text.Bytes, 2+class)
		}
		outcomes, labels = append(outcomes, sum), append(labels, label)
	}
	return outcomes, labels
}

func newText(t *testing.T, positions, words int) several {
	t.Helper()
	of, err := New(NextToken, OutputSpec{Output: "y", Count: words, Axis: -1, Positions: positions, Sides: [3]int{positions}})
	if err != nil {
		t.Fatal(err)
	}
	return of.(several)
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
	whole, rows := NewEvaluator(of, EvaluateOptions{}), NewEvaluator(of, EvaluateOptions{NoLosses: true})
	var reading Reading
	want := RowOptions{Target: true, Each: true}
	for i := range outcomes {
		for p, class := range labels[i].Classes {
			if class < 0 {
				continue
			}
			row, _ := of.row(outcomes[i], p)
			flat.Probs, flat.Labels = append(flat.Probs, row...), append(flat.Labels, class)
			u := labels[i].Text.Unit[p]
			unit[u] = [2]float64{unit[u][0] - math.Log(row[class]), unit[u][1] + 1}
			documents[u], characters = true, characters+1+class
		}
		if err := whole.Add(outcomes[i], labels[i]); err != nil {
			t.Fatal(err)
		}
		if err := Read(of, &reading, want, Average{Outcome: outcomes[i]}, labels[i]); err != nil {
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
		if s := of.newSums(); s.parse(reading.Sums[:cut]) == nil && cut != len(s.append(nil)) {
			t.Fatalf("%d of %d bytes are read as sums", cut, len(reading.Sums))
		}
	}
	if _, err := New(NextToken, OutputSpec{Output: "y", Count: 5}); err == nil {
		t.Error("a language model with one prediction for a text")
	}
}

// Intervals cover the target for tokens that depend on each other: those of a document share an effect. Intervals from single
// tokens would not. The paired difference of two models is covered too.
func TestIntervalsOfDependentTokens(t *testing.T) {
	t.Parallel()
	const repeats, documents, examples, tokens, words = 60, 40, 3, 8, 3
	r := rand.New(rand.NewPCG(7, 7))
	of := newText(t, tokens, words)
	// A token has the probability 1/(1+2·exp(−u)) for a normal u with a share of the document. The target is the mean of
	// −log of it, over 10⁶ draws: its error is a fiftieth of the width of an interval.
	const shared, own = 0.8, 0.6
	loss := func(u float64) float64 { return math.Log1p(2 * math.Exp(-u)) }
	targetA, targetB := 0.0, 0.0
	const draws = 1_000_000
	for range draws {
		u := 0.5 + math.Hypot(shared, own)*r.NormFloat64()
		targetA, targetB = targetA+loss(u)/draws, targetB+loss(0.9*u+0.1)/draws
	}
	covered, paired, naive := 0, 0, 0
	for range repeats {
		a, b := NewEvaluator(of, EvaluateOptions{}), NewEvaluator(of, EvaluateOptions{})
		n, sum, squares := 0.0, 0.0, 0.0
		for d := range documents {
			effect := shared * r.NormFloat64()
			for range 1 + r.IntN(2*examples-1) { // documents differ in length
				label := target.Target{Classes: make([]int, tokens), Positions: tokens, Text: &target.Text{Unit: make([]int, tokens)}}
				scoresA, scoresB := make([]float32, tokens*words), make([]float32, tokens*words)
				for p := range tokens {
					u := 0.5 + effect + own*r.NormFloat64()
					scoresA[p*words], scoresB[p*words] = float32(u), float32(0.9*u+0.1)
					label.Text.Unit[p] = d
					n, sum, squares = n+1, sum+loss(u), squares+loss(u)*loss(u)
				}
				for e, scores := range map[*Evaluator][]float32{a: scoresA, b: scoresB} {
					outcome := make([]float64, of.about.Width)
					if _, err := AddPositions(of, outcome, scores, 1, 0, len(scores)/of.Count); err != nil {
						t.Fatal(err)
					}
					if err := e.Add(outcome, label); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		e := a.Evaluation()
		if e.Value("perplexity_low") <= math.Exp(targetA) && math.Exp(targetA) <= e.Value("perplexity_high") {
			covered++
		}
		differences := a.Losses()[0].Values
		for i, v := range b.Losses()[0].Values {
			differences[i] -= v
		}
		d := chance.NewDifference(differences, 0)
		if d.Low <= targetA-targetB && targetA-targetB <= d.High {
			paired++
		}
		if half := 1.96 * math.Sqrt(squares/n-sum/n*sum/n) / math.Sqrt(n); math.Abs(sum/n-targetA) < half {
			naive++
		}
	}
	// The seed is fixed. A true coverage of 0.85 would fail in two of three seeds.
	if covered < repeats*89/100 || paired < repeats*89/100 {
		t.Errorf("of %d intervals, %d of perplexity and %d of differences cover the truth", repeats, covered, paired)
	}
	if naive > repeats*75/100 {
		t.Errorf("%d of %d intervals of single tokens cover the truth: the test shows nothing", naive, repeats)
	}
	t.Logf("perplexity %d, differences %d, single tokens %d of %d", covered, paired, naive, repeats)
}
