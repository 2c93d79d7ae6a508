package swag_test

import (
	"context"
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Fit a posterior to three iterates of a network with two weights, and draw a
// member from it. A real program would give Fit a file and use [swag.Open].
func Example() {
	layout, err := weights.NewLayout([]weights.Tensor{
		{Name: "fc.weight", Shape: []int64{1, 2}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		log.Fatal(err)
	}
	iterates := swag.Input{Layout: layout, Checkpoints: []swag.Checkpoint{
		{Path: "epoch-1.onnx", Theta: weights.Slice{1, 10}},
		{Path: "epoch-2.onnx", Theta: weights.Slice{2, 10}},
		{Path: "epoch-3.onnx", Theta: weights.Slice{3, 10}},
	}}
	ctx := context.Background()
	var file memory // an io.WriterAt
	if err := swag.Fit(ctx, &file, iterates, swag.FitOptions{}); err != nil {
		log.Fatal(err)
	}

	posterior, err := swag.Parse("posterior", file)
	if err != nil {
		log.Fatal(err)
	}
	mean, variance := make([]float64, 2), make([]float64, 2)
	posterior.Mean(mean, 0)
	posterior.Variance(variance, 0)
	fmt.Printf("mean %v, variance %.3f\n", mean, variance)

	covariance := swag.LowRankPlusDiagonal
	sampler, err := swag.NewSampler(posterior, swag.SampleOptions{Seed: 1, Scale: covariance.DefaultScale()})
	if err != nil {
		log.Fatal(err)
	}
	member := make([]float32, posterior.Len())
	if err := sampler.Draw(ctx, [][]float32{member}, []int{7}); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("member 7: %.3f\n", member)
	// Output:
	// mean [2 10], variance [0.667 0.000]
	// member 7: [2.690 10.000]
}
