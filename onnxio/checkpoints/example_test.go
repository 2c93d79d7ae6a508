package checkpoints_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// From checkpoints to a posterior, and from it to a member. swagwrap sample and swagwrap compare read the posterior's file.
// With ONNX models as checkpoints, the graph is "".
func ExampleOpenRun() {
	const mnist = "../../fixtures/mnist/"
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	run, err := checkpoints.OpenRun(ctx, mnist+"model.onnx", mnist+"states/epoch-28.pt", mnist+"states/epoch-29.pt", mnist+"states/epoch-30.pt")
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	posterior, err := swag.FitFile(ctx, filepath.Join(dir, "posterior.safetensors"), run.Input, swag.FitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer posterior.Close()
	sampler, err := swag.NewSampler(posterior, swag.SampleOptions{Seed: 1, Scale: 0.5})
	if err != nil {
		log.Fatal(err)
	}
	member, err := sampler.Member(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(posterior.Checkpoints), "checkpoints, and a member of", len(member), "weights")
	// Output:
	// 3 checkpoints, and a member of 19714 weights
}

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
