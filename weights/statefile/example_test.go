package statefile_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/weights/statefile"
)

func Example() {
	f, err := statefile.Open("testdata/lightning.ckpt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	sd, err := f.StateDict("")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("step", f.Step, "in", sd)
	for _, t := range sd.Tensors[:3] {
		fmt.Println(t.Name, "is", t.Short, t.DType, t.Shape)
	}
	// Output:
	// step 500 in "state_dict" (9 tensors)
	// model.gain is gain F32 []
	// model.scale is scale F32 [1]
	// model.conv.weight is conv.weight F32 [3 2 3 3]
}
