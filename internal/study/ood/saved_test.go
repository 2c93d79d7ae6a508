package ood

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report"
)

// What predictions say of themselves is scored as it is; only entropies are in bins.
func TestMeasured(t *testing.T) {
	in, out := []float64{0.1, 0.2, 0.4, 0.5}, []float64{0.3, 0.6, 0.9}
	for _, entropy := range []bool{true, false} {
		r := Measured([]Measure{{"std", "standard deviation", in, out, entropy}, {"epistemic_std", "epistemic standard deviation", out, in, false}})
		x := r.Methods[0]
		if want := detect.Detect(in, out); *x.Scores[0] != want || x.InMean != 0.3 || r.Sizes != [2]int{4, 3} {
			t.Errorf("%+v of %+v, want %+v", *x.Scores[0], x, want)
		}
		var b bytes.Buffer
		for _, table := range r.Show().Tables() {
			table.WriteText(&b, report.Screen{Verbose: true})
		}
		js, err := json.Marshal(r.Show().JSON)
		if err != nil {
			t.Fatal(err)
		}
		page := r.Show().Page()
		if strings.Contains(b.String(), "sym. KL") != entropy || strings.Contains(string(js), "symmetrised_kl") != entropy || (len(page.Entropies) > 0) != entropy {
			t.Errorf("entropies %v:\n%s\n%s", entropy, b.String(), js)
		}
		if !strings.Contains(b.String(), "by standard deviation") || !strings.Contains(string(js), `"epistemic_std":{"auroc"`) || !strings.Contains(strings.Join(r.Show().Verdict, " "), "83.3 % of pairs") {
			t.Errorf("%s\n%s\n%q", b.String(), js, r.Show().Verdict)
		}
	}
	r := Measured([]Measure{{"epistemic_std", "epistemic standard deviation", in, out, false}})
	if len(r.Show().Tables()) != 1 || len(r.Show().Page().Tables) != 1 {
		t.Error("a table of no measures")
	}
}
