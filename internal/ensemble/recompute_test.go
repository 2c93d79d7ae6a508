package ensemble

import (
	"reflect"
	"testing"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// A recomputation with a tolerance gives what one of as many images does, on any
// number of workers; and the members after it see these.
func TestRecomputeTolerance(t *testing.T) {
	n, rt := network(t, fit(t, false)), openRuntime(t)
	bn := BatchNormData{Data: data(t, "train.npz"), Order: dataset.Order{Shuffle: true, Seed: 1}, Tolerance: 0.02}
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(_ int, parameters weights.Vector) error {
		e := &Engine{Runtime: rt, Workers: 3, BatchSize: 16}
		got, err := e.Recompute(t.Context(), n, parameters, bn)
		if err != nil {
			return err
		}
		if got.StandardError > 0.02 || got.Images >= 1000 || got.Images%16 != 0 {
			t.Errorf("ended after %d images with a standard error of %v", got.Images, got.StandardError)
		}
		settled := bn.Settled(got)
		if settled.Images() != got.Images || settled.Tolerance != 0 {
			t.Errorf("settled: %+v", settled)
		}
		e.Workers = 1
		again, err := e.Recompute(t.Context(), n, parameters, settled)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(again, got) {
			t.Error("the same images, limited, give other statistics")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fixed := BatchNormData{Data: bn.Data, Order: dataset.Order{Limit: 300}}
	if got := fixed.Settled(bnupdate.Result{Images: 128}); got.Images() != 300 {
		t.Errorf("a fixed number became %d", got.Images())
	}
}
