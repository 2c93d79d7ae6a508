package checkpoints_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// Three checkpoints of one network: what differs between them are its parameters.
func Example() {
	var models []*onnxio.Model
	for _, epoch := range []int{28, 29, 30} {
		m, err := onnxio.Open(fmt.Sprintf("../../fixtures/mnist/checkpoints/epoch-%d.onnx", epoch))
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
	fmt.Println(set.Layout.Len(weights.Parameter), "parameters,", set.Layout.Len(weights.Statistic), "statistics")
	fmt.Println("the names are those of", set.Models[set.Reference].Path, "and matched by place:", set.ByPlace)
	// Output:
	// 19714 parameters, 368 statistics
	// the names are those of ../../fixtures/mnist/checkpoints/epoch-30.onnx and matched by place: false
}
