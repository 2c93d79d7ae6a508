package probe

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// rowsOf makes n rows of so many scores.
func rowsOf(n, count int, score func(i, k int) float64) []float32 {
	var out []float32
	for i := range n {
		for k := range count {
			out = append(out, float32(score(i, k)))
		}
	}
	return out
}

func open() infer.OutputProperties {
	return infer.OutputProperties{Low: math.Inf(-1), High: math.Inf(1)}
}

// Logits that lie in [0, 1] by chance are not taken for probabilities: of five networks.
func TestChance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	uniform := func(int, int) float64 { return r.Float64() }
	affine := open()
	affine.Affine = true
	for name, raw := range map[string]*Record{
		"two classes":   {Task: "classes", Count: 2, Scores: rowsOf(256, 2, uniform), OutputProperties: affine},
		"ten classes":   {Task: "classes", Count: 10, Scores: rowsOf(256, 10, uniform), OutputProperties: affine},
		"one score":     {Task: "binary", Count: 1, Scores: rowsOf(256, 1, uniform), OutputProperties: affine},
		"three labels":  {Task: "labels", Count: 3, Scores: rowsOf(256, 3, uniform), OutputProperties: affine},
		"hardly varied": {Task: "classes", Count: 2, Scores: rowsOf(256, 2, func(_, k int) float64 { return []float64{0.4, 0.6}[k] + 1e-3*r.NormFloat64() }), OutputProperties: affine},
		"three examples": {Task: "classes", Count: 2, OutputProperties: affine,
			Scores: rowsOf(3, 2, func(i, k int) float64 { return []float64{0.4, 0.601, 0.3, 0.699, 0.5, 0.5005}[2*i+k] })},
	} {
		d, err := raw.Decide()
		if err != nil || d.Form != task.Logits {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	// Where the graph says nothing, a single score is decided by labels alone.
	raw := &Record{Task: "binary", Count: 1, Scores: rowsOf(256, 1, uniform), OutputProperties: open()}
	if _, err := raw.Decide(); err == nil || err.(*Fault).Severity != Question {
		t.Errorf("a score in [0, 1] without labels: %v", err)
	}
	for _, z := range raw.Scores {
		y := 0
		if r.Float64() < 1/(1+math.Exp(-float64(z))) {
			y = 1
		}
		raw.Labels.Classes = append(raw.Labels.Classes, y)
	}
	if d, err := raw.Decide(); err != nil || d.Form != task.Logits || d.By != "labels" {
		t.Errorf("with labels: %v, %v", d, err)
	}
}

// What the graph, the model card and the values say must agree.
func TestDisagreement(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := rowsOf(64, 2, func(i, k int) float64 { return math.Abs(float64(k) - float64(i)/64) })
	for i := 0; i < len(p); i += 2 {
		p[i+1] = 1 - p[i]
	}
	logits := rowsOf(64, 2, func(int, int) float64 { return 3 * r.NormFloat64() })
	for _, tt := range []struct {
		name   string
		scores []float32
		known  task.Form
		proven bool
		want   string
	}{
		{"probabilities, as the card says", p, task.Probabilities, false, ""},
		{"probabilities, the card says logits", p, task.Logits, false, "the model card says logits"},
		{"logits, the card says probabilities", logits, task.Probabilities, false, "the model card says probabilities, but the scores are not such"},
		{"logits, the graph says probabilities", logits, task.Probabilities, true, "the graph ends in an activation that gives probabilities"},
		{"logits, the card says log-probabilities", logits, task.LogProbabilities, false, "the model card says log-probabilities"},
		{"logits, as the card says", logits, task.Logits, false, ""},
	} {
		raw := &Record{Task: "classes", Count: 2, Scores: tt.scores, Known: tt.known, Proven: tt.proven, OutputProperties: open()}
		d, err := raw.Decide()
		switch {
		case tt.want == "" && (err != nil || d.Form != tt.known || d.By != "card"):
			t.Errorf("%s: %v, %v", tt.name, d, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case tt.want != "" && !strings.Contains(strings.Join(err.(*Fault).Hints(), "\n"), "Scores logits"):
			t.Errorf("%s: no hint names the setting: %q", tt.name, err.(*Fault).Hints())
		}
	}
	if d, err := (&Record{Task: "regression", Count: 2, Scores: p}).Decide(); d != nil || err != nil {
		t.Errorf("a regression: %v, %v", d, err)
	}
	if d, err := (&Record{Task: "classes", Count: 2, Scores: []float32{float32(math.NaN()), 1}}).Decide(); d != nil || err != nil {
		t.Errorf("nothing usable: %v, %v", d, err)
	}
}

// Networks of either form, calibrated or overconfident, with labels drawn for them: labels
// may leave it open, but are never wrong.
func TestLabelsTell(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const networks = 10_000
	wrong, told := 0, 0
	for i := range networks {
		n := 20 + r.IntN(400)
		rate := math.Exp(2*r.NormFloat64() - 1) // of the odds of class 1
		sharp := 1 + 3*r.Float64()              // how much too sure
		logits := i%2 == 0
		scores, labels := make([]float64, n), make([]bool, n)
		for k := range n {
			if logits {
				scores[k] = r.Float64()
				labels[k] = r.Float64() < 1/(1+math.Exp(-scores[k]))
				continue
			}
			z := math.Log(rate) + 2*r.NormFloat64()
			labels[k] = r.Float64() < 1/(1+math.Exp(-z))
			scores[k] = 1 / (1 + math.Exp(-sharp*z))
		}
		f, ok := tell(scores, labels)
		if ok {
			told++
			if (f == task.Logits) != logits {
				wrong++
			}
		}
	}
	if wrong > 0 || told < networks/2 {
		t.Errorf("%d of %d networks were decided, %d of them wrongly", told, networks, wrong)
	}
	t.Logf("%d of %d networks were decided, %d of them wrongly", told, networks, wrong)
	if _, ok := tell([]float64{0, 1}, []bool{false, true}); ok {
		t.Error("two labels decide")
	}
}
