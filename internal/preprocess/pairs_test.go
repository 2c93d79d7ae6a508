package preprocess

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// painted is a file of a picture of w by h pixels.
func painted(t *testing.T, w, h int, at func(x, y int) color.NRGBA) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, at(x, y))
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Files that prove nothing are an error, and no settings. Right pairs of loaders are in cmd/swagwrap/testdata/reference/pairs.py.
func TestPairsWithoutProof(t *testing.T) {
	t.Parallel()
	grey := painted(t, 9, 9, func(int, int) color.NRGBA { return color.NRGBA{7, 7, 7, 255} })
	many := painted(t, 9, 9, func(x, y int) color.NRGBA { return color.NRGBA{byte(20 * x), byte(20 * y), byte(x * y), 255} })
	tensor := func(v func(i int) float64) []float64 {
		out := make([]float64, 3*6*6)
		for i := range out {
			out[i] = v(i)
		}
		return out
	}
	for name, tc := range map[string]struct {
		file   []byte
		tensor []float64
		shape  []int64
		want   string // the error, or "" for no settings
	}{
		"a text":         {[]byte("a text of several words"), tensor(func(int) float64 { return 1 }), []int64{3, 6, 6}, "raw example 0: not an image"},
		"truncated":      {many[:len(many)/2], tensor(func(int) float64 { return 1 }), []int64{3, 6, 6}, "raw example 0: PNG"},
		"one colour":     {grey, tensor(func(int) float64 { return 0.5 }), []int64{3, 6, 6}, "prove nothing"},
		"equal tensors":  {many, tensor(func(int) float64 { return 0.5 }), []int64{3, 6, 6}, "prove nothing"},
		"six channels":   {many, tensor(func(i int) float64 { return float64(i) }), []int64{6, 6, 3, 1}, "prove nothing"},
		"another tensor": {many, tensor(func(i int) float64 { return float64(i%6+i/6%6) + float64(i*i%3)/3 }), []int64{3, 6, 6}, ""},
	} {
		p := &Pairs{Shape: tc.shape, Files: [][]byte{tc.file}, Tensors: [][]float64{tc.tensor}, Rounding: 5e-7}
		fits, nearest, err := p.Search()
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)), tc.want == "" && (err != nil || nearest.Levels < 1),
			fits != nil:
			t.Errorf("%s: %v, %v, error %v, want %q", name, fits, nearest, err, tc.want)
		}
	}
}

// The words of settings are read as the same settings.
func TestSettingsWords(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{
		{},
		{Mean: imagenetMean, Std: imagenetStd},
		{Scale: 1, Mean: []float64{103.939, 116.779, 123.68}, Std: []float64{1}, Channels: "bgr"},
		{Scale: 1},
		{Image: Transform{CropMode: Center, CropPct: 0.875, Interpolation: picture.Bicubic}},
		{Image: Transform{CropMode: Squash, ResizeSize: [2]int{40, 50}, Interpolation: picture.Box, CropRoundsDown: true, Tensor: true}},
		{Orientation: picture.Apply, ReduceLabels: true},
	} {
		if got, err := (Settings{}).With(s.Words()); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%q is read as %+v, want %+v (%v)", s.Words(), got, s, err)
		}
	}
}
