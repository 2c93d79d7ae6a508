package preprocess

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"strings"
	"testing"
)

// Two pixels, 10 20 30 and 40 50 60, come out of every layout and order.
func TestViewOrders(t *testing.T) {
	grey := []color.Color{color.Gray{10}, color.Gray{40}}
	colours := []color.Color{color.RGBA{10, 20, 30, 255}, color.RGBA{40, 50, 60, 255}}
	for _, tt := range []struct {
		shape  []int64
		pre    Settings
		values []byte
		want   []color.Color
	}{
		{[]int64{3, 1, 2}, Settings{}, []byte{10, 40, 20, 50, 30, 60}, colours},
		{[]int64{3, 1, 2}, Settings{Channels: "bgr"}, []byte{30, 60, 20, 50, 10, 40}, colours},
		{[]int64{1, 2, 3}, Settings{Layout: "nhwc"}, []byte{10, 20, 30, 40, 50, 60}, colours},
		{[]int64{1, 2, 3}, Settings{Layout: "nhwc", Channels: "bgr"}, []byte{30, 20, 10, 60, 50, 40}, colours},
		{[]int64{1, 1, 2}, Settings{}, []byte{10, 40}, grey},
		{[]int64{1, 2, 1}, Settings{Layout: "nhwc"}, []byte{10, 40}, grey},
		{[]int64{1, 2}, Settings{}, []byte{10, 40}, grey},
		// What was resized and cropped is not again.
		{[]int64{1, 1, 2}, Settings{Image: Transform{CropMode: Center, InputSize: [2]int{9, 9}}}, []byte{10, 40}, grey},
	} {
		v, err := tt.pre.View(tt.shape)
		if err != nil {
			t.Errorf("%d: %v", tt.shape, err)
			continue
		}
		img := v.Bytes(tt.values).Image()
		if img.Bounds() != image.Rect(0, 0, 2, 1) {
			t.Errorf("%d: %v", tt.shape, img.Bounds())
			continue
		}
		for x, want := range tt.want {
			if img.At(x, 0) != want {
				t.Errorf("shape %d, %+v: pixel %d is %v, want %v", tt.shape, tt.pre, x, img.At(x, 0), want)
			}
		}
	}
	for _, shape := range [][]int64{{784}, {2, 32, 32}, {1, 3, 8, 8}} {
		if _, err := (Settings{}).View(shape); err == nil || !strings.Contains(err.Error(), "cannot be shown") {
			t.Errorf("shape %d: %v", shape, err)
		}
	}
}

func TestViewValues(t *testing.T) {
	big := float32(math.MaxFloat32)
	for _, tt := range []struct {
		name   string
		pre    Settings
		values []float32
		want   []byte
	}{
		{"0 to 1", Settings{}, []float32{0, 0.2, 0.5}, []byte{0, 51, 128}},
		{"normalised by us", Settings{Mean: []float64{0.5}, Std: []float64{0.25}}, []float32{-2, 2, 0}, []byte{0, 255, 128}},
		{"normalised before", Settings{}, []float32{-2, 3, 0.5}, []byte{0, 255, 128}},
		{"0 to 255 as floats", Settings{}, []float32{0, 255, 51}, []byte{0, 255, 51}},
		{"constant", Settings{}, []float32{7, 7, 7}, []byte{128, 128, 128}},
		{"far apart", Settings{}, []float32{-big, big, 0}, []byte{0, 255, 128}},
	} {
		v, err := tt.pre.View([]int64{1, 1, 3})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Floats(tt.values).Image().(*image.Gray).Pix; !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Mean and Std are red, green, blue, wherever the channels lie.
func TestViewUnnormalizesByChannel(t *testing.T) {
	pre := Settings{Mean: []float64{0.2, 0.4, 0.6}, Std: []float64{1, 1, 2}}
	want := color.RGBA{51, 102, 255, 255} // 0.2, 0.4, 0.6 + 2·0.2
	for _, tt := range []struct {
		shape            []int64
		channels, layout string
		values           []float32
	}{
		{[]int64{3, 1, 1}, "rgb", "nchw", []float32{0, 0, 0.2}},
		{[]int64{3, 1, 1}, "bgr", "nchw", []float32{0.2, 0, 0}},
		{[]int64{1, 1, 3}, "bgr", "nhwc", []float32{0.2, 0, 0}},
	} {
		pre.Channels, pre.Layout = tt.channels, tt.layout
		v, err := pre.View(tt.shape)
		if err != nil {
			t.Fatal(err)
		}
		if img := v.Floats(tt.values).Image(); img.At(0, 0) != want {
			t.Errorf("%s %s: %v", tt.channels, tt.layout, img)
		}
	}
}
