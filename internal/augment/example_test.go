package augment_test

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// A picture as a network for 4×4 pixels saw it in training.
func Example() {
	p, err := augment.Parse("RandomCrop(padding=1), RandomHorizontalFlip")
	if err != nil {
		fmt.Println(err)
		return
	}
	if p, err = p.Resolve(4, 4); err != nil {
		fmt.Println(err)
		return
	}
	src := picture.New(4, 4, 1)
	for i := range src.Pix {
		src.Pix[i] = byte(10 + i)
	}
	for key := range uint64(2) {
		seen, err := p.Picture(src, key)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(seen.Row(0), seen.Row(3))
	}
	fmt.Println(p)
	// Output:
	// [0 0 0 0] [21 20 19 18]
	// [0 13 12 11] [0 25 24 23]
	// RandomCrop(4, padding=1), RandomHorizontalFlip
}
