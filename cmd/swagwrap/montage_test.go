package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
)

// floats is a Dataset of values as a network takes them.
type floats struct {
	shape    []int64
	examples [][]float32
}

func (d floats) Len() int                  { return len(d.examples) }
func (d floats) Shape() []int64            { return d.shape }
func (d floats) Labels() []int             { return nil }
func (d floats) ClassNames() []string      { return nil }
func (d floats) Name(i int) string         { return fmt.Sprintf("x.npy[%d]", i) }
func (d floats) Sources() []dataset.Source { return []dataset.Source{{Path: "x.npy"}} }

func (d floats) Read(dst []float32, i int) error {
	if d.examples[i] == nil {
		return errors.New("x.npy: gone")
	}
	copy(dst, d.examples[i])
	return nil
}

// bytesOf is one of uint8 values.
type bytesOf struct{ floats }

func (d bytesOf) Pixels(dst []byte, i int) error {
	for k, v := range d.examples[i] {
		dst[k] = byte(v)
	}
	return nil
}

func (d bytesOf) Normalize([]float32, []byte) { panic("not for people") }

// Two pixels, 10 20 30 and 40 50 60, come out of every layout and order.
func TestViewOrders(t *testing.T) {
	grey := []color.Color{color.Gray{10}, color.Gray{40}}
	colours := []color.Color{color.RGBA{10, 20, 30, 255}, color.RGBA{40, 50, 60, 255}}
	for _, tt := range []struct {
		shape  []int64
		pre    dataset.Preprocess
		values []float32
		want   []color.Color
	}{
		{[]int64{3, 1, 2}, dataset.Preprocess{}, []float32{10, 40, 20, 50, 30, 60}, colours},
		{[]int64{3, 1, 2}, dataset.Preprocess{Channels: "bgr"}, []float32{30, 60, 20, 50, 10, 40}, colours},
		{[]int64{1, 2, 3}, dataset.Preprocess{Layout: "nhwc"}, []float32{10, 20, 30, 40, 50, 60}, colours},
		{[]int64{1, 2, 3}, dataset.Preprocess{Layout: "nhwc", Channels: "bgr"}, []float32{30, 20, 10, 60, 50, 40}, colours},
		{[]int64{1, 1, 2}, dataset.Preprocess{}, []float32{10, 40}, grey},
		{[]int64{1, 2, 1}, dataset.Preprocess{Layout: "nhwc"}, []float32{10, 40}, grey},
		{[]int64{1, 2}, dataset.Preprocess{}, []float32{10, 40}, grey},
		// What was resized and cropped is not again.
		{[]int64{1, 1, 2}, dataset.Preprocess{Image: dataset.Transform{CropMode: dataset.Center, InputSize: [2]int{9, 9}}}, []float32{10, 40}, grey},
	} {
		d := bytesOf{floats{tt.shape, [][]float32{tt.values}}}
		v, err := newView(d, tt.pre)
		if err != nil {
			t.Errorf("%d: %v", tt.shape, err)
			continue
		}
		img, err := v.image(d, 0)
		if err != nil || img.Bounds() != image.Rect(0, 0, 2, 1) {
			t.Errorf("%d: %v, %v", tt.shape, img.Bounds(), err)
			continue
		}
		for x, want := range tt.want {
			if img.At(x, 0) != want {
				t.Errorf("shape %d, %+v: pixel %d is %v, want %v", tt.shape, tt.pre, x, img.At(x, 0), want)
			}
		}
	}
	for _, shape := range [][]int64{{784}, {2, 32, 32}, {1, 3, 8, 8}} {
		if _, err := newView(floats{shape: shape}, dataset.Preprocess{}); err == nil || !strings.Contains(err.Error(), "cannot be shown") {
			t.Errorf("shape %d: %v", shape, err)
		}
	}
}

