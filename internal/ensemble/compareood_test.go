package ensemble

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Each method is scored by its own averages; SWA-Temp keeps the order of
// confidences within an image but not among images.
func TestDetection(t *testing.T) {
	nets := halves(t)
	models := checkpoints(t)
	in := data(t, "val.npz")
	out, err := dataset.Open([]string{fixture + "/val.npz"}, dataset.Options{Preprocess: preprocess.Settings{Mean: []float64{0.6}, Std: []float64{0.46}}})
	if err != nil {
		t.Fatal(err)
	}
	d := &Detection{
		Lineup: Lineup{Runs: []Run{{nets[0], models[14:15]}, {nets[1], models[29:30]}}, BatchNorm: fileOrder(t), Members: 3, Seed: 1, Scale: 0.5},
		In:     in, Out: out, Validation: in,
	}
	e := &Engine{Runtime: openRuntime(t)}
	found, err := d.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, x := range found {
		keys = append(keys, x.Key)
		if x.Baseline != (x.Key == SWA) || (x.MutualInformation == nil) != (x.Members == 1) {
			t.Errorf("%s: baseline %v, %d members, mutual information %v", x.Name, x.Baseline, x.Members, x.MutualInformation)
		}
		for _, h := range []calibrate.Histogram{x.In, x.Out} {
			n := h.Below + h.Above
			for _, c := range h.Counts {
				n += c
			}
			if n != in.Len() {
				t.Errorf("%s: a histogram of %d images, want %d", x.Name, n, in.Len())
			}
		}
	}
	if got, want := strings.Join(keys, " "), "sgd sgd-ensemble swa swa-temp swa-laplace swag-diag swag deep-sgd deep-swa multiswag"; got != want {
		t.Errorf("methods %s, want %s", got, want)
	}
	// The same numbers from the sums alone.
	l := d.Lineup
	l.Methods = []string{SWAG}
	for _, p := range predicted(t, &l, e, d.targets()) {
		want := DetectionOf("", p.Data[0].Mean(), p.Data[1].Mean(), 10)
		for _, x := range found {
			if x.Key == SWAG && (x.Entropy != want.Entropy || x.Distance != want.Distance || x.Confidence != want.Confidence) {
				t.Errorf("%+v, want %+v", x, want)
			}
		}
	}
	if len(d.Notes) != 0 { // nobody asked for dropout
		t.Errorf("notes %q", d.Notes)
	}
}
