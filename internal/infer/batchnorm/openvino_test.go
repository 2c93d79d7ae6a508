//go:build openvino

package batchnorm_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/weights"
)

// On OpenVINO the graph that is written out gives the statistics of the training-mode
// operator: in float32 to its digits, where sums over a whole batch would be off by 1e-4,
// and in bf16 to what rounding every activation to 2⁻⁹ leaves in the average over thousands
// of them.
func TestOpenVINOExplicitBatchNorm(t *testing.T) {
	p := ort.Provider{Name: ort.OpenVINO}
	l, err := p.Find("")
	if err != nil {
		t.Fatal(err)
	}
	rt, err := p.Open(l)
	if err != nil {
		t.Fatal(err)
	}
	n := infertest.Network(t, infertest.Posterior(t))
	statistics := func(passes ort.Provider) (out []float32) {
		e := infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Passes: passes})}
		infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
			r, err := batchnorm.Recompute(t.Context(), e, n, parameters, infertest.Training(t))
			out = r.Statistics
			return err
		})
		return out
	}
	bns, err := n.Skeleton().BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	want := statistics(ort.Provider{})
	for _, test := range []struct {
		precision   string
		least, most float64
	}{{ort.F32, 0, 1e-6}, {ort.BF16, 1e-4, 0.02}} {
		got := statistics(ort.Provider{Name: ort.OpenVINO, Precision: test.precision})
		for _, bn := range bns {
			mean, _ := n.Posterior.Layout.Find(bn.Mean)
			vari, _ := n.Posterior.Layout.Find(bn.Var)
			off := 0.0 // in standard deviations, and as a part of the variance
			for c := range mean.Len() {
				m, v := float64(want[mean.Offset+c]), float64(want[vari.Offset+c])
				off = max(off, math.Abs(float64(got[mean.Offset+c])-m)/math.Sqrt(v), math.Abs(float64(got[vari.Offset+c])-v)/v)
			}
			if !(off > test.least && off <= test.most) {
				t.Errorf("%s in %s: statistics are off by %.2g, want between %g and %g", bn.Mean, test.precision, off, test.least, test.most)
			}
		}
	}
}
