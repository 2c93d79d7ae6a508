package ensemble_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// One provider and one precision change nothing, and the Monte Carlo error is that of the
// members that the scorer itself runs.
func TestRounding(t *testing.T) {
	t.Parallel()
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), 6)
	data := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 100})
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: data, Want: everything}
	r, err := job.Rounding(t.Context(), engine(t), rounding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Examples != 100 || r.Members != 4 || r.Of != 6 || r.Largest != 0 || r.RMS != 0 || r.NLL == nil || *r.NLL != 0 || r.Objection() != "" {
		t.Errorf("%v: %+v", r, r)
	}
	want := 0.0
	rows := collect(t, engine(t), job, 0)
	for _, row := range rows {
		for c := range 10 {
			mean, squares := 0.0, 0.0
			for k := range 4 {
				mean += row.Members[k*10+c] / 4
			}
			for k := range 4 {
				squares += math.Pow(row.Members[k*10+c]-mean, 2)
			}
			want += squares / 3 / 6 / float64(10*len(rows))
		}
	}
	if want = math.Sqrt(want); math.Abs(r.MonteCarlo-want) > 1e-6*want {
		t.Errorf("Monte Carlo error %v, want %v", r.MonteCarlo, want)
	}
}

// Antithetic pairs stay together, all strata of a mixture are seen, and what cannot be
// read is left out.
func TestRoundingMembers(t *testing.T) {
	t.Parallel()
	e, networks := small(t, "single", 6)
	e.Sampling.Antithetic = true
	data := tinyData(t, "images.npz").(dataset.Bytes)
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: flawed{data, map[int]bool{0: true}}}
	r, err := job.Rounding(t.Context(), engine(t), rounding.Options{})
	if err != nil || r.Members != 6 || r.Examples != min(256, data.Len())-1 {
		t.Errorf("%+v, %v", r, err)
	}
	e.Sampling.Antithetic = false
	e.Components = slices.Repeat(e.Components, 2)
	e.Components[0].Weight, e.Components[1].Weight = 0.5, 0.5
	job.Networks = slices.Repeat(networks, 2)
	if r, err := job.Rounding(t.Context(), engine(t), rounding.Options{}); err != nil || r.Members != 4 || r.Of != 12 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a measurement ran is not run again: the sessions of its members serve the run and, if it measured all examples, so do
// the scores. The rows are the same bits.
func TestRoundingLeaves(t *testing.T) {
	t.Parallel()
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), 6)
	for _, test := range []struct{ examples, used int }{{200, 4 * 200}, {300, 0}} {
		data := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: test.examples})
		job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: data, Want: everything}
		want := collect(t, engine(t), job, 0)
		job.Ran = &infer.Ran{}
		ctx, passes := tally.Start(t.Context())
		if _, err := job.Rounding(ctx, engine(t), rounding.Options{}); err != nil {
			t.Fatal(err)
		}
		measured := 2 * 4 * min(test.examples, 256)
		if got := passes.Counts(); got.Rounding != int64(measured) || got.Wanted != 0 {
			t.Errorf("%d examples: the measurement made %v", test.examples, got)
		}
		if got := collectIn(t, ctx, engine(t), job, 0); !reflect.DeepEqual(got, want) {
			t.Errorf("%d examples: other rows", test.examples)
		}
		if got := passes.Counts(); got.Rounding != int64(measured-test.used) || got.Wanted != int64(6*test.examples) || got.Plan != 0 {
			t.Errorf("%d examples: %v, of which %d were measured", test.examples, got, measured)
		}
	}
}
