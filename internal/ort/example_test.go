package ort_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/swagwrap/swagwrap/internal/ort"
)

func Example() {
	library, err := ort.Provider{}.Find("") // after `swagwrap setup`
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Provider{}.Open(library)
	if err != nil {
		log.Fatal(err)
	}
	model, err := os.ReadFile("testdata/linear.onnx")
	if err != nil {
		log.Fatal(err)
	}
	session, err := rt.NewSession(model, ort.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	x := ort.Tensor{Name: "x", Shape: []int64{2, 3}, F32: []float32{1, 0, 0, 1, 1, 1}}
	y, err := session.Run(context.Background(), []ort.Tensor{x})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y[0].Name, y[0].Shape, y[0].F32)
	// Output: y [2 2] [11 22 19 32]
}
