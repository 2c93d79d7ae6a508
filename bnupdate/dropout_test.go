package bnupdate_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// Kills: dropout active in the BN pass. The model was exported in training
// mode, with a Dropout before its batch norm.
func TestPlanDisablesDropout(t *testing.T) {
	m, err := onnxio.Open("../cmd/swagwrap/testdata/training-1.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	set, err := checkpoints.New([]*onnxio.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	layout := set.Layout
	plan, err := bnupdate.NewPlan(m, layout, bnupdate.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	vector := func(r weights.Role) weights.Vector {
		v, err := m.Vector(layout, r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	rendered, err := plan.Template.Render(layout, vector(weights.Parameter), vector(weights.Statistic))
	if err != nil {
		t.Fatal(err)
	}
	training, err := onnxio.Parse("training graph", rendered)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, n := range training.Graph.Nodes {
		if n.OpType == "Dropout" {
			found = true
			if len(n.Inputs) != 2 {
				t.Errorf("Dropout has inputs %q, want its data and the ratio, no training_mode", n.Inputs)
			}
		}
	}
	if !found {
		t.Error("the fixture has no Dropout")
	}
}
