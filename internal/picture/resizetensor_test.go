package picture

import (
	"crypto/sha256"
	"encoding/hex"
	"image"
	"testing"
)

// The hashes are those of torchvision.transforms.v2.functional.resize(tensor, [h, w], interpolation, antialias=True), of torchvision
// 0.29.2 with torch 2.15.0 on a processor with AVX2. The pixel in row y and column x of channel k is (7x + 13y + 29k + 11s) mod 97
// + 100·((x/5 + y/3) mod 2) + (xy + k) mod 23, where s is the width.
func TestResizeTensor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		w, h, c, toW, toH int
		filter            Filter
		sum               string
	}{
		{61, 47, 1, 28, 22, Bilinear, "a015e0334f7d879b"},
		{61, 47, 1, 28, 22, Bicubic, "b58553b2f04ba9ac"},
		{61, 47, 3, 28, 22, Bilinear, "a535c360d5aa30e9"},
		{61, 47, 3, 28, 22, Bicubic, "0c8fa344c0bc9dc5"},
		{40, 90, 1, 17, 33, Bilinear, "0553f92807900165"},
		{40, 90, 1, 17, 33, Bicubic, "08ccc577cfc6600f"},
		{40, 90, 3, 17, 33, Bilinear, "73f8c014572f5dd3"},
		{40, 90, 3, 17, 33, Bicubic, "5b66d1141c639c74"},
		{300, 20, 1, 31, 18, Bilinear, "edfe2c3d53edb9b1"},
		{300, 20, 1, 31, 18, Bicubic, "087587ac5b2b7b93"},
		{300, 20, 3, 31, 18, Bilinear, "bda8595e9003ad2f"},
		{300, 20, 3, 31, 18, Bicubic, "0fcbb4e1b0dcdde7"},
		{20, 31, 1, 45, 50, Bilinear, "57d7e269585f3a9b"},
		{20, 31, 1, 45, 50, Bicubic, "5d7582dad198c43d"},
		{20, 31, 3, 45, 50, Bilinear, "3e2ee209b874d804"},
		{20, 31, 3, 45, 50, Bicubic, "e6d0b4816bec8316"},
		{33, 33, 1, 33, 20, Bilinear, "c50217614993a8f0"},
		{33, 33, 1, 33, 20, Bicubic, "6df0dc94a36a4c70"},
		{33, 33, 3, 33, 20, Bilinear, "5c97dd76a7b3533c"},
		{33, 33, 3, 33, 20, Bicubic, "52fc38a3b2a48fbd"},
		{64, 48, 1, 24, 24, Bilinear, "ac8873b2749d4d07"},
		{64, 48, 1, 24, 24, Bicubic, "0f012240b36ede9d"},
		{64, 48, 3, 24, 24, Bilinear, "4dc52e0426fcd96a"},
		{64, 48, 3, 24, 24, Bicubic, "3b36043c9e66b778"},
	} {
		src := New(tc.w, tc.h, tc.c)
		for i := range src.Pix {
			k, x, y := i%tc.c, i/tc.c%tc.w, i/tc.c/tc.w
			src.Pix[i] = byte((7*x+13*y+29*k+11*tc.w)%97 + (x/5+y/3)%2*100 + (x*y+k)%23)
		}
		whole, err := ResizeTensor(src, tc.toW, tc.toH, tc.filter, image.Rect(0, 0, tc.toW, tc.toH))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(whole.Pix)
		if got := hex.EncodeToString(sum[:])[:16]; got != tc.sum {
			t.Errorf("%v: %s", tc, got)
		}
		part, err := ResizeTensor(src, tc.toW, tc.toH, tc.filter, image.Rect(3, 5, tc.toW, tc.toH))
		if err != nil || string(part.Row(0)) != string(whole.Row(5)[3*tc.c:]) {
			t.Errorf("%v: a part has other pixels than the whole (%v)", tc, err)
		}
	}
}
