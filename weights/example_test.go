package weights_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/weights"
)

// A posterior's moments are written block by block, as a fit produces them,
// and read back in any stretch.
func Example() {
	layout, err := weights.NewLayout([]weights.Tensor{
		{Name: "fc.weight", Shape: []int64{2, 2}, DType: weights.F32, Role: weights.Parameter},
		{Name: "fc.bias", Shape: []int64{2}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "posterior.safetensors")

	f, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	d := layout.Len(weights.Parameter)
	w, err := weights.NewSafetensorsWriter(f, []weights.Section{
		{Name: "mean", DType: weights.F32, Shape: []int64{d}},
		{Name: "variance", DType: weights.F32, Shape: []int64{d}},
	}, map[string]string{"kind": "example"})
	if err != nil {
		log.Fatal(err)
	}
	const block = 4
	for off := int64(0); off < d; off += block {
		n := min(block, d-off)
		values := make([]float32, n)
		encoded := make([]byte, n*weights.F32.Size())
		for section := range 2 {
			for i := range values {
				values[i] = float32(off+int64(i)) / float32(1+section)
			}
			weights.F32.PutFloat32s(encoded, values)
			if _, err := w.Section(section).Write(encoded); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}

	st, err := weights.OpenSafetensors(path)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	fmt.Println(st.Metadata["kind"], st.Verify())
	variance, _ := st.View("variance")
	stretch := make([]float32, 3)
	variance.Float32s(stretch, 3)
	tensor, i := layout.At(weights.Parameter, 4)
	fmt.Println(stretch, tensor.Name, i)
	// Output:
	// example <nil>
	// [1.5 2 2.5] fc.bias 0
}
