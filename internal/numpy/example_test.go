package numpy_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// The images of an .npz, and the labels that stand beside them.
func Example() {
	f, err := numpy.Open("../dataset/testdata/plain.npz")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	images, err := f.Pick(numpy.Images, "") // by its name
	if err != nil {
		log.Fatal(err)
	}
	x, err := f.Read(images, numpy.Images)
	if err != nil {
		log.Fatal(err)
	}
	key, err := f.Pick(numpy.Labels, images)
	if err != nil {
		log.Fatal(err)
	}
	labels, err := f.ReadLabels(key, x.Shape[0], f.Path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Keys, x.Type.Name, x.Shape, len(x.Data), labels)
	// Output: [images labels] uint8 [5 3 4 2] 120 [3 0 9 1 200]
}
