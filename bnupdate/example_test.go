package bnupdate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
)

// session stands for ONNX Runtime: a real Runner renders plan.Template with a
// member's weights, and asks a session on it for plan.Outputs. This one gives
// the same statistics for every channel.
type session struct{ channels []int }

func (session) Batches() int { return 2 }

func (s session) Run(_ context.Context, k int) (bnupdate.Batch, error) {
	images := []int64{128, 64}[k]
	b := bnupdate.Batch{Images: int(images)}
	for _, n := range s.channels {
		mean, variance := make([]float32, n), make([]float32, n)
		for c := range mean {
			mean[c], variance[c] = float32(k), 1
		}
		b.Mean, b.Var = append(b.Mean, mean), append(b.Var, variance)
		b.Shapes = append(b.Shapes, []int64{images, int64(n), 7, 7})
	}
	return b, nil
}

func Example() {
	model, err := onnxio.Open("../fixtures/mnist/checkpoints/epoch-30.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	set, err := checkpoints.New([]*onnxio.Model{model})
	if err != nil {
		log.Fatal(err)
	}
	layout := set.Layout
	plan, err := bnupdate.NewPlan(model, layout, bnupdate.Keep{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Layers(), "layers,", len(plan.Outputs), "outputs")

	var s session
	layers, err := model.BatchNorms()
	if err != nil {
		log.Fatal(err)
	}
	for _, bn := range layers {
		s.channels = append(s.channels, int(bn.Channels))
	}
	res, err := bnupdate.Recompute(context.Background(), plan, s, bnupdate.Options{Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	first, _ := layout.Find(layers[0].Mean)
	fmt.Printf("%d statistics from %d images, %s[0] = %.3f\n",
		len(res.Statistics), res.Images, first.Name, res.Statistics[first.Offset])
	// Output:
	// 8 layers, 24 outputs
	// 368 statistics from 192 images, stem_bn.running_mean[0] = 0.333
}
