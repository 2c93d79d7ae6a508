package batchnorm_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/swag"
)

// Members drawn for a measurement have statistics of their own: with those of another
// scale they would say something else.
func TestDrawsRounding(t *testing.T) {
	t.Parallel()
	e := infertest.Run(t)
	d := batchnorm.Draws{Run: e, Network: infertest.Network(t, infertest.Posterior(t)), BatchNorm: infertest.Training(t), How: swag.SampleOptions{Seed: 1, Scale: 0.5}, Count: 30}
	d.BatchNorm.Order.Limit = 256
	data := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 64})
	r, err := d.MeasureRounding(t.Context(), rounding.Options{}, data)
	if err != nil || r.Members != 4 || r.Of != 30 || r.Examples != 64 || r.RMS != 0 || r.NLL == nil || !(r.MonteCarlo > 0.001 && r.MonteCarlo < 0.05) {
		t.Errorf("%+v, %v", r, err)
	}
	told := infer.NewEngine(e.Runtime(), infer.EngineOptions{Rounding: r})
	if want := e.Runtime().Version() + "; " + r.String(); told.About() != want {
		t.Errorf("%q, want %q", told.About(), want)
	}
	d.How.Scale = 0 // four times SWA
	if r, err = d.MeasureRounding(t.Context(), rounding.Options{}, data); err != nil || r.MonteCarlo != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