func TestViewValues(t *testing.T) {
	big := float32(math.MaxFloat32)
	for _, tt := range []struct {
		name   string
		pre    dataset.Preprocess
		values []float32
		want   []byte
	}{
		{"0 to 1", dataset.Preprocess{}, []float32{0, 0.2, 0.5}, []byte{0, 51, 128}},
		{"normalised by us", dataset.Preprocess{Mean: []float64{0.5}, Std: []float64{0.25}}, []float32{-2, 2, 0}, []byte{0, 255, 128}},
		{"normalised before", dataset.Preprocess{}, []float32{-2, 3, 0.5}, []byte{0, 255, 128}},
		{"0 to 255 as floats", dataset.Preprocess{}, []float32{0, 255, 51}, []byte{0, 255, 51}},
		{"constant", dataset.Preprocess{}, []float32{7, 7, 7}, []byte{128, 128, 128}},
		{"far apart", dataset.Preprocess{}, []float32{-big, big, 0}, []byte{0, 255, 128}},
	} {
		d := floats{[]int64{1, 1, 3}, [][]float32{tt.values}}
		v, err := newView(d, tt.pre)
		if err != nil {
			t.Fatal(err)
		}
		img, err := v.image(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := img.(*image.Gray).Pix; !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Mean and Std are red, green, blue, wherever the channels lie.
func TestViewUnnormalizesByChannel(t *testing.T) {
	pre := dataset.Preprocess{Mean: []float64{0.2, 0.4, 0.6}, Std: []float64{1, 1, 2}}
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
		d := floats{tt.shape, [][]float32{tt.values}}
		v, err := newView(d, pre)
		if err != nil {
			t.Fatal(err)
		}
		if img, err := v.image(d, 0); err != nil || img.At(0, 0) != want {
			t.Errorf("%s %s: %v, %v", tt.channels, tt.layout, img, err)
		}
	}
}

func TestMontageFlags(t *testing.T) {
	d := floats{[]int64{1, 1, 2}, [][]float32{{0, 1}, nil}}
	for _, tt := range []struct {
		args []string
		data dataset.Dataset
		want string // of the error; "nothing" or "a montage" without one
	}{
		{nil, d, "nothing"},
		{[]string{"--montage", "a.html"}, d, "a montage"},
		{[]string{"--montage", "a.PNG", "--montage-images", "1"}, d, "a montage"},
		{[]string{"--montage", "a.pdf"}, d, `unknown format ".pdf", want .html or .png`},
		{[]string{"--montage-images", "3"}, d, "--montage-images without --montage"},
		{[]string{"--montage", "a.png", "--montage-images", "0"}, d, "--montage-images 0: want 1 to 100"},
		{[]string{"--montage", "a.png"}, floats{shape: []int64{784}}, "x.npy: examples of shape [784] cannot be shown"},
	} {
		got := ""
		app := &cli.App{Flags: montageFlags, Action: func(c *cli.Context) error {
			m, err := newMontage(c, tt.data, dataset.Preprocess{})
			switch {
			case err != nil:
				got = err.Error()
				if flags.ExitCode(t.Context(), err) != 64 {
					t.Errorf("%q: exit code %d", tt.args, flags.ExitCode(t.Context(), err))
				}
				return nil
			case m == nil:
				got = "nothing"
				return nil
			}
			got = "a montage"
			for i := range tt.data.Len() {
				m.Add(report.Example{Index: i, Label: -1, Top: []report.Score{{Class: 1, Probability: 0.5}}, Entropy: float64(i)})
			}
			var b bytes.Buffer
			err = m.show(&b, "title", "note", []string{"cat", "dog"})
			if err != nil || b.Len() == 0 {
				t.Errorf("%q: %d bytes, %v", tt.args, b.Len(), err)
			}
			if page := b.String(); strings.HasPrefix(page, "<") && (!strings.Contains(page, "x.npy[0]: predicted dog, 50.0 %") || !strings.Contains(page, "x.npy: gone")) {
				t.Errorf("%q: the page lacks an example:\n%s", tt.args, page)
			}
			return nil
		}}
		if err := app.Run(append([]string{"score"}, tt.args...)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
}
