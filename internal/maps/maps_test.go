package maps

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

var (
	sides   = [3]int{1, 3}
	class   = task.Column{Name: "prediction", Kind: task.Class}
	entropy = task.Column{Name: "predictive_entropy"}
)

// Classes are the indices of a palette, and of 16 bits if there are many. Other values are shares of the largest possible
// one.
func TestWritePNG(t *testing.T) {
	for _, tc := range []struct {
		classes int
		column  task.Column
		values  []float32
		want    []uint16
	}{
		{3, class, []float32{0, 2, 1}, []uint16{0, 2, 1}},
		{300, class, []float32{0, 299, 1}, []uint16{0, 299, 1}},
		{4, entropy, []float32{0, float32(math.Log(4)), float32(math.Log(2))}, []uint16{0, math.MaxUint16, 32768}},
		{4, task.Column{Name: task.SizeColumn}, []float32{0, 4, 2}, []uint16{0, math.MaxUint16, 32768}},
		{4, task.Column{Name: "confidence"}, []float32{1, 0, 1.5}, []uint16{math.MaxUint16, 0, math.MaxUint16}},
	} {
		var b bytes.Buffer
		if err := WritePNG(&b, sides, tc.classes, tc.column, tc.values); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		for x, want := range tc.want {
			var got uint16
			switch p := img.(type) {
			case *image.Paletted:
				got = uint16(p.ColorIndexAt(x, 0))
			case *image.Gray16:
				got = p.Gray16At(x, 0).Y
			}
			if got != want {
				t.Errorf("%s of %d classes: pixel %d is %d, want %d", tc.column.Name, tc.classes, x, got, want)
			}
		}
	}
}

func TestWriteArray(t *testing.T) {
	values := []float32{0, 2, 1}
	for _, tc := range []struct {
		column task.Column
		dtype  string
		data   any
	}{{class, "<u2", []uint16{0, 2, 1}}, {entropy, "<f4", values}} {
		var got bytes.Buffer
		if err := WriteArray(&got, sides, 3, tc.column, values); err != nil {
			t.Fatal(err)
		}
		want := bytes.NewBuffer(numpy.Header(tc.dtype, 1, 3))
		binary.Write(want, binary.LittleEndian, tc.data)
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: %q, want %q", tc.column.Name, got.Bytes(), want.Bytes())
		}
	}
}

// A wrong pixel is red, a right one black, and one without a label grey.
func TestPanels(t *testing.T) {
	predicted := picture(sides, 3, class, []float32{1, 1, 2}).(*image.Paletted)
	flat := image.NewGray16(predicted.Bounds())
	out := Panels(predicted, predicted, flat, flat, []int{1, 2, -1})
	if want := image.Rect(0, 0, 3*3+4, 2*1+2); out.Bounds() != want {
		t.Fatalf("%v, want %v", out.Bounds(), want)
	}
	for x, want := range []color.Color{color.Black, color.RGBA{220, 40, 40, 255}, color.RGBA{128, 128, 128, 255}} {
		if got := out.At(x, 3); color.RGBAModel.Convert(want) != got {
			t.Errorf("pixel %d: %v, want %v", x, got, want)
		}
	}
}
