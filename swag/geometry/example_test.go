package geometry_test

import (
	"context"
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
	"github.com/swagwrap/swagwrap/weights"
)

// The iterates of a network of two weights, of which only the first moves.
func Example() {
	layout, err := weights.NewLayout([]weights.Tensor{
		{Name: "fc.weight", Shape: []int64{1, 2}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var file memory // an io.WriterAt
	if err := swag.Fit(ctx, &file, swag.Input{Layout: layout, Checkpoints: []swag.Checkpoint{
		{Path: "epoch-1.onnx", Theta: weights.Slice{1, 10}},
		{Path: "epoch-2.onnx", Theta: weights.Slice{2, 10}},
		{Path: "epoch-3.onnx", Theta: weights.Slice{3, 10}},
	}}, swag.FitOptions{}); err != nil {
		log.Fatal(err)
	}
	posterior, err := swag.Parse("posterior", file)
	if err != nil {
		log.Fatal(err)
	}

	g, err := geometry.New(ctx, posterior, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d direction, eigenvalue %.3f\n", g.Directions(), g.Eigenvalues[0])
	for _, p := range g.Positions() {
		fmt.Printf("model %d is at %+.1f\n", p.Model, p.Along[0])
	}
	point := make([]float32, posterior.Len())
	if err := g.Point(ctx, []float64{0.5}).ReadAt(point, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println("half a unit along it:", point)
	// Output:
	// 1 direction, eigenvalue 0.625
	// model 0 is at -1.0
	// model 1 is at +0.0
	// model 2 is at +1.0
	// half a unit along it: [2.5 10]
}
