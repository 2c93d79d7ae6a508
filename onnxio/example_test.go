package onnxio_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

func init() {
	onnxio.NewLayout = func(models []*onnxio.Model) (*weights.Layout, error) {
		set, err := checkpoints.New(models)
		if err != nil {
			return nil, err
		}
		return set.Layout, nil
	}
}

// Two checkpoints of one network are averaged, and the average is written as a
// model again.
func Example() {
	var models []*onnxio.Model
	for _, path := range []string{
		"../fixtures/mnist/checkpoints/epoch-29.onnx",
		"../fixtures/mnist/checkpoints/epoch-30.onnx",
	} {
		m, err := onnxio.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		models = append(models, m)
	}
	set, err := checkpoints.New(models)
	if err != nil {
		log.Fatal(err)
	}
	layout := set.Layout
	fmt.Println(layout.Len(weights.Parameter), "parameters,", layout.Len(weights.Statistic), "statistics")

	mean := make(weights.Slice, layout.Len(weights.Parameter))
	theta := make(weights.Slice, len(mean))
	for _, m := range models {
		v, err := m.Vector(layout, weights.Parameter)
		if err != nil {
			log.Fatal(err)
		}
		if err := v.ReadAt(theta, 0); err != nil {
			log.Fatal(err)
		}
		for i := range mean {
			mean[i] += theta[i] / 2
		}
	}
	// Statistics are not averaged: they must be recomputed for the new weights.
	statistics, err := models[1].Vector(layout, weights.Statistic)
	if err != nil {
		log.Fatal(err)
	}
	template, err := onnxio.NewTemplate(models[1], layout)
	if err != nil {
		log.Fatal(err)
	}
	average, err := template.Render(layout, mean, statistics)
	if err != nil {
		log.Fatal(err)
	}
	m, err := onnxio.Parse("average.onnx", average)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(m.Graph.Nodes) == len(models[1].Graph.Nodes), len(average) == len(models[1].Bytes()))
	// Output:
	// 19714 parameters, 368 statistics
	// true true
}
