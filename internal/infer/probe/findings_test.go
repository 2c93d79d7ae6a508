package probe_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/store"
)

// The form of scores is kept for the same network and data. Other examples, or a doubt, are checked.
func TestKnown(t *testing.T) {
	t.Parallel()
	kept, err := store.Open(t.TempDir(), "test", "test")
	if err != nil {
		t.Fatal(err)
	}
	n := infertest.Network(t, infertest.Posterior(t))
	check := func(data dataset.Dataset) (known bool, d *probe.Decision) {
		t.Helper()
		run, s := looking(t, n, data)
		report := &probe.Report{}
		known, keep := run.Known(kept, report, s)
		if !known {
			if err := run.CheckScores(t.Context(), report, s, 0); err != nil {
				t.Fatal(err)
			}
			keep()
		}
		return known, report.Scores
	}
	data := infertest.Digits(t, "val.npz")
	first, was := check(data)
	again, is := check(data)
	if first || !again || was == nil || *is != *was {
		t.Errorf("known %v with %v, and again %v with %v", first, was, again, is)
	}
	if known, _ := check(dataset.Subset(data, dataset.Order{Limit: 100})); known {
		t.Error("fewer examples are taken for the same")
	}
	if known, _ := check(infertest.Digits(t, "test.npz")); known {
		t.Error("other examples are taken for the same")
	}
	if err := n.Decide("probabilities"); err != nil {
		t.Fatal(err)
	}
	run, s := looking(t, n, data)
	if known, _ := run.Known(kept, &probe.Report{}, s); known {
		t.Error("a form that the card contradicts is taken for known")
	}
}

// looking returns what sends examples through the last checkpoint of n, and a sample of the data.
func looking(t *testing.T, n *infer.Network, data dataset.Dataset) (*probe.Runner, *probe.Sample) {
	t.Helper()
	run, err := probe.NewRunner(infertest.Engine(t), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	s, err := probe.Hold(data, 1<<30, 2)
	if err != nil {
		t.Fatal(err)
	}
	return run, s
}
