package preprocess

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestFloats: floats of either size, by channel, and the way back.
func TestFloats(t *testing.T) {
	s := Settings{Mean: []float64{0.5, 0.25}, Std: []float64{0.5, 2}, Scale: 2}
	for layout, shape := range map[string][]int64{"nchw": {2, 1, 2}, "nhwc": {1, 2, 2}} {
		s.Layout = layout
		n, err := s.Normalizer(shape, false)
		if err != nil {
			t.Fatal(err)
		}
		x, want := []float64{1, 0, 0.125, 0.25}, []float32{3, -1, 0, 0.125} // two values of each channel
		if layout == "nhwc" {
			x, want = []float64{1, 0.125, 0, 0.25}, []float32{3, 0, -1, 0.125}
		}
		var b4, b8 []byte
		for _, v := range x {
			b4 = binary.LittleEndian.AppendUint32(b4, math.Float32bits(float32(v)))
			b8 = binary.LittleEndian.AppendUint64(b8, math.Float64bits(v))
		}
		for _, b := range [][]byte{b4, b8} {
			got := make([]float32, 4)
			if bad := n.Floats(got, b, len(b)/4); bad != -1 || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %d, want %v", layout, got, bad, want)
			}
			n.Undo(got)
			for i, v := range got {
				if float64(v) != 2*x[i] {
					t.Errorf("%s: value %d comes back as %v, want %v", layout, i, v, 2*x[i])
				}
			}
		}
		binary.LittleEndian.PutUint32(b4[8:], math.Float32bits(float32(math.Inf(1))))
		if bad := n.Floats(make([]float32, 4), b4, 4); bad != 2 {
			t.Errorf("%s: the bad one is %d, want 2", layout, bad)
		}
	}
}

func TestNormalizerErrors(t *testing.T) {
	shape := []int64{3, 4, 2}
	for _, tt := range []struct {
		s    Settings
		want string
	}{
		{Settings{Mean: []float64{1, 2}}, "2 values of mean, want 1 or 3: the channels, first dimension of shape [3 4 2]"},
		{Settings{Std: []float64{1, 2, 3}, Layout: "nhwc"}, "3 values of std, want 1 or 2: the channels, last dimension of shape [3 4 2]"},
		{Settings{Std: []float64{1, 0, 1}}, "std [1 0 1], want positive numbers"},
		{Settings{Std: []float64{1e-60}}, "std [1e-60], want positive numbers"},
		{Settings{Mean: []float64{math.NaN()}}, "mean [NaN], want finite numbers"},
		{Settings{Std: []float64{math.Inf(1)}}, "std [+Inf], want finite numbers"},
		{Settings{Scale: -1}, "scale -1, want a positive number"},
		{Settings{Scale: 1e38}, "scale 1e+38, mean [], std [] overflow float32"},
		{Settings{Channels: "rbg"}, `channels "rbg", want rgb, bgr or grey`},
	} {
		_, err := tt.s.Normalizer(shape, true)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}
