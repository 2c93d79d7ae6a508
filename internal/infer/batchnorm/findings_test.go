package batchnorm_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// Findings are the same with and without a store, and make no passes the second time. Other data, another order and a
// store that cannot be read or written are looked at anew.
func TestFindings(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, augmentedRun(t, "checkpoints", 8)), infertest.Run(t)
	dir := t.TempDir()
	find := func(folder string, data batchnorm.Training) (record batchnorm.Record, passes int64) {
		t.Helper()
		var s *store.Store
		if folder != "" {
			var err error
			if s, err = store.Open(folder, "test", "machine"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, count := tally.Start(t.Context())
		_, records, err := batchnorm.ChooseSampleSize(ctx, e, []*infer.Network{n}, data, batchnorm.SampleSizing{Findings: s})
		if err != nil {
			t.Fatal(err)
		}
		c := count.Counts()
		return *records[0], c.Wanted + c.Hidden()
	}
	data := func(seed uint64) batchnorm.Training {
		return batchnorm.Training{Data: loaderBatches(t), Order: dataset.Order{Shuffle: true, Seed: seed, Limit: 256}}
	}
	alone, _ := find("", data(1))
	for k, want := range []bool{true, false} {
		if r, passes := find(dir, data(1)); (passes > 0) != want || !reflect.DeepEqual(r.Check, alone.Check) {
			t.Errorf("command %d: %d passes, %+v, want %+v", k+1, passes, r.Check, alone.Check)
		}
	}
	changed := data(1)
	changed.Data = renamed{changed.Data}
	for what, other := range map[string]batchnorm.Training{"another order": data(2), "other values of the same identity": changed} {
		if _, passes := find(dir, other); passes == 0 {
			t.Errorf("%s: what was found about other data was taken", what)
		}
	}
	for _, path := range store.Entries(dir) { // damaged
		if err := os.Truncate(path, 40); err != nil {
			t.Fatal(err)
		}
	}
	if r, passes := find(dir, data(1)); passes == 0 || !reflect.DeepEqual(r.Check, alone.Check) {
		t.Errorf("a damaged store: %d passes, %+v", passes, r.Check)
	}
}

// renamed has the identity of data, and other values.
type renamed struct{ dataset.Dataset }

func (r renamed) ID() string { return dataset.ID(r.Dataset) }
func (r renamed) Read(dst dataset.Values, i int) error {
	err := r.Dataset.Read(dst, i)
	for k := range dst.Floats {
		dst.Floats[k] += 0.01
	}
	return err
}
