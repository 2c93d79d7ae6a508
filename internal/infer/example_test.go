package infer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// An engine runs any model over a dataset; sums collect what averaging needs.
func Example() {
	library, err := ort.Provider{}.Find("")
	if err != nil {
		log.Fatal(err)
	}
	runtime, err := ort.Provider{}.Open(library)
	if err != nil {
		log.Fatal(err)
	}
	images, err := dataset.Open([]string{"../../cmd/swagwrap/testdata/images.npz"}, dataset.Options{})
	if err != nil {
		log.Fatal(err)
	}
	engine := infer.Run{Engine: infer.NewEngine(runtime, infer.EngineOptions{})}
	sums := &infer.Sums{}
	for _, name := range []string{"ckpt-1.onnx", "ckpt-2.onnx"} {
		m, err := onnxio.Open("../../cmd/swagwrap/testdata/" + name)
		if err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		graph, err := infer.ReadGraph(m, "", swag.Card{})
		if err != nil {
			log.Fatal(err)
		}
		filled, err := m.Runtime()
		if err != nil {
			log.Fatal(err)
		}
		model := infer.Model{Name: name, Graph: graph, Weight: 1, Filled: filled}
		if err := engine.Predict(context.Background(), model, images, sums); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%d members, %d examples, %s\n", sums.Members, images.Len(), sums.Task.About().Size)
	// Output: 2 members, 10 examples, 3 classes
}
