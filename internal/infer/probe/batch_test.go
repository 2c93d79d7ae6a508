package probe_test

import (
	"errors"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
)

// A network is told by its runs: whether the other examples of a batch change an
// example's scores, whether the length that it is filled up to does, or neither. Rounding
// does not count, nor do the copies that fill a fixed batch up.
func TestDependence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		network, data  string
		batch, padding bool
	}{
		{"ckpt", "images.npz", false, false},
		{"fixed-batch", "images.npz", false, false},
		{"mixing", "images.npz", false, false}, // takes single examples only
		{"softmax", "images.npz", false, false},
		{"training", "images.npz", false, false},
		{"tokens", "tokens.npz", false, false},
		{"beside", "beside.npz", false, false},
		{"across", "images.npz", true, false},
		{"across-fixed", "images.npz", true, false},
		{"without-statistics", "images.npz", true, false},
		{"unmasked", "lists.jsonl", false, true},
	} {
		t.Run(tc.network, func(t *testing.T) {
			t.Parallel()
			file := func(name string) string { return infertest.Path(infertest.Small, name) }
			n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, file(tc.network+"-1.onnx")), infertest.Open(t, file(tc.network+"-2.onnx"))))
			e := infertest.Engine(t)
			opts := dataset.Options{Fields: n.Fields()}
			if tc.data == "lists.jsonl" {
				opts.Pad = map[string]float64{"ids": 0}
			}
			s, err := probe.Hold(infertest.Data(t, file(tc.data), opts), 1<<20, 2)
			if err != nil {
				t.Fatal(err)
			}
			r, err := probe.NewRunner(e, n)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			d, err := r.Dependence(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if d == nil {
				d = &probe.Dependence{}
			}
			if (d.Batch > 0) != tc.batch || (d.Padding > 0) != tc.padding {
				t.Errorf("%+v, want a dependence on the batch: %v, on the filling: %v", *d, tc.batch, tc.padding)
			}
		})
	}
}

// What depends on the batch is refused without a batch size, and warned of with one. Padding does no harm to one example at a time.
func TestBatches(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Posterior(t))
	run, s := looking(t, n, infertest.Digits(t, "val.npz"))
	for _, tc := range []struct {
		depends probe.Dependence
		chosen  int
		want    string
	}{
		{probe.Dependence{}, 0, ""},
		{probe.Dependence{Batch: 0.5}, 0, "mixed examples"},
		{probe.Dependence{Batch: 0.5}, 8, "mixed examples of a chosen batch"},
		{probe.Dependence{Padding: 0.5}, 0, "lists without a mask"},
		{probe.Dependence{Padding: 0.5}, 8, "lists without a mask"},
		{probe.Dependence{Padding: 0.5}, 1, ""},
	} {
		earlier, report, got := &probe.Report{Depends: &tc.depends}, &probe.Report{}, ""
		if tc.depends == (probe.Dependence{}) {
			earlier = nil
		}
		err := run.CheckBatches(t.Context(), report, earlier, s, tc.chosen)
		if f := new(probe.Fault); errors.As(err, &f) {
			got = f.Name
		} else if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Found {
			got += f.Name
		}
		if got != tc.want || (tc.depends.Batch > 0 && report.BatchSize != tc.chosen) {
			t.Errorf("%+v, batch size %d: found %q, want %q", tc.depends, tc.chosen, got, tc.want)
		}
	}
}
