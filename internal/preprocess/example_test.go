package preprocess_test

import (
	"fmt"
	"log"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// A picture becomes what a network takes, and a picture again.
func Example() {
	s, err := preprocess.Preset("imagenet")
	if err != nil {
		log.Fatal(err)
	}
	shape := []int64{3, 2, 2} // of the network's input
	if s, err = s.Resolve(shape); err != nil {
		log.Fatal(err)
	}
	n, err := s.Normalizer(shape, true)
	if err != nil {
		log.Fatal(err)
	}
	view, err := s.View(shape)
	if err != nil {
		log.Fatal(err)
	}
	white := picture.New(9, 7, 3)
	for i := range white.Pix {
		white.Pix[i] = 255
	}
	small, err := s.Image.Apply(white)
	if err != nil {
		log.Fatal(err)
	}
	pixels, x := make([]byte, 12), make([]float32, 12)
	s.Lay(pixels, small)
	n.Bytes(x, pixels)
	fmt.Printf("%.4f %.4f %.4f\n", x[0], x[4], x[8]) // red, green and blue of the first pixel
	fmt.Println(view.Floats(x).Pix)
	// Output:
	// 2.2489 2.4286 2.6400
	// [255 255 255 255 255 255 255 255 255 255 255 255]
}
