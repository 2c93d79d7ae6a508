package dataset_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/internal/dataset"
)

func Example() {
	d, err := dataset.Open("testdata/plain.npz", dataset.Options{
		Preprocess: dataset.Preprocess{
			Mean: []float64{0.485, 0.456, 0.406},
			Std:  []float64{0.229, 0.224, 0.225},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Len(), "images of shape", d.Shape(), "labels", d.Labels())

	const batch = 2
	buf := make([]float32, batch*3*4*2) // reused by every batch
	order := dataset.Order{Shuffle: true, Seed: 1}
	for idx := range order.Batches(d.Len(), batch) {
		x, err := dataset.ReadBatch(d, buf, idx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(idx, len(x), d.Name(idx[0]))
	}
	// Output:
	// 5 images of shape [3 4 2] labels [3 0 9 1 200]
	// [3 0] 48 plain.npz[3]
	// [4 2] 48 plain.npz[4]
	// [1] 24 plain.npz[1]
}
