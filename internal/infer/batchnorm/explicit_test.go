package batchnorm_test

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// explicitly holds the statistics of the graph that is written out against those of the
// training-mode operator: by what part of their size and the standard deviation means
// differ at most, and by what part variances do.
func explicitly(t *testing.T, e infer.Run, n *infer.Network, data batchnorm.Training) (means, variances float64, err error) {
	t.Helper()
	infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
		want, failed := batchnorm.Recompute(t.Context(), e, n, parameters, data)
		if failed != nil {
			return failed
		}
		if err = batchnorm.Explicit(n); err != nil {
			return nil
		}
		got, failed := batchnorm.Recompute(t.Context(), e, n, parameters, data)
		if failed != nil {
			return failed
		}
		bns, failed := n.Skeleton().BatchNorms()
		for _, bn := range bns {
			mean, ok := n.Posterior.Layout.Find(bn.Mean)
			vari, _ := n.Posterior.Layout.Find(bn.Var)
			if !ok {
				continue
			}
			for c := range mean.Len() {
				v, m := float64(want.Statistics[vari.Offset+c]), float64(want.Statistics[mean.Offset+c])
				means = max(means, math.Abs(float64(got.Statistics[mean.Offset+c])-m)/(math.Abs(m)+math.Sqrt(v+1e-5)))
				variances = max(variances, math.Abs(float64(got.Statistics[vari.Offset+c])-v)/(v+1e-5))
			}
		}
		return failed
	})
	return means, variances, err
}

// Of every exporter's batch norms the graph that is written out gives the statistics of
// the operator, in float32's digits. Refused are other types, and graphs that do not tell
// a rank.
func TestExplicitBatchNorm(t *testing.T) {
	t.Parallel()
	e, ran := infertest.Run(t), 0
	check := func(name string, n *infer.Network, data batchnorm.Training) {
		t.Run(name, func(t *testing.T) {
			means, variances, err := explicitly(t, e, n, data)
			if refused := (*onnxio.Error)(nil); errors.As(err, &refused) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ran++
			if means > 1e-6 || variances > 1e-6 {
				t.Errorf("means differ by %.2g, variances by %.2g", means, variances)
			}
		})
	}
	check("mnist", infertest.Network(t, infertest.Posterior(t)), infertest.Training(t))
	for _, c := range exportedCases(t) {
		var models []*onnxio.Model
		for _, name := range c.Checkpoints {
			models = append(models, infertest.Open(t, filepath.Join(c.dir, name)))
		}
		if except := exceptions[c.Case]; except.refused != "" || except.noRun != "" {
			continue
		}
		if _, err := checkpoints.New(models); err != nil {
			t.Fatal(err)
		}
		if n := infertest.Network(t, infertest.Fit(t, models...)); n.Recomputes() {
			check(c.Case, n, batchnorm.Training{Data: newArray(t, c.golden, "input")})
		}
	}
	if ran < 27 {
		t.Errorf("%d networks are written out, want 27", ran)
	}
}
