package dataset_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

func Example() {
	d, err := dataset.Open([]string{"testdata/plain.npz"}, dataset.Options{
		Preprocess: preprocess.Settings{
			Mean: []float64{0.485, 0.456, 0.406},
			Std:  []float64{0.229, 0.224, 0.225},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Len(), "images of shape", d.Shape(), "labels", d.Labels().Classes)

	const batch = 2
	buf := dataset.Size{Floats: 3 * 4 * 2}.Make(batch) // reused by every batch
	order := dataset.Order{Shuffle: true, Seed: 1}
	for idx := range order.Batches(d.Len(), batch) {
		x, err := dataset.ReadBatch(d, buf, idx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(idx, len(x.Floats), d.Name(idx[0]))
	}
	// Output:
	// 5 images of shape [3 4 2] labels [3 0 9 1 200]
	// [3 0] 48 plain.npz[3]
	// [4 2] 48 plain.npz[4]
	// [1] 24 plain.npz[1]
}

// Images are decoded once, and normalised whenever they are needed.
func ExampleBytes() {
	preprocess, err := preprocess.Preset("imagenet")
	if err != nil {
		log.Fatal(err)
	}
	d, err := dataset.Open([]string{"../../fixtures/images/transforms-shard.tar"}, dataset.Options{
		Shape:      []int64{3, 32, 32}, // the network's
		Preprocess: preprocess,
	})
	if err != nil {
		log.Fatal(err)
	}
	images := d.(dataset.Bytes) // true of all image files
	pixels, x := make([]byte, 3*32*32), make([]float32, 3*32*32)
	if err := images.Pixels(pixels, 0); err != nil {
		fmt.Println(err) // names the image; the next may be good
	}
	for range 3 { // members
		images.Normalize(x, pixels)
	}
	fmt.Printf("%d images, class %d, red %d is %.4f\n", d.Len(), d.Labels().Classes[0], pixels[0], x[0])
	// Output:
	// 6 images, class 3, red 5 is -2.0323
}
