package picture_test

import (
	"fmt"
	"image"
	"os"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// What torchvision's Resize(32) and CenterCrop(24) make of a file.
func Example() {
	data, err := os.ReadFile("../../fixtures/images/transforms-64x48.png")
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := picture.Open(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := file.Decode(false)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, h := picture.ShortSide(p.W, p.H, 32)
	whole, err := picture.Resize(p, w, h, picture.Bilinear, image.Rect(0, 0, w, h))
	if err != nil {
		fmt.Println(err)
		return
	}
	// Only the part that is kept needs to be computed.
	cropped, err := picture.Resize(p, w, h, picture.Bilinear, picture.CentreCrop(w, h, 24, 24))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d×%d, %d×%d, %d×%d with %d channels\n", p.W, p.H, whole.W, whole.H, cropped.W, cropped.H, cropped.C)
	// Output: 64×48, 42×32, 24×24 with 3 channels
}
